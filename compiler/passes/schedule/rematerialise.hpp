// Rematerialisation: kernels compute elements again that another kernel stored for them.
#pragma once

#include "lantern/ir/graph.hpp"

namespace lantern::passes {

/// Rematerialisation (Briggs, Cooper and Torczon, "Rematerialization", PLDI 1992) of tensors between the
/// kernels of a GPU:
///
///   t = parallel i, j { t[i,j] = f(x[i,j], m[j]) }
///   s = parallel j { s[j] = sum over i of t[i,j] }
///   y = parallel i, j { y[i,j] = t[i,j] * s[j] }
///
/// becomes
///
///   s = parallel j { s[j] = sum over i of f(x[i,j], m[j]) }
///   y = parallel i, j { y[i,j] = f(x[i,j], m[j]) * s[j] }
///
/// The reason: kernels are bound by memory bandwidth, so recomputation is free where it saves loads. The pass takes a
/// perfect nest whose iterations each store one element of each result. Only kernels of the same block may read the
/// results, each element once. The nest is recomputed where fewer elements are moved then. Loads of a tensor that the
/// kernel reads anyway do not count, nor do loads of tensors of lower rank. The same operations are done on the same
/// numbers, in the same order.
///
/// Requires parallel loops that say so. Nothing is read behind an update of its tensor, and no index is read
/// that may be outside.
void rematerialise(ir::Module& module);

}  // namespace lantern::passes
