// in_place_stencils: where a loop changes a tensor element by element, reads of the tensor it started from.
#pragma once

#include "lantern/ir/graph.hpp"

namespace lantern::passes {

/// FOR(0, n, s, [&](i, next) { return next.set(i, f(s[i])); }) reads s while it makes another tensor out of
/// it:
///
///   loop(next = s) { next[i] = f(s[i]) }      becomes      loop(next = s) { next[i] = f(next[i]) }
///
/// Elements are read before an iteration changes any, and no iteration before has written what is read. Then nothing needs s
/// any more, the updates happen in its memory, and its adjoint is updated in place too, which is why this comes before
/// derivatives. Done in a loop and those inside it, where s is state of a loop around and nothing but the loop asks for it; what
/// a function was given stays, because a derivative can read it again at no cost.
void in_place_stencils(ir::Op* loop);

/// The same where nothing is differentiated any more, for all loops: what node_splitting has taken to pieces works in one
/// memory again, iteration after iteration, or block of lanes after block.
void in_place_stencils(ir::Module& module);

/// The mirror, of adjoints. Where node_splitting lets iterations read s, the adjoint of s is a sum of its own that the
/// adjoint of u is added to after the loop:
///
///   loop(u, s = 0) { d = u[i]; u[i] = 0; s[i] += p d; s[i + 1] += q d } u + s
///   becomes      loop(u) { d = u[i]; u[i] = 0; u[i] += p d; u[i + 1] += q d } u
///
/// No iteration after the one that adds to an element asks for it. Requires direct style before tensor operations
/// become loops.
void in_place_adjoints(ir::Module& module);

}  // namespace lantern::passes
