// Random programs with native control flow over a number type T, as text. They always end, and their values
// stay small.
#pragma once

#include <algorithm>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace native_corpus {

/// Writes functions `template <class T> T NAME(T x, T y)`; the same seed gives the same text.
class RandomNative {
 public:
  explicit RandomNative(unsigned seed) : random_(seed) {}

  /// With a class and a function of its own, which it may use.
  std::string function(const std::string& name) {
    names_ = 0;
    class_ = helper_ = "";
    std::string text;
    if (chance(50)) text += class_template("C_" + name);
    if (chance(50)) text += helper("h_" + name);
    begin({"x", "y"}, 14);
    std::string body = declare(1);
    body += block(1, 4);
    return text + "template <class T>\nT " + name + "(T x, T y) {\n" + body + "  return " + expression(2) +
           ";\n}\n";
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

  void begin(const std::vector<std::string>& variables, int budget) {
    numbers_ = writable_ = hidden_ = variables;
    indices_.clear();
    lambdas_.clear();
    actions_.clear();
    budget_ = budget;
    loops_ = continues_ = 0;
  }

  // Classes and functions beside the program

  /// Two members, which its functions assign; one of those is defined outside.
  std::string class_template(const std::string& name) {
    begin({"a", "b", "u"}, 4);
    void_ = true;
    std::string text =
        "template <class T>\nclass " + name + " {\n public:\n  " + name + "(T u, T w) : a(u), b(w) {\n";
    text += block(2, 2) + "  }\n  T run(T u);\n  void step(const T& from) {\n    T u = from;\n";
    begin({"a", "b", "u"}, 4);
    text += block(2, 2) + "  }\n  T a;\n\n private:\n  T b;\n};\ntemplate <class T>\nT " + name +
            "<T>::run(T u) {\n";
    void_ = false;
    begin({"a", "b", "u"}, 5);
    text += block(1, 2);
    text += "  return " + expression(1) + ";\n}\n";
    class_ = name;
    return text;
  }
  /// Assigns the variable that it is given.
  std::string helper(const std::string& name) {
    begin({"u", "w"}, 5);
    std::string text = "template <class T>\nT " + name + "(T u, T& w) {\n";
    text += block(1, 2);
    text += "  return " + expression(1) + ";\n}\n";
    helper_ = name;
    return text;
  }

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
    add(name);
    return text;
  }
  void add(const std::string& name) {
    numbers_.push_back(name);
    writable_.push_back(name);
    hidden_.push_back(name);
  }
  /// A variable of an outer block gives its name to a new one.
  std::string hide(int depth) {
    const std::string name = one_of(numbers_);
    const bool plain =
        name[0] != 's' && name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789") == std::string::npos;
    if (!plain || std::find(hidden_.begin(), hidden_.end(), name) != hidden_.end()) return declare(depth);
    const auto numbers = numbers_;
    std::erase(numbers_, name);  // its own initialiser does not see the outer one
    std::string text =
        indent(depth) + "T " + name + " = " + (numbers_.empty() ? "T(0.5)" : expression(1)) + ";\n";
    numbers_ = numbers;
    hidden_.push_back(name);
    if (std::find(writable_.begin(), writable_.end(), name) == writable_.end()) writable_.push_back(name);
    return text;
  }
  /// Another way to a variable: a reference, a pointer, a guard that assigns it at the end of the block.
  std::string alias(int depth) {
    if (writable_.empty()) return declare(depth);
    const std::string in = indent(depth), to = one_of(writable_);
    switch (pick(4)) {
      case 0: {
        const std::string name = fresh("r");
        add(name);
        return in + "T& " + name + " = " + to + ";\n";
      }
      case 1: {
        const std::string name = fresh("p");
        add("(*" + name + ")");
        return in + "T* " + name + " = &" + to + ";\n";
      }
      case 2:
        return in + "AddAtEnd<T> " + fresh("g") + "{" + to + ", " + expression(1) + "};\n";
      default:
        return in + "RestoreAtEnd<T> " + fresh("g") + "{" + to + ", " + to + "};\n";
    }
  }

  /// Statements in a scope of their own: names end with it.
  std::string block(int depth, int statements, bool braces = false) {
    const auto numbers = numbers_, writable = writable_, indices = indices_, lambdas = lambdas_,
               actions = actions_;
    const auto hidden = braces ? std::exchange(hidden_, heads_) : hidden_;
    std::string out;
    for (int i = 0; i < statements; ++i) out += statement(depth);
    numbers_ = numbers, writable_ = writable, indices_ = indices, lambdas_ = lambdas, actions_ = actions;
    hidden_ = hidden;
    return out;
  }
  std::string braces(int depth, int statements) {
    return "{\n" + block(depth + 1, statements, true) + indent(depth) + "}";
  }

  std::string statement(int depth) {
    const std::string in = indent(depth);
    if (--budget_ < 0 || depth > 5) return assignment(in);
    switch (pick(18)) {
      case 0:
        return declare(depth);
      case 1:
        return depth > 1 ? hide(depth) : declare(depth);
      case 2:
        return in + "if (" + condition(2) + ") " + braces(depth, 2) + "\n";
      case 3:
        return chain(depth);
      case 4:
        if (void_) return in + "if (" + condition(1) + ") return;\n";
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
      case 10:
        if (loops_ > 0 && chance(50)) return in + "if (" + condition(1) + ") break;\n";
        if (continues_ > 0) return in + "if (" + condition(1) + ") continue;\n";
        return assignment(in);
      case 11:
      case 12:
        return alias(depth);
      case 13:
        return action(depth);
      case 14:
        return object(depth);
      case 15:
        return in + braces(depth, 2) + "\n";
      default:
        return assignment(in);
    }
  }

  std::string assignment(const std::string& in) {
    if (writable_.empty()) return in + ";\n";
    const std::string& name = one_of(writable_);
    if (chance(25)) return in + name + " += 0.25 * " + expression(1) + ";\n";
    return in + name + " = 3.0 * tanh(0.5 * " + expression(2) + ");\n";
  }

  /// if, else if, else; each may begin with a variable, which those after it see.
  std::string chain(int depth) {
    const auto numbers = numbers_, writable = writable_, heads = heads_;
    std::string text = indent(depth);
    for (int k = 0; k < 2; ++k) {
      std::string start;
      if (chance(40)) {
        const std::string name = fresh("q");
        start = "T " + name + " = " + expression(1) + "; ";
        add(name);
        hidden_.pop_back();
        heads_.push_back(name);
      }
      text += "if (" + start + condition(1) + ") " + braces(depth, 1) + " else ";
    }
    text += braces(depth, 2) + "\n";
    numbers_ = numbers, writable_ = writable, heads_ = heads;
    return text;
  }

  std::string counting(int depth) {
    const std::string i = fresh("i"), in = indent(depth);
    std::string head =
        in + "for (Index<T> " + i + " = 0; " + i + " < " + std::to_string(2 + pick(4)) + "; ++" + i + ") ";
    indices_.push_back(i);
    ++loops_, ++continues_;
    std::string text = head + braces(depth, 3) + "\n";
    --loops_, --continues_;
    indices_.pop_back();
    return text;
  }

  /// while and do, with a counter that ends them.
  std::string conditional_loop(int depth) {
    const std::string n = fresh("n"), in = indent(depth), more = indent(depth + 1);
    const std::string test = condition(1) + " && " + n + " < " + std::to_string(3 + pick(4));
    const std::string declaration = in + "Index<T> " + n + " = 0;\n";
    ++loops_, ++continues_;
    const bool last = chance(40);
    std::string body = "{\n" + more + n + " = " + n + " + 1;\n" + block(depth + 1, 2, true) + in + "}";
    --loops_, --continues_;
    std::string text = declaration + (last ? in + "do " + body + " while (" + test + ");\n"
                                           : in + "while (" + test + ") " + body + "\n");
    indices_.push_back(n);
    return text;
  }

  std::string selection(int depth) {
    if (indices_.empty()) return assignment(indent(depth));
    const std::string in = indent(depth), more = indent(depth + 1), deep = indent(depth + 2);
    const std::string of = one_of(indices_) + " % 4", k = fresh("k");
    std::string text = in + (chance(30) ? "switch (Index<T> " + k + " = " + of + "; " + k + ") {\n"
                                        : "switch (" + of + ") {\n");
    const int outer = std::exchange(loops_, 0);  // a break here is the switch's
    for (int c = 0; c < 2; ++c)
      text += more + "case " + std::to_string(c) + ":\n" + assignment(deep) +
              (chance(65) ? deep + "break;\n" : "");
    if (chance(50))
      text += more + "case 3: {\n" + block(depth + 2, 1, true) + deep + "break;\n" + more + "}\n";
    if (chance(70)) text += more + "default:\n" + assignment(deep);
    loops_ = outer;
    return text + in + "}\n";
  }

  /// A lambda, whose calls stand in expressions: it assigns nothing but its own variables.
  std::string function_object(int depth) {
    const std::string name = fresh("f");
    std::string text = lambda(
        depth, chance(50) ? "const auto " + name + " = [=]" : "const auto " + name + " = [&]", "", false);
    lambdas_.push_back(name);
    return text;
  }
  /// One that assigns, by reference or its own copies. C++ does not say in which order the parts of an
  /// expression are computed, so that each call is a statement.
  std::string action(int depth) {
    if (!actions_.empty() && chance(60)) return call(depth, one_of(actions_) + "(" + expression(1) + ")");
    if (!helper_.empty() && !writable_.empty() && chance(40))
      return call(depth, helper_ + "<T>(" + expression(1) + ", " + one_of(writable_) + ")");
    const std::string name = fresh("m"), own = fresh("s");
    std::string text;
    switch (pick(3)) {
      case 0:
        text = lambda(depth, "const auto " + name + " = [&]", "", true);
        break;
      case 1:
        text = lambda(depth, "auto " + name + " = [=]", " mutable", true);
        break;
      default: {
        const auto numbers = numbers_, writable = writable_;
        const std::string head = "auto " + name + " = [" + own + " = T(" + expression(1) + ")]";
        numbers_ = writable_ = {own};
        const auto lambdas = std::exchange(lambdas_, {}), actions = std::exchange(actions_, {}),
                   indices = std::exchange(indices_, {});
        text = lambda(depth, head, " mutable", true);
        numbers_ = numbers, writable_ = writable, lambdas_ = lambdas, actions_ = actions, indices_ = indices;
      }
    }
    actions_.push_back(name);
    return text + call(depth, name + "(" + expression(1) + ")");
  }
  /// The variable that takes the result of a call.
  std::string call(int depth, const std::string& what) {
    const std::string name = fresh("v");
    add(name);
    return indent(depth) + "T " + name + " = " + what + ";\n";
  }

  std::string lambda(int depth, const std::string& head, const std::string& specifier, bool assigns) {
    const std::string a = fresh("a"), in = indent(depth), more = indent(depth + 1);
    const int outer = std::exchange(loops_, 0), around = std::exchange(continues_, 0);
    const bool without = std::exchange(void_, false);
    const auto numbers = numbers_, writable = writable_, hidden = hidden_, actions = actions_;
    if (!assigns) {
      writable_.clear();
      actions_.clear();
    }
    const std::string helper = assigns ? helper_ : std::exchange(helper_, ""),
                      type = std::exchange(class_, "");
    hidden_ = {a};
    numbers_.push_back(a);
    writable_.push_back(a);
    std::string text = in + head + "(T " + a + ")" + specifier + " -> T {\n" + more + "if (" + condition(1) +
                       ") return " + expression(1) + ";\n";
    if (chance(50)) text += block(depth + 1, 2);
    text += more + "return " + expression(1) + ";\n" + in + "};\n";
    numbers_ = numbers, writable_ = writable, hidden_ = hidden, actions_ = actions;
    helper_ = helper, class_ = type;
    loops_ = outer, continues_ = around, void_ = without;
    return text;
  }

  std::string object(int depth) {
    if (class_.empty()) return declare(depth);
    const std::string name = fresh("c"), in = indent(depth);
    std::string text = in + class_ + "<T> " + name + "(" + expression(1) + ", " + expression(1) + ");\n";
    text += in + name + ".step(" + expression(1) + ");\n";
    text += call(depth, name + ".run(" + expression(1) + ")");
    add(name + ".a");
    return text;
  }

  std::mt19937 random_;
  std::vector<std::string> numbers_;   ///< what has a number's value here
  std::vector<std::string> writable_;  ///< of those, what may be assigned
  std::vector<std::string> hidden_;    ///< names that this block has declared
  std::vector<std::string> heads_;     ///< and what the heads of the statements around it have
  std::vector<std::string> indices_, lambdas_, actions_;
  std::string class_, helper_;
  int names_ = 0, budget_ = 0;
  bool void_ = false;              ///< no value is to be returned here
  int loops_ = 0, continues_ = 0;  ///< that a break and a continue here may belong to
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
