// Communication beside computation: an operation between ranks becomes a start, as early as what it sends is known, and a
// wait, as late as its result is not used.
#pragma once

#include "lantern/ir/graph.hpp"

namespace lantern::passes {

/// In each block, calls of distributed_exchange_f64 and _f32 (runtime/distributed/kernels.h) in which all ranks take part
/// become distributed_start_... and distributed_wait_... where something may run in between. Starts keep their order, and
/// that with other ordered calls. Where nothing may run in between the call stays.
void overlap(ir::Module& module);

/// A program that communicates ends with a call of distributed_end: nothing that it has computed is used before all ranks are
/// known to have called the same operations.
void compare_ranks(ir::Module& module);

}  // namespace lantern::passes
