// Adjoint cells: created as zero, only added to, read once by their creator (Lantern paper, 3.2).
#pragma once

#include <memory>

#include "lantern/compiler/staging/operation.hpp"

namespace lantern::core::ad {

/// The adjoint of one value, one level down. The eager cell holds a number; the staged one is a node.
class Cell {
 public:
  virtual ~Cell() = default;
  virtual void add(const Datum& v, const Location& loc) = 0;
  /// cell = op(cell, arguments...): an accumulation such as add_at(cell, i, v).
  virtual void accumulate(const Operation& op, const Datums& arguments) = 0;
  virtual Datum get(const Location& loc) = 0;
  /// False while nothing was added, where that is known.
  virtual bool touched() const { return true; }
};

using CellPtr = std::shared_ptr<Cell>;

/// Where something flows in a derivative that is an eager tensor (TensorBox); empty: everywhere.
Datum flow(const Datum& d);
/// The derivative d, with the answer to where something flows.
Datum with_flow(const Datum& d, const Datum& flow);
/// The same with another answer for one element.
Datum flow_at(Datum flow, std::span<const Datum> indices, bool holds);
/// Where something flows in a sum of two.
Datum flow_of_sum(const Datum& a, const Datum& b, const Location& loc);

/// A number whose adjoint is found by a name.
using Name = std::size_t;
struct Named : TaggedBox {
  Named(Mode& m, Datum p, Name n) : TaggedBox(m, std::move(p)), name(n) {}
  Name name;
};

/// A cell that computes at once, in place where nothing else sees its value.
class EagerCell : public Cell {
 public:
  void add(const Datum& v, const Location& loc) override;
  void accumulate(const Operation& op, const Datums& arguments) override;
  Datum get(const Location& loc) override { return value_.empty() ? zeros_like(like(), loc) : value_; }
  bool touched() const override { return !value_.empty(); }

 protected:
  /// What it is the adjoint of.
  virtual const Datum& like() const = 0;

 private:
  Datum combine(const Operation& op, const Datums& arguments);

  Datum value_;
};
CellPtr eager_cell(const Datum& like);

/// A cell in the graph.
class StagedCell : public Cell {
 public:
  explicit StagedCell(ir::Value* ref) : ref_(ref) {}
  /// The node, for code that may add to it.
  ir::Value* ref() {
    touched_ = true;
    return ref_;
  }
  void add(const Datum& v, const Location& loc) override;
  void accumulate(const Operation& op, const Datums& arguments) override;
  Datum get(const Location& loc) override;
  /// False where the rest of the program, staged by now, adds nothing: no rule may then turn the zero into a NaN.
  bool touched() const override { return touched_; }

 private:
  ir::Value* ref_;
  bool touched_ = false;
};

/// Emits `ref_new` for the adjoint of a staged value.
std::shared_ptr<StagedCell> staged_cell(ir::Value* primal, const Location& loc);

}  // namespace lantern::core::ad
