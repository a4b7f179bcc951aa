// Continuations that are called in the same places, and so have the same parameters.
#pragma once

#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "lantern/ir/graph.hpp"

namespace lantern::passes {

/// A function in continuation-passing style calls the continuation that it is given. The continuations that may be
/// called through one parameter are a class: all arguments of calls, and those of other functions that get one of them.
/// A continuation that is passed on in any other way belongs to no known class.
class ContinuationClasses {
 public:
  /// To be called for each operation, before anything is asked.
  void note(const ir::Op& op) {
    const bool call = op.is(ir::Opcode::call_) && op.callee->cps, jump = op.is(ir::Opcode::jump_);
    for (std::size_t i = 0; i < op.operands.size(); ++i) {
      ir::Value* const v = op.operands[i];
      if (!v->type.is_cont() || (jump && i == 0)) continue;
      if (call && i + 1 == op.operands.size())
        join(v, op.callee->body->params.back());
      else
        unknown_.insert(v);
    }
  }
  /// To be called after the last operation.
  void finish() {
    for (const auto& [v, to] : parent_) members_[root(v)].push_back(v);
    for (const ir::Value* v : unknown_) unknown_roots_.insert(root(v));
  }

  /// The class of a continuation: its continuations, and the parameters that hold one of them. Nothing where the class is
  /// not known.
  const std::vector<ir::Value*>& of(const ir::Value* v) const {
    static const std::vector<ir::Value*> none;
    const ir::Value* const r = root(v);
    const auto found = members_.find(r);
    return found == members_.end() || unknown_roots_.contains(r) ? none : found->second;
  }

 private:
  void join(ir::Value* a, ir::Value* b) {
    parent_.try_emplace(a, a);
    parent_.try_emplace(b, b);
    if (root(a) != root(b)) parent_[const_cast<ir::Value*>(root(a))] = const_cast<ir::Value*>(root(b));
  }
  const ir::Value* root(const ir::Value* v) const {
    for (auto at = parent_.find(const_cast<ir::Value*>(v)); at != parent_.end() && at->second != v;
         at = parent_.find(at->second))
      v = at->second;
    return v;
  }

  std::unordered_map<ir::Value*, ir::Value*> parent_;
  std::unordered_map<const ir::Value*, std::vector<ir::Value*>> members_;
  std::unordered_set<const ir::Value*> unknown_, unknown_roots_;
};

}  // namespace lantern::passes
