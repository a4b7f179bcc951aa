// Steps: performed when they are made, differentiated later.
#include "lantern/compiler/ad/step.hpp"

#include <algorithm>

namespace lantern::core::ad {

Step::Step(const Mode& mode, const Operation& op, std::span<const Datum> operands)
    : mode_(&mode), op_(op), operands_(operands) {
  op_.loc.part = ir::Part::forward;
  DoubleStep n;
  numbers_ = n.perform(op, operands, [this](const Datum& d) -> const Datum& { return primal(d); });
  y_ = numbers_ ? n.value() : perform(op_, primals());
}

Step::Step(const Mode& mode, std::shared_ptr<const Rule> rule, const Datums& arguments,
           const Location& loc)
    : mode_(&mode), operands_(arguments) {
  op_.loc = loc;
  const Transient in = primals();
  auto [values, residuals] = rule->forward(Datums(in.begin(), in.end()));
  require_untagged(*rule, values, mode, loc);
  require_untagged(*rule, residuals, mode, loc);
  call_ = std::make_shared<const Call>(Call{std::move(rule), std::move(values), std::move(residuals)});
}

bool Step::depends_on(std::size_t i) const {
  if (!mode_->number_of(operands_[i])) return false;
  if (call_) return operands_[i].type().is_differentiable();
  if (numbers_) {
    using Partial = DoubleDerivative::Partial;
    const Partial p = double_derivative(op_.code).partials[i];
    return p == Partial::choice ? on_numbers().carries(i) : p != Partial::zero;
  }
  if (!carries_derivative(op_, i, operands_.size())) return false;
  if (!y_.type().is_scalar() || !ir::info(op_.code).elementwise) return true;
  const ir::Formula& f = *ir::derivative(op_.code, i, operands_.size());
  if (!chooses(f)) return true;
  const Transient with = primals();
  return !nothing_flows(f, {op_, with, y_, y_});
}

bool Step::differentiable() const {
  const auto floats = [](const Datum& y) { return y.type().is_differentiable(); };
  if (!std::ranges::any_of(values(), floats)) return false;
  for (std::size_t i = 0; i < operands_.size(); ++i)
    if (depends_on(i)) return true;
  return false;
}

DoubleStep Step::on_numbers() const {
  DoubleStep n{op_.code, &double_derivative(op_.code), {}, y_.f()};
  for (std::size_t i = 0; i < operands_.size(); ++i) n.x[i] = primal(operands_[i]).f();
  return n;
}

Datum Step::partial(std::size_t i) const {
  if (numbers_) return Datum::number(on_numbers().partial(i), ir::Type(ir::Kind::f64));
  const ir::Formula& f = *ir::derivative(op_.code, i, operands_.size());
  const Transient with = primals();
  return partial_derivative(f, {op_, with, y_, y_});
}

Datum Step::tangent(const Datums& tangents) const {
  const Transient with = primals();
  return ad::tangent({op_, with, y_, Datum()}, tangents);
}

Datums Step::shares(std::span<const Datum> cotangents) const {
  std::vector<CellPtr> cells(operands_.size());
  propagate(cotangents, [&](const Datum& x) -> Cell& {
    CellPtr& cell = cells[static_cast<std::size_t>(&x - operands_.data())];
    return *(cell = eager_cell(primal(x)));
  });
  Datums out(cells.size());
  for (std::size_t i = 0; i < cells.size(); ++i)
    if (cells[i] && cells[i]->touched()) out[i] = cells[i]->get(loc());
  return out;
}

Datums Step::shares_by_rule(std::span<const Datum> cotangents) const {
  Datums out(operands_.size()), all;
  if (!call_->rule->ordered && std::ranges::all_of(cotangents, &Datum::empty)) return out;
  for (std::size_t j = 0; j < call_->values.size(); ++j) {
    const Datum& y = call_->values[j];
    if (y.type().is_differentiable())
      all.push_back(cotangents[j].empty() ? zeros_like(y, loc()) : cotangents[j]);
  }
  const Rule& rule = *call_->rule;
  const Datums adjoints = [&] {
    const Mode::InRule closed(*mode_, rule.what);
    return rule.backward(call_->residuals, all);
  }();
  require_untagged(rule, adjoints, *mode_, loc());
  const Transient in = primals();
  require_derivatives(rule, Datums(in.begin(), in.end()), adjoints, "argument", loc());
  std::size_t at = 0;
  for (std::size_t i = 0; i < out.size(); ++i)
    if (operands_[i].type().is_differentiable()) out[i] = adjoints[at++];
  return out;
}

}  // namespace lantern::core::ad
