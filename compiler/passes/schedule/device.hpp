// Rematerialisation of scalars on a GPU: kernels and the host compute their own copies of them.
#pragma once

#include "lantern/ir/graph.hpp"

namespace lantern::passes {

/// Rematerialisation for a GPU: of scalars that are computed from a sum that a parallel loop makes, or from an element,
/// parallel loops compute their own copy, and the host computes them as late as it can:
///
///   s = parallel ... sum                        s = parallel ... sum
///   r = div 1, s                                parallel ... do {
///   parallel ... do {                becomes      r' = div 1, s
///     w = mul v, r                                w = mul v, r'
///   }                                           }
///   yield r                                     r = div 1, s
///                                               yield r
///
/// A kernel then reads `s` where the GPU has it, and the host waits for `s` at the end alone. Elements are read by the
/// loop itself where nothing changes their tensor.
void device_scalars(ir::Module& module);

}  // namespace lantern::passes
