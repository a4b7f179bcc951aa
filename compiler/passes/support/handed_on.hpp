// The data flow of loops and branches through their results.
#pragma once

#include "lantern/ir/graph.hpp"

namespace lantern::passes {

/// Calls f(value, result) for each value that may become a result of a loop or a branch: of a loop the initial value, the
/// parameters and what an iteration yields; of a branch what each side yields. Requires: one of the two.
template <class F>
void for_each_handed_on(const ir::Op& op, F&& f) {
  for (std::size_t i = 0; i < op.results.size(); ++i) {
    if (op.is(ir::Opcode::loop_))
      for (const ir::Value* v :
           {op.operands[i], op.blocks[0]->params[i], op.blocks[1]->params[i], op.blocks[1]->yields()[i]})
        f(v, op.results[i]);
    else
      for (ir::Block* b : op.blocks) f(b->yields()[i], op.results[i]);
  }
}

}  // namespace lantern::passes
