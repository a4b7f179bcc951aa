// Derivatives of operations on known doubles, computed as arithmetic on doubles.
#pragma once

#include <array>

#include "lantern/compiler/ad/adjoint_cell.hpp"
#include "lantern/ir/formula.hpp"

namespace lantern::core::ad {

inline bool is_double(const Datum& d) { return d.is_literal() && d.type().kind() == ir::Kind::f64; }

/// a + b and w * g, one level down: as arithmetic where these are doubles.
Datum plus(const Datum& a, const Datum& b, const Location& loc);
Datum times(double w, const Datum& g, const Location& loc);
/// a + b, where an empty one is zero.
inline Datum sum(const Datum& a, const Datum& b, const Location& loc) {
  return a.empty() ? b : b.empty() ? a : plus(a, b, loc);
}

/// A row of the operation table, for scalar operations on doubles.
struct DoubleDerivative {
  enum class Partial : std::uint8_t { zero, one, minus_one, x, y, r, formula, choice };
  std::size_t operands = 0;  ///< 0: the operation is not one on doubles
  std::array<Partial, 3> partials{};
  std::array<const ir::Formula*, 3> formulas{};
};
const DoubleDerivative& double_derivative(Opcode code);

/// A scalar operation that was performed on doubles. What modes do for it costs less than finding out about
/// tensors, nodes of the graph and further modes.
struct DoubleStep {
  Opcode code;
  const DoubleDerivative* rule = nullptr;
  std::array<double, 3> x{};
  double y = 0;

  /// Performs `op` where it is such an operation, on operands of which `primal` gives the number one level
  /// down; false where it is not, or eager evaluation is being checked.
  template <class Primal>
  bool perform(const Operation& op, std::span<const Datum> operands, const Primal& primal) {
    code = op.code;
    rule = &double_derivative(code);
    if (operands.size() != rule->operands || operands.empty()) return false;
    for (std::size_t i = 0; i < operands.size(); ++i) {
      const Datum& d = primal(operands[i]);
      if (!is_double(d)) return false;
      x[i] = d.f();
    }
    return compute();
  }

  /// Whether operand i passes a derivative on.
  bool carries(std::size_t i) const {
    const DoubleDerivative::Partial p = rule->partials[i];
    return p != DoubleDerivative::Partial::zero && (p != DoubleDerivative::Partial::choice || taken(i));
  }
  double partial(std::size_t i) const {
    switch (rule->partials[i]) {
      case DoubleDerivative::Partial::zero:
        return 0;
      case DoubleDerivative::Partial::one:
        return 1;
      case DoubleDerivative::Partial::minus_one:
        return -1;
      case DoubleDerivative::Partial::x:
        return x[0];
      case DoubleDerivative::Partial::y:
        return x[1];
      case DoubleDerivative::Partial::r:
        return y;
      default:
        return by_formula(i);
    }
  }
  Datum value() const { return Datum::number(y, ir::Type(ir::Kind::f64)); }
  /// What operand i receives of the result's cotangent g.
  Datum share(std::size_t i, const Datum& g, const Location& loc) const;

 private:
  bool compute();
  /// Of a choice: whether a derivative passes here.
  bool taken(std::size_t i) const;
  double by_formula(std::size_t i) const;
};

}  // namespace lantern::core::ad
