// Activity analysis of direct-style graphs: which values depend on anything active, and to which of them a tangent
// flows always.
//
// Two fixpoints over the operations of a loop or function. The smaller set is of what depends on something active. The
// larger one is of what has a tangent in every run: a branch that is not taken, a loop without an iteration and a case
// of a select may leave a number without one. Calls are looked into; a recursive call gives at first what it would like
// to give. Cost: a few walks over the operations.
#pragma once

#include <functional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "lantern/ir/function_ref.hpp"
#include "lantern/ir/graph.hpp"

namespace lantern::core::ad {

/// Whether a tangent flows to a value. entered: to a state of a loop, after each iteration.
enum class Flows : std::uint8_t { never, perhaps, entered, always };

/// Of the results of functions, from what flows to their parameters.
class FunctionActivity {
 public:
  /// `has_rule`: whether a function is differentiated by a rule of its own.
  explicit FunctionActivity(std::function<bool(const ir::Function*)> has_rule) : has_rule_(std::move(has_rule)) {}
  std::vector<Flows> results(ir::Function& f, const std::vector<Flows>& parameters);

 private:
  struct Known {
    ir::Function* function;
    std::vector<Flows> parameters, results;
  };
  std::function<bool(const ir::Function*)> has_rule_;
  std::unordered_map<std::string, std::size_t> places_;
  std::vector<Known> known_;
  bool working_ = false;
};

/// Of the values of a block. `outside`: of those that are defined elsewhere.
class Activity {
 public:
  Activity(ir::FunctionRef<Flows(const ir::Value*)> outside, FunctionActivity& functions)
      : outside_(outside), functions_(functions) {}
  /// Of the states of a loop, in all iterations.
  std::vector<Flows> states(ir::Op& loop);
  /// Of the results of a function.
  std::vector<Flows> results(ir::Function& f, const std::vector<Flows>& parameters);

 private:
  Flows at(const ir::Value* v) const;
  bool is_active(const ir::Value* v) const { return some_.contains(v) || outside_(v) != Flows::never; }
  void note_active(const ir::Op& op);
  void note_flows(const ir::Op& op);
  void solve(ir::Block* block, const ir::Op* loop);

  ir::FunctionRef<Flows(const ir::Value*)> outside_;
  FunctionActivity& functions_;
  std::unordered_set<const ir::Value*> some_, perhaps_;
};

/// Whether a function, or one that it calls, works on a tape.
bool works_on_tape(const ir::Function& f);
bool on_tape(ir::Block* block);

}  // namespace lantern::core::ad
