// The vertices of the graph that reverse mode differentiates (de Vilhena and Pottier, Figs. 5 and 9).
#pragma once

#include <memory>
#include <variant>

#include "lantern/compiler/ad/semiring/expression.hpp"

namespace lantern::core::semiring {

/// The constants 0 and 1, and everything else: a value, and the derivative of the result by it so far. Its
/// address is its name.
struct Zero {};
struct One {};
struct Variable {
  Number v, d;
};
using Vertex = std::variant<Zero, One, std::shared_ptr<Variable>>;

/// Vertices over the semiring r.
class Vertices {
 public:
  explicit Vertices(const Dictionary<Number>& r) : r_(r) {}

  Vertex make(const Number& v) const { return std::make_shared<Variable>(Variable{v, r_.zero}); }
  Number value(const Vertex& u) const {
    if (std::holds_alternative<Zero>(u)) return r_.zero;
    if (std::holds_alternative<One>(u)) return r_.one;
    return std::get<std::shared_ptr<Variable>>(u)->v;
  }
  /// Of a variable: the constants are never the result of an operation.
  Number derivative(const Vertex& u) const { return std::get<std::shared_ptr<Variable>>(u)->d; }
  /// u.d += i; no effect on a constant.
  void update(const Vertex& u, const Number& i) const {
    if (const auto* x = std::get_if<std::shared_ptr<Variable>>(&u)) (*x)->d = (*x)->d + i;
  }

 private:
  const Dictionary<Number>& r_;
};

}  // namespace lantern::core::semiring
