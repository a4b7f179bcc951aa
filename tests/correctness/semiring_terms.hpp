// Mathematical expressions, E ::= X | 0 | 1 | E + E | E * E: their values, their derivatives, and all of them up to a size.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lantern/compiler/ad/semiring/over.hpp"
#include "lantern/compiler/ad/semiring/semirings.hpp"

namespace lantern::test::terms {

using namespace lantern::semiring;
using R = Dictionary<Number>;

struct Tree;
using E = std::shared_ptr<const Tree>;
struct Tree {
  char op;  // X, 0, 1, + or *
  E left, right;
};
inline E leaf(char op) { return std::make_shared<const Tree>(Tree{op, nullptr, nullptr}); }
inline E operator+(const E& a, const E& b) { return std::make_shared<const Tree>(Tree{'+', a, b}); }
inline E operator*(const E& a, const E& b) { return std::make_shared<const Tree>(Tree{'*', a, b}); }

inline std::string str(const E& e) {
  return e->left ? "(" + str(e->left) + " " + e->op + " " + str(e->right) + ")" : std::string(1, e->op);
}

/// Evaluation, Definition 6.2.
template <class V>
V value(const E& e, const Dictionary<V>& r, const V& x) {
  switch (e->op) {
    case 'X':
      return x;
    case '0':
      return r.zero;
    case '1':
      return r.one;
    case '+': {
      const V left = value(e->left, r, x);
      return r.add(left, value(e->right, r, x));
    }
    default: {
      const V left = value(e->left, r, x);
      return r.mul(left, value(e->right, r, x));
    }
  }
}

/// The derivative, Definitions 6.6 and 6.7.
inline E derivative(const E& e) {
  switch (e->op) {
    case 'X':
      return leaf('1');
    case '0':
    case '1':
      return leaf('0');
    case '+':
      return derivative(e->left) + derivative(e->right);
    default:
      return derivative(e->left) * e->right + e->left * derivative(e->right);
  }
}

inline Expression expression(const E& e) {
  return Expression([e](const R& r, const Number& x) { return value(e, r, x); });
}

/// All expressions with so many leaves.
inline const std::vector<E>& expressions(std::size_t leaves) {
  static std::vector<std::vector<E>> all{{}, {leaf('X'), leaf('0'), leaf('1')}};
  while (all.size() <= leaves) {
    std::vector<E> next;
    const std::size_t n = all.size();
    for (std::size_t i = 1; i < n; ++i)
      for (const E& a : all[i])
        for (const E& b : all[n - i]) next.push_back(a + b), next.push_back(a * b);
    all.push_back(std::move(next));
  }
  return all[leaves];
}

/// The same up to the order of the operands of + and *: one of a + b and b + a.
inline const std::vector<E>& unordered_expressions(std::size_t leaves) {
  static std::vector<std::vector<E>> all{{}, {leaf('X'), leaf('0'), leaf('1')}};
  while (all.size() <= leaves) {
    std::vector<E> next;
    const std::size_t n = all.size();
    for (std::size_t i = 1; i <= n - i; ++i)
      for (std::size_t a = 0; a < all[i].size(); ++a)
        for (std::size_t b = i == n - i ? a : 0; b < all[n - i].size(); ++b)
          next.push_back(all[n - i][b] + all[i][a]), next.push_back(all[n - i][b] * all[i][a]);
    all.push_back(std::move(next));
  }
  return all[leaves];
}

}  // namespace lantern::test::terms
