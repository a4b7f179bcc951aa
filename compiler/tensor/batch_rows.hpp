// Batching of a staged program over rows: what was staged for one row runs for all rows of a batch at once.
//
// Each operation is replaced by one whose operands have one more dimension, the first: "ij,j->i" of a matrix
// that all rows share and a vector of each row becomes "bj,ij->bi", one matrix product (the vectorising map
// of Frostig, Johnson and Leary, "Compiling machine learning programs via high-level tracing", SysML 2018).
// What does not depend on the row stays as it is. An operation without such a form runs in a loop over the
// rows, by itself.
//
// A loop that ends by a value of the row is a masked loop: it runs until the last row ends, and rows that have ended
// keep their state. Their indices are 0 meanwhile, so that they raise no error of their own.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "lantern/compiler/tensor/build.hpp"
#include "lantern/ir/graph.hpp"

namespace lantern::core::detail {

/// A value of the program for one row: the same for all rows, or one for each, with the rows as first
/// dimension.
struct RowValue {
  Datum datum;
  bool varies = false;
  Datum from{};  ///< of a row number, instead of `datum`: row r has from + r

  static RowValue same(Datum d) { return {std::move(d), false, {}}; }
  static RowValue each(Datum d) { return {std::move(d), true, {}}; }
  static RowValue numbers(Datum first) { return {{}, true, std::move(first)}; }
};

/// What a program does that its rows cannot do at once.
struct NotBatched {
  std::string reason;  ///< a clause: "'combine' prints"
  Location loc;
};

class BatchedRows {
 public:
  /// `rows`: how many there are.
  BatchedRows(Staging& staging, Datum rows, const Location& loc)
      : staging_(staging), rows_(std::move(rows)), loc_(loc) {}

  void bind(const ir::Value* v, RowValue value) { values_[v] = std::move(value); }
  /// The results of a block whose parameters are bound; operations go where the staging is. Throws
  /// NotBatched.
  std::vector<RowValue> run(const ir::Block* block);
  /// A value with a row for each, whether it varies or not.
  Datum rows_of(const RowValue& value) const;

 private:
  void run_op(const ir::Op& op);
  std::vector<RowValue> run_branch(const ir::Op& op);
  std::vector<RowValue> run_both(const ir::Op& op, const RowValue& condition);
  std::vector<RowValue> run_loop(const ir::Op& op);
  std::vector<RowValue> run_masked_loop(const ir::Op& op);
  std::vector<RowValue> run_call(const ir::Op& op);
  Datum run_varying(const ir::Op& op, const std::vector<RowValue>& in) const;
  Datum elementwise(const ir::Op& op, const std::vector<RowValue>& in) const;
  Datum notation(const ir::Op& op, const std::vector<RowValue>& in) const;
  Datum chosen(const std::vector<RowValue>& in, const Location& loc) const;
  Datum element(const ir::Op& op, const std::vector<RowValue>& in) const;
  Datum updated(const ir::Op& op, const std::vector<RowValue>& in) const;
  Datum row_number(const std::vector<RowValue>& in, std::size_t i, const Datum& row) const;

  RowValue value(const ir::Value* v) const;
  std::vector<RowValue> values(const std::vector<ir::Value*>& list) const;
  /// The sizes for one row, and with the number of rows in front.
  Indices row_sizes(const RowValue& v) const;
  Indices with_rows(Indices sizes) const;
  Build at(const ir::Op& op) const { return Build{op.loc}; }

  Staging& staging_;
  Datum rows_;
  Location loc_;
  Datum active_{};  ///< in a masked loop: by row, whether its own loop goes on
  std::unordered_map<const ir::Value*, RowValue> values_;
};

}  // namespace lantern::core::detail
