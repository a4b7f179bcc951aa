// Reverse mode with deferred backward steps: what grad(f) runs.
#pragma once

#include "lantern/compiler/ad/adjoint_cell.hpp"
#include "lantern/compiler/ad/step.hpp"
#include "lantern/compiler/control/control.hpp"

namespace lantern::core::ad {

/// A number under reverse mode: its primal, and the cell that collects its adjoint.
struct Variable : TaggedBox {
  Variable(Mode& m, Datum p, CellPtr c) : TaggedBox(m, std::move(p)), cell(std::move(c)) {}
  CellPtr cell;
};

/// One whose cell lies in itself: what an operation on numbers that are known makes. The pointer to the cell owns
/// nothing.
struct Result final : Variable, private EagerCell {
  Result(Mode& m, Datum p) : Variable(m, std::move(p), CellPtr(CellPtr(), static_cast<EagerCell*>(this))) {}

 private:
  const Datum& like() const override { return primal; }
};

/// The fast path of the eager reverse modes, and what StagedReverse adds control flow to. Of the rule (Lantern
/// paper, Fig. 8; modes/reverse_by_shift.cpp) an operator keeps what it does when its continuation returns, which
/// is to add to its operands' adjoints. That is deferred to the end of the reset, the last first, and nothing is
/// captured. Numbers that are known are computed with as such.
class Reverse : public Mode {
 public:
  using Mode::Mode;
  const char* name() const override { return "reverse mode"; }
  Datum apply(const Operation& op, std::span<const Datum> operands) override;

  Datums follow(const std::shared_ptr<const Rule>& rule, const Datums& arguments, const Location& loc) override;

  /// Runs `program` with the rest of its life delimited: when this returns, all adjoints are complete.
  void run(const std::function<void()>& program);

  /// A fresh variable of this mode.
  Datum variable(const Datum& primal, CellPtr cell) { return make_number<Variable>(primal, std::move(cell)); }
  Variable* variable_of(const Datum& d) const { return number_of<Variable>(d); }

 protected:
  /// A cell for the adjoint of a value computed by this mode.
  virtual CellPtr make_cell(const Datum& primal, const Location& loc);
  /// Whether cells are eager ones.
  virtual bool eager() const { return true; }

  Prompt<void> prompt_;

 private:
  Datum apply(const Operation& op, std::span<const Datum> operands, const DoubleStep& step);
  /// Values as variables; a cell for each floating one, else null, to `cells`.
  Datums variables(std::span<const Datum> values, std::vector<CellPtr>& cells, const Location& loc);
  /// Of what a part records, its arguments; the backward pass runs it again, recorded this time (thesis, 5.2). It
  /// outlives the frame that calls this.
  Datums checkpoint(const std::function<Datums(const Datums&)>& part, const Datums& arguments, const Location& loc);
  /// The part's values, one level down; nothing is recorded.
  Datums values_of(const std::function<Datums(const Datums&)>& part, const Datums& arguments, const Location& loc);

  bool recording_ = true;  ///< false in the first run of a checkpointed program
};

}  // namespace lantern::core::ad
