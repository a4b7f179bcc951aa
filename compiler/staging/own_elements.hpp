// Where a loop changes a tensor element by element, reads of the tensor it started from.
#pragma once

#include "lantern/ir/graph.hpp"

namespace lantern::core::detail {

/// FOR(0, n, s, [&](i, next) { return next.set(f(s[i]), i); }) reads s while it makes another tensor out of
/// it. Where every access in a trip is to elements with the trip's number as one and the same index, and the
/// reads come first, no trip before has written what is read: they may read `next` as well. Then nothing
/// needs s any more, the updates happen in its memory, and its adjoint is updated in place too. Done where s
/// is state of a loop around; what a function was given stays, because a derivative can read it again at no
/// cost.
void read_own_elements(ir::Op* loop);

}  // namespace lantern::core::detail
