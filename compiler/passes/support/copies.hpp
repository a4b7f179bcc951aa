// Copies of operations with all that is in them.
#pragma once

#include <unordered_map>
#include <unordered_set>

#include "lantern/compiler/passes/support/rewrite.hpp"

namespace lantern::passes {

/// What stands for the values of the original in a copy; values that are not in it stay.
using Renaming = std::unordered_map<const Value*, Value*>;

/// Gives an operation what another says besides its operands, results and blocks: numbers, callee, text,
/// place.
void take_attributes(Op& copy, const Op& from);

/// Appends a copy of an operation, blocks included, and notes its results. Of the updates in `left_out`
/// nothing is copied: what they update stands for what they give.
Op* copy_op(ir::Builder& b, const Op& op, Renaming& names,
            const std::unordered_set<const Op*>& left_out = {});

/// Appends copies of all that is in a block, up to its yield; what that yields.
std::vector<Value*> copy_block(ir::Builder& b, const Block& from, Renaming& names,
                               const std::unordered_set<const Op*>& left_out = {});

/// The place of an operation that is taken out of its block: what is appended to the block until the gap is
/// closed stands there.
struct Gap {
  Block* block = nullptr;
  std::vector<Op*> behind;  ///< what followed

  explicit Gap(Op* op);
  void close();
};

}  // namespace lantern::passes
