// Commutative semirings to evaluate expressions in.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "lantern/compiler/ad/semiring/expression.hpp"

namespace lantern::core::semiring {

/// The real numbers, in floating point.
inline Dictionary<double> reals() {
  return {0.0, 1.0, [](double a, double b) { return a + b; }, [](double a, double b) { return a * b; }};
}

/// a + b and a b. Error if it leaves the range of 64 bits.
std::uint64_t natural_sum(std::uint64_t a, std::uint64_t b);
std::uint64_t natural_product(std::uint64_t a, std::uint64_t b);

/// The integers modulo p, as 0 ... p - 1; p is at least 2 and below 2^32.
inline Dictionary<std::uint64_t> integers_modulo(std::uint64_t p) {
  return {0, 1, [p](std::uint64_t a, std::uint64_t b) { return (a + b) % p; },
          [p](std::uint64_t a, std::uint64_t b) { return a * b % p; }};
}

/// The natural numbers, to count with. Error if one leaves the range of 64 bits.
inline Dictionary<std::uint64_t> naturals() { return {0, 1, natural_sum, natural_product}; }

/// Shortest paths: addition is min, multiplication is +.
inline Dictionary<double> min_plus() {
  return {std::numeric_limits<double>::infinity(), 0.0, [](double a, double b) { return std::min(a, b); },
          [](double a, double b) { return a + b; }};
}

/// Longest paths: addition is max, multiplication is +.
inline Dictionary<double> max_plus() {
  return {-std::numeric_limits<double>::infinity(), 0.0, [](double a, double b) { return std::max(a, b); },
          [](double a, double b) { return a + b; }};
}

/// Truth values: addition is or, multiplication is and.
inline Dictionary<bool> booleans() {
  return {false, true, [](bool a, bool b) { return a || b; }, [](bool a, bool b) { return a && b; }};
}

/// A polynomial with natural coefficients. These form the free commutative semiring over the variables: two
/// expressions are equal as polynomials exactly if they are equal in every commutative semiring, whatever the
/// variables represent.
class Polynomial {
 public:
  /// The exponents of the variables, without zeros at the end.
  using Monomial = std::vector<unsigned>;

  Polynomial() = default;
  /// A constant.
  explicit Polynomial(std::uint64_t c);
  /// The variable number i: X, Y, Z, then X3, X4, ...
  static Polynomial variable(std::size_t i);

  /// The formal partial derivative by the variable number i.
  Polynomial derivative(std::size_t i) const;
  /// "3 X^2 Y + X + 1"; "0".
  std::string str() const;

  /// Error if a coefficient leaves the range of 64 bits.
  friend Polynomial operator+(const Polynomial& a, const Polynomial& b);
  friend Polynomial operator*(const Polynomial& a, const Polynomial& b);
  friend bool operator==(const Polynomial&, const Polynomial&) = default;

 private:
  void add_term(const Monomial& m, std::uint64_t c);
  std::map<Monomial, std::uint64_t> terms_;  // no zero coefficients
};

inline Dictionary<Polynomial> polynomials() {
  return {Polynomial(), Polynomial(1), [](const Polynomial& a, const Polynomial& b) { return a + b; },
          [](const Polynomial& a, const Polynomial& b) { return a * b; }};
}

}  // namespace lantern::core::semiring
