// Forward mode with tags (Lantern paper, Fig. 5 and 2.5).
#pragma once

#include "lantern/compiler/ad/custom_rule.hpp"
#include "lantern/compiler/staging/operation.hpp"

namespace lantern::core::ad {

/// A number and its tangent. An empty tangent is zero, and so is one where `flow`, a condition, does not hold: there
/// nothing flows, whatever it is multiplied by. An empty condition holds.
struct Dual : TaggedBox {
  Dual(Mode& m, Datum p, Datum t) : TaggedBox(m, std::move(p)), tangent(std::move(t)) {}
  virtual Datum flow() const { return {}; }
  Datum tangent;
};
/// One with a condition. Most have none, and pay nothing for it.
struct ConditionalDual final : Dual {
  ConditionalDual(Mode& m, Datum p, Datum t, Datum f) : Dual(m, std::move(p), std::move(t)), condition(std::move(f)) {}
  Datum flow() const override { return condition; }
  Datum condition;
};

/// Every operator computes its value and its tangent, both one level down: the figure as it is. As the operator
/// calls its continuation last, it needs none; the same with a handler, which does, is modes/forward_by_handler.cpp.
class Forward : public Mode {
 public:
  using Mode::Mode;
  const char* name() const override { return "forward mode"; }
  Datum apply(const Operation& op, std::span<const Datum> operands) override;
  Datums follow(const std::shared_ptr<const Rule>& rule, const Datums& arguments, const Location& loc) override;

  /// Runs a program on duals.
  virtual void run(const std::function<void()>& program) { program(); }

  Datum dual(Datum primal, Datum tangent) { return make_number<Dual>(std::move(primal), std::move(tangent)); }
  Datum dual(Datum primal, Datum tangent, Datum flow) {
    if (flow.empty()) return dual(std::move(primal), std::move(tangent));
    return make_number<ConditionalDual>(std::move(primal), std::move(tangent), std::move(flow));
  }
  Dual* dual_of(const Datum& d) const { return number_of<Dual>(d); }
  /// The tangent one level down; a zero where there is none.
  Datum tangent_of(const Datum& d, const Location& loc) const;

 private:
  Datum on_numbers(const Operation& op, std::span<const Datum> operands);
};

/// The rule of the thesis (4.1).
std::shared_ptr<Forward> make_forward_by_handler(std::uint64_t tag);

}  // namespace lantern::core::ad
