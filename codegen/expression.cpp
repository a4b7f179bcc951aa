// Composition of expressions.
#include "lantern/codegen/expression.hpp"

#include <charconv>
#include <cmath>
#include <limits>

#include "lantern/ir/text.hpp"

namespace lantern::codegen {

using Form = Expression::Form;

namespace {

/// Precedence of a binary operator; primary for anything else.
Precedence binding(std::string_view op) {
  if (op == "||") return Precedence::logical_or;
  if (op == "&&") return Precedence::logical_and;
  if (op == "|") return Precedence::bit_or;
  if (op == "^") return Precedence::bit_xor;
  if (op == "&") return Precedence::bit_and;
  if (op == "<<" || op == ">>") return Precedence::shift;
  if (op == "==" || op == "!=") return Precedence::equality;
  if (op == "<" || op == ">" || op == "<=" || op == ">=") return Precedence::relational;
  if (op == "+" || op == "-") return Precedence::additive;
  if (op == "*" || op == "/" || op == "%") return Precedence::multiplicative;
  return Precedence::primary;
}

Precedence tighter(Precedence p) { return static_cast<Precedence>(static_cast<int>(p) + 1); }

/// The loosest precedence that an operand of a binary operator may have without parentheses. Stricter than the
/// grammar where compilers warn: && inside ||, comparisons inside comparisons, anything inside bit operations.
Precedence required(std::string_view op, std::size_t operand) {
  const Precedence p = binding(op);
  switch (p) {
    case Precedence::logical_or:
    case Precedence::logical_and:
      return Precedence::equality;
    case Precedence::equality:
    case Precedence::relational:
      return Precedence::additive;
    case Precedence::bit_or:
    case Precedence::bit_xor:
    case Precedence::bit_and:
    case Precedence::shift:
      return Precedence::unary;
    default:
      return operand == 0 ? p : tighter(p);
  }
}

std::string in_context(const Expression& e, Precedence least) {
  return e.precedence() < least ? "(" + e.text() + ")" : e.text();
}

std::string shortest(double value, ir::Kind kind) {
  char buffer[64];
  const auto end = kind == ir::Kind::f32
                       ? std::to_chars(buffer, buffer + sizeof buffer, static_cast<float>(value)).ptr
                       : std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
  std::string text(buffer, end);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  if (kind == ir::Kind::f32) text += "f";
  return text;
}

/// Reads an expression of the table by recursive descent.
class PatternReader {
 public:
  PatternReader(std::string_view pattern, std::span<const Expression> operands, const Target& target, ir::Kind kind,
                std::vector<std::string>& functions)
      : rest_(pattern), operands_(operands), target_(target), kind_(kind), functions_(functions) {}

  Expression choice() {
    Expression c = operation(Precedence::logical_or);
    if (!take("?")) return c;
    const Expression x = choice();
    take(":");
    return conditional(c, x, choice());
  }

 private:
  Expression operation(Precedence least) {
    Expression left = operand();
    for (;;) {
      skip();
      std::size_t size = 2;
      while (size > 0 && binding(rest_.substr(0, size)) == Precedence::primary) --size;
      const std::string_view op = rest_.substr(0, size);
      if (size == 0 || binding(op) < least) return left;
      rest_.remove_prefix(size);
      left = binary(left, op, operation(tighter(binding(op))));
    }
  }

  Expression operand() {
    for (const char* op : {"-", "!"})
      if (take(op)) return prefix(op, operand());
    if (take("(T)")) return cast_to(target_.scalar(kind_), operand());
    if (take("(")) {
      Expression e = choice();
      take(")");
      return e;
    }
    const std::string_view word = rest_.substr(0, ir::end_of_word(rest_, 0));
    rest_.remove_prefix(word.size());
    if (word.size() == 1 && word[0] >= 'x' && word[0] <= 'z') return operands_[static_cast<std::size_t>(word[0] - 'x')];
    if (!take("(")) return Expression(std::string(word));
    functions_.push_back(target_.math(word, kind_));
    const std::string function = functions_.back();
    std::vector<Expression> arguments;
    do arguments.push_back(choice());
    while (take(","));
    take(")");
    return called(function, std::move(arguments));
  }

  void skip() { rest_.remove_prefix(std::min(rest_.find_first_not_of(' '), rest_.size())); }
  bool take(std::string_view token) {
    skip();
    if (!rest_.starts_with(token)) return false;
    rest_.remove_prefix(token.size());
    skip();
    return true;
  }

  std::string_view rest_;
  std::span<const Expression> operands_;
  const Target& target_;
  ir::Kind kind_;
  std::vector<std::string>& functions_;
};

}  // namespace

// ---- one expression

Expression composed(Form form, std::string_view op, std::vector<Expression> operands, std::string text, Precedence precedence) {
  Expression e(std::move(text));
  e.form_ = form;
  e.op_ = op;
  e.precedence_ = precedence;
  for (const Expression& x : operands) {
    e.reads_memory_ |= x.reads_memory_;
    e.calls_ |= x.calls_;
    e.varying_.insert(e.varying_.end(), x.varying_.begin(), x.varying_.end());
  }
  e.operands_ = std::make_shared<const std::vector<Expression>>(std::move(operands));
  return e;
}

/// A number's literal; a negative one is the negation of the other.
Expression literal(std::string text, std::optional<std::int64_t> integer) {
  Expression e(std::move(text));
  e.form_ = Form::literal;
  if (e.text_[0] == '-') e = prefix("-", literal(e.text_.substr(1), {}));
  e.integer_ = integer;
  return e;
}

Expression Expression::variable(const std::string& name) {
  Expression e(name);
  e.varying_ = {name};
  return e;
}

const std::vector<Expression>& Expression::operands() const {
  static const std::vector<Expression> none;
  return operands_ ? *operands_ : none;
}

Expression Expression::reading_memory() const {
  Expression e = *this;
  e.reads_memory_ = true;
  return e;
}

Expression Expression::calling() const {
  Expression e = *this;
  e.calls_ = true;
  return e;
}

Expression Expression::varying_with(const Expression& other) const {
  Expression e = *this;
  e.varying_.insert(e.varying_.end(), other.varying_.begin(), other.varying_.end());
  return e;
}

// ---- composition

Expression prefix(std::string_view op, const Expression& x) {
  std::string operand = in_context(x, Precedence::unary);
  if (op == "-" && operand[0] == '-') operand = "(" + operand + ")";
  return composed(Form::prefix, op, {x}, std::string(op) + operand, Precedence::unary);
}

std::string beside(const Expression& e, std::size_t operand) {
  return in_context(e.operands()[operand], e.form() == Form::prefix ? Precedence::unary : required(e.op(), operand));
}

Expression binary(const Expression& x, std::string_view op, const Expression& y) {
  std::string text = in_context(x, required(op, 0)) + " " + std::string(op) + " " + in_context(y, required(op, 1));
  return composed(Form::binary, op, {x, y}, std::move(text), binding(op));
}

Expression conditional(const Expression& c, const Expression& x, const Expression& y) {
  std::string text = in_context(c, Precedence::logical_or) + " ? " + x.text() + " : " + y.text();
  return composed(Form::conditional, "", {c, x, y}, std::move(text), Precedence::conditional);
}

Expression cast_to(const std::string& type, const Expression& x) {
  return composed(Form::prefix, "", {x}, "(" + type + ")" + in_context(x, Precedence::primary), Precedence::unary);
}

Expression called(const std::string& function, std::vector<Expression> arguments) {
  std::string list;
  for (const Expression& a : arguments) list += (list.empty() ? "" : ", ") + a.text();
  return composed(Form::call, "", std::move(arguments), function + "(" + list + ")", Precedence::primary);
}

Expression element_at(const Expression& array, const Expression& index) {
  std::string text = in_context(array, Precedence::primary) + "[" + index.text() + "]";
  return composed(Form::postfix, "", {array, index}, std::move(text), Precedence::primary);
}

Expression member(const Expression& x, const std::string& field) {
  return composed(x.is_atom() ? Form::name : Form::postfix, "", {x}, in_context(x, Precedence::primary) + "." + field,
                  Precedence::primary);
}

Expression operator+(const Expression& x, const Expression& y) {
  return x.integer() == 0 ? y : y.integer() == 0 ? x : binary(x, "+", y);
}

Expression operator-(const Expression& x, const Expression& y) { return y.integer() == 0 ? x : binary(x, "-", y); }

Expression operator*(const Expression& x, const Expression& y) {
  if (x.integer() == 0 || y.integer() == 1) return x;
  return x.integer() == 1 || y.integer() == 0 ? y : binary(x, "*", y);
}

Expression plus_product(const Expression& sum, std::int64_t factor, std::span<const Expression> others) {
  const bool subtracts = factor < 0 && sum.integer() != 0 && factor != std::numeric_limits<std::int64_t>::min();
  Expression product = integer_literal(subtracts ? -factor : factor);
  for (const Expression& x : others) product = product.integer() == -1 ? prefix("-", x) : product * x;
  return subtracts ? sum - product : sum + product;
}

Expression displaced(const Expression& pointer, const Expression& offset) {
  if (!offset.is(Form::binary, "+") && !offset.is(Form::binary, "-")) return pointer + offset;
  return binary(displaced(pointer, offset.operands()[0]), offset.op(), offset.operands()[1]);
}

std::string assignment(const Expression& target, const Expression& from) {
  const std::string& op = from.op();
  if (from.form() == Form::binary && (op == "+" || op == "-" || op == "*")) {
    const Expression &left = from.operands()[0], &right = from.operands()[1];
    std::optional<std::size_t> other;
    if (left == target)
      other = 1;
    else if (op != "-" && right == target && left.precedence() != from.precedence())
      other = 0;
    if (other) return target.text() + " " + op + "= " + beside(from, *other) + ";";
  }
  return target.text() + " = " + from.text() + ";";
}

// ---- the table of operations

int occurrences(std::string_view pattern, char variable) {
  int n = 0;
  for (std::size_t i = 0, end = 0; i < pattern.size(); i = end) {
    end = std::max(i + 1, ir::end_of_word(pattern, i));
    n += pattern.substr(i, end - i) == std::string_view(&variable, 1);
  }
  return n;
}

Expression substitute(std::string_view pattern, std::span<const Expression> operands, const Target& target,
                      ir::Kind kind, std::vector<std::string>& functions) {
  return PatternReader(pattern, operands, target, kind, functions).choice();
}

Expression float_literal(double value, ir::Kind kind) {
  const bool narrow = kind == ir::Kind::f32;
  if (narrow) value = static_cast<double>(static_cast<float>(value));
  if (std::isnan(value)) return Expression(narrow ? "(0.0f / 0.0f)" : "(0.0 / 0.0)");
  if (std::isinf(value)) {
    const std::string one = value < 0 ? "-1.0" : "1.0";
    return Expression(narrow ? "(" + one + "f / 0.0f)" : "(" + one + " / 0.0)");
  }
  return literal(shortest(value, kind), {});
}

Expression integer_literal(std::int64_t value) {
  if (value == std::numeric_limits<std::int64_t>::min()) return Expression("(-9223372036854775807 - 1)");
  if (value == std::numeric_limits<std::int32_t>::min())  // C takes it for the negation of what no int holds
    return Expression("(-2147483647 - 1)");
  return literal(std::to_string(value), value);
}

}  // namespace lantern::codegen
