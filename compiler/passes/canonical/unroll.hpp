// Full unrolling of one loop.
#pragma once

#include <cstdint>
#include <vector>

#include "lantern/ir/clone.hpp"
#include "lantern/ir/graph.hpp"

namespace lantern::passes {

/// Writes so many iterations in front of a loop; returns the values that represent the loop's results.
inline std::vector<ir::Value*> unrolled(ir::Op* loop, std::int64_t iterations) {
  ir::Builder b = ir::Builder::before(loop);
  std::vector<ir::Value*> state = loop->operands;
  for (std::int64_t t = 0; t < iterations; ++t) {
    ir::Renaming names = ir::pairs(loop->blocks[1]->params, state);
    state = ir::clone(b, *loop->blocks[1], names);
  }
  return state;
}

}  // namespace lantern::passes
