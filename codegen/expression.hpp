// Expressions of generated C-like code as trees. An operator puts those of its operands in parentheses that bind looser, so
// no text of an expression is ever put beside an operator by hand.
#pragma once

#include <cstdint>
#include <memory>
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

/// An immutable expression, with what a printer has to know before it moves it. Copies share their operands.
class Expression {
 public:
  enum class Form { name, literal, prefix, binary, conditional, call, postfix };

  /// A name, or a path of members of structures: "x", "ws->unused".
  explicit Expression(std::string name) : text_(std::move(name)) {}
  Expression() = default;
  /// A variable that is assigned to again, as the state of a loop.
  static Expression variable(const std::string& name);

  /// As it is between delimiters: after "=", as an argument, in parentheses.
  const std::string& text() const { return text_; }
  Form form() const { return form_; }
  /// Of a prefix or binary form its operator; otherwise empty.
  const std::string& op() const { return op_; }
  const std::vector<Expression>& operands() const;
  Precedence precedence() const { return precedence_; }
  /// What an integer's literal says.
  std::optional<std::int64_t> integer() const { return integer_; }
  bool is_atom() const { return form_ == Form::name || form_ == Form::literal; }
  bool is(Form form, std::string_view op) const { return form_ == form && op_ == op; }

  bool reads_memory() const { return reads_memory_; }  ///< of a tensor, a cell: it must not move past a write
  bool calls() const { return calls_; }                ///< a function of the module, which may work on tapes
  /// The variables in it that are assigned to again.
  const std::vector<std::string>& varying() const { return varying_; }

  /// The same expression, which also has this property, or varies with the parts of another one.
  Expression reading_memory() const;
  Expression calling() const;
  Expression varying_with(const Expression& other) const;

  /// Two expressions are equal if their trees print the same.
  bool operator==(const Expression& other) const { return text_ == other.text_; }

 private:
  friend Expression composed(Form, std::string_view, std::vector<Expression>, std::string, Precedence);
  friend Expression literal(std::string, std::optional<std::int64_t>);

  std::string text_, op_;
  Form form_ = Form::name;
  Precedence precedence_ = Precedence::primary;
  bool reads_memory_ = false, calls_ = false;
  std::optional<std::int64_t> integer_;
  std::vector<std::string> varying_;
  std::shared_ptr<const std::vector<Expression>> operands_;
};

// ---- composition

/// An operator in front of its operand: "-x", "!x", "*p", "&x".
Expression prefix(std::string_view op, const Expression& x);
Expression binary(const Expression& x, std::string_view op, const Expression& y);
/// "c ? x : y"
Expression conditional(const Expression& c, const Expression& x, const Expression& y);
/// "(int64_t)x"
Expression cast_to(const std::string& type, const Expression& x);
Expression called(const std::string& function, std::vector<Expression> arguments);
/// "x[i]"
Expression element_at(const Expression& array, const Expression& index);
/// "x.field"
Expression member(const Expression& x, const std::string& field);

/// Index arithmetic, without zeros that are added and ones that are factors.
Expression operator+(const Expression& x, const Expression& y);
Expression operator-(const Expression& x, const Expression& y);
Expression operator*(const Expression& x, const Expression& y);

/// The sum with a product added: of a number, whose sign is the operator, and others.
Expression plus_product(const Expression& sum, std::int64_t factor, std::span<const Expression> others);

/// An address that lies so many elements behind a pointer, to which the terms of a sum are added in turn.
Expression displaced(const Expression& pointer, const Expression& offset);

/// "x = e;", or "x += e;" where that says the same.
std::string assignment(const Expression& target, const Expression& from);

/// The operand of an operator as it is printed beside it.
std::string beside(const Expression& e, std::size_t operand);

// ---- the table of operations

/// How often each of x, y, z occurs in an expression of the table.
int occurrences(std::string_view pattern, char variable);

/// A row's expression with operands in place of x, y, z and their kind in place of T. Names of functions that occur are
/// appended to `functions`.
Expression substitute(std::string_view pattern, std::span<const Expression> operands, const Target& target,
                      ir::Kind kind, std::vector<std::string>& functions);

/// Shortest text that reads back as the same number: "0.1", "1e+300", "2.0f"; infinities and NaN as
/// quotients.
Expression float_literal(double value, ir::Kind kind);
Expression integer_literal(std::int64_t value);

}  // namespace lantern::codegen
