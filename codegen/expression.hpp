// Expressions of generated C-like code: text with its precedence, composed from the operation table.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lantern/codegen/target.hpp"
#include "lantern/ir/op.hpp"

namespace lantern::codegen {

/// Precedence of C operators, loosest first.
enum class Precedence : int {
  conditional = 3,
  logical_or,
  logical_and,
  bit_or,
  bit_xor,
  bit_and,
  equality,
  relational,
  shift,
  additive,
  multiplicative,
  unary,
  primary
};

/// How a sum, difference, product or negation splits at the operator that is applied last.
struct Split {
  char sign = 0;                                ///< '+', '-', '*'; 0 for any other expression
  std::string left, right;                      ///< of a negation the left one is empty
  Precedence left_binds = Precedence::primary;  ///< of the left operand
};

/// An expression not yet placed in a statement.
struct Expression {
  std::string text;
  Precedence precedence = Precedence::primary;
  bool reads_memory = false;         ///< of a tensor, a cell: it must not move past a write
  std::vector<std::string> varying = {};  ///< variables in it that are assigned to again (loop states)
  bool calls = false;                ///< a function of the module, which may work on tapes
  Split last = {};
  std::optional<std::int64_t> integer = {};  ///< what an integer's literal says

  /// Another text for the same operands, which are read as before.
  void rewrite(std::string other, Precedence binds) {
    text = std::move(other);
    precedence = binds;
    last = {};
    integer = {};
  }
  bool is_atom() const {
    return precedence == Precedence::primary && text.find_first_of("([") == std::string::npos;
  }
};

/// The text, in parentheses if it binds looser than `least`.
std::string in_context(const Expression& e, Precedence least);

/// How often each of x, y, z occurs in an expression of the table.
int occurrences(std::string_view pattern, char variable);

/// A row's expression with operands in place of x, y, z, their kind in place of T, and parentheses only where
/// they are needed. Names of functions that occur are appended to `functions`.
Expression substitute(std::string_view pattern, std::span<const Expression> operands, const Target& target,
                      ir::Kind kind, std::vector<std::string>& functions);

/// Shortest text that reads back as the same number: "0.1", "1e+300", "2.0f"; infinities and NaN as
/// quotients.
Expression float_literal(double value, ir::Kind kind);
Expression integer_literal(std::int64_t value);

}  // namespace lantern::codegen
