// Blocks of the host, put in a new order.
#include "lantern/compiler/passes/schedule/late_fills.hpp"

#include <unordered_map>
#include <vector>

#include "lantern/compiler/passes/schedule/loop_order.hpp"
#include "lantern/compiler/passes/support/rewrite.hpp"

namespace lantern::passes {

namespace {

/// Memory without values stays where it is, as shapes do.
bool fills(const Op& op) {
  return (op.is(Opcode::zeros_like_) && op.result()->type.is_tensor()) || (op.is(Opcode::fill_) && constant(op.operands[0]));
}

/// A product begins with the zeros: they are a fill of their sizes.
void as_fill(Op* zeros) {
  ir::Builder b = ir::Builder::before(zeros, zeros->loc);
  std::vector<Value*> operands{b.number(0, ir::Type(zeros->result()->type.element()))};
  for (Value* size : b.sizes(zeros->operands[0])) operands.push_back(size);
  zeros->code = Opcode::fill_;
  zeros->operands = std::move(operands);
}

/// The operation, which is no fill that moves, that one of a block's fills goes right before; null: it stays.
using Targets = std::unordered_map<const Op*, const Op*>;

/// Users come behind a fill: where they go is known first.
Targets targets_in(const Uses& uses, const Block* block) {
  std::unordered_map<const Op*, std::size_t> places;
  for (std::size_t i = 0; i < block->ops.size(); ++i) places[block->ops[i]] = i;
  Targets targets;
  for (auto it = block->ops.rbegin(); it != block->ops.rend(); ++it) {
    const Op* const fill = *it;
    if (!fills(*fill)) continue;
    const Op* first = nullptr;
    for (const ir::Use& use : uses.of(fill->result())) {
      const Op* user = ir::holder_in(block, use.op);
      if (const auto moved = targets.find(user); moved != targets.end()) user = moved->second;
      if (!first || places.at(user) < places.at(first)) first = user;
    }
    if (first) targets[fill] = first;
  }
  return targets;
}

bool sink_in(const Uses& uses, Block* block) {
  const Targets targets = targets_in(uses, block);
  if (targets.empty()) return false;
  std::unordered_map<const Op*, std::vector<Op*>> before;
  for (Op* op : block->ops)
    if (const auto at = targets.find(op); at != targets.end()) before[at->second].push_back(op);
  std::vector<Op*> order;
  for (Op* op : block->ops) {
    if (targets.contains(op)) continue;
    if (const auto fills_here = before.find(op); fills_here != before.end())
      order.insert(order.end(), fills_here->second.begin(), fills_here->second.end());
    order.push_back(op);
  }
  block->ops = std::move(order);
  for (Op* op : std::vector<Op*>(block->ops)) {
    const auto at = targets.find(op);
    if (at == targets.end() || !op->is(Opcode::zeros_like_)) continue;
    const Op* const user = at->second;
    if (user->is(Opcode::add_einsum_, Opcode::add_matmul_) && user->operands[0] == op->result()) as_fill(op);
  }
  return true;
}

}  // namespace

void late_fills(ir::Module& module) {
  in_direct_style(module, [](ir::Function& f) {
    const Uses uses(f);
    bool any = false;
    for (Block* block : host_blocks(f)) any |= sink_in(uses, block);
    return any;
  });
}

}  // namespace lantern::passes
