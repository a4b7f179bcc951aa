// Which values may be infinite where the program's arguments are not.
#pragma once

#include "lantern/ir/graph.hpp"

namespace lantern::passes {

/// Whether a value has a pole on its way: a logarithm or a power of what may be 0, or a division by it. False for parameters
/// and results of control flow, whose values are made elsewhere. That no exponential is so small that it is rounded to 0 is
/// taken for granted. With `again`, of a value that is to be differentiated: whether its derivatives, of any order, may be
/// infinite or NaN, as those of a square root or of a slope at a kink. Cost: looks at 64 operations at most, and says yes
/// where that does not tell.
bool near_pole(const ir::Value* v, bool again = false);

}  // namespace lantern::passes
