// Replay: running a direct-style program of the graph again under a derivative handler.
//
// While staging, user code runs under the staging handler alone; each derivative is a unit of its own: the
// program staged first, then run again under exactly one derivative handler, one level above the graph.
// Values of enclosing functions are parameters of the unit. So nesting has no limit and tags cannot be confused.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "lantern/compiler/staging/staging.hpp"
#include "lantern/ir/graph.hpp"

namespace lantern::core::ad {

/// A derivative handler that also gives meaning to control flow, functions and tapes while staging.
class StagedMode {
 public:
  using Thunk = std::function<Datums()>;
  using Condition = std::function<Datum(const Datums&)>;
  using Body = std::function<Datums(const Datums&)>;

  virtual ~StagedMode() = default;
  virtual Mode& mode() = 0;
  /// What the program's own operations become part of; plain: what they were before.
  virtual ir::Part part() const { return ir::Part::plain; }
  /// The datum without its tag.
  virtual Datum primal_of(const Datum& d) const = 0;
  virtual bool is_active(const Datum& d) const = 0;

  virtual Datums branch(const Datum& condition, const Thunk& then, const Thunk& otherwise,
                      const std::vector<ir::Type>& results, const Location& loc) = 0;
  /// `attribute`: of the loop (ir/checkpoint.hpp).
  virtual Datums loop(const Datums& initial, const std::vector<ir::Type>& state, const Condition& condition,
                    const Body& body, std::int64_t attribute, const Location& loc) = 0;
  /// Whether a loop with a bound on memory is to be handled as a function with a rule (custom_rule.hpp): its backward
  /// part is that of reverse mode, which keeps the bound.
  virtual bool bounds_by_rule() const { return false; }
  /// `attribute`: of the call (ir/checkpoint.hpp).
  virtual Datums call(ir::Function* callee, const Datums& arguments, std::int64_t attribute, const Location& loc) = 0;
  virtual void push(std::int64_t tape, const Datum& value, const Location& loc) = 0;
  virtual Datum pop(std::int64_t tape, const ir::Type& type, const Location& loc) = 0;
};

/// What tells apart the functions that a derivative makes of one: f1 with an active argument is not f with two.
std::string specialisation(const ir::Function& f, const std::vector<bool>& active);

/// Whether a function, or one that it calls, works on a tape.
bool works_on_tape(const ir::Function& f);

/// Runs a function's graph: every operation is performed again, on the given arguments. With `mode`, constructs
/// that an active value reaches are handled by it; the others are emitted as they are.
class Replay {
 public:
  Replay(Staging& staging, StagedMode* mode) : staging_(staging), mode_(mode) {}
  Datums run(ir::Function& f, const Datums& arguments);

 private:
  Datums run_block(ir::Block* block, const Datums& arguments);
  void run_op(ir::Op* op);
  Datums run_branch(ir::Op* op);
  Datums run_loop(ir::Op* op);
  Datums run_bounded_loop(ir::Op* op, const Datums& initial);
  Datums run_call(ir::Op* op);

  Location place(const ir::Op* op) const;
  void keep_name(const ir::Value* from, const Datum& to);
  Datum value(const ir::Value* v) const;
  Datums values(const std::vector<ir::Value*>& list) const;
  /// Whether derivatives flow through a construct: an active value enters it and a floating value leaves it, or
  /// it works on a tape.
  bool active(ir::Op* op) const;

  Staging& staging_;
  StagedMode* mode_;
  bool primal_only_ = false;
  std::unordered_map<const ir::Value*, Datum> env_;
};

}  // namespace lantern::core::ad
