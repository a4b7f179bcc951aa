// One step of a program under a mode, kept for the backward pass.
#pragma once

#include <memory>

#include "lantern/compiler/ad/custom_rule.hpp"
#include "lantern/compiler/ad/double_step.hpp"
#include "lantern/compiler/ad/kept_operands.hpp"
#include "lantern/compiler/ad/op_derivative.hpp"

namespace lantern::core::ad {

/// b x y of the listings: an operation, or a function with a rule, applied to numbers of a mode. It is
/// performed one level down, on their primals, when the step is made.
class Step {
 public:
  Step(const Mode& mode, const Operation& op, std::span<const Datum> operands);
  /// `rule` is completed. Error: what it gives carries a tag of the mode.
  Step(const Mode& mode, std::shared_ptr<const Rule> rule, const Datums& arguments, const Location& loc);

  const Location& loc() const { return op_.loc; }
  /// The same as a place in the backward part.
  Location backward() const {
    Location l = op_.loc;
    l.part = ir::Part::backward;
    return l;
  }
  const Operation& op() const { return op_; }
  Opcode code() const { return call_ ? Opcode::call_ : op_.code; }
  /// As they came.
  const Operands& operands() const { return operands_; }
  /// One level down: of an operation one.
  std::span<const Datum> values() const { return call_ ? std::span(call_->values) : std::span(&y_, 1); }
  const Datum& primal(const Datum& d) const { return mode_->primal(d); }

  /// Whether operand i is a number of the mode, which receives a derivative.
  bool depends_on(std::size_t i) const;
  /// Whether there is one that does, and a floating value for it to come from.
  bool differentiable() const;
  /// Whether the derivatives by the operands are numbers: of an operation on scalars.
  bool has_partials() const { return !call_ && y_.type().is_scalar() && ir::info(op_.code).elementwise; }
  /// Whether its backward part runs even where no cotangent arrives.
  bool ordered() const { return call_ && call_->rule->ordered; }
  /// db/dx for operand i of such a step.
  Datum partial(std::size_t i) const;

  /// The tangent of an operation's value from those of the operands; empty: zero.
  Datum tangent(const Datums& tangents) const;

  /// x.d += db/dx * r.d for every operand x that depends, in place where that can be. `cotangents`: one for
  /// each value, empty where it is zero; `cell_of(x)`: where the adjoint of x is.
  template <class CellOf>
  void propagate(std::span<const Datum> cotangents, const CellOf& cell_of) const;
  /// The same as values, one for each operand: db/dx * r.d, empty where it is zero.
  Datums shares(std::span<const Datum> cotangents) const;

 private:
  /// A function with a rule, called.
  struct Call {
    std::shared_ptr<const Rule> rule;
    Datums values, residuals;
  };

  Transient primals() const {
    return {operands_, [this](const Datum& d) -> const Datum& { return primal(d); }};
  }
  /// The primals and the value, where they are numbers.
  DoubleStep on_numbers() const;
  Datums shares_by_rule(std::span<const Datum> cotangents) const;

  const Mode* mode_;
  Operation op_;
  Operands operands_;
  Datum y_;
  std::shared_ptr<const Call> call_;  ///< null for an operation
  bool numbers_ = false;              ///< the primals are known doubles
};

template <class CellOf>
void Step::propagate(std::span<const Datum> cotangents, const CellOf& cell_of) const {
  const Location at = backward();
  if (call_) {
    const Datums all = shares_by_rule(cotangents);
    for (std::size_t i = 0; i < all.size(); ++i)
      if (!all[i].empty() && depends_on(i)) cell_of(operands_[i]).add(all[i], at);
    return;
  }
  const Datum& g = cotangents[0];
  if (g.empty()) return;
  if (numbers_) {
    const DoubleStep n = on_numbers();
    for (std::size_t i = 0; i < operands_.size(); ++i)
      if (depends_on(i)) cell_of(operands_[i]).add(n.share(i, g, at), at);
    return;
  }
  const Transient with = primals();
  Operation op = op_;
  op.loc = at;
  const FormulaContext rule{op, with, y_, g};
  backward_order(op_.code, operands_.size(), [&](std::size_t i) {
    if (depends_on(i)) ad::propagate(i, rule, cell_of(operands_[i]));
  });
}

}  // namespace lantern::core::ad
