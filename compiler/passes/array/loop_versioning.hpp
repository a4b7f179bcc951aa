// loop_versioning: a loop whose iterations depend on each other or not as the sign of a number decides becomes two.
//
// A knapsack takes best[c - w] for c from the room down, and no weight w is negative; but nothing says so:
//
//   for (c = room; c >= w; --c) b[c] = max(b[c], b[c - w] + v)
//   becomes   if (0 <= w) for (...) ...   else for (...) ...
//
// In the first loop an iteration reads what later ones change (an anti-dependence), so it runs in lanes, and so does its
// derivative. (Loop versioning: Byler, Davies, Huson, Leasure and Wolfe, "Multiple version loops", ICPP 1987; Allen and
// Kennedy, Optimizing Compilers for Modern Architectures, 2001, 3.5: symbolic terms.)
//
// Requires loops without loops inside, before derivatives are made. Ensures that of the two versions the first has its
// dependences lexically forward. Costs the code of the loop once more.
#pragma once

#include <vector>

#include "lantern/ir/graph.hpp"

namespace lantern::passes {

/// Makes two versions of a loop without loops inside, or of each loop inside it. `results` are the values that replace the
/// loop's results. Returns them, or the results of the branch between the two versions.
std::vector<ir::Value*> loop_versioning(ir::Module& module, ir::Op* loop, std::vector<ir::Value*> results);

}  // namespace lantern::passes
