// Lantern: staged automatic differentiation. The one header a user includes.
//
// What namespace lantern has is listed here; each line names the place where it is documented in full. Functions of
// Reps (`exp`, `max`, `sum`, `dot`, `matmul`, `fill`, ...) are found by their arguments as well, without `lantern::`.
// A program's own functions and local variables of these names stand beside them. Everything in lantern::core,
// lantern::ir and below is the compiler's own.
#pragma once

#if __cplusplus < 202002L
#error "Lantern is written in C++20: compile with -std=c++20"
#include "nothing, so that the compiler stops here"
#elif defined(__clang__) && __clang_major__ < 16
#error "Lantern needs clang++ 16 or g++ 12, or a later one"
#include "nothing, so that the compiler stops here"
#elif !defined(__clang__) && defined(__GNUC__) && __GNUC__ < 12
#error "Lantern needs g++ 12 or clang++ 16, or a later one"
#include "nothing, so that the compiler stops here"
#elif defined(_GLIBCXX_DEBUG)
#error "_GLIBCXX_DEBUG changes the types of the standard library, and Lantern's libraries have those without it: compile with -D_GLIBCXX_ASSERTIONS, which checks and changes no type"
#include "nothing, so that the compiler stops here"
#elif defined(_GLIBCXX_USE_CXX11_ABI) && !_GLIBCXX_USE_CXX11_ABI
#error "Lantern's libraries have the strings of C++11: compile without -D_GLIBCXX_USE_CXX11_ABI=0"
#include "nothing, so that the compiler stops here"
#endif

#include "lantern/compiler/ad/checkpoint.hpp"
#include "lantern/compiler/ad/closure.hpp"
#include "lantern/compiler/ad/custom_derivative.hpp"
#include "lantern/compiler/ad/derivative.hpp"
#include "lantern/compiler/ad/fixpoint.hpp"
#include "lantern/compiler/ad/jacobian.hpp"
#include "lantern/compiler/ad/sparse.hpp"
#include "lantern/compiler/ad/vmap.hpp"
#include "lantern/compiler/control/control.hpp"
#include "lantern/compiler/driver/check_derivative.hpp"
#include "lantern/compiler/driver/compile.hpp"
#include "lantern/compiler/driver/function.hpp"
#include "lantern/compiler/driver/sparsity.hpp"
#include "lantern/compiler/staging/control_flow.hpp"
#include "lantern/compiler/staging/einsum.hpp"
#include "lantern/compiler/staging/external.hpp"
#include "lantern/compiler/staging/functions.hpp"
#include "lantern/compiler/staging/print.hpp"
#include "lantern/compiler/staging/rep.hpp"
#include "lantern/compiler/tensor/trees.hpp"

namespace lantern {

// Values: compiler/staging/rep.hpp, containers.hpp; runtime/tree.hpp, tensor.hpp.
using core::Rep;     ///< Rep<T>, T one of bool, int32_t, int64_t, float, double, and of the next three
using core::Array;   ///< Array<T>: one dimension; enters as std::span<const T>, returns as std::vector<T>
using core::Tensor;  ///< Tensor<T, dims...>: row-major; enters as TensorView<const T>, returns as TensorValue<T>
using core::dyn;     ///< a dimension of Tensor<T, dims...> that is known only at run time
using core::named::all;     ///< t(all, range(1, -1), i): part of a tensor; t.set_part({all, 0}, v): with a part replaced
using core::range;
using core::to_end;  ///< the end of a dimension: range(1, to_end)
// Tree<T>: a binary tree; TreeBuilder<T> makes large ones; TreeBatch<T>: many of them.
using core::Dags;    ///< Dags<T>: what a function takes a DagBatch<T> as (tensor/trees.hpp)
using core::Trees;   ///< Trees<T>: what a function takes a TreeBatch<T> as (tensor/trees.hpp)

using core::cast;    ///< cast<double>(n): between number types
using core::zeros;   ///< zeros<double>({2, n}): a tensor of zeros; sizes are numbers or Reps
using core::full;    ///< full(v, {2, n}): the same with all elements v
using core::fill;    ///< fill(v, n): an array of n elements v; fill(v, m, n): a matrix
using core::zeros_like;
using core::constant_table;  ///< constant_table(table)[i]: a container of C++ as an array
using core::einsum;  ///< einsum<"ij,jk->ik">(a, b): products and sums in index notation (staging/einsum.hpp)
using core::permute; ///< permute<2, 0, 1>(t); beside it sum<0>(t) and mean<0, 2>(t), over dimensions
using core::select;  ///< select(c, a, b): `a` where the condition holds, else `b`; both are computed

// Functions of <cmath>, of numbers and element by element: those of the rows MATH_1 and MATH_2 of ir/ops.inc, and three.
#define MATH_1(name, ...) using core::name;
#define MATH_2(name, ...) using core::standard_names::name;
#include "lantern/ir/ops.inc"
using core::abs;
using core::fabs;
using core::sign;

// More of them: compiler/staging/functions.hpp.
using core::clip;  ///< clip(x, lo, hi)
using core::digamma;
using core::gelu;
using core::gelu_tanh;
using core::relu;
using core::sigmoid;
using core::silu;
using core::softplus;

// Functions of arrays and tensors: compiler/staging/containers.hpp, einsum.hpp.
using core::argmax;
using core::as_array;
using core::as_tensor;
using core::concat;
using core::dot;
using core::logsumexp;
using core::matmul;
using core::max;  ///< max(t): the largest element; max(a, b): the larger
using core::standard_names::max;
using core::mean;  ///< mean<0>(t): over dimensions
using core::min;
using core::standard_names::min;
using core::outer;
using core::sum;  ///< sum(t): of all elements; sum<0, 2>(t): over dimensions
using core::transpose;

// Control flow over Reps: compiler/staging/control_flow.hpp.
using core::IF;           ///< IF(c, a, b): the result of one of two lambdas; only that one runs
using core::AND;          ///< AND(a, lambda): short-circuit conjunction
using core::OR;           ///< OR(a, lambda): short-circuit disjunction
using core::WHILE;        ///< WHILE(s, cond, body): repeats s = body(s) while cond(s)
using core::FOR;          ///< FOR(lo, hi, s, body): s = body(i, s) for i = lo .. hi-1
using core::LoopOptions;  ///< {.memory = bytes, .checkpoints = n}: what a loop's derivative may keep
using core::FUN;          ///< FUN<R(A...)>("name", body): a function that may call itself
using core::Fun;          ///< Fun<R(A...)> f("name"); f.define(body): the same, declared first
using core::TREE;         ///< TREE(init, tree, combine): folds a binary tree, or each of a batch (tensor/trees.hpp)
using core::TreeOptions;  ///< {.by_level = false}: how TREE folds a batch
using core::Var;          ///< Var<T> v = x: a variable that branches and loops may assign

// Derivatives; each takes a function and gives one. compiler/ad/derivative.hpp, and a header of its own where named.
using core::grad;            ///< grad(f): by all floating arguments; grad<0, 2>(f); grad<mode::forward>(f)
using core::value_and_grad;  ///< value_and_grad(f)(x...) = {y, gradient}
using core::jvp;             ///< jvp(f)(x..., dx...) = {y, dy}
using core::vjp;             ///< vjp(f)(x..., ybar) = {y, xbar}
using core::hvp;             ///< hvp(f)(x, v): Hessian times vector
using core::jacobian;        ///< jacobian(f)(x...): of the result's shape, then the argument's (jacobian.hpp)
using core::hessian;         ///< hessian(f)(a) (jacobian.hpp)
using core::sparse_jacobian;    ///< sparse_jacobian(f)(a, s): the entries of the sparsity s (sparse.hpp)
using core::sparse_hessian;     ///< sparse_hessian(f)(a, s)
using core::Sparsity;           ///< which entries there are, and their colours
using core::jacobian_sparsity;  ///< jacobian_sparsity(f)(x...) finds them (driver/sparsity.hpp)
using core::hessian_sparsity;
using core::taylor;           ///< taylor<k>(f)(x..., dx...): derivatives of order 0 to k in a direction
using core::vmap;             ///< vmap(f)(xs...): f for every example of a batch (vmap.hpp)
using core::fixpoint;         ///< fixpoint(f, x0, a...): solves x = f(x, a...) (fixpoint.hpp)
using core::FixpointOptions;  ///< {.tolerance, .iterations}
using core::custom_vjp;       ///< custom_vjp(f, fwd, bwd): f with a rule of one's own (custom_derivative.hpp)
using core::custom_jvp;       ///< custom_jvp(f, jvp)
using core::checkpoint;       ///< checkpoint(f)(x...): reverse mode computes the inside again (checkpoint.hpp)
using core::closure;          ///< closure(f): a function as a value (closure.hpp)
using core::stop_gradient;    ///< stop_gradient(x): the value, through which no derivative passes
using core::sig;              ///< sig<double(double)>(f): a generic lambda with a signature
using core::mode;             ///< how a gradient is computed: mode::reverse, mode::forward, ... (modes/modes.hpp)
using core::form;             ///< by the rule of the paper or by its fast path: form::literal, form::fast

// Running: compiler/driver/compile.hpp, function.hpp.
using core::compile;         ///< compile(f, options): a callable of plain C++ types
using core::Compiled;        ///< what it gives: f(in...), f.into(out..., in...), f.source("cpp")
using core::CompileOptions;  ///< target, opt, threads, strict_math, cache, ...
using core::Target;          ///< automatic, c, cpp, cuda
using core::CodeCache;       ///< where compiled code is kept between runs
using core::eager;           ///< eager(f): the same callable, computed by running f
using core::driver::workspace_bytes;  ///< bytes that the calling thread's compiled calls ever needed at once
using core::Check;           ///< Check::nan: the first value that is not finite is an Error
// LANTERN_FUNCTION(name, f): a C++ function `name`, compiled at its first call or, by lanternc, with the program.

// Code of one's own: compiler/staging/external.hpp.
using core::external;         ///< external("name", f): a plain C or C++ function as a function over Reps
using core::ExternalOptions;  ///< {.threads = true}: it may be called from several threads at once
using core::check_derivative;        ///< check_derivative(f)(x...): derivatives and rules beside differences
using core::DerivativeCheckOptions;  ///< {.tolerance, .elements}

// Looking at a program: compiler/staging/print.hpp.
using core::print;          ///< print(x, "label"): prints whenever x is computed; gives x
using core::print_adjoint;  ///< print_adjoint(x, "label"): prints the adjoint that arrives at x

// Delimited control and effects, of which every mode is made: compiler/control/shift.hpp, effect.hpp.
using core::shift;         ///< shift(prompt, f): runs f(k) with the rest of the computation, up to the reset, as k
using core::reset;         ///< reset(prompt, body): delimits what shift captures
using core::defer;         ///< defer(prompt, f): runs f when the rest, up to the reset, has ended
using core::Prompt;        ///< names a reset
using core::Continuation;  ///< what shift captures: called at most once
using core::Effect;        ///< struct Ask : Effect<double(int)> {}
using core::perform;       ///< perform<Ask>(3)
using core::handle;        ///< handle(body, on<Ask>(clause)..., returning(clause))
using core::on;
using core::resuming;    ///< resuming<Ask>(f): a clause that resumes with f(arguments...)
using core::perform_on;  ///< perform_on<Ask>(&instance, 3): asks the handler with on<Ask>(&instance, clause)
using core::handled;     ///< handled<Ask>(&instance): whether there is one
using core::returning;

}  // namespace lantern
