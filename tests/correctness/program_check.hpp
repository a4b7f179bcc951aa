// checked: a program as a user writes it beside the same in plain C++, over many arguments.
//
// The plain program, over Dual, gives the value and the derivatives; the program's own are computed eagerly,
// as staged (opt 0), by all passes through libtcc with one thread and with two, by forward mode, and, where
// asked, in lanes through Clang. Every entry of a gradient of up to 60 is compared, otherwise a product with
// a direction.
#pragma once

#include <catch2/catch.hpp>
#include <numeric>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "dual.hpp"
#include "lantern/lantern.hpp"

// A loop's state is named as what it starts from, in a lambda's parameter: that is how such programs read.
#pragma GCC diagnostic ignored "-Wshadow"

namespace lantern::test {

using i64 = std::int64_t;
using Num = Rep<double>;
using Int = Rep<i64>;
using Vec = Rep<Array<double>>;
using Ints = Rep<Array<i64>>;
using Mat = Rep<Tensor<double, dyn, dyn>>;
using Matrix = Tensor<double, dyn, dyn>;  ///< in signatures

/// f(0) ... f(n - 1) as an array.
template <class F>
Vec tabulate(const Int& n, F f) {
  return FOR(0, n, fill(Num(0.0), n), [&](Int i, Vec a) { return a.set(i, f(i)); });
}
/// f(lo) + ... + f(hi - 1).
template <class F>
Num total(const Int& lo, const Int& hi, F f) {
  return FOR(lo, hi, 0.0, [&](Int i, Num s) { return s + f(i); });
}
template <class F>
Num total(const Int& n, F f) {
  return total(Int(0), n, f);
}

/// A matrix of plain C++, row-major.
template <class T>
struct Grid {
  std::vector<T> data;
  i64 rows = 0, cols = 0;

  Grid(std::vector<T> elements, i64 m, i64 n) : data(std::move(elements)), rows(m), cols(n) {}
  Grid(i64 m, i64 n) : data(static_cast<std::size_t>(m * n)), rows(m), cols(n) {}
  const T& operator()(i64 i, i64 j) const { return data[static_cast<std::size_t>(i * cols + j)]; }
  T& operator()(i64 i, i64 j) { return data[static_cast<std::size_t>(i * cols + j)]; }
};

/// Some numbers around `centre`, and a matrix of them.
inline std::vector<double> numbers(i64 n, double centre = 0.1, double width = 0.37, double step = 1.7) {
  std::vector<double> v(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < v.size(); ++i)
    v[i] = centre + width * std::sin(step * static_cast<double>(i) + 0.3);
  return v;
}
inline Grid<double> grid(i64 m, i64 n, double centre = 0.1, double width = 0.37, double step = 1.7) {
  return {numbers(m * n, centre, width, step), m, n};
}
/// Indices below m, many of them equal.
inline std::vector<i64> places(i64 n, i64 m) {
  std::vector<i64> v;
  for (i64 i = 0; i < n; ++i) v.push_back((i * i + 7 * i) % m);
  return v;
}

namespace check {

inline std::vector<double> flat(double x) { return {x}; }
inline std::vector<double> flat(const std::vector<double>& x) { return x; }
inline std::vector<double> flat(const Grid<double>& x) { return x.data; }
inline std::vector<double> flat(const TensorValue<double>& x) { return x.data; }

/// An argument of another's shape with elements from `from`.
inline double shaped(double, const double* from) { return *from; }
inline std::vector<double> shaped(const std::vector<double>& x, const double* from) {
  return {from, from + x.size()};
}
inline Grid<double> shaped(const Grid<double>& x, const double* from) {
  return {{from, from + x.data.size()}, x.rows, x.cols};
}
/// An argument with slopes from `from`.
inline Dual sloped(double x, const double* from) { return {x, *from}; }
inline std::vector<Dual> sloped(const std::vector<double>& x, const double* from) {
  std::vector<Dual> out;
  for (const double v : x) out.push_back({v, *from++});
  return out;
}
inline Grid<Dual> sloped(const Grid<double>& x, const double* from) {
  return {sloped(x.data, from), x.rows, x.cols};
}

/// An argument as compiled functions take it.
template <class H>
const H& entering(const H& h) {
  return h;
}
inline TensorView<const double> entering(const Grid<double>& g) { return {g.data.data(), {g.rows, g.cols}}; }

}  // namespace check

struct Settings {
  double tolerance = 1e-10;  ///< relative to the largest number compared
  bool lanes = true;         ///< through Clang too
};

template <class F, class Plain, std::size_t... Active>
class Checked {
 public:
  Checked(F f, Plain plain, Settings settings)
      : plain_(plain), settings_(settings), eager_(eager(derivative(f))) {
    const auto by = [&](const char* name, const CompileOptions& options) {
      gradients_.emplace_back(name, compile(derivative(f), options));
    };
    by("as staged", {.target = Target::c, .opt = 0});
    by("all passes", {.target = Target::c, .opt = 3});
    by("two threads", {.target = Target::c, .opt = 3, .threads = 2});
    if (settings.lanes) by("in lanes", {.target = Target::cpp, .opt = 3});
    forward_.emplace_back(compile(jvp(f), {.target = Target::c, .opt = 3}));
  }

  template <class... H>
  void operator()(const H&... args) const {
    const std::tuple<const H&...> all(args...);
    std::size_t n = 0;
    ((n += check::flat(std::get<Active>(all)).size()), ...);
    CAPTURE(n);
    std::mt19937 random(7);
    std::normal_distribution<double> normal;
    std::vector<double> direction(n), expected;
    for (double& x : direction) x = normal(random);
    const Dual along = judge(direction, args...);
    if (n <= 60)
      for (std::size_t i = 0; i < n; ++i) {
        std::vector<double> unit(n);
        unit[i] = 1;
        expected.push_back(judge(unit, args...).d);
      }
    const auto compare = [&](const std::string& who, const auto& result) {
      CAPTURE(who);
      close({std::get<0>(result)}, {along.v});
      const std::vector<double> gradient = gradient_of(std::get<1>(result));
      REQUIRE(gradient.size() == n);
      if (n <= 60) close(gradient, expected);
      double slope = 0, size = std::abs(along.d);
      for (std::size_t i = 0; i < n; ++i) {
        slope += gradient[i] * direction[i];
        size += std::abs(gradient[i] * direction[i]);
      }
      CHECK(std::abs(slope - along.d) <= settings_.tolerance * (size + 1));
    };
    if (n <= 60) compare("eager", eager_(check::entering(args)...));
    for (const auto& [who, f] : gradients_) compare(who, f(check::entering(args)...));
    const auto [value_forward, slope] = with_tangents(direction, args...);
    close({value_forward}, {along.v});
    double size = std::abs(along.d) + 1;
    for (std::size_t i = 0; i < expected.size(); ++i) size += std::abs(expected[i] * direction[i]);
    CHECK(std::abs(slope - along.d) <= settings_.tolerance * size);
  }

 private:
  static auto derivative(const F& f) { return value_and_grad<Active...>(f); }
  static constexpr bool active(std::size_t i) { return ((i == Active) || ...); }

  void close(const std::vector<double>& got, const std::vector<double>& expected) const {
    double most = 0;
    for (const double x : expected) most = std::max(most, std::abs(x));
    for (std::size_t i = 0; i < got.size(); ++i) {
      CAPTURE(i, got[i], expected[i]);
      CHECK(std::abs(got[i] - expected[i]) <= settings_.tolerance * most + 1e-13);
    }
  }

  template <class G>
  static std::vector<double> gradient_of(const G& gradient) {
    if constexpr (sizeof...(Active) == 1) {
      return check::flat(gradient);
    } else {
      std::vector<double> out;
      const auto add = [&](const auto& part) {
        for (const double x : check::flat(part)) out.push_back(x);
      };
      std::apply([&](const auto&... part) { (add(part), ...); }, gradient);
      return out;
    }
  }

  /// f(index, argument) for every argument, in order, as a tuple.
  template <class Each, class... H>
  static auto map(Each each, const H&... args) {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return std::tuple<decltype(each(std::integral_constant<std::size_t, I>(), args))...>{
          each(std::integral_constant<std::size_t, I>(), args)...};
    }
    (std::index_sequence_for<H...>());
  }

  /// The plain program's value, and its slope in a direction of the active arguments.
  template <class... H>
  Dual judge(const std::vector<double>& direction, const H&... args) const {
    const double* next = direction.data();
    const auto each = [&]<std::size_t I, class A>(std::integral_constant<std::size_t, I>, const A& a) {
      if constexpr (active(I)) {
        const double* const from = next;
        next += check::flat(a).size();
        return check::sloped(a, from);
      } else {
        return a;
      }
    };
    return std::apply(plain_, map(each, args...));
  }

  /// Forward mode in a direction of the active arguments.
  template <class... H>
  auto with_tangents(const std::vector<double>& direction, const H&... args) const {
    const double* next = direction.data();
    const auto each = [&]<std::size_t I, class A>(std::integral_constant<std::size_t, I>, const A& a) {
      if constexpr (active(I)) {
        const double* const from = next;
        next += check::flat(a).size();
        return std::tuple(check::shaped(a, from));
      } else if constexpr (requires { check::flat(a); } && !std::integral<A>) {
        const std::vector<double> zeros(check::flat(a).size());
        return std::tuple(check::shaped(a, zeros.data()));
      } else {
        return std::tuple<>();
      }
    };
    const auto tangents =
        std::apply([](const auto&... part) { return std::tuple_cat(part...); }, map(each, args...));
    return std::apply(
        [&](const auto&... tangent) {
          return forward_[0](check::entering(args)..., check::entering(tangent)...);
        },
        tangents);
  }

  using Derivative = decltype(derivative(std::declval<F>()));
  Plain plain_;
  Settings settings_;
  core::EagerCall<Derivative> eager_;
  std::vector<std::pair<std::string, Compiled<Derivative>>> gradients_;
  std::vector<decltype(compile(jvp(std::declval<F>())))> forward_;
};

/// `f` has the signature Sig; the arguments at the positions Active are differentiated. Call the result with
/// arguments of plain C++: numbers, vectors, Grids.
template <class Sig, std::size_t... Active, class F, class Plain>
auto checked(F f, Plain plain, Settings settings = {}) {
  return Checked<decltype(sig<Sig>(f)), Plain, Active...>(sig<Sig>(f), plain, settings);
}

}  // namespace lantern::test
