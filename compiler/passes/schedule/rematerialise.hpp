// Elements that one kernel makes and others read are made by these.
#pragma once

#include "lantern/ir/graph.hpp"

namespace lantern::passes {

/// Rematerialisation (Briggs, Cooper and Torczon, "Rematerialization", PLDI 1992) of tensors between the
/// kernels of a GPU:
///
///   t = parallel i, j { t[i,j] = f(x[i,j], m[j]) }       becomes
///   s = parallel j { s[j] = sum over i of t[i,j] }       s = parallel j { s[j] = sum over i of f(x[i,j],
///   m[j]) } y = parallel i, j { y[i,j] = t[i,j] * s[j] }         y = parallel i, j { y[i,j] = f(x[i,j],
///   m[j]) * s[j] }
///
/// A kernel waits for memory: what it computes beside that costs nothing. Done for a perfect nest of which
/// each iteration makes elements of its own, of all its results at once, where kernels of the same block read
/// these and nothing else does, each element once, and where fewer elements are moved then. Loads of tensors
/// that a kernel reads anyway count as none, and so do loads of tensors with fewer dimensions. The same
/// operations on the same numbers are done, in the same order.
///
/// Requires parallel loops that say so. Nothing is read behind an update of its tensor, and no index is read
/// that may be outside.
void rematerialise(ir::Module& module);

}  // namespace lantern::passes
