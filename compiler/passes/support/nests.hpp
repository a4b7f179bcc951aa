// Loops in loops, as passes write them.
#pragma once

#include <cstddef>
#include <functional>
#include <span>

#include "lantern/ir/graph.hpp"

namespace lantern::passes {

/// The iterations of a loop inside loops with these indices, the outermost first.
using NestSize = std::function<ir::Value*(ir::Builder&, std::span<ir::Value* const>)>;
/// What the innermost body makes of the state, with the indices of all loops.
using NestBody = std::function<ir::Value*(ir::Builder&, ir::Value*, std::span<ir::Value* const>)>;

/// Writes `depth` loops in each other, which count up from 0; gives the state after them.
ir::Value* nest(ir::Builder& b, ir::Value* state, std::size_t depth, const NestSize& size,
                const NestBody& body);

}  // namespace lantern::passes
