// Backward steps, deferred.
#include "lantern/compiler/ad/reverse.hpp"

#include <algorithm>
#include <variant>

#include "lantern/compiler/ad/modes/effects.hpp"

namespace lantern::core::ad {

CellPtr Reverse::make_cell(const Datum& primal, const Location&) { return eager_cell(primal); }

void Reverse::run(const std::function<void()>& program) {
  reset(prompt_, [this, &program] {
    if (!eager()) return program();
    handle([&program] { program(); },
           resuming<Checkpoint>(this, [this](const Part& p, const Datums& x, const Location& loc) {
             return checkpoint(p, x, loc);
           }));
  });
}

// Lantern paper, Fig. 8:  shift { k => val y = x op x'; k(y); x.d += dop/dx * y.d; x'.d += dop/dx' * y.d }
// What the function given to shift does first is to call k: defer(the rest) does the same.
Datum Reverse::apply(const Operation& op, std::span<const Datum> operands) {
  DoubleStep step;
  if (eager() && step.perform(op, operands, [this](const Datum& d) -> const Datum& { return primal(d); }))
    return apply(op, operands, step);
  Step b(*this, op, operands);
  if (!recording_ || !b.differentiable()) return b.values()[0];
  const Datum& y = b.values()[0];
  const CellPtr d = make_cell(y, b.loc());
  Datum result = variable(y, d);
  defer(prompt_, [this, b = std::move(b), d] {
    if (!d->touched()) return;
    const Datum g = d->get(b.backward());
    b.propagate(std::span(&g, 1), [this](const Datum& x) -> Cell& { return *variable_of(x)->cell; });
  });
  return result;
}

Datums Reverse::follow(const std::shared_ptr<const Rule>& rule, const Datums& arguments,
                       const Location& loc) {
  Step b(*this, rule, arguments, loc);
  if (!recording_ || !b.differentiable()) return Datums(b.values().begin(), b.values().end());
  std::vector<CellPtr> cells;
  Datums results = variables(b.values(), cells, loc);
  defer(prompt_, [this, b = std::move(b), cells = std::move(cells), ordered = rule->ordered] {
    if (!ordered && std::ranges::none_of(cells, [](const CellPtr& d) { return d && d->touched(); })) return;
    Datums cotangents;
    for (const CellPtr& d : cells) cotangents.push_back(d ? d->get(b.loc()) : Datum());
    b.propagate(cotangents, [this](const Datum& x) -> Cell& { return *variable_of(x)->cell; });
  });
  return results;
}

Datums Reverse::variables(std::span<const Datum> values, std::vector<CellPtr>& cells, const Location& loc) {
  Datums results;
  for (const Datum& y : values) {
    cells.push_back(y.type().is_differentiable() ? make_cell(y, loc) : nullptr);
    results.push_back(cells.back() ? variable(y, cells.back()) : y);
  }
  return results;
}

namespace {

/// The operands of an operation on numbers, kept: variables, of which the backward pass finds the primals,
/// and constants.
class DoubleOperands {
 public:
  DoubleOperands(const Reverse& mode, std::span<const Datum> operands) : size_(operands.size()) {
    for (std::size_t i = 0; i < size_; ++i)
      if (Variable* v = mode.variable_of(operands[i]))
        operands_[i].emplace<BoxRef>(*v);
      else
        operands_[i] = operands[i].f();
  }
  std::size_t size() const { return size_; }
  Variable* variable(std::size_t i) const {
    const BoxRef* box = std::get_if<BoxRef>(&operands_[i]);
    return box ? static_cast<Variable*>(&**box) : nullptr;
  }
  double primal(std::size_t i) const {
    const Variable* v = variable(i);
    return v ? v->primal.f() : std::get<double>(operands_[i]);
  }

 private:
  std::size_t size_;
  std::array<std::variant<double, BoxRef>, 3> operands_;
};

}  // namespace

/// The same for numbers: the primals and the result are found in the variables.
Datum Reverse::apply(const Operation& op, std::span<const Datum> operands, const DoubleStep& step) {
  bool differentiable = false;
  for (std::size_t i = 0; i < operands.size(); ++i)
    differentiable |= variable_of(operands[i]) && step.carries(i);
  if (!recording_ || !differentiable) return step.value();

  auto* const result = new Result(*this, step.value());
  Datum y = Datum::boxed(result, ir::Type(ir::Kind::f64));
  defer(prompt_,
        [y = BoxRef(*result), code = op.code, loc = op.loc, operands = DoubleOperands(*this, operands)] {
          const auto& own = static_cast<Result&>(*y);
          if (!own.cell->touched()) return;
          const Datum g = own.cell->get(loc);
          DoubleStep again{code, &double_derivative(code), {}, own.primal.f()};
          for (std::size_t i = 0; i < operands.size(); ++i) again.x[i] = operands.primal(i);
          for (std::size_t i = 0; i < operands.size(); ++i)
            if (Variable* x = operands.variable(i); x && again.carries(i))
              x->cell->add(again.share(i, g, loc), loc);
        });
  return y;
}

Datums Reverse::values_of(const Part& part, const Datums& arguments, const Location& loc) {
  const Meanwhile pause(recording_, false);
  Datums values = primals(part(arguments));
  for (const Datum& v : values)
    if (v.is_tagged() && static_cast<TaggedBox*>(v.box())->mode->tag() > tag())
      raise_at(loc,
               "checkpoint: the function captures a value of an inner derivative; pass it as an argument");
  return values;
}

Datums Reverse::checkpoint(const Part& part, const Datums& arguments, const Location& loc) {
  if (!recording_) return part(arguments);
  const Datums values = values_of(part, arguments, loc);
  if (floating(values).empty()) return values;
  std::vector<CellPtr> cells;
  Datums results = variables(values, cells, loc);
  defer(prompt_, [this, part, arguments, cells = std::move(cells), loc] {
    if (std::ranges::none_of(cells, [](const CellPtr& c) { return c && c->touched(); })) return;
    run([&] {
      const Datums again = part(arguments);
      for (std::size_t i = 0; i < again.size(); ++i)
        if (Variable* v = variable_of(again[i]); v && cells[i]->touched())
          v->cell->add(cells[i]->get(loc), loc);
    });
  });
  return results;
}

}  // namespace lantern::core::ad
