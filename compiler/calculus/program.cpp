// The interpreter of terms over Rep.
#include "lantern/compiler/calculus/program.hpp"

#include <map>
#include <memory>
#include <vector>

#include "lantern/compiler/calculus/derived.hpp"
#include "lantern/compiler/control/control.hpp"
#include "lantern/compiler/staging/staging.hpp"

namespace lantern::calculus {

using namespace core;

namespace {

struct Meaning;

using PairOfMeanings = std::shared_ptr<const std::pair<Meaning, Meaning>>;
using Function = std::function<Meaning(const Meaning&)>;
using Cell = std::shared_ptr<Var<double>>;
using Slot = std::shared_ptr<Meaning>;  // a reference to anything else

/// inl or inr of something, known while staging.
struct Sum {
  bool left;
  std::shared_ptr<const Meaning> of;
};

/// What a term represents while staging.
struct Meaning {
  std::variant<std::monostate, Rep<double>, Rep<bool>, PairOfMeanings, Sum, Function, Cell, Slot> form;
};

const char* kind(const Meaning& m) {
  static const char* const names[] = {"()",    "a number",   "a truth value", "a pair",
                                      "a sum", "a function", "a reference",   "a reference"};
  return names[m.form.index()];
}

/// Whether this is one of the calculus' booleans, inl () or inr ().
bool is_truth(const Sum& s) { return std::holds_alternative<std::monostate>(s.of->form); }

/// The numbers and truth values in a meaning. What is around them is its shape, as text: n for a number, b for a truth
/// value, u for (), (st) for a pair of shapes s and t, Ls for inl and Rs for inr.
struct Leaves {
  std::vector<Rep<double>> numbers;
  std::vector<Rep<bool>> truths;
};

/// What variables represent.
class Meanings {
 public:
  Meanings with(const Name& x, Meaning m) const {
    Meanings e = *this;
    if (x != "_") e.meanings_.insert_or_assign(x, std::make_shared<const Meaning>(std::move(m)));
    return e;
  }
  const Meaning* find(const Name& x) const {
    const auto at = meanings_.find(x);
    return at == meanings_.end() ? nullptr : at->second.get();
  }

 private:
  std::map<Name, std::shared_ptr<const Meaning>> meanings_;
};

class Interpreter : public std::enable_shared_from_this<Interpreter> {
 public:
  Interpreter(Term f, Place l) : f_(std::move(f)), loc_(here(l)) {}

  Rep<double> operator()(const Rep<double>& x) {
    const Meaning f = run(f_, {});
    return number(apply(f, {x}, f_), "the result", f_);
  }

 private:
  // A failing case raises, so that each rule below says only what is right.
  [[noreturn]] void fail(const std::string& what, const Term& e) const {
    raise_at(loc_, "calculus: " + what + ", in `" + excerpt(e) + "`");
  }
  template <class T>
  const T& as(const Meaning& m, const char* expected, const char* place, const Term& e) const {
    if (const auto* found = std::get_if<T>(&m.form)) return *found;
    fail(std::string("expected ") + expected + " as " + place + ", got " + kind(m), e);
  }
  const Rep<double>& number(const Meaning& m, const char* place, const Term& e) const {
    return as<Rep<double>>(m, "a number", place, e);
  }

  Meaning apply(const Meaning& f, const Meaning& x, const Term& e) const {
    return as<Function>(f, "a function", "the left of an application", e)(x);
  }

  Meaning run(const Term& e, const Meanings& in) {
    if (const auto recursion = as_letrec(e))
      return run(recursion->e2, in.with(recursion->g, recursive(*recursion, in)));
    const auto both = [&](const Term& a, const Term& b, const auto& combine) -> Meaning {
      const Rep<double> left = number(run(a, in), "the left operand", e);
      const Rep<double> right = number(run(b, in), "the right operand", e);
      return {combine(left, right)};
    };
    return match(
        e, [&](const Constant& c) -> Meaning { return {Rep<double>(c.value)}; },
        [&](const Unit&) -> Meaning { return {}; },
        [&](const Variable& v) -> Meaning {
          const Meaning* m = in.find(v.name);
          if (!m) fail("expected a closed term, got the free variable " + v.name, e);
          return *m;
        },
        [&](const Plus& p) { return both(p.left, p.right, [](auto& a, auto& b) { return a + b; }); },
        [&](const Times& p) { return both(p.left, p.right, [](auto& a, auto& b) { return a * b; }); },
        [&](const Less& p) { return both(p.left, p.right, [](auto& a, auto& b) { return a < b; }); },
        [&](const Lambda& l) -> Meaning {
          return {Function([self = shared_from_this(), l, in](const Meaning& x) {
            return self->run(l.body, in.with(l.parameter, x));
          })};
        },
        [&](const Apply& a) -> Meaning {
          const Meaning f = run(a.function, in);
          return apply(f, run(a.argument, in), e);
        },
        [&](const Let& l) -> Meaning { return run(l.body, in.with(l.name, run(l.value, in))); },
        [&](const Pair& p) -> Meaning {
          Meaning first = run(p.first, in);
          return {std::make_shared<const std::pair<Meaning, Meaning>>(std::move(first), run(p.second, in))};
        },
        [&](const First& p) -> Meaning {
          return as<PairOfMeanings>(run(p.of, in), "a pair", "the operand of fst", e)->first;
        },
        [&](const Second& p) -> Meaning {
          return as<PairOfMeanings>(run(p.of, in), "a pair", "the operand of snd", e)->second;
        },
        [&](const Ref& r) -> Meaning {
          const Meaning content = run(r.initial, in);
          if (!context().staging && !std::holds_alternative<Rep<double>>(content.form))
            return {std::make_shared<Meaning>(content)};
          return {std::make_shared<Var<double>>(number(content, "the content of a reference", e))};
        },
        [&](const Read& r) -> Meaning {
          const Meaning cell = run(r.cell, in);
          if (const auto* slot = std::get_if<Slot>(&cell.form)) return **slot;
          return {*as<Cell>(cell, "a reference", "the operand of !", e)};
        },
        [&](const Assign& a) -> Meaning {
          const Meaning cell = run(a.cell, in), content = run(a.value, in);
          if (const auto* slot = std::get_if<Slot>(&cell.form))
            **slot = content;
          else
            *as<Cell>(cell, "a reference", "the operand of :=", e) =
                number(content, "the content of a reference", e);
          return {};
        },
        [&](const Left& s) -> Meaning {
          return {Sum{true, std::make_shared<const Meaning>(run(s.of, in))}};
        },
        [&](const Right& s) -> Meaning {
          return {Sum{false, std::make_shared<const Meaning>(run(s.of, in))}};
        },
        [&](const Case& c) -> Meaning {
          const Meaning of = run(c.of, in);
          if (const auto* condition = std::get_if<Rep<bool>>(&of.form)) return branch(*condition, c, in, e);
          const Sum& s = as<Sum>(of, "inl or inr", "the operand of case", e);
          return s.left ? run(c.if_left, in.with(c.left, *s.of)) : run(c.if_right, in.with(c.right, *s.of));
        },
        [&](const Shift& s) -> Meaning {
          require_eager(e);
          return shift<Meaning>(prompts_[s.level], [self = shared_from_this(), s, in](auto k) {
            const auto shared = std::make_shared<decltype(k)>(std::move(k));
            const Function f = [shared](const Meaning& x) { return (*shared)(x); };
            return self->delimit(s.level - 1,
                                 [=] { return self->run(s.body, in.with(s.continuation, {f})); });
          });
        },
        [&](const Reset& r) -> Meaning {
          require_eager(e);
          return delimit(r.level, [self = shared_from_this(), r, in] { return self->run(r.body, in); });
        });
  }

  // ---- control ----

  /// A reset of a level delimits those below, too.
  Meaning delimit(unsigned level, const std::function<Meaning()>& body) {
    if (level == 0) return body();
    return reset(prompts_[level], [this, level, body] { return delimit(level - 1, body); });
  }

  void require_eager(const Term& e) const {
    if (context().staging)
      fail("expected a program without shift and reset, got one that is being staged", e);
  }

  // ---- recursion ----

  Meaning recursive(const Letrec& r, const Meanings& in) {
    Fun<double(double)> function(r.f);
    const auto self = shared_from_this();
    function.define([self, r, in](const Fun<double(double)>& again, const Rep<double>& x) {
      const Meaning f = self->either(r, in, again);
      return self->number(self->run(r.e1, in.with(r.f, f).with(r.x, {x})),
                          "the result of a recursive function", r.e1);
    });
    return either(r, in, function);
  }

  /// The function of a letrec: called on a number, or unrolled.
  Meaning either(const Letrec& r, const Meanings& in, const Fun<double(double)>& function) {
    return {Function([self = shared_from_this(), r, in, function](const Meaning& x) -> Meaning {
      if (const auto* staged = std::get_if<Rep<double>>(&x.form)) return {function(*staged)};
      struct Depth {
        std::size_t& depth;
        ~Depth() { --depth; }
      } depth{++self->unrolled_};
      if (self->unrolled_ > kUnrolled)
        self->fail("expected a recursion that data known while staging ends, got one " +
                       std::to_string(kUnrolled) +
                       " calls deep; let it take a number, and it becomes a staged function",
                   r.e1);
      return self->run(r.e1, in.with(r.f, self->either(r, in, function)).with(r.x, x));
    })};
  }

  // ---- conditionals ----

  Meaning branch(const Rep<bool>& condition, const Case& c, const Meanings& in, const Term& e) {
    if (const Datum& known = strip(condition.datum()); known.is_literal())
      return known.b() ? run(c.if_left, in.with(c.left, {})) : run(c.if_right, in.with(c.right, {}));
    std::string shapes[2];
    const auto run_branch = [&](int which, const Term& body, const Name& x) {
      const Meaning result = run(body, in.with(x, {}));
      Leaves leaves;
      shapes[which] = flatten(result, leaves, body);
      const std::string& other = shapes[1 - which];
      if (!other.empty() && other != shapes[which])
        fail("expected branches of one shape, got " + shapes[0] + " and " + shapes[1], e);
      return std::tuple(leaves.numbers, leaves.truths);
    };
    const auto [numbers, truths] = IF(
        condition, [&] { return run_branch(0, c.if_left, c.left); },
        [&] { return run_branch(1, c.if_right, c.right); });
    const std::string& shape = shapes[0].empty() ? shapes[1] : shapes[0];
    Leaves leaves{numbers, truths};
    std::size_t at = 0, n = 0, b = 0;
    return rebuild(shape, at, leaves, n, b);
  }

  std::string flatten(const Meaning& m, Leaves& out, const Term& e) const {
    return std::visit(
        Cases{[](std::monostate) -> std::string { return "u"; },
              [&](const Rep<double>& x) -> std::string { return out.numbers.push_back(x), "n"; },
              [&](const Rep<bool>& b) -> std::string { return out.truths.push_back(b), "b"; },
              [&](const PairOfMeanings& p) {
                const std::string first = flatten(p->first, out, e);
                return "(" + first + flatten(p->second, out, e) + ")";
              },
              [&](const Sum& s) -> std::string {
                if (is_truth(s)) return out.truths.push_back(Rep<bool>(s.left)), "b";
                return (s.left ? "L" : "R") + flatten(*s.of, out, e);
              },
              [&](const auto&) -> std::string {
                fail(std::string("expected a branch without functions and references in its result, got ") +
                         kind(m),
                     e);
              }},
        m.form);
  }

  static Meaning rebuild(const std::string& shape, std::size_t& at, const Leaves& leaves, std::size_t& n,
                         std::size_t& b) {
    switch (shape[at++]) {
      case 'n':
        return {leaves.numbers[n++]};
      case 'b':
        return {leaves.truths[b++]};
      case '(': {
        Meaning first = rebuild(shape, at, leaves, n, b);
        Meaning second = rebuild(shape, at, leaves, n, b);
        ++at;
        return {std::make_shared<const std::pair<Meaning, Meaning>>(std::move(first), std::move(second))};
      }
      case 'L':
      case 'R': {
        const bool left = shape[at - 1] == 'L';
        return {Sum{left, std::make_shared<const Meaning>(rebuild(shape, at, leaves, n, b))}};
      }
      default:
        return {};
    }
  }

  static constexpr std::size_t kUnrolled = 500;

  Term f_;
  Location loc_;
  std::size_t unrolled_ = 0;
  std::map<unsigned, Prompt<Meaning>> prompts_;  // by level
};

}  // namespace

std::function<Rep<double>(Rep<double>)> program(const Term& f, Place l) {
  return
      [interpreter = std::make_shared<Interpreter>(f, l)](const Rep<double>& x) { return (*interpreter)(x); };
}

}  // namespace lantern::calculus
