// bench kernels: ordinary numerical kernels, as a user writes them over Rep, each beside the same loops in
// plain C++ (reference/kernels.hpp).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "model.hpp"
#include "timing.hpp"

namespace lantern::bench {

using Values = std::vector<double>;
using Whole = std::vector<std::int64_t>;
using Grid = TensorValue<double>;
using Volume = Rep<Tensor<double, dyn, dyn, dyn>>;

/// A kernel's programs, compiled, with arguments. All give one number, or its gradient by all floating
/// arguments.
struct CompiledKernel {
  std::function<double()> plain, objective;
  Callable gradient;                                 ///< writes into `gradients`
  Callable other_objective, other_gradient;          ///< with the other options, if there are any
  Callable second;  ///< the Hessian times `directions`, into `products`, where it is asked for
  std::vector<std::span<double>> inputs, gradients, directions, products;  ///< of each floating argument
  std::string arguments;  ///< what each is, in order: "f64 100", "i64 20" for arrays, "constant 3"
  std::vector<std::span<const std::int64_t>> integers;  ///< the arrays of integers
  double argument_bytes = 0;
  double compile_ms = 0;  ///< of objective and gradient, without the others
};

/// How a kernel is compiled, and how it is compiled to be compared.
struct Ways {
  CompileOptions usual;
  std::optional<CompileOptions> other;
  bool second = false;  ///< second derivatives too
};

struct Kernel {
  std::string name, size;
  std::function<CompiledKernel(const Ways&)> compile;
};

/// Which of its sizes a kernel has: for a look, for a result, or so that several threads have enough to do.
struct Sizes {
  enum { quick, usual, large } which = usual;
  std::int64_t operator()(std::int64_t small, std::int64_t some, std::int64_t many) const {
    return which == quick ? small : which == usual ? some : many;
  }
};

/// Loops over matrices, dense, sparse and tridiagonal.
std::vector<Kernel> linear_kernels(const Sizes& of);
/// Grids that are changed step by step.
std::vector<Kernel> stencil_kernels(const Sizes& of);
/// Particles, sequences and signals.
std::vector<Kernel> science_kernels(const Sizes& of);
/// Layers of networks.
std::vector<Kernel> learning_kernels(const Sizes& of);
/// Programs with C++'s own statements over flat arrays, as lanternc rewrites them.
std::vector<Kernel> native_kernels(const Sizes& of);

/// Numbers between the bounds, other ones at each call.
Values uniform(std::int64_t n, double low = -1, double high = 1);
Grid uniform_grid(const std::vector<std::int64_t>& shape, double low = -1, double high = 1);
/// A square matrix whose largest elements are on its diagonal.
Values dominant(std::int64_t n);
/// Whole numbers from 0 to bound - 1.
Whole places(std::int64_t n, std::int64_t bound);

/// "200 x 300".
template <class... Size>
std::string by(std::int64_t first, Size... more) {
  return (std::to_string(first) + ... + (" x " + std::to_string(more)));
}

namespace detail {

inline std::span<double> elements(Values& a) { return a; }
inline std::span<double> elements(Grid& a) { return a.data; }
inline std::span<const std::int64_t> elements(const Whole& a) { return a; }
inline std::span<const std::int64_t> elements(const std::int64_t& a) { return {&a, 1}; }

inline std::string described(const Values& a) { return "f64 " + std::to_string(a.size()); }
inline std::string described(const Grid& a) { return "f64 " + std::to_string(a.data.size()); }
inline std::string described(const Whole& a) { return "i64 " + std::to_string(a.size()); }
inline std::string described(const std::int64_t& a) { return "constant " + std::to_string(a); }

/// As a plain function takes it.
inline const double* plain(const Values& a) { return a.data(); }
inline const double* plain(const Grid& a) { return a.data.data(); }
inline const std::int64_t* plain(const Whole& a) { return a.data(); }
inline std::int64_t plain(std::int64_t a) { return a; }

/// Where a gradient by the argument is written; nothing for whole numbers.
inline std::tuple<std::span<double>> target(Values& a) { return {a}; }
inline std::tuple<TensorView<double>> target(Grid& a) { return {a}; }
template <class Other>
std::tuple<> target(Other&) {
  return {};
}

/// A floating argument; nothing for whole numbers.
inline std::tuple<const Values&> floating(const Values& a) { return a; }
inline std::tuple<const Grid&> floating(const Grid& a) { return a; }
template <class Other>
std::tuple<> floating(const Other&) {
  return {};
}

}  // namespace detail

/// A kernel of a program over Rep and a plain function of the same arguments, which takes arrays and tensors
/// by their first element.
template <class F, class Plain, class... A>
Kernel kernel(std::string name, std::string size, F f, Plain plain, A... arguments) {
  const auto compiled = [=](const Ways& ways) {
    struct State {
      std::tuple<A...> arguments, slopes, directions, products;
      double value = 0;
    };
    const auto state =
        std::make_shared<State>(State{{arguments...}, {arguments...}, {arguments...}, {arguments...}});
    const auto objective_by = [&](CompileOptions options) {
      options.name = name;
      return [=, objective = compile(f, options)] {
        std::apply([&](const auto&... a) { objective.into(state->value, a...); }, state->arguments);
        return state->value;
      };
    };
    const auto targets_in = [](auto& all) {
      return std::apply([](auto&... s) { return std::tuple_cat(detail::target(s)...); }, all);
    };
    auto targets = targets_in(state->slopes);
    const auto gradient_by = [&](CompileOptions options) {
      options.name = name;
      return [=, gradient = compile(grad(f), options)]() mutable {
        std::apply(
            [&](auto&... t) {
              std::apply([&](const auto&... a) { gradient.into(t..., a...); }, state->arguments);
            },
            targets);
      };
    };
    CompiledKernel made;
    made.plain = [=] {
      return std::apply([&](const auto&... a) { return plain(detail::plain(a)...); }, state->arguments);
    };
    made.compile_ms = once_ms([&] {
      made.objective = objective_by(ways.usual);
      made.gradient = gradient_by(ways.usual);
    });
    if (ways.second) {
      CompileOptions options = ways.usual;
      options.name = name;
      made.second = [=, product = compile(hvp(f), options), to = targets_in(state->products)]() mutable {
        const auto directions =
            std::apply([](const auto&... d) { return std::tuple_cat(detail::floating(d)...); }, state->directions);
        std::apply([&](auto&... all) { product.into(all...); },
                   std::tuple_cat(std::apply([](auto&... t) { return std::tie(t...); }, to),
                                  std::apply([](const auto&... a) { return std::tie(a...); }, state->arguments),
                                  directions));
      };
    }
    if (ways.other) {
      made.other_objective = objective_by(*ways.other);
      made.other_gradient = gradient_by(*ways.other);
    }
    const auto note = [&](auto& argument, auto& slope, auto& direction, auto& product) {
      const auto all = detail::elements(argument);
      made.argument_bytes += static_cast<double>(all.size_bytes());
      made.arguments += detail::described(argument) + "\n";
      if constexpr (std::is_same_v<decltype(all), const std::span<double>>)
        made.inputs.push_back(all), made.gradients.push_back(detail::elements(slope)),
            made.directions.push_back(detail::elements(direction)), made.products.push_back(detail::elements(product));
      if constexpr (std::is_same_v<std::decay_t<decltype(argument)>, Whole>) made.integers.push_back(all);
    };
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      (note(std::get<I>(state->arguments), std::get<I>(state->slopes), std::get<I>(state->directions),
            std::get<I>(state->products)),
       ...);
    }(std::index_sequence_for<A...>{});
    return made;
  };
  return {std::move(name), std::move(size), compiled};
}

}  // namespace lantern::bench
