// Printed code: its text, and what it computes when tcc, the system's C compiler and its C++ compiler build it.
#include <catch2/catch.hpp>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "lantern/codegen/c/print_c.hpp"
#include "lantern/codegen/cpp/print_cpp.hpp"
#include "lantern/codegen/toolchain/system_compiler.hpp"
#include "lantern/codegen/toolchain/tcc.hpp"
#include "lantern/compiler/passes/close.hpp"
#include "lantern/ir/error.hpp"
#include "lantern/ir/graph.hpp"
#include "lantern/ir/parse.hpp"
#include "lantern/ir/verify.hpp"
#include "lantern/runtime/workspace.hpp"

using namespace lantern;
using codegen::Language;
using codegen::LoadedCode;
using codegen::print_c;
using codegen::print_cpp;

namespace {

using Module = std::unique_ptr<ir::Module>;

Module program(const std::string& text) {
  Module m = ir::parse(text);
  ir::verify(*m);
  return m;
}

struct Built {
  std::string how;
  std::unique_ptr<LoadedCode> code;
};

/// The program by tcc, by the system's compiler as C and as C++. C needs closed continuations; C++ is printed
/// before they are closed, and once more after.
std::vector<Built> build(ir::Module& m, codegen::PrintOptions options = {}) {
  std::vector<Built> all;
  codegen::ClangOptions flags;
  flags.opt_level = 1;
  const auto add_cpp = [&](const char* how) {
    all.push_back({how, codegen::compile_with_system_compiler(print_cpp(m, options), Language::cpp, flags)});
  };
  add_cpp("c++");
  int nested = 0;
  for (const ir::Function* f : m.functions()) nested += codegen::continuation_depth(*f);
  passes::close(m);
  ir::verify(m);
  if (nested > 0) add_cpp("c++, closed");
  const std::string c = print_c(m, options);
  all.push_back({"tcc", codegen::compile_with_tcc(c)});
  all.push_back({"c", codegen::compile_with_system_compiler(c, Language::c, flags)});
  return all;
}

void call(Workspace& ws, const Built& b, const std::string& name, std::vector<const void*> in, std::vector<void*> out) {
  ws.call(b.code->function<lt_entry>(name + "_entry"), in.data(), out.data());
}

/// A scalar function of one double by the entry, from every tool chain.
void check_values(ir::Module& m, const std::vector<std::pair<double, double>>& points) {
  const std::string name = m.entry->name;
  for (const Built& b : build(m)) {
    Workspace ws;
    for (const auto& [x, expected] : points) {
      double y = 0;
      call(ws, b, name, {&x}, {&y});
      INFO(b.how << " at " << x);
      CHECK(y == Approx(expected));
    }
  }
}

std::string failure(const Built& b, const std::string& name, std::vector<const void*> in, std::vector<void*> out) {
  Workspace ws;
  try {
    call(ws, b, name, std::move(in), std::move(out));
  } catch (const Error& e) {
    return e.what();
  }
  return "no failure";
}

LT_TENSOR(Vector, double, 1);
LT_TENSOR(Matrix, double, 2);

Vector view(std::vector<double>& v) { return {v.data(), {static_cast<std::int64_t>(v.size())}}; }
Matrix view(std::vector<double>& v, std::int64_t rows) {
  return {v.data(), {rows, static_cast<std::int64_t>(v.size()) / rows}};
}
std::vector<double> numbers(const Vector& v) { return {v.data, v.data + v.dim[0]}; }
std::vector<double> numbers(const Matrix& m) { return {m.data, m.data + m.dim[0] * m.dim[1]}; }

/// The part of a text from one line on, up to another.
std::string excerpt(const std::string& text, const std::string& from, const std::string& to) {
  const std::size_t first = text.find(from);
  if (first == std::string::npos) return text;
  return text.substr(first, text.find(to, first) - first);
}

const char* const branching = R"(
entry @df
fun @df(%x: f64) -> f64 {
  %d = ref_new %x : ref f64
  %k = fun (%y: f64, %dy: ref f64) {
    %one = constant 1 : f64
    ref_add %dy, %one
    yield
  }
  %z = constant 0 : f64
  %c = lt %z, %x
  branch %c {
    %m = neg %x
    %v = mul %m, %x
    %d1 = ref_new %v : ref f64
    jump %k, %v, %d1
    %g = ref_get %d1 : f64
    %two = constant -2 : f64
    %h = mul %two, %x
    %i = mul %h, %g
    ref_add %d, %i
    yield
  } else {
    %v = mul %x, %x
    %d1 = ref_new %v : ref f64
    jump %k, %v, %d1
    %g = ref_get %d1 : f64
    %two = constant 2 : f64
    %h = mul %two, %x
    %i = mul %h, %g
    ref_add %d, %i
    yield
  }
  %r = ref_get %d : f64
  yield %r
}
)";

/// The gradient of WHILE(x)(t > 1)(t * x0) with x0 = x, by continuations.
const char* const looping = R"(
entry @df
fun @df(%x: f64) -> f64 {
  %d = ref_new %x : ref f64
  %d0 = ref_new %x : ref f64
  %k = fun (%y: f64, %dy: ref f64) {
    %one = constant 1 : f64
    ref_add %dy, %one
    yield
  }
  %half = constant 0.5 : f64
  %f = mul %x, %half
  %loop = fun (%y: f64, %dy: ref f64) {
    %one = constant 1 : f64
    %c = lt %one, %y
    branch %c {
      %v = mul %y, %f
      %d1 = ref_new %v : ref f64
      jump %loop, %v, %d1
      %g = ref_get %d1 : f64
      %a = mul %f, %g
      ref_add %dy, %a
      %b = mul %y, %g
      ref_add %d0, %b
      yield
    } else {
      jump %k, %y, %dy
      yield
    }
    yield
  }
  jump %loop, %x, %d
  %r = ref_get %d : f64
  %r0 = ref_get %d0 : f64
  %s = mul %r0, %half
  %t = add %r, %s
  yield %t
}
)";

double looping_by_hand(double x) {
  std::vector<double> ts;
  double t = x;
  const double f = x * 0.5;
  for (; t > 1; t *= f) ts.push_back(t);
  double d = 1, df = 0;
  for (std::size_t i = ts.size(); i-- > 0; d *= f) df += ts[i] * d;
  return d + 0.5 * df;
}

}  // namespace

TEST_CASE("a scalar function prints as a person would write it") {
  Module m = program(R"(
entry @f
fun @f(%x: f64) -> f64 {
  %two = constant 2 : f64
  %a = mul %two, %x
  %b = mul %x, %x
  %c = mul %b, %x
  %d = add %a, %c
  %s = sub %x, %d
  %e = exp %s
  %y = div %e, %d
  yield %y
})");
  CHECK(print_c(*m) == R"(/* f, generated by Lantern. */
double exp(double x);

typedef struct lt_workspace lt_workspace;

double f(double x) {
  double d = 2.0 * x + x * x * x;
  return exp(x - d) / d;
}

void f_entry(lt_workspace* ws, const void* const* in, void* const* out) {
  (void)ws;
  *(double*)out[0] = f(*(const double*)in[0]);
}
)");
  const auto f = [](double x) { return std::exp(x - (2 * x + x * x * x)) / (2 * x + x * x * x); };
  check_values(*m, {{1.0, f(1.0)}, {-0.5, f(-0.5)}});
}

TEST_CASE("branches return or assign, and chain") {
  Module m = program(R"(
entry @f
fun @f(%x: f64, %n: i64) -> f64 {
  %zero = constant 0 : i64
  %one = constant 1 : i64
  %c = eq %n, %zero
  %r = branch %c : f64 {
    %l = constant 1 : f64
    yield %l
  } else {
    %c1 = eq %n, %one
    %r = branch %c1 : f64 {
      yield %x
    } else {
      %m = sub %n, %one
      %p = call @f(%x, %m) : f64
      %q = mul %x, %p
      yield %q
    }
    yield %r
  }
  yield %r
})");
  CHECK(excerpt(print_c(*m), "double f(", "\nvoid") == R"(double f(double x, int64_t n) {
  if (n == 0) {
    return 1.0;
  } else if (n == 1) {
    return x;
  } else {
    return x * f(x, n - 1);
  }
}
)");
  for (const Built& b : build(*m)) {
    Workspace ws;
    const double x = 1.5;
    double y = 0;
    for (const std::int64_t n : {0, 1, 7}) {
      call(ws, b, "f", {&x, &n}, {&y});
      CHECK(y == Approx(std::pow(x, static_cast<double>(n))));
    }
  }
}

TEST_CASE("loops count, or assign their state all at once") {
  Module m = program(R"(
entry @f
fun @f(%x: f64, %n: i64) -> f64, f64 {
  %zero = constant 0 : i64
  %one = constant 1 : i64
  %a, %b, %i = loop %x, %x, %zero : f64, f64, i64 while (%a: f64, %b: f64, %i: i64) {
    %c = lt %i, %n
    yield %c
  } do (%a: f64, %b: f64, %i: i64) {
    %s = add %a, %b
    %j = add %i, %one
    yield %b, %s, %j
  }
  yield %a, %b
})");
  CHECK(excerpt(print_c(*m), "void f(", "\nvoid f_entry") ==
        R"(void f(double x, int64_t n, double* result0, double* result1) {
  double a = x;
  double b = x;
  for (int64_t i = 0; i < n; ++i) {
    double next_a = b;
    b = a + b;
    a = next_a;
  }
  *result0 = a;
  *result1 = b;
}
)");
  for (const Built& b : build(*m)) {
    Workspace ws;
    const double x = 1;
    const std::int64_t n = 10;
    double fib = 0, next = 0;
    call(ws, b, "f", {&x, &n}, {&fib, &next});
    CHECK(fib == 89);
    CHECK(next == 144);
  }
}

TEST_CASE("continuations print as nested lambdas in C++") {
  Module m = program(branching);
  CHECK(codegen::continuation_depth(*m->entry) == 1);
  CHECK(excerpt(print_cpp(*m), "extern \"C\" double df(", "\nextern \"C\" void") == R"(extern "C" double df(double x) {
  double d = 0.0;
  auto k = [&](double, double& dy) {
    dy += 1.0;
  };
  if (0.0 < x) {
    double d1 = 0.0;
    k(-x * x, d1);
    d += -2.0 * x * d1;
  } else {
    double d1 = 0.0;
    k(x * x, d1);
    d += 2.0 * x * d1;
  }
  return d;
}
)");
  check_values(*m, {{3.0, -6.0}, {-2.0, -4.0}, {0.0, 0.0}});
}

TEST_CASE("a continuation that calls itself, nested and closed, agrees with direct style") {
  Module m = program(looping);
  CHECK(excerpt(print_cpp(*m), "  lt_cont<double, double&> loop;", "  return") == R"(  lt_cont<double, double&> loop;
  auto loop_body = [&](double y, double& dy) {
    if (1.0 < y) {
      double d1 = 0.0;
      loop(y * f, d1);
      dy += f * d1;
      d0 += y * d1;
    } else {
      k(y, dy);
    }
  };
  loop = loop_body;
  loop(x, d);
)");
  CHECK_THROWS_AS(print_c(*m), InternalError);
  check_values(*m, {{1.7, looping_by_hand(1.7)}, {1.99, looping_by_hand(1.99)}, {0.5, looping_by_hand(0.5)}});
  CHECK(codegen::continuation_depth(*m->entry) == 0);
}

TEST_CASE("recursion over a tree with continuations as arguments") {
  Module m = program(R"(
entry @df
fun @df(%t: tree<f64>, %x: f64) -> f64 {
  %d = ref_new %x : ref f64
  %k = fun (%y: f64, %dy: ref f64) {
    %one = constant 1 : f64
    ref_add %dy, %one
    yield
  }
  call @rec(%t, %x, %d, %k)
  %r = ref_get %d : f64
  yield %r
}
fun @rec(%t: tree<f64>, %x: f64, %dx: ref f64, %k: cont(f64, ref f64)) cps {
  %c = tree_empty %t
  branch %c {
    jump %k, %x, %dx
    yield
  } else {
    %l = tree_left %t
    %k_l = fun (%x_l: f64, %d_l: ref f64) {
      %r = tree_right %t
      %k_r = fun (%x_r: f64, %d_r: ref f64) {
        %v = tree_value[0] %t
        %a = mul %x_l, %x_r
        %y = mul %a, %v
        %dt = ref_new %y : ref f64
        jump %k, %y, %dt
        %g = ref_get %dt : f64
        %p = mul %x_r, %v
        %q = mul %p, %g
        ref_add %d_l, %q
        %s = mul %x_l, %v
        %u = mul %s, %g
        ref_add %d_r, %u
        yield
      }
      call @rec(%r, %x, %dx, %k_r)
      yield
    }
    call @rec(%l, %x, %dx, %k_l)
    yield
  }
  yield
})");
  // Three nodes of values 2, 3, 5: the function is 2 * (3 * x * x) * (5 * x * x).
  const std::int64_t left[] = {1, -1, -1}, right[] = {2, -1, -1};
  const double values[] = {2, 3, 5};
  struct Tree {
    const std::int64_t *left, *right;
    const double* value0;
    std::int64_t node;
  } tree{left, right, values, 0};
  for (const Built& b : build(*m)) {
    Workspace ws;
    const double x = 1.25;
    double y = 0;
    call(ws, b, "df", {&tree, &x}, {&y});
    INFO(b.how);
    CHECK(y == Approx(30 * 4 * x * x * x));
  }
}

TEST_CASE("operations on tensors") {
  Module m = program(R"(
entry @f
fun @f(%w: f64[?,?], %x: f64[?], %b: f64[2], %i: i64) -> f64[2], f64[?,?], f64[?], f64, i64, bool {
  %one = constant 1 : i64
  %three = constant 3 : i64
  %h = matvec %w, %x
  %hb = add %h, %b
  %t = max %hb, %b
  %o = outer %t, %x
  %tr = transpose %o
  %mm = matmul %tr, %w
  %row = take %mm, %i
  %sl = slice %x, %one, %three
  %cat = concat %row, %sl
  %set = set %cat, %one, %hbs
  %wide = broadcast %row, %mm
  %prod = mul %mm, %wide
  %at = add_take %prod, %one, %row
  %out = add_outer %at, %row, %x
  %am = add_matmul %out, %tr, %w
  %red = reduce_to %am, %row
  %vm = vecmat %red, %am
  %dot = dot %red, %vm
  %sum = sum %cat
  %z = mul %dot, %sum
  %best = argmax %vm
  %n = dim[0] %x
  %fl = fill %sum, %n
  %acc = add_at %fl, %i, %dot
  %resh = reshape %am, %tmm
  %big = lt %sum, %dot
  yield %t, %resh, %acc, %z, %best, %big
})");
}

TEST_CASE("failures say what is wrong and where") {
  ir::Module m;
  ir::Function* f = m.add_function("f", {ir::Type::tensor(ir::Kind::f64, {ir::dynamic}), ir::I64, ir::I64}, {ir::F64});
  ir::Builder b(m, f->body);
  b.loc = {"model.cpp", 7, 3};
  ir::Value* element = b.emit(ir::Opcode::get_, {f->body->params[0], f->body->params[1]});
  b.loc.line = 8;
  ir::Value* quotient = b.emit(ir::Opcode::div_, {f->body->params[1], f->body->params[2]});
  ir::Value* same = b.emit(ir::Opcode::lt_, {quotient, b.integer(3)});
  b.op(ir::Opcode::check_, {same})->text = "the quotient is small (model.cpp:9)";
  b.yield({element});
  m.entry = f;
  ir::verify(m);
  std::vector<double> data{1, 2, 3, 4, 5};
  const Vector x = view(data);
  double y = 0;
  for (const Built& built : build(m)) {
    INFO(built.how);
    const auto message = [&](std::int64_t i, std::int64_t d) { return failure(built, "f", {&x, &i, &d}, {&y}); };
    CHECK(message(7, 1) == "index 7 is outside 0..4 (model.cpp:7)");
    CHECK(message(-1, 1) == "index -1 is outside 0..4 (model.cpp:7)");
    CHECK(message(2, 0) == "integer division by zero (model.cpp:8)");
    CHECK(message(4, 1) == "the quotient is small (model.cpp:9)");
    CHECK(message(2, 1) == "no failure");
    CHECK(y == 3);
  }
}
