// Tensor operations become loops.
#pragma once

#include "lantern/ir/graph.hpp"

namespace lantern::passes {

/// Writes element-wise operations and sums of products (ir/notation.hpp) as loops over elements:
///
///     t = exp(x)                 t = memory
///     r = matvec(a, t)           for i < n: t[i] = exp(x[i])
///                                r = memory
///                                for i < m: { s = 0; for j < n: s += a[i,j] * t[j]; r[i] = s }
///
/// With `fuse` operations with the same index space, of which later ones read what earlier ones make at the
/// point available alone (or not at all), share one loop (loop fusion on the graph of operations, as in Kennedy
/// and McKinley, "Maximizing loop parallelism and improving data locality via loop fusion and distribution",
/// 1993); what nothing else reads is not kept. A tensor that only such a loop reads gives its memory to a
/// result. Without `fuse` every operation makes its tensor.
///
/// Afterwards no operation on whole tensors is left but those that printers know: views, rows that are copied
/// or added to, argmax, reshape, concat, fill.
///
/// With `packed` matrix products that are large, or may be, stay operations: printers call a routine for
/// them. With `keep_sums` so do sums of two tensors of which a loop of the program has made one, and no
/// element-wise operation the other: what loops add to their elements is better added there
/// (scatter_to_gather).
struct LowerOptions {
  bool fuse = true, packed = false, keep_sums = false;
  bool merge = true;        ///< false: the outermost index stays as it is where several could be one
  bool windows = false;     ///< sums over a window of each channel call a routine, too
  bool reassociate = true;  ///< false: sums that the program forms keep their order
};
/// Returns whether there was anything to do.
bool lower(ir::Module& module, const LowerOptions& options = {});

}  // namespace lantern::passes
