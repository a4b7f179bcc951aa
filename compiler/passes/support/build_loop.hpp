// Loops and branches as passes write them.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "lantern/ir/function_ref.hpp"
#include "lantern/ir/graph.hpp"

namespace lantern::passes {

using LoopValues = std::vector<ir::Value*>;

/// Writes `while (condition(state)) state = body(state)`; gives the state after it. Its types and names are those of
/// `initial`, or of the state of another loop, `like`: a size that changes is not known there. What `body` writes into the
/// block around goes before the loop.
LoopValues build_while(ir::Builder& b, const LoopValues& initial,
                       ir::FunctionRef<ir::Value*(ir::Builder&, const LoopValues& state)> condition,
                       ir::FunctionRef<LoopValues(ir::Builder&, const LoopValues& state)> body,
                       const ir::Op* like = nullptr);

/// Writes `for (i = first; i < bound; ++i) state = body(i, state)`; gives the state after it, without the index.
LoopValues build_for(ir::Builder& b, ir::Value* first, ir::Value* bound, const LoopValues& initial,
                     ir::FunctionRef<LoopValues(ir::Builder&, ir::Value* index, const LoopValues& state)> body);
/// The same with one value as the state.
ir::Value* build_for(ir::Builder& b, ir::Value* first, ir::Value* bound, ir::Value* initial,
                     ir::FunctionRef<ir::Value*(ir::Builder&, ir::Value* index, ir::Value* state)> body);

/// Writes `condition ? yes() : no()` of values of these types; gives what the side that runs gives.
LoopValues build_branch(ir::Builder& b, ir::Value* condition, const std::vector<ir::Type>& types,
                        ir::FunctionRef<LoopValues(ir::Builder&)> yes, ir::FunctionRef<LoopValues(ir::Builder&)> no);
/// The same of one value.
ir::Value* build_branch(ir::Builder& b, ir::Value* condition, const ir::Type& type,
                        ir::FunctionRef<ir::Value*(ir::Builder&)> yes, ir::FunctionRef<ir::Value*(ir::Builder&)> no);

/// The number of iterations of a loop inside loops with these indices, the outermost first.
using NestSize = ir::FunctionRef<ir::Value*(ir::Builder&, std::span<ir::Value* const> indices)>;
/// What the innermost body makes of the state, with the indices of all loops.
using NestBody = ir::FunctionRef<ir::Value*(ir::Builder&, ir::Value* state, std::span<ir::Value* const> indices)>;

/// Writes `depth` loops in each other, which count up from 0; gives the state after them.
ir::Value* build_nest(ir::Builder& b, ir::Value* initial, std::size_t depth, NestSize size, NestBody body);

/// Takes a piece of state that nothing uses out of a loop.
void remove_state(ir::Op* loop, std::size_t state);

}  // namespace lantern::passes
