// The abstract machine.
#include "lantern/compiler/calculus/evaluate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <deque>

#include "lantern/compiler/staging/operation.hpp"

namespace lantern::calculus {

using namespace core;

namespace {

struct Environment {
  const Name* name;
  Value value;
  const Environment* outer;
};

}  // namespace

struct ClosureValue {
  const Lambda* lambda;
  const Environment* environment;
};

/// What to do with the value of a part of `node`: the part is its first, second, ... operand.
struct Frame {
  const Term* node;
  int operand;
  const Environment* environment;
  Value first;  // of the first operand, when the second is being evaluated
  const Frame* next;
};

struct Delimited;

/// A context of level n: the stacks of the levels 1 to n, of which the first holds frames.
struct Context {
  const Frame* frames = nullptr;
  std::vector<const Delimited*> outer;  // of the levels 2 to n
};
/// What a reset of level n has put aside, on the stack of level n + 1.
struct Delimited {
  Context inside;
  const Delimited* next;
};

/// Deques: what they hold never moves, and is destroyed without recursion.
struct Machine::Memory {
  std::deque<Term> programs;
  std::deque<Environment> environments;
  std::deque<Frame> frames;
  std::deque<PairValue> pairs;
  std::deque<CellValue> cells;
  std::deque<ClosureValue> closures;
  std::deque<Value> sums;
  std::deque<Context> continuations;
  std::deque<Delimited> delimited;
};

namespace {

std::string kind(const Value& v) {
  return std::visit(
      Cases{[](double x) { return fmt::format("the number {}", x); },
            [](std::monostate) { return std::string("()"); },
            [](const PairValue*) { return std::string("a pair"); },
            [](CellValue*) { return std::string("a reference"); },
            [](SumValue s) { return std::string(s.left ? "inl of a value" : "inr of a value"); },
            [](const ClosureValue*) { return std::string("a function"); },
            [](ContinuationValue) { return std::string("a continuation"); }},
      v.form);
}

}  // namespace

std::string to_string(const Value& v) {
  // What is left to print: a value, or a piece of text.
  std::vector<std::variant<const Value*, const char*>> todo{&v};
  std::string out;
  while (!todo.empty()) {
    const auto next = todo.back();
    todo.pop_back();
    if (const auto* text = std::get_if<const char*>(&next)) {
      out += *text;
      continue;
    }
    const Value& value = *std::get<const Value*>(next);
    if (const auto* x = std::get_if<double>(&value.form)) {
      out += fmt::format("{}", *x);
    } else if (const auto* p = std::get_if<const PairValue*>(&value.form)) {
      for (std::variant<const Value*, const char*> piece :
           std::initializer_list<std::variant<const Value*, const char*>>{")", &(*p)->second, ", ",
                                                                          &(*p)->first, "("})
        todo.push_back(piece);
    } else if (const auto* s = std::get_if<SumValue>(&value.form)) {
      const bool parentheses = std::holds_alternative<SumValue>(s->of->form);
      out += s->left ? "inl " : "inr ";
      if (parentheses) todo.push_back(")");
      todo.push_back(s->of);
      if (parentheses) todo.push_back("(");
    } else {
      out += kind(value);
    }
  }
  return out;
}

/// One evaluation: the machine's registers and its transitions.
class Machine::Run {
 public:
  Run(Machine& machine, std::source_location l)
      : machine_(machine), memory_(*machine.memory_), loc_(here(l)) {}

  Value evaluate(const Term& e, const Environment* environment) {
    eval(e, environment);
    return finish();
  }
  Value apply(const Value& f, const Value& x) {
    enter(f, x, nullptr);
    return finish();
  }

 private:
  /// Steps until a value is returned to nothing.
  Value finish() {
    for (;;) {
      if (++machine_.steps_ > machine_.step_limit_)
        raise_at(
            loc_,
            fmt::format("calculus: expected the evaluation to end within {} steps; raise the limit, or look "
                        "for a recursion without end",
                        machine_.step_limit_));
      if (term_) {
        const Term& e = *std::exchange(term_, nullptr);
        begin(e);
      } else if (stacks_.frames) {
        const Frame& frame = *stacks_.frames;
        stacks_.frames = frame.next;
        resume(frame);
      } else if (!leave()) {
        return value_;
      }
    }
  }

  // ---- transitions ----

  void eval(const Term& e, const Environment* environment) {
    term_ = &e;
    environment_ = environment;
  }
  void give(Value v) { value_ = v; }
  /// Evaluates the operand of e with that number, then comes back.
  void operand(const Term& e, int number, const Term& part, Value first = {}) {
    stacks_.frames = &memory_.frames.emplace_back(Frame{&e, number, environment_, first, stacks_.frames});
    eval(part, environment_);
  }

  /// The term in control.
  void begin(const Term& e) {
    match(
        e, [&](const Constant& c) { give({c.value}); }, [&](const Unit&) { give({std::monostate()}); },
        [&](const Variable& v) { give(lookup(v, e)); }, [&](const Plus& p) { operand(e, 0, p.left); },
        [&](const Times& p) { operand(e, 0, p.left); }, [&](const Less& p) { operand(e, 0, p.left); },
        [&](const Lambda& l) {
          give({&memory_.closures.emplace_back(ClosureValue{&l, environment_})});
        },
        [&](const Apply& a) { operand(e, 0, a.function); }, [&](const Let& l) { operand(e, 0, l.value); },
        [&](const Pair& p) { operand(e, 0, p.first); }, [&](const First& f) { operand(e, 0, f.of); },
        [&](const Second& s) { operand(e, 0, s.of); }, [&](const Ref& r) { operand(e, 0, r.initial); },
        [&](const Read& r) { operand(e, 0, r.cell); }, [&](const Assign& a) { operand(e, 0, a.cell); },
        [&](const Left& l) { operand(e, 0, l.of); }, [&](const Right& r) { operand(e, 0, r.of); },
        [&](const Case& c) { operand(e, 0, c.of); },
        [&](const Shift& s) {
          if (std::all_of(
                  stacks_.outer.begin() + std::min<std::ptrdiff_t>(s.level - 1, std::ssize(stacks_.outer)),
                  stacks_.outer.end(), [](const Delimited* d) { return !d; }))
            stuck("expected shift inside ⟨ ⟩" + subscript(s.level) + ", got one that nothing delimits", e);
          const Value k{ContinuationValue{&memory_.continuations.emplace_back(take(s.level))}};
          eval(s.body, bind(s.continuation, k, environment_));
        },
        [&](const Reset& r) {
          delimit(r.level);
          eval(r.body, environment_);
        });
  }

  // ---- contexts ----

  /// The stacks up to that level, which become empty.
  Context take(unsigned level) {
    Context taken;
    taken.frames = std::exchange(stacks_.frames, nullptr);
    taken.outer.resize(level - 1);
    stacks_.outer.resize(std::max<std::size_t>(stacks_.outer.size(), level));
    std::swap_ranges(taken.outer.begin(), taken.outer.end(), stacks_.outer.begin());
    return taken;
  }
  /// ⟨ of a level.
  void delimit(unsigned level) {
    Context inside = take(level);
    const Delimited*& stack = stacks_.outer[level - 1];
    stack = &memory_.delimited.emplace_back(Delimited{std::move(inside), stack});
  }
  /// ⟨v⟩ = v; false where nothing is left.
  bool leave() {
    const auto stack =
        std::find_if(stacks_.outer.begin(), stacks_.outer.end(), [](const Delimited* d) { return d; });
    if (stack == stacks_.outer.end()) return false;
    const Delimited& reset = **stack;
    *stack = reset.next;
    put(reset.inside);
    return true;
  }
  /// Into the stacks of its levels, which are empty.
  void put(const Context& c) {
    stacks_.frames = c.frames;
    std::copy(c.outer.begin(), c.outer.end(), stacks_.outer.begin());
  }

  /// A value returned to a frame.
  void resume(const Frame& frame) {
    const Term& e = *frame.node;
    const Value v = value_;
    environment_ = frame.environment;
    const auto binary = [&](const Term& second, const auto& both) {
      if (frame.operand == 0)
        operand(e, 1, second, v);
      else
        both(frame.first, v);
    };
    match(
        e,
        [&](const Plus& p) {
          binary(p.right,
                 [&](Value a, Value b) { give({real(a, "left of +", e) + real(b, "right of +", e)}); });
        },
        [&](const Times& p) {
          binary(p.right,
                 [&](Value a, Value b) { give({real(a, "left of *", e) * real(b, "right of *", e)}); });
        },
        [&](const Less& p) {
          binary(p.right, [&](Value a, Value b) {
            give({SumValue{real(a, "left of <", e) < real(b, "right of <", e), keep({std::monostate()})}});
          });
        },
        [&](const Apply& a) { binary(a.argument, [&](Value f, Value x) { enter(f, x, &e); }); },
        [&](const Let& l) { eval(l.body, bind(l.name, v, frame.environment)); },
        [&](const Pair& p) {
          binary(p.second, [&](Value a, Value b) { give({&memory_.pairs.emplace_back(PairValue{a, b})}); });
        },
        [&](const First&) { give(pair_in(v, "fst", e).first); },
        [&](const Second&) { give(pair_in(v, "snd", e).second); },
        [&](const Ref&) { give({&memory_.cells.emplace_back(CellValue{v})}); },
        [&](const Read&) { give(cell_in(v, "!", e).content); },
        [&](const Assign& a) {
          binary(a.value, [&](Value cell, Value content) {
            cell_in(cell, ":=", e).content = content;
            give({std::monostate()});
          });
        },
        [&](const Left&) {
          give({SumValue{true, keep(v)}});
        },
        [&](const Right&) {
          give({SumValue{false, keep(v)}});
        },
        [&](const Case& c) {
          const auto* s = std::get_if<SumValue>(&v.form);
          if (!s) stuck("expected inl or inr as operand of case, got " + kind(v), e);
          eval(s->left ? c.if_left : c.if_right, bind(s->left ? c.left : c.right, *s->of, frame.environment));
        },
        [](const auto&) {});
  }

  /// A function or continuation applied. `e` is the application, for messages.
  void enter(const Value& f, const Value& x, const Term* e) {
    if (const auto* closure = std::get_if<const ClosureValue*>(&f.form)) {
      eval((*closure)->lambda->body, bind((*closure)->lambda->parameter, x, (*closure)->environment));
    } else if (const auto* k = std::get_if<ContinuationValue>(&f.form)) {
      delimit(static_cast<unsigned>(k->context->outer.size()) + 1);
      put(*k->context);
      give(x);
    } else {
      const std::string what = "expected a function on the left of an application, got " + kind(f);
      if (e) stuck(what, *e);
      raise_at(loc_, "calculus: " + what);
    }
  }

  // ---- operands ----

  const Environment* bind(const Name& x, Value v, const Environment* outer) {
    return x == "_" ? outer : &memory_.environments.emplace_back(Environment{&x, v, outer});
  }
  Value lookup(const Variable& v, const Term& e) const {
    for (const Environment* at = environment_; at; at = at->outer)
      if (*at->name == v.name) return at->value;
    stuck("expected a closed term, got the free variable " + v.name, e);
  }
  const Value* keep(Value v) { return &memory_.sums.emplace_back(v); }
  double real(const Value& v, const char* place, const Term& e) const {
    if (const auto* x = std::get_if<double>(&v.form)) return *x;
    stuck(fmt::format("expected a number on the {}, got {}", place, kind(v)), e);
  }
  const PairValue& pair_in(const Value& v, const char* operation, const Term& e) const {
    if (const auto* p = std::get_if<const PairValue*>(&v.form)) return **p;
    stuck(fmt::format("expected a pair as operand of {}, got {}", operation, kind(v)), e);
  }
  CellValue& cell_in(const Value& v, const char* operation, const Term& e) const {
    if (const auto* c = std::get_if<CellValue*>(&v.form)) return **c;
    stuck(fmt::format("expected a reference as operand of {}, got {}", operation, kind(v)), e);
  }
  [[noreturn]] void stuck(const std::string& what, const Term& e) const {
    raise_at(loc_, "calculus: " + what + ", in `" + excerpt(e) + "`");
  }

  Machine& machine_;
  Memory& memory_;
  Location loc_;
  // Either a term is evaluated in an environment, or a value is returned to the frames.
  const Term* term_ = nullptr;
  const Environment* environment_ = nullptr;
  Value value_{};
  Context stacks_;
};

Machine::Machine(std::size_t step_limit) : memory_(std::make_unique<Memory>()), step_limit_(step_limit) {}
Machine::~Machine() = default;

Value Machine::evaluate(const Term& e, std::source_location l) {
  return Run(*this, l).evaluate(memory_->programs.emplace_back(e), nullptr);
}

Value Machine::apply(const Value& f, const Value& x, std::source_location l) {
  return Run(*this, l).apply(f, x);
}

double call(const Term& f, double x, std::source_location l) {
  Machine machine;
  const Value y = machine.apply(machine.evaluate(f, l), {x}, l);
  if (const auto* number = std::get_if<double>(&y.form)) return *number;
  raise_at(here(l), "calculus: expected a number as result, got " + kind(y));
}

}  // namespace lantern::calculus
