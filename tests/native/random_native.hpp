// Random programs with native control flow over a number type T, as text. They always end, and their values
// stay small.
#pragma once

#include <random>
#include <string>
#include <vector>

namespace native_corpus {

/// Writes functions `template <class T> T NAME(T x, T y)`; the same seed gives the same text.
class RandomNative {
 public:
  explicit RandomNative(unsigned seed) : random_(seed) {}

  std::string function(const std::string& name) {
    numbers_ = {"x", "y"};
    indices_.clear();
    lambdas_.clear();
    names_ = 0;
    budget_ = 14;
    loops_ = 0;
    std::string body = declare(1) + block(1, 4);
    return "template <class T>\nT " + name + "(T x, T y) {\n" + body + "  return " + expression(2) + ";\n}\n";
  }

 private:
  int pick(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
  bool chance(int percent) { return pick(100) < percent; }
  template <class V>
  const std::string& one_of(const V& names) {
    return names[static_cast<std::size_t>(pick(static_cast<int>(names.size())))];
  }
  std::string fresh(const char* kind) { return kind + std::to_string(++names_); }
  static std::string indent(int depth) { return std::string(static_cast<std::size_t>(2 * depth), ' '); }
  std::string constant() { return std::to_string(pick(40) - 20) + "." + std::to_string(pick(90) + 10); }

  // Expressions

  std::string expression(int depth) {
    if (depth == 0 || chance(20)) {
      if (!indices_.empty() && chance(15)) return "0.1 * number(" + one_of(indices_) + ")";
      return chance(70) ? one_of(numbers_) : "T(" + constant() + ")";
    }
    const auto part = [&] { return expression(depth - 1); };
    switch (pick(lambdas_.empty() ? 9 : 10)) {
      case 0:
        return "(" + part() + " + " + part() + ")";
      case 1:
        return "(" + part() + " - " + part() + ")";
      case 2:
        return "0.5 * tanh(" + part() + ") * " + one_of(numbers_);
      case 3:
        return "sin(" + part() + ")";
      case 4:
        return "(" + part() + " / (1.0 + " + one_of(numbers_) + " * " + one_of(numbers_) + "))";
      case 5:
        return "tanh(" + part() + " * " + part() + ")";
      case 6:
        return "(" + condition(1) + " ? " + value(part()) + " : " + value(part()) + ")";
      case 7:
        return "-" + one_of(numbers_);
      case 8:
        return "cos(" + part() + ")";
      default:
        return one_of(lambdas_) + "(" + part() + ")";
    }
  }
  static std::string value(const std::string& e) { return "T(" + e + ")"; }

  std::string condition(int depth) {
    if (depth > 0 && chance(45)) {
      const std::string both = condition(depth - 1) + (chance(50) ? " && " : " || ") + condition(depth - 1);
      return chance(25) ? "!(" + both + ")" : "(" + both + ")";
    }
    if (!indices_.empty() && chance(30))
      return one_of(indices_) + (chance(50) ? " % 2 == 1" : " > " + std::to_string(pick(4)));
    static const std::vector<std::string> relations{" < ", " > ", " <= ", " >= "};
    return one_of(numbers_) + one_of(relations) + (chance(50) ? constant() : one_of(numbers_) + " * 0.7");
  }

  // Statements

  std::string declare(int depth) {
    const std::string name = fresh("v");
    std::string text = indent(depth) + "T " + name + " = " + expression(2) + ";\n";
    numbers_.push_back(name);
    return text;
  }

  /// Statements in a scope of their own: names end with it.
  std::string block(int depth, int statements) {
    const auto numbers = numbers_, indices = indices_, lambdas = lambdas_;
    std::string out;
    for (int i = 0; i < statements; ++i) out += statement(depth);
    numbers_ = numbers, indices_ = indices, lambdas_ = lambdas;
    return out;
  }
  std::string braces(int depth, int statements) {
    return "{\n" + block(depth + 1, statements) + indent(depth) + "}";
  }

  std::string statement(int depth) {
    const std::string in = indent(depth);
    if (--budget_ < 0 || depth > 5) return assignment(in);
    switch (pick(12)) {
      case 0:
      case 1:
        return declare(depth);
      case 2:
        return in + "if (" + condition(2) + ") " + braces(depth, 2) + "\n";
      case 3:
        return in + "if (" + condition(1) + ") " + braces(depth, 1) + " else if (" + condition(1) + ") " +
               braces(depth, 1) + " else " + braces(depth, 2) + "\n";
      case 4:
        return in + "if (" + condition(1) + ") return " + expression(2) + ";\n";
      case 5:
        return counting(depth);
      case 6:
        return conditional_loop(depth);
      case 7:
        return selection(depth);
      case 8:
        return function_object(depth);
      case 9:
        if (loops_ > 0)
          return in + "if (" + condition(1) + ") " + (chance(50) ? "break" : "continue") + ";\n";
        return assignment(in);
      default:
        return assignment(in);
    }
  }

  std::string assignment(const std::string& in) {
    const std::string& name = one_of(numbers_);
    if (chance(25)) return in + name + " += 0.25 * " + expression(1) + ";\n";
    return in + name + " = 3.0 * tanh(0.5 * " + expression(2) + ");\n";
  }

  std::string counting(int depth) {
    const std::string i = fresh("i"), in = indent(depth);
    std::string head =
        in + "for (Index<T> " + i + " = 0; " + i + " < " + std::to_string(2 + pick(4)) + "; ++" + i + ") ";
    indices_.push_back(i);
    ++loops_;
    std::string text = head + braces(depth, 3) + "\n";
    --loops_;
    indices_.pop_back();
    return text;
  }

  /// while and do, with a counter that ends them.
  std::string conditional_loop(int depth) {
    const std::string n = fresh("n"), in = indent(depth), more = indent(depth + 1);
    const std::string test = condition(1) + " && " + n + " < " + std::to_string(3 + pick(4));
    const std::string declaration = in + "Index<T> " + n + " = 0;\n";
    ++loops_;
    const bool last = chance(40);
    std::string body = "{\n" + more + n + " = " + n + " + 1;\n" + block(depth + 1, 2) + in + "}";
    --loops_;
    std::string text = declaration + (last ? in + "do " + body + " while (" + test + ");\n"
                                           : in + "while (" + test + ") " + body + "\n");
    indices_.push_back(n);
    return text;
  }

  std::string selection(int depth) {
    if (indices_.empty()) return assignment(indent(depth));
    const std::string in = indent(depth), more = indent(depth + 1), deep = indent(depth + 2);
    std::string text = in + "switch (" + one_of(indices_) + " % 4) {\n";
    const int outer = std::exchange(loops_, 0);  // a break here is the switch's
    for (int c = 0; c < 2; ++c)
      text += more + "case " + std::to_string(c) + ":\n" + assignment(deep) +
              (chance(65) ? deep + "break;\n" : "");
    if (chance(50)) text += more + "case 3: {\n" + block(depth + 2, 1) + deep + "break;\n" + more + "}\n";
    if (chance(70)) text += more + "default:\n" + assignment(deep);
    loops_ = outer;
    return text + in + "}\n";
  }

  std::string function_object(int depth) {
    const std::string name = fresh("f"), a = fresh("a"), in = indent(depth);
    const int outer = std::exchange(loops_, 0);
    numbers_.push_back(a);
    std::string text = in + "const auto " + name + " = [=](T " + a + ") -> T {\n" + indent(depth + 1) +
                       "if (" + condition(1) + ") return " + expression(1) + ";\n" + indent(depth + 1) +
                       "return " + expression(1) + ";\n" + in + "};\n";
    numbers_.pop_back();
    loops_ = outer;
    lambdas_.push_back(name);
    return text;
  }

  std::mt19937 random_;
  std::vector<std::string> numbers_, indices_, lambdas_;
  int names_ = 0, budget_ = 0, loops_ = 0;
};

/// One change that makes a program wrong, or another one: a token or a piece is left out, written twice,
/// moved or replaced, or the text ends early.
inline std::string garbled(std::string text, unsigned seed) {
  std::mt19937 random(seed);
  const auto pick = [&](std::size_t n) { return n == 0 ? 0 : static_cast<std::size_t>(random() % n); };
  for (std::size_t changes = 1 + pick(3); changes > 0; --changes) {
    const std::size_t at = pick(text.size()), length = std::min(text.size() - at, 1 + pick(12));
    static const std::vector<std::string> pieces{"{",
                                                 "}",
                                                 "(",
                                                 ")",
                                                 ";",
                                                 "if",
                                                 "while (",
                                                 "return",
                                                 "T",
                                                 "&&",
                                                 "?",
                                                 ":",
                                                 "break;",
                                                 "goto a;",
                                                 "a:",
                                                 "=",
                                                 "#if 0\n",
                                                 "\"",
                                                 "/*",
                                                 "<",
                                                 "T&",
                                                 "auto",
                                                 "switch (x) {",
                                                 "case 1:",
                                                 "[&]",
                                                 "do {",
                                                 "throw 1;",
                                                 "co_return",
                                                 "\\\n",
                                                 "\xff",
                                                 "constexpr",
                                                 "template <class U>"};
    switch (pick(5)) {
      case 0:
        text.erase(at, length);
        break;
      case 1:
        text.insert(at, text.substr(at, length));
        break;
      case 2:
        text.insert(pick(text.size()), text.substr(at, length));
        break;
      case 3:
        text.replace(at, std::min<std::size_t>(length, 3), pieces[pick(pieces.size())]);
        break;
      default:
        if (pick(4) == 0)
          text.resize(at);
        else
          text.insert(at, " " + pieces[pick(pieces.size())] + " ");
    }
  }
  return text;
}

}  // namespace native_corpus
