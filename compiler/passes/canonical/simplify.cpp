// The rounds of simplify.
#include "lantern/compiler/passes/canonical/simplify.hpp"

namespace lantern::passes {

void simplify(ir::Module& module) {
  // Each round is linear; what one round uncovers for the next is rarely deep.
  constexpr int most_rounds = 12;
  for (int round = 0; round < most_rounds; ++round) {
    bool changed = inline_calls(module);
    for (ir::Function* f : module.functions()) {
      changed |= fold(*f);
      changed |= cse(*f);
    }
    changed |= eliminate_dead(module);
    if (!changed) return;
  }
}

}  // namespace lantern::passes
