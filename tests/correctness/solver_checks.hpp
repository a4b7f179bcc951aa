// What the tests of solvers share: programs of arrays in every way they run, what is refused, and an
// oscillator.
#pragma once

#include <lantern/solvers.hpp>

#include "agree.hpp"

namespace lantern::test::solver_checks {

using D = Rep<double>;
using I = Rep<std::int64_t>;
using A = Rep<Array<double>>;
using M = Rep<Tensor<double, dyn, dyn>>;
using Vector = std::vector<double>;

template <class T>
struct Moving {
  T place, speed;
};
using Oscillator = Moving<D>;

inline A list(std::initializer_list<D> values) {
  A a = fill(D(0.0), static_cast<std::int64_t>(values.size()));
  std::int64_t i = 0;
  for (const D& v : values) a = a.set(i++, v);
  return a;
}

/// A program of an array run eagerly, by tcc and by Clang: the answers of all.
inline std::vector<Vector> in_all_ways(const std::function<A(A)>& f, const Vector& x) {
  return {eager(f)(x), compile(f, {.target = Target::c, .opt = 0})(x),
          compile(f, {.target = Target::cpp})(x)};
}

inline void check_closed_form(const std::function<A(A)>& f, const Vector& x, const Vector& expected,
                              double epsilon) {
  for (const Vector& got : in_all_ways(f, x)) {
    REQUIRE(got.size() == expected.size());
    for (std::size_t i = 0; i < got.size(); ++i)
      CHECK(got[i] == Approx(expected[i]).epsilon(epsilon).margin(1e-9));
  }
}

inline std::string error_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}
/// The same error with its place, eagerly and compiled.
template <class F, class... T>
void check_refused(const F& f, const std::string& message, const T&... x) {
  const auto names_it = [&](const std::string& error) {
    INFO(error);
    CHECK(error.find("_test.cpp:") != std::string::npos);
    CHECK(error.find(message) != std::string::npos);
  };
  names_it(error_of([&] { eager(f)(x...); }));
  names_it(error_of([&] { compile(f, {.target = Target::c, .opt = 0})(x...); }));
}

inline Oscillator swing(D, Oscillator s, D k) { return {s.speed, -k * s.place}; }
inline A swing_array(D, A s, D k) { return s.set(0, s[1]).set(1, -k * s[0]); }
inline D decay(D, D y, D k) { return -k * y; }
/// The harmonic oscillator at t1 from (x[0], 0) at x[2]: x[0] cos(x[1] (x[3] - x[2])), with its value and
/// derivatives by x.
inline Vector oscillation(const Vector& x) {
  const double t = x[3] - x[2], c = std::cos(x[1] * t), s = std::sin(x[1] * t);
  return {x[0] * c, c, -x[0] * t * s, x[0] * x[1] * s, -x[0] * x[1] * s};
}
/// The value of a program, its gradient by reverse mode, and by forward mode.
inline std::function<A(A)> value_and_gradients(const std::function<D(A)>& f) {
  return [f](A x) {
    const auto [y, g] = value_and_grad(f)(x);
    return as_array(
        concat(Rep<Tensor<double>>(concat(list({y}), g).datum()), as_tensor(A(grad<mode::forward>(f)(x)))));
  };
}
inline Vector with_gradient_twice(Vector v) {
  const Vector gradient(v.begin() + 1, v.end());
  v.insert(v.end(), gradient.begin(), gradient.end());
  return v;
}

}  // namespace lantern::test::solver_checks
