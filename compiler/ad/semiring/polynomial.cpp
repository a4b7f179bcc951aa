// Natural numbers, and polynomials with natural coefficients.
#include "lantern/compiler/ad/semiring/semirings.hpp"
#include "lantern/ir/error.hpp"

namespace lantern::core::semiring {

namespace {

[[noreturn]] void overflow() { raise("semiring: expected natural numbers below 2^64, got a larger one"); }

std::string variable_name(std::size_t i) {
  static const char* const names[] = {"X", "Y", "Z"};
  return i < 3 ? names[i] : "X" + std::to_string(i);
}

}  // namespace

std::uint64_t natural_sum(std::uint64_t a, std::uint64_t b) {
  std::uint64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) overflow();
  return sum;
}

std::uint64_t natural_product(std::uint64_t a, std::uint64_t b) {
  std::uint64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) overflow();
  return product;
}

void Polynomial::add_term(const Monomial& m, std::uint64_t c) {
  if (c == 0) return;
  std::uint64_t& coefficient = terms_[m];
  coefficient = natural_sum(coefficient, c);
}

Polynomial::Polynomial(std::uint64_t c) { add_term({}, c); }

Polynomial Polynomial::variable(std::size_t i) {
  Monomial m(i + 1, 0);
  m[i] = 1;
  Polynomial p;
  p.add_term(m, 1);
  return p;
}

Polynomial Polynomial::derivative(std::size_t i) const {
  Polynomial p;
  for (const auto& [m, c] : terms_) {
    if (i >= m.size() || m[i] == 0) continue;
    Monomial lower = m;
    --lower[i];
    while (!lower.empty() && lower.back() == 0) lower.pop_back();
    p.add_term(lower, natural_product(c, m[i]));
  }
  return p;
}

Polynomial operator+(const Polynomial& a, const Polynomial& b) {
  Polynomial sum = a;
  for (const auto& [m, c] : b.terms_) sum.add_term(m, c);
  return sum;
}

Polynomial operator*(const Polynomial& a, const Polynomial& b) {
  Polynomial product;
  for (const auto& [m, c] : a.terms_)
    for (const auto& [n, d] : b.terms_) {
      Polynomial::Monomial both(std::max(m.size(), n.size()), 0);
      for (std::size_t i = 0; i < m.size(); ++i) both[i] += m[i];
      for (std::size_t i = 0; i < n.size(); ++i) both[i] += n[i];
      product.add_term(both, natural_product(c, d));
    }
  return product;
}

std::string Polynomial::str() const {
  std::string text;
  for (auto it = terms_.rbegin(); it != terms_.rend(); ++it) {
    const auto& [m, c] = *it;
    std::string factors = c != 1 || m.empty() ? std::to_string(c) : "";
    for (std::size_t i = 0; i < m.size(); ++i) {
      if (m[i] == 0) continue;
      factors += (factors.empty() ? "" : " ") + variable_name(i);
      if (m[i] > 1) factors += "^" + std::to_string(m[i]);
    }
    text += (text.empty() ? "" : " + ") + factors;
  }
  return text.empty() ? "0" : text;
}

}  // namespace lantern::core::semiring
