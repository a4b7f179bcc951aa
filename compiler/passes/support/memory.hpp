// How much memory passes may take, and loops that are there twice: as a pass made them, and as they were.
//
// What a program asks for is the user's choice; what passes take beside it, for tables, arrays of each lane and
// sums of each thread, is bounded: for each purpose and loop at most `memory_factor` times what
// the tensors hold that the loop works on, or `least_memory` where that is more. Where sizes are not known,
// the program decides when it comes to the loop.
#pragma once

#include <vector>

#include "lantern/compiler/passes/support/rewrite.hpp"

namespace lantern::passes {

/// In numbers, of whatever type.
inline constexpr double memory_factor = 4, least_memory = 1 << 21;

/// Bytes of one element.
std::int64_t element_bytes(ir::Kind kind);

/// Whether a pass may take so many numbers (an f64) for a loop; computed before the loop.
Value* may_take(ir::Builder& b, Value* numbers, const Op* loop);

/// How many elements tensors of these sizes have, as f64: products of sizes may exceed integers.
Value* elements_of_sizes(ir::Builder& b, const std::vector<Value*>& sizes);
/// Likewise of one tensor.
Value* elements_of(ir::Builder& b, Value* tensor);

/// Moves all of a block's operations to before `loop`.
void put_before(Block* scratch, Op* loop);

/// Moves a loop into the first side of a new branch: `branch condition { loop } else { }`. The caller fills the second side.
/// Returns the branch.
Op* put_behind(Value* condition, Op* loop);

/// The same with a copy of the loop on the second side, with tapes of its own: what is done to the loop from now on is done
/// where the condition holds.
Op* keep_alternative(ir::Module& module, Op* loop, Value* condition);

}  // namespace lantern::passes
