// Replay: running a direct-style program of the graph again under a mode.
//
// While staging, user code only makes the graph; each derivative is a unit of its own: the program staged first,
// then run again under exactly one mode, one level above the graph.
// Values of enclosing functions are parameters of the unit. So nesting has no limit and tags cannot be confused.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "lantern/compiler/ad/activity.hpp"
#include "lantern/compiler/ad/program.hpp"
#include "lantern/compiler/staging/staging.hpp"
#include "lantern/ir/function_ref.hpp"
#include "lantern/ir/graph.hpp"

namespace lantern::core::ad {

/// What a mode adds to itself to be one over the graph: a meaning of control flow, functions and tapes.
class StagedMode {
 public:
  using Thunk = ir::FunctionRef<Datums()>;
  using Condition = ir::FunctionRef<Datum(const Datums&)>;
  using Body = ir::FunctionRef<Datums(const Datums&)>;

  StagedMode(Mode& mode, Staging& staging)
      : staging_(staging), functions_([&staging](const ir::Function* f) { return staging.rules.contains(f); }), mode_(mode) {}
  virtual ~StagedMode() = default;
  Mode& mode() const { return mode_; }
  /// Whether a datum is a number of the mode.
  bool is_active(const Datum& d) const { return mode_.number_of(d) != nullptr; }
  Active active_of(const Datums& data) const;
  /// What running a call in place brings. It is worth it where that is small, and the function not recursive.
  struct Brought {
    std::size_t operations = 0;
    bool is_small = false;
    bool is_shared = false;  ///< it calls others, and is called from several places
  };
  Brought brought_by(const ir::Function& callee);
  /// What the program's own operations become part of; plain: what they were before.
  virtual ir::Part part() const { return ir::Part::plain; }

  virtual Datums branch(const Datum& condition, const Thunk& then, const Thunk& otherwise,
                      const std::vector<ir::Type>& results, const Location& loc) = 0;
  /// `attribute`: of the loop (ir/checkpoint.hpp).
  virtual Datums loop(const Datums& initial, const std::vector<ir::Type>& state, const Condition& condition,
                    const Body& body, std::int64_t attribute, const Location& loc) = 0;
  /// Whether a loop with a bound on memory is to be handled as a function with a rule (custom_rule.hpp): its backward
  /// part is that of reverse mode, which keeps the bound.
  virtual bool bounds_by_rule() const { return false; }
  /// Whether the backward part of a loop goes through all iterations, so that one that finds an extreme is better
  /// followed where it is attained (replay_extremes.cpp).
  virtual bool is_backward() const { return false; }
  /// A condition: false where nothing flows to a datum. Empty: something does, or it is not known.
  virtual Datum flow_of(const Datum& /*d*/) const { return {}; }
  /// The datum d, with the answer that flow_of returns.
  virtual Datum with_flow(const Datum& d, const Datum& /*flow*/) { return d; }
  FunctionActivity& functions() { return functions_; }
  /// `attribute`: of the call (ir/checkpoint.hpp).
  virtual Datums call(ir::Function* callee, const Datums& arguments, std::int64_t attribute, const Location& loc) = 0;
  virtual void push(std::int64_t tape, const Datum& value, const Location& loc) = 0;
  virtual Datum pop(std::int64_t tape, const ir::Type& type, const Location& loc) = 0;

 protected:
  /// Emits a push, and a pop.
  void onto(std::int64_t tape, const Datum& value, const Location& loc);
  Datum from(std::int64_t tape, const ir::Type& type, const Location& loc);
  /// A tape for what goes with the values of another: their adjoints, or their companion of that number.
  std::int64_t beside(std::int64_t tape, std::size_t number = 0);

  /// The parameters of a function made of `callee`, named as its own are: each active one, and the `more` that come
  /// with it, as `number` puts them together.
  Datums parameters_of(const ir::Function& made, const ir::Function& callee, const Active& active, std::size_t more,
                       ir::FunctionRef<Datum(const Datum& primal, const Datums& more)> number) const;

  Staging& staging_;

 private:
  FunctionActivity functions_;
  bool has_several_calls(const ir::Function& callee);

  Mode& mode_;
  std::map<std::pair<std::int64_t, std::size_t>, std::int64_t> tapes_;
  std::unordered_map<const ir::Function*, Brought> brought_;
  std::unordered_map<const ir::Function*, std::size_t> calls_;  ///< of each function, when that was first asked
};

/// What distinguishs the functions that a derivative makes of one: f1 with an active argument is not f with two.
std::string specialisation(const ir::Function& f, const Active& active);

/// Runs a function's graph: every operation is performed again, on the given arguments. With `mode`, constructs
/// that an active value reaches are handled by it; the others are emitted as they are.
class Replay {
 public:
  Replay(Staging& staging, StagedMode* mode) : staging_(staging), mode_(mode) {}
  Datums run(ir::Function& f, const Datums& arguments);

 private:
  Datums run_block(ir::Block* block, const Datums& arguments);
  void run_op(ir::Op* op);
  Datums run_external(ir::Op* op);
  Datums run_branch(ir::Op* op);
  Datums run_loop(ir::Op* op);
  Datums run_forward_loop(ir::Op* op, Datums initial, std::vector<ir::Type> types, const StagedMode::Condition& condition,
                          const StagedMode::Body& body);
  /// A loop of one number: the largest or smallest so far, of those that its iterations compute.
  struct ExtremeLoop {
    std::size_t state = 0;      ///< which of the loop's state it is
    std::size_t candidate = 0;  ///< which operand of the update an iteration computes
    const ir::Op* update = nullptr;
  };
  static std::optional<ExtremeLoop> extreme_loop(const ir::Op* loop);
  Datums run_extreme_loop(ir::Op* op, const ExtremeLoop& extreme, const Datums& initial,
                          const StagedMode::Condition& condition, const StagedMode::Body& body);
  Datums run_bounded_loop(ir::Op* op, const Datums& initial);
  std::vector<const ir::Value*> used_from_outside(ir::Op* op) const;
  Datums run_call(ir::Op* op);
  bool runs_in_place(const ir::Function& callee);

  Location place(const ir::Op* op) const;
  void keep_name(const ir::Value* from, const Datum& to);
  Datum value(const ir::Value* v) const;
  Datums values(const std::vector<ir::Value*>& list) const;
  /// Whether derivatives flow through a construct: an active value enters it and a floating value leaves it, or
  /// it works on a tape.
  bool active(ir::Op* op) const;

  Staging& staging_;
  StagedMode* mode_;
  bool primal_only_ = false;  ///< values are without the mode's tag
  std::size_t brought_ = 0;   ///< operations, by calls of shared functions that were run in place
  std::unordered_map<const ir::Value*, Datum> env_;
};

}  // namespace lantern::core::ad
