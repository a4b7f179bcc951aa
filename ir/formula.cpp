// A recursive-descent parser for the derivative formulas of the table.
#include "lantern/ir/formula.hpp"

#include <algorithm>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>

#include "lantern/ir/error.hpp"
#include "lantern/ir/text.hpp"

namespace lantern::ir {

namespace {

class FormulaParser {
 public:
  explicit FormulaParser(std::string_view text) : text_(text) {}

  Formula parse() {
    Formula f = comparison();
    skip();
    if (at_ != text_.size()) fail("trailing text");
    return f;
  }

 private:
  static Formula call(Opcode op, std::vector<Formula> arguments) {
    Formula f;
    f.kind = Formula::Kind::call;
    f.op = op;
    f.arguments = std::move(arguments);
    return f;
  }

  Formula comparison() {
    Formula left = sum();
    if (eat("<=")) return call(Opcode::le_, {left, sum()});
    if (eat(">=")) {
      Formula right = sum();
      return call(Opcode::le_, {right, left});
    }
    if (eat("==")) return call(Opcode::eq_, {left, sum()});
    return left;
  }

  using Sign = std::pair<const char*, Opcode>;
  Formula sum() {
    return from_the_left({{"+", Opcode::add_}, {"-", Opcode::sub_}}, [&] { return product(); });
  }
  Formula product() {
    return from_the_left({{"*", Opcode::mul_}, {"/", Opcode::div_}}, [&] { return unary(); });
  }

  template <class Operand>
  Formula from_the_left(std::initializer_list<Sign> signs, const Operand& operand) {
    Formula left = operand();
    for (;;) {
      const auto sign = std::find_if(signs.begin(), signs.end(), [&](const Sign& s) { return eat(s.first); });
      if (sign == signs.end()) return left;
      left = call(sign->second, {left, operand()});
    }
  }

  Formula unary() {
    if (!eat("-")) return atom();
    Formula f = unary();
    if (f.kind == Formula::Kind::number) {
      f.number = -f.number;
      return f;
    }
    return call(Opcode::neg_, {f});
  }

  Formula atom() {
    skip();
    if (eat("(")) {
      Formula f = comparison();
      expect(")");
      return f;
    }
    if (at_ < text_.size() && is_digit(text_[at_])) {
      std::size_t used = 0;
      Formula f;
      f.number = std::stod(std::string(text_.substr(at_)), &used);
      at_ += used;
      return f;
    }
    const std::string_view name = identifier();
    Formula f;
    if (eat("(")) {
      std::vector<Formula> arguments;
      do arguments.push_back(comparison());
      while (eat(","));
      expect(")");
      const Opcode op = opcode_named(name);
      if (op == Opcode::count_) fail("unknown operation " + std::string(name));
      return call(op, std::move(arguments));
    }
    if (name == "index") {
      expect("...");
      f.kind = Formula::Kind::index;
      return f;
    }
    f.kind = Formula::Kind::variable;
    f.variable = name[0];
    if (name != "acc" && (name.size() != 1 || std::string_view("xyzrg").find(name[0]) == std::string_view::npos))
      fail("unknown variable " + std::string(name));
    return f;
  }

  std::string_view identifier() {
    const std::size_t start = at_;
    at_ = end_of_word(text_, at_);
    if (at_ == start) fail("expected a name");
    return text_.substr(start, at_ - start);
  }

  void skip() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool eat(std::string_view token) {
    skip();
    if (text_.substr(at_, token.size()) != token) return false;
    at_ += token.size();
    return true;
  }
  void expect(std::string_view token) {
    if (!eat(token)) fail("expected " + std::string(token));
  }
  [[noreturn]] void fail(const std::string& what) const {
    throw InternalError("derivative formula '" + std::string(text_) + "': " + what);
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

Formula parse_formula(std::string_view text) { return FormulaParser(text).parse(); }

const Formula* derivative(Opcode op, std::size_t i, std::size_t n) {
  // Eager derivatives ask for every operation performed: found by place in the row, not by text.
  static const auto parsed = [] {
    std::vector<std::vector<std::unique_ptr<const Formula>>> rows(static_cast<std::size_t>(Opcode::count_));
    for (std::size_t c = 0; c < rows.size(); ++c)
      for (std::string_view text : info(static_cast<Opcode>(c)).formulas)
        rows[c].push_back(text == "-" ? nullptr : std::make_unique<const Formula>(parse_formula(text)));
    return rows;
  }();
  const std::string_view text = derivative_formula(op, i, n);
  const std::vector<std::string_view>& row = info(op).formulas;
  for (std::size_t k = 0; k < row.size(); ++k)
    if (row[k].data() == text.data()) return parsed[static_cast<std::size_t>(op)][k].get();
  return nullptr;
}

const Formula& composed_value(Opcode op) {
  static const auto parsed = [] {
    std::vector<Formula> rows(static_cast<std::size_t>(Opcode::count_));
    for (std::size_t c = 0; c < rows.size(); ++c)
      if (const OpInfo& row = info(static_cast<Opcode>(c)); row.composed) rows[c] = parse_formula(row.expression);
    return rows;
  }();
  return parsed[static_cast<std::size_t>(op)];
}

}  // namespace lantern::ir
