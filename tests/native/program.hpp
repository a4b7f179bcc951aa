// A corpus of programs with native control flow, each a template over its number type.
//
// A file is compiled twice: as it is, where T is double and the control flow is C++'s own (the reference),
// and rewritten by lanternc, where T is Rep<double> and double. native_test.cpp compares.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "lantern/lantern.hpp"

namespace native_corpus {

using namespace lantern;

// What C++ means by these names for double.
using std::abs, std::sqrt, std::exp, std::log, std::sin, std::cos, std::tan, std::tanh, std::atan, std::floor,
    std::pow, std::atan2, std::min, std::max, std::fabs, std::expm1, std::log1p, std::erf;

template <class T>
struct Companions {
  using Index = std::int64_t;
  using Truth = bool;
};
template <class T>
struct Companions<Rep<T>> {
  using Index = Rep<std::int64_t>;
  using Truth = Rep<bool>;
};
/// The integers and truth values that go with a number type.
template <class T>
using Index = typename Companions<T>::Index;
template <class T>
using Truth = typename Companions<T>::Truth;

/// An integer as a number.
inline double number(std::int64_t i) { return static_cast<double>(i); }
inline Rep<double> number(const Rep<std::int64_t>& i) { return cast<double>(i); }

/// A number cut off to an integer.
inline std::int64_t integer(double x) { return static_cast<std::int64_t>(x); }
inline Rep<std::int64_t> integer(const Rep<double>& x) { return cast<std::int64_t>(x); }

using Point = std::vector<double>;
using Staged = std::function<Rep<double>(const std::vector<Rep<double>>&)>;

struct Program {
  std::string name;
  std::vector<Point> points;
  std::function<double(const Point&)> on_double;
  Staged on_rep;      ///< rewritten only
  Staged combinator;  ///< the same program written with IF, WHILE, FOR, FUN; may be empty
};

/// All programs of all files of one compilation.
std::vector<Program>& reference_programs();
std::vector<Program>& rewritten_programs();

template <std::size_t N, class T, class F>
auto spread(F f) {
  return [f](const std::vector<T>& x) -> T {
    return [&]<std::size_t... I>(std::index_sequence<I...>) { return T(f(x[I]...)); }
    (std::make_index_sequence<N>{});
  };
}

struct Registration {
  template <std::size_t N, class D, class R>
  Registration(std::integral_constant<std::size_t, N>, const char* name, std::vector<Point> points,
               [[maybe_unused]] D on_double, [[maybe_unused]] R on_rep) {
#ifdef LANTERN_NATIVE_REFERENCE
    reference_programs().push_back({name, std::move(points), spread<N, double>(on_double), {}, {}});
#else
    rewritten_programs().push_back(
        {name, std::move(points), spread<N, double>(on_double), spread<N, Rep<double>>(on_rep), {}});
#endif
  }
  template <std::size_t N, class R>
  Registration(std::integral_constant<std::size_t, N>, [[maybe_unused]] const char* name,
               [[maybe_unused]] R form) {
#ifndef LANTERN_NATIVE_REFERENCE
    for (Program& p : rewritten_programs())
      if (p.name == name) p.combinator = spread<N, Rep<double>>(form);
#endif
  }
};

}  // namespace native_corpus

#ifdef LANTERN_NATIVE_REFERENCE
#define NATIVE_ON_REP(f) 0
#else
#define NATIVE_ON_REP(f) [](const auto&... x) { return f<::lantern::Rep<double>>(x...); }
#endif

/// PROGRAM(f, 2, {1.0, 2.0}, {3.0, 4.0}): the template f<T>(T, T) at two points.
#define PROGRAM(f, arity, ...)                                         \
  static const ::native_corpus::Registration f##_registration(         \
      std::integral_constant<std::size_t, arity>{}, #f, {__VA_ARGS__}, \
      [](const auto&... x) { return f<double>(x...); }, NATIVE_ON_REP(f));
/// COMBINATOR(f, 2, [](Rep<double> a, Rep<double> b) { ... }): what f is when it is written with IF and
/// WHILE.
#define COMBINATOR(f, arity, ...)                                                                         \
  static const ::native_corpus::Registration f##_combinator(std::integral_constant<std::size_t, arity>{}, \
                                                            #f, __VA_ARGS__);
