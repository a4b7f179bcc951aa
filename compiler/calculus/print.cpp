// The paper's notation, with derived constructs put back: let (y, y') = ..., e1; e2, y += e, if, letrec.
#include <fmt/format.h>

#include "lantern/compiler/calculus/derived.hpp"
#include "lantern/compiler/control/control.hpp"

namespace lantern::calculus {

using namespace core;

std::string subscript(unsigned level) {
  std::string digits;
  for (; level > 0; level /= 10)
    digits = "\xE2\x82" + std::string(1, static_cast<char>(0x80 + level % 10)) + digits;
  return digits == "₁" ? "" : digits;
}

namespace {

/// What may be in a place without parentheses: each level admits itself and all above.
enum Level { anything, assignment, comparison, sum, product, prefix, atom };

class Printer {
 public:
  explicit Printer(std::size_t limit) : limit_(limit) {}

  void print(const Term& e, Level level, int indent) {
    if (out.size() > limit_) return;
    match(
        e,
        [&](const Constant& c) {
          wrap(c.value < 0 && level == atom, [&] { out += fmt::format("{}", c.value); });
        },
        [&](const Unit&) { out += "()"; }, [&](const Variable& v) { out += v.name; },
        [&](const Plus& p) { infix(p.left, " + ", p.right, sum, level, indent); },
        [&](const Times& p) { infix(p.left, " * ", p.right, product, level, indent); },
        [&](const Less& p) { infix(p.left, " < ", p.right, comparison, level, indent); },
        [&](const Lambda& l) {
          wrap(level > anything, [&] {
            out += "λ" + l.parameter + ".";
            body(l.body, indent);
          });
        },
        [&](const Apply& a) {
          wrap(level > prefix, [&] {
            out += "@ ";
            print(a.function, atom, indent);
            out += " ";
            print(a.argument, atom, indent);
          });
        },
        [&](const Let&) {
          wrap(level > anything, [&] { block(e, level > anything ? indent + 1 : indent); });
        },
        [&](const Pair& p) {
          out += "(";
          print(p.first, assignment, indent);
          out += ", ";
          print(p.second, assignment, indent);
          out += ")";
        },
        [&](const First& f) { operation("fst ", f.of, level, indent); },
        [&](const Second& s) { operation("snd ", s.of, level, indent); },
        [&](const Ref& r) { operation("ref ", r.initial, level, indent); },
        [&](const Read& r) { operation("!", r.cell, level, indent); },
        [&](const Left& l) { operation("inl ", l.of, level, indent); },
        [&](const Right& r) { operation("inr ", r.of, level, indent); },
        [&](const Assign& a) {
          wrap(level > assignment, [&] {
            const Term* added = increment(a);
            print(a.cell, comparison, indent);
            out += added ? " += " : " := ";
            print(added ? *added : a.value, comparison, indent);
          });
        },
        [&](const Case& c) { wrap(level > anything, [&] { branches(c, indent); }); },
        [&](const Shift& s) {
          wrap(level > anything, [&] {
            out += "shift" + subscript(s.level) + " " + s.continuation + " in";
            body(s.body, indent);
          });
        },
        [&](const Reset& r) {
          out += "⟨ ";
          print(r.body, anything, indent + 2);
          out += " ⟩" + subscript(r.level);
        });
  }

  std::string out;

 private:
  template <class Inside>
  void wrap(bool parentheses, const Inside& inside) {
    if (parentheses) out += "(";
    inside();
    if (parentheses) out += ")";
  }
  void line(int indent) { out += "\n" + std::string(static_cast<std::size_t>(indent), ' '); }
  void infix(const Term& left, const char* symbol, const Term& right, Level own, Level level, int indent) {
    wrap(level > own, [&] {
      print(left, own == comparison ? sum : own, indent);
      out += symbol;
      print(right, static_cast<Level>(own + 1), indent);
    });
  }
  void operation(const char* name, const Term& operand, Level level, int indent) {
    wrap(level > prefix, [&] {
      out += name;
      print(operand, atom, indent);
    });
  }
  /// What follows a dot or `in`: on new lines if it has several.
  void body(const Term& e, int indent) {
    if (e.as<Let>()) {
      line(indent + 2);
      print(e, anything, indent + 2);
    } else {
      out += " ";
      print(e, anything, indent);
    }
  }
  void definition(const std::string& head, const Term& value, const Term& rest, int indent) {
    out += head + " =";
    if (value.as<Let>()) {
      line(indent + 4);
      print(value, anything, indent + 4);
    } else {
      out += " ";
      print(value, anything, indent + 2);
    }
    out += " in";
    line(indent);
    print(rest, anything, indent);
  }
  void block(const Term& e, int indent) {
    const Let& l = *e.as<Let>();
    if (const auto p = as_let_pair(e))
      return definition("let (" + p->y + ", " + p->y_prime + ")", p->e1, p->e2, indent);
    if (const auto r = as_letrec(e); r && r->f == r->g)
      return definition("letrec " + r->f, lambda(r->x, r->e1), r->e2, indent);
    if (l.name != "_") return definition("let " + l.name, l.value, l.body, indent);
    print(l.value, assignment, indent);
    out += ";";
    line(indent);
    print(l.body, anything, indent);
  }
  void branches(const Case& c, int indent) {
    const bool conditional = c.left == "_" && c.right == "_";
    const bool tall = c.if_left.as<Let>() || c.if_right.as<Let>();
    out += conditional ? "if " : "case ";
    print(c.of, comparison, indent);
    out += conditional ? " then" : " of " + c.left + " ⇒";
    body(c.if_left, indent);
    if (tall)
      line(indent);
    else
      out += " ";
    out += conditional ? "else" : "or " + c.right + " ⇒";
    body(c.if_right, indent);
  }
  /// e, if the assignment is y := !y + e.
  static const Term* increment(const Assign& a) {
    const auto* cell = a.cell.as<Variable>();
    const auto* plus = a.value.as<Plus>();
    const auto* old = cell && plus ? plus->left.as<Read>() : nullptr;
    const auto* same = old ? old->cell.as<Variable>() : nullptr;
    return same && same->name == cell->name ? &plus->right : nullptr;
  }

  std::size_t limit_;
};

}  // namespace

std::string to_string(const Term& e) {
  return run_on_large_stack([&] {
    Printer p(std::string::npos);
    p.print(e, anything, 0);
    return std::move(p.out);
  });
}

std::string excerpt(const Term& e, std::size_t limit) {
  const std::string text = run_on_large_stack([&] {
    Printer p(limit);
    p.print(e, anything, 0);
    return std::move(p.out);
  });
  std::string line;
  for (char c : text) {
    const bool space = c == ' ' || c == '\n';
    if (!space || (!line.empty() && line.back() != ' ')) line += space ? ' ' : c;
  }
  if (line.size() <= limit) return line;
  std::size_t end = limit;
  while (end > 0 && (static_cast<unsigned char>(line[end]) & 0xC0) == 0x80)
    --end;  // not inside a UTF-8 sequence
  return line.substr(0, end) + "...";
}

}  // namespace lantern::calculus
