// Tapes of bounded size, which lie in arrays of their function instead of the workspace.
//
// Before                                        After
//   while (tape grows) push one value             double tape0_memory[20];
//   room checks, capacity, memory of the call     double* tape0 = tape0_memory;
//
// Requires: each loop around a push has a constant trip count.
// Ensures: a push needs no room check, and a compiler that unrolls the loops can keep the values in registers.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "lantern/codegen/analysis.hpp"

namespace lantern::codegen {

/// What is pushed or popped; a record of several values lies side by side.
inline const std::vector<ir::Value*>& taped_values(const ir::Op& op) {
  return op.is(ir::Opcode::push_) ? op.operands : op.results;
}

/// A tape that one block fills and empties each time it runs.
struct StaticTape {
  std::int64_t number = 0;
  std::int64_t values = 0;         ///< the most that it holds
  const ir::Op* first = nullptr;   ///< a push or pop of it, which tells the type
};

/// The tapes of a function that have a bound, by the innermost block that holds all their uses. A tape takes at most
/// 4 KiB, and the tapes of a function together at most 16 KiB, since they lie on the stack.
std::unordered_map<const ir::Block*, std::vector<StaticTape>> static_tapes(const ir::Function& function,
                                                                           const Escapes& escapes);

}  // namespace lantern::codegen
