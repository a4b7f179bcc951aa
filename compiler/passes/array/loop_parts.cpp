#include "lantern/compiler/passes/array/loop_parts.hpp"

#include "lantern/ir/clone.hpp"

namespace lantern::passes {

namespace {

/// A branch on a condition whose answer is known gives way to the side that runs.
void take_known_sides(ir::Builder& b, const Value* known, bool answer, std::vector<Value*>& next) {
  Block* const block = b.block();
  Renaming now;
  for (std::size_t i = 0; i < block->ops.size();) {
    Op* const op = block->ops[i];
    if (!op->is(Opcode::branch_) || op->operands[0] != known) {
      ++i;
      continue;
    }
    Block* const side = op->blocks[answer ? 0 : 1];
    for (std::size_t r = 0; r < op->results.size(); ++r) now[op->results[r]] = side->yields()[r];
    ir::Builder here = ir::Builder::before(op);
    for (Op* inner : std::vector<Op*>(side->ops.begin(), side->ops.end() - 1)) here.take(inner);
    std::erase(block->ops, op);
  }
  const auto follow = [&](Value*& v) {  // through branches in sides
    for (auto it = now.find(v); it != now.end(); it = now.find(v)) v = it->second;
  };
  for (auto& [result, value] : now) follow(value);
  ir::replace_uses(block, now);
  for (Value*& v : next) follow(v);
}

}  // namespace

std::vector<Value*> clone_iteration(ir::Builder& b, const Op& loop, const std::vector<Value*>& state,
                                    const Op* comparison, bool answer) {
  const Block& body = *loop.blocks[1];
  Renaming names = ir::pairs(body.params, state);
  Value* const known = comparison ? b.boolean(answer) : nullptr;
  std::vector<Value*> next = ir::clone(b, body, names);
  if (!comparison) return next;
  const Value* const copy = names.at(comparison->result());
  ir::replace_uses(b.block(), copy, known);
  for (Value*& v : next)
    if (v == copy) v = known;
  take_known_sides(b, known, answer, next);
  return next;
}

void replace_loop(Op* loop, const std::vector<Value*>& results) {
  Block* const block = loop->parent;
  std::erase(block->ops, loop);
  ir::replace_uses(block, ir::pairs(loop->results, results));
}

}  // namespace lantern::passes
