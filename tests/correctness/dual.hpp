// A number with a slope: forward mode by operator overloading, in plain C++ that shares nothing with the
// library. It judges the derivatives of programs (Griewank and Walther, Evaluating Derivatives, 2nd edition,
// chapter 3.1).
#pragma once

#include <cmath>
#include <compare>

namespace lantern::test {

struct Dual {
  double v = 0;  ///< value
  double d = 0;  ///< slope

  Dual() = default;
  Dual(double value, double slope = 0) : v(value), d(slope) {}

  Dual& operator+=(const Dual& b) { return v += b.v, d += b.d, *this; }
  Dual& operator-=(const Dual& b) { return v -= b.v, d -= b.d, *this; }
  Dual& operator*=(const Dual& b) { return d = d * b.v + v * b.d, v *= b.v, *this; }
  Dual& operator/=(const Dual& b) { return d = (d - v / b.v * b.d) / b.v, v /= b.v, *this; }
  friend Dual operator+(Dual a, const Dual& b) { return a += b; }
  friend Dual operator-(Dual a, const Dual& b) { return a -= b; }
  friend Dual operator*(Dual a, const Dual& b) { return a *= b; }
  friend Dual operator/(Dual a, const Dual& b) { return a /= b; }
  friend Dual operator-(const Dual& a) { return {-a.v, -a.d}; }
  friend auto operator<=>(const Dual& a, const Dual& b) { return a.v <=> b.v; }
  friend bool operator==(const Dual& a, const Dual& b) { return a.v == b.v; }
};

inline Dual sqrt(const Dual& x) { return {std::sqrt(x.v), 0.5 * x.d / std::sqrt(x.v)}; }
inline Dual exp(const Dual& x) { return {std::exp(x.v), x.d * std::exp(x.v)}; }
inline Dual log(const Dual& x) { return {std::log(x.v), x.d / x.v}; }
inline Dual log1p(const Dual& x) { return {std::log1p(x.v), x.d / (1 + x.v)}; }
inline Dual sin(const Dual& x) { return {std::sin(x.v), x.d * std::cos(x.v)}; }
inline Dual cos(const Dual& x) { return {std::cos(x.v), -x.d * std::sin(x.v)}; }
inline Dual tanh(const Dual& x) { return {std::tanh(x.v), x.d * (1 - std::tanh(x.v) * std::tanh(x.v))}; }
inline Dual erf(const Dual& x) { return {std::erf(x.v), x.d * 1.1283791670955126 * std::exp(-x.v * x.v)}; }
inline Dual max(const Dual& a, const Dual& b) { return a.v >= b.v ? a : b; }
inline Dual min(const Dual& a, const Dual& b) { return a.v <= b.v ? a : b; }

// The same names for double, so that one template serves both.
using std::sqrt, std::exp, std::log, std::log1p, std::sin, std::cos, std::tanh, std::erf;
inline double max(double a, double b) { return a >= b ? a : b; }
inline double min(double a, double b) { return a <= b ? a : b; }
inline double value(double x) { return x; }
inline double value(const Dual& x) { return x.v; }

}  // namespace lantern::test
