// Loops whose iterations do not depend on each other run many iterations at once: each value becomes a vector of lanes.
#pragma once

#include "lantern/ir/graph.hpp"

namespace lantern::passes {

/// Turns the outermost loops that allow it into loops over blocks of iterations, one iteration a lane, whole bodies
/// with their inner loops, tapes and arrays: what every iteration computes alike stays a scalar; an array of a
/// iteration gains a last dimension, the lanes. Blocks of many lanes are followed by blocks of fewer, and what is
/// left after them runs iteration by iteration, or with idle lanes that are left out of sums and write nothing: which
/// blocks there are depends on what an iteration does, so that a loop of n iterations takes a time that grows about as n.
///
/// A loop is left as it is where iterations may depend on each other, where lanes would part ways in an inner
/// loop, and where its body calls functions or works on whole tensors that differ from lane to lane.
///
/// For targets with vectors (the C and C++ that Clang and g++ compile); not for libtcc and CUDA. `native`:
/// how many f64 a register holds. `reassociate`: sums over the iterations are sums of the lanes' sums; without it a
/// loop that sums, but for adjoints, is left as it is.
void vectorise(ir::Module& module, int native, bool reassociate = true);

}  // namespace lantern::passes
