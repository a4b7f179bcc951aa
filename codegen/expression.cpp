// Composition of expressions.
#include "lantern/codegen/expression.hpp"

#include <charconv>
#include <cmath>
#include <limits>

#include "lantern/ir/text.hpp"

namespace lantern::codegen {

namespace {

struct Token {
  std::string_view text;
  bool word;
};

std::vector<Token> tokens(std::string_view pattern) {
  std::vector<Token> result;
  for (std::size_t i = 0; i < pattern.size();) {
    const char c = pattern[i];
    if (c == ' ') {
      ++i;
      continue;
    }
    std::size_t end = i + 1;
    const bool word = ir::is_word(c);
    if (word) {
      end = ir::end_of_word(pattern, end);
    } else if (end < pattern.size() && (pattern[end] == '=' || pattern[end] == '&' || pattern[end] == '|' ||
                                        ((c == '<' || c == '>') && pattern[end] == pattern[i]))) {
      ++end;
    }
    result.push_back({pattern.substr(i, end - i), word});
    i = end;
  }
  return result;
}

/// Precedence of a binary operator; primary for punctuation that delimits.
Precedence binary(std::string_view op) {
  if (op == "?" || op == ":") return Precedence::conditional;
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

/// The loosest precedence an operand may have beside this operator without parentheses. Stricter than the
/// grammar where compilers warn: && inside ||, comparisons inside comparisons, anything inside bit operations.
Precedence required(std::string_view op, bool operand_is_left) {
  const Precedence p = binary(op);
  switch (p) {
    case Precedence::primary:
      return Precedence::conditional;
    case Precedence::conditional:
      return op == "?" && operand_is_left ? Precedence::logical_or : Precedence::conditional;
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
      return operand_is_left ? p : tighter(p);
  }
}

/// One slot of a pattern: what may be there bare.
struct Slots {
  std::vector<Token> tokens;
  std::vector<Precedence> least;  ///< for each token that is an operand
  Precedence outer = Precedence::primary;
};

Slots analyse(std::string_view pattern) {
  Slots s{tokens(pattern), {}, Precedence::primary};
  s.least.resize(s.tokens.size(), Precedence::conditional);
  int depth = 0;
  for (std::size_t i = 0; i < s.tokens.size(); ++i) {
    const std::string_view t = s.tokens[i].text;
    if (t == "(") ++depth;
    if (t == ")") --depth;
    const bool after_operand = i > 0 && (s.tokens[i - 1].word || s.tokens[i - 1].text == ")");
    if (!s.tokens[i].word && depth == 0 && binary(t) != Precedence::primary)
      s.outer = std::min(s.outer, after_operand ? binary(t) : Precedence::unary);
    if (t == "!" && depth == 0) s.outer = std::min(s.outer, Precedence::unary);
    if (!s.tokens[i].word) continue;
    Precedence least = Precedence::conditional;
    if (i > 0) {
      const std::string_view left = s.tokens[i - 1].text;
      const bool prefix =
          left == "!" || (left == "-" && (i < 2 || (!s.tokens[i - 2].word && s.tokens[i - 2].text != ")")));
      least = std::max(least, prefix ? Precedence::unary : required(left, false));
    }
    if (i + 1 < s.tokens.size()) least = std::max(least, required(s.tokens[i + 1].text, true));
    s.least[i] = least;
  }
  // A cast, "(T)(...)", binds like a prefix operator.
  if (pattern.starts_with("(T)")) s.outer = std::min(s.outer, Precedence::unary);
  return s;
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

bool is_operand(const Token& t) {
  return t.word && t.text.size() == 1 && t.text[0] >= 'x' && t.text[0] <= 'z';
}

/// Of a pattern that is one operator between its operands.
Split split(const Slots& slots, std::span<const Expression> operands) {
  const std::size_t n = slots.tokens.size();
  if (n < 2 || n > 3 || !is_operand(slots.tokens[n - 1]) || (n == 3 && !is_operand(slots.tokens[0])))
    return {};
  const std::string_view sign = slots.tokens[n - 2].text;
  if (sign != "-" && (n == 2 || (sign != "+" && sign != "*"))) return {};
  const auto operand = [&](std::size_t i) -> const Expression& {
    return operands[static_cast<std::size_t>(slots.tokens[i].text[0] - 'x')];
  };
  Split s{sign[0], "", in_context(operand(n - 1), slots.least[n - 1])};
  if (n == 3) {
    const bool bare = operand(0).precedence >= slots.least[0];
    s.left = in_context(operand(0), slots.least[0]);
    s.left_binds = bare ? operand(0).precedence : Precedence::primary;
  }
  return s;
}

/// A number's literal; a negative one is the negation of the other.
Expression literal(std::string text) {
  Expression e{std::move(text)};
  if (e.text[0] != '-') return e;
  e.precedence = Precedence::unary;
  e.last = {'-', "", e.text.substr(1)};
  return e;
}

}  // namespace

std::string in_context(const Expression& e, Precedence least) {
  return e.precedence < least ? "(" + e.text + ")" : e.text;
}

int occurrences(std::string_view pattern, char variable) {
  int n = 0;
  for (const Token& t : tokens(pattern)) n += t.text.size() == 1 && t.text[0] == variable;
  return n;
}

Expression substitute(std::string_view pattern, std::span<const Expression> operands, const Target& target,
                      ir::Kind kind, std::vector<std::string>& functions) {
  const Slots slots = analyse(pattern);
  Expression result;
  result.precedence = slots.outer;
  for (const Expression& e : operands) {
    result.reads_memory |= e.reads_memory;
    result.calls |= e.calls;
    result.varying.insert(result.varying.end(), e.varying.begin(), e.varying.end());
  }
  bool prefix = true;  // at the start of an operand: '-' and '!' are not binary
  for (std::size_t i = 0; i < slots.tokens.size(); ++i) {
    const auto [text, word] = slots.tokens[i];
    if (is_operand(slots.tokens[i])) {
      const std::string operand =
          in_context(operands[static_cast<std::size_t>(text[0] - 'x')], slots.least[i]);
      const bool twice = prefix && !result.text.empty() && result.text.back() == '-' && operand[0] == '-';
      result.text += twice ? "(" + operand + ")" : operand;
      prefix = false;
    } else if (text == "T") {
      result.text += target.scalar(kind);
    } else if (word && ir::is_letter(text[0])) {
      functions.push_back(target.math(text, kind));
      result.text += functions.back();
      prefix = false;
    } else if (word) {
      result.text += text;
      prefix = false;
    } else if (text == "(" || text == ")") {
      result.text += text;
      prefix = text == "(";
    } else if (text == ",") {
      result.text += ", ";
      prefix = true;
    } else if (prefix) {
      result.text += text;
    } else {
      result.text += " ";
      result.text += text;
      result.text += " ";
      prefix = true;
    }
  }
  result.last = split(slots, operands);
  return result;
}

Expression float_literal(double value, ir::Kind kind) {
  const bool narrow = kind == ir::Kind::f32;
  if (narrow) value = static_cast<double>(static_cast<float>(value));
  if (std::isnan(value)) return {narrow ? "(0.0f / 0.0f)" : "(0.0 / 0.0)"};
  if (std::isinf(value)) {
    const std::string one = value < 0 ? "-1.0" : "1.0";
    return {narrow ? "(" + one + "f / 0.0f)" : "(" + one + " / 0.0)"};
  }
  return literal(shortest(value, kind));
}

Expression integer_literal(std::int64_t value) {
  if (value == std::numeric_limits<std::int64_t>::min())
    return {"(-9223372036854775807 - 1)"};
  if (value == std::numeric_limits<std::int32_t>::min())  // C takes it for the negation of what no int holds
    return {"(-2147483647 - 1)"};
  Expression e = literal(std::to_string(value));
  e.integer = value;
  return e;
}

}  // namespace lantern::codegen
