// Formulas of the operation table, derivatives and values, parsed: "y * pow(x, y - 1)" as a small tree.
#pragma once

#include <string_view>
#include <vector>

#include "lantern/ir/op.hpp"

namespace lantern::ir {

/// One node of a formula. Variables: x y z operands, r result, g cotangent of the result, acc the operand's
/// adjoint cell; `index...` represents the operands between the first and the last.
struct Formula {
  enum class Kind { number, variable, index, call };
  Kind kind = Kind::number;
  double number = 0;
  char variable = 0;  ///< 'x' 'y' 'z' 'r' 'g'; 'a' for acc
  Opcode op = Opcode::count_;
  std::vector<Formula> arguments;

  bool is_number(double v) const { return kind == Kind::number && number == v; }
  /// The root is `op(acc, ...)`: an accumulation in place.
  bool accumulates() const {
    return kind == Kind::call && !arguments.empty() && arguments[0].kind == Kind::variable &&
           arguments[0].variable == 'a';
  }
};

/// Parses a formula; the text comes from the table, so a mistake is an InternalError.
Formula parse_formula(std::string_view text);

/// The parsed derivative_formula(op, i, n), or null for "-"; each is parsed once per process.
const Formula* derivative(Opcode op, std::size_t i, std::size_t n);

/// The parsed value of a composed operation.
const Formula& composed_value(Opcode op);

}  // namespace lantern::ir
