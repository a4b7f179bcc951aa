// register_promotion: register promotion of an element that every iteration of a loop reads and writes (Carr and
// Kennedy, "Scalar replacement in the presence of conditional control flow", 1994).
//
//   for (j = 0; j < m; ++j) x[i] += a[i, j] * y[j]
//   becomes
//   s = x[i]; for (j = 0; j < m; ++j) s += a[i, j] * y[j]; x[i] = s
//
// Done where everything that the loop does to the tensor happens to that one element, its index does not
// change in the loop, and it is in range even if there is no iteration.
//
// Of an adjoint, to one of whose elements a loop only adds, what goes to this element is summed by itself, whatever
// happens to others:
//
//   for j: d[i] += f(j); d[j] += g(j)
//   becomes
//   s = 0; for j: s += f(j); d[j] += g(j)
//   d[i] += s
#pragma once

#include <vector>

#include "lantern/ir/graph.hpp"

namespace lantern::passes {

void register_promotion(ir::Module& module);

/// The same for one loop and those inside it, whose derivative is then that of loops over numbers: what
/// represents each of the loop's results.
std::vector<ir::Value*> register_promotion(ir::Module& module, ir::Op* loop);

}  // namespace lantern::passes
