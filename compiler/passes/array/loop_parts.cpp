#include "lantern/compiler/passes/array/loop_parts.hpp"

#include "lantern/ir/clone.hpp"

namespace lantern::passes {

std::vector<Value*> clone_iteration(ir::Builder& b, const Op& loop, const std::vector<Value*>& state,
                                    const Op* comparison, bool answer) {
  const Block& body = *loop.blocks[1];
  Renaming names;
  for (std::size_t i = 0; i < state.size(); ++i) names[body.params[i]] = state[i];
  Value* const known = comparison ? b.boolean(answer) : nullptr;
  std::vector<Value*> next = ir::clone(b, body, names);
  if (!comparison) return next;
  const Value* const copy = names.at(comparison->result());
  ir::replace_uses(b.block(), copy, known);
  for (Value*& v : next)
    if (v == copy) v = known;
  return next;
}

void replace_loop(Op* loop, const std::vector<Value*>& results) {
  Renaming now;
  for (std::size_t i = 0; i < results.size(); ++i) now[loop->results[i]] = results[i];
  Block* const block = loop->parent;
  std::erase(block->ops, loop);
  ir::replace_uses(block, now);
}

}  // namespace lantern::passes
