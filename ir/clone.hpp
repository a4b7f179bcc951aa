// Copies of operations, blocks and modules, with all that is in them.
#pragma once

#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "lantern/ir/function_ref.hpp"
#include "lantern/ir/graph.hpp"

namespace lantern::ir {

/// What represents the values of the original in a copy; values that are not in it stay.
using Renaming = std::unordered_map<const Value*, Value*>;

/// Each of some values, and what represents it.
Renaming pairs(const std::vector<Value*>& from, const std::vector<Value*>& to);

/// What represents a value.
inline Value* renamed(const Renaming& names, Value* v) {
  const auto it = names.find(v);
  return it == names.end() ? v : it->second;
}

/// Puts what represents them in the place of values below a block, once.
void rename(Block* below, const Renaming& names);

/// Gives an operation what another says besides its operands, results and blocks: numbers, callee, text,
/// place.
void take_attributes(Op& copy, const Op& from);

/// Adds a copy of an operation, blocks included, and notes its results. Of the updates in `left_out`
/// nothing is copied: what they update represents what they give.
Op* clone(Builder& b, const Op& op, Renaming& names, const std::unordered_set<const Op*>& left_out = {});

/// Adds an operation like another over other operands and without its blocks, and notes its results.
Op* clone_over(Builder& b, const Op& op, std::vector<Value*> operands, Renaming& names);

/// Adds copies of the operations that compute a value, as far as they are `inside`; what represents it. Those that `names` has
/// are not copied again.
Value* clone_value(Builder& b, Value* v, FunctionRef<bool(const Value*)> inside, Renaming& names);

/// Adds copies of all that is in a block, up to its yield; what that yields.
std::vector<Value*> clone(Builder& b, const Block& from, Renaming& names,
                          const std::unordered_set<const Op*>& left_out = {});

/// A module with the same functions, in their order, and texts of its own.
std::unique_ptr<Module> clone(const Module& module);

}  // namespace lantern::ir
