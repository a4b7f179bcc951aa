// Products of two tensors that are large enough for a routine: what `lower` leaves as operations.
#pragma once

#include "lantern/compiler/passes/array/lower_nest.hpp"

namespace lantern::passes {

/// Whether a routine is to compute a sum of products: a matrix product in double or single precision, or a
/// contraction (analysis/gemm.hpp), of sizes that are not known to be small. `sizes` has those of the nest's
/// indices, ir::dynamic where one is not known.
bool calls_routine(const NestMember& m, const std::vector<std::int64_t>& sizes);

/// Whether a sum of products is one over a window of each channel by itself (channel_window), for which programs of one thread
/// have a routine: it reads zeros where a place lies outside.
bool sums_windows(const NestMember& m);

/// The result of a nest of one such member. It is added to zeros, or to what the member adds to; of a tensor of
/// which places outside are read, as where a convolution pads, a copy with zeros around is made first, and a
/// result of which places outside are added to is computed in one.
Value* emit_product(ir::Builder& b, const LoweredNest& nest);

/// Loops that sum over windows of each channel: of a copy with zeros around, so that they need not ask at each point whether it
/// lies outside.
Value* emit_windows(ir::Builder& b, const LoweredNest& nest);

}  // namespace lantern::passes
