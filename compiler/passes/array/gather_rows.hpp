// gather_rows: loops in one another whose trips add to neighbouring rows go through the rows instead.
#pragma once

#include "lantern/compiler/passes/support/rewrite.hpp"

namespace lantern::passes {

/// Of a loop over rows with loops in it that add to elements of the rows before and after, the rows that all
/// neighbours add to become the trips:
///
///   for i, j: t[i - 1, j] += x(i, j); t[i, j] += y(i, j); t[i + 1, j] += z(i, j);
///   becomes   for the rows at both ends: as before, for each of the three;
///             for r, j: t[r, j] += x(r + 1, j) + y(r, j) + z(r - 1, j);
///
/// so that a row is written once, while it is in the cache. Rows may lie in a flat array, t[i * n + j], and
/// there may be more loops: planes, then the rows of a plane. The innermost loops are left as they are for
/// `gather`.
///
/// What is not gathered stays in loops of its own after it, which may take values from tapes; so elements that
/// they zero are read first, and nothing is copied. Where t begins with zeros and what is asked for is its sum
/// with another state of the loop, it begins with that state as these loops leave it. True if anything
/// changed.
bool gather_rows(ir::Module& module, Op* loop);

}  // namespace lantern::passes
