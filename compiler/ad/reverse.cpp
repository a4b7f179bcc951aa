// The reverse-mode rule.
#include "lantern/compiler/ad/reverse.hpp"

#include <algorithm>

#include "lantern/compiler/ad/derivative_rule.hpp"
#include "lantern/compiler/ad/operands.hpp"

namespace lantern::ad {

Datum Reverse::variable(const Datum& primal, CellPtr cell) {
  return Datum::boxed(new Variable(shared_from_this(), primal, std::move(cell)), primal.type());
}

Variable* Reverse::variable_of(const Datum& d) const {
  if (!d.is_tagged()) return nullptr;
  auto* v = static_cast<Variable*>(d.box());
  return v->mode.get() == this ? v : nullptr;
}

const Datum& Reverse::primal(const Datum& d) const {
  const Variable* v = variable_of(d);
  return v ? v->primal : d;
}

CellPtr Reverse::make_cell(const Datum& primal, const Location&) { return eager_cell(primal); }

void Reverse::run(const std::function<void()>& program) {
  reset(prompt_, [&program] { program(); });
}

// Lantern paper, Fig. 8:  shift { k => val y = x op x'; k(y); x.d += dop/dx * y.d; x'.d += dop/dx' * y.d }
Datum Reverse::apply(const Operation& operation, std::span<const Datum> operands) {
  Operation op = operation;
  op.loc.part = ir::Part::forward;
  bool differentiable = false;
  for (std::size_t i = 0; i < operands.size(); ++i)
    differentiable |= variable_of(operands[i]) && carries_derivative(op, i, operands.size());
  const auto primals_of = [this](std::span<const Datum> data) {
    return Transient(data, [this](const Datum& d) -> const Datum& { return primal(d); });
  };
  const Datum y = perform(op, primals_of(operands));
  if (!recording_) return y;
  if (!differentiable || !y.type().is_differentiable()) return y;

  return shift<Datum>(prompt_, [this, op, y, operands = Operands(operands), primals_of](auto k) mutable {
    const CellPtr adjoint = make_cell(y, op.loc);
    k(variable(y, adjoint));
    op.loc.part = ir::Part::backward;
    if (!adjoint->touched()) return;
    const Datum g = adjoint->get(op.loc);
    const Transient primals = primals_of(operands);
    const RuleContext rule{op, primals, y, g};
    // For tensors the last operand first: an update's base comes first among the operands, and its adjoint can then
    // take over the memory of g, which nobody reads any more.
    const bool last_first = !ir::info(op.code).elementwise;
    for (std::size_t n = operands.size(), j = 0; j < n; ++j) {
      const std::size_t i = last_first ? n - 1 - j : j;
      if (Variable* x = variable_of(operands[i])) propagate(i, rule, *x->cell);
    }
  });
}

Data Reverse::follow(const std::shared_ptr<const Rule>& rule, const Data& arguments, const Location& loc) {
  Data primals;
  bool differentiable = false;
  for (const Datum& d : arguments) {
    primals.push_back(primal(d));
    differentiable |= variable_of(d) != nullptr;
  }
  auto [values, residuals] = rule->forward(primals);
  require_untagged(*rule, values, *this, loc);
  require_untagged(*rule, residuals, *this, loc);
  if (!recording_ || !differentiable || floating(values).empty()) return values;

  return shift<Data>(prompt_, [this, rule, arguments, primals, loc, values = std::move(values),
                               residuals = std::move(residuals)](auto k) {
    Data results, cotangents;
    std::vector<CellPtr> cells;
    for (const Datum& y : values) {
      if (y.type().is_differentiable()) cells.push_back(make_cell(y, loc));
      results.push_back(y.type().is_differentiable() ? variable(y, cells.back()) : y);
    }
    k(results);
    if (std::ranges::none_of(cells, [](const CellPtr& c) { return c->touched(); })) return;
    for (const CellPtr& c : cells) cotangents.push_back(c->get(loc));
    const Data adjoints = rule->backward(residuals, cotangents);
    require_untagged(*rule, adjoints, *this, loc);
    require_derivatives(*rule, primals, adjoints, "argument", loc);
    std::size_t at = 0;
    for (const Datum& x : arguments) {
      if (!x.type().is_differentiable()) continue;
      if (Variable* v = variable_of(x)) v->cell->add(adjoints[at], loc);
      ++at;
    }
  });
}

Data Reverse::checkpoint(const std::function<Data(const Data&)>& program, const Data& operands,
                         const Location& loc) {
  if (!recording_) return program(operands);
  Data values;
  bool differentiable = false;
  {
    struct Pause {
      bool& recording;
      explicit Pause(bool& r) : recording(r) { recording = false; }
      ~Pause() { recording = true; }
    } pause(recording_);
    for (const Datum& d : program(operands)) values.push_back(primal(d));
  }
  for (const Datum& v : values) {
    differentiable |= v.type().is_differentiable();
    if (v.is_tagged() && static_cast<TaggedBox*>(v.box())->mode->tag() > tag())
      raise_at(loc, "checkpoint: the function captures a value of an inner derivative; pass it as an argument");
  }
  if (!differentiable) return values;
  return shift<Data>(prompt_, [this, program, operands, values, loc](auto k) {
    Data results;
    std::vector<CellPtr> cells;
    for (const Datum& v : values) {
      cells.push_back(v.type().is_differentiable() ? make_cell(v, loc) : nullptr);
      results.push_back(cells.back() ? variable(v, cells.back()) : v);
    }
    k(results);
    if (std::ranges::none_of(cells, [](const CellPtr& c) { return c && c->touched(); })) return;
    run([&] {
      const Data again = program(operands);
      for (std::size_t i = 0; i < again.size(); ++i)
        if (Variable* v = variable_of(again[i]); v && cells[i]->touched()) v->cell->add(cells[i]->get(loc), loc);
    });
  });
}

}  // namespace lantern::ad
