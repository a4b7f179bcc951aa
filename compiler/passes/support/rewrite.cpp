// The walk that rebuilds blocks.
#include "lantern/compiler/passes/support/rewrite.hpp"

#include <bit>
#include <unordered_set>
#include <utility>

namespace lantern::passes {

bool refines(const ir::Type& a, const ir::Type& b) {
  if (a == b) return true;
  if (!a.is_tensor() || !ir::compatible(a, b)) return false;
  for (std::size_t i = 0; i < b.dims().size(); ++i)
    if (b.dims()[i] != ir::dynamic && a.dims()[i] != b.dims()[i]) return false;
  return true;
}

bool same_constant(const Op& a, const Op& b) {
  if (!(a.result()->type == b.result()->type)) return false;
  if (!a.result()->type.is_float_element()) return a.integer == b.integer;
  return std::bit_cast<std::uint64_t>(a.number) == std::bit_cast<std::uint64_t>(b.number);
}

void erase(const std::vector<Op*>& ops) {
  const std::unordered_set<const Op*> gone(ops.begin(), ops.end());
  std::unordered_set<Block*> blocks;
  for (const Op* op : ops) blocks.insert(op->parent);
  for (Block* b : blocks) std::erase_if(b->ops, [&](const Op* op) { return gone.contains(op); });
}

void remove_result(Op* branch, std::size_t result) {
  const auto at = static_cast<std::ptrdiff_t>(result);
  branch->results.erase(branch->results.begin() + at);
  for (std::size_t i = result; i < branch->results.size(); ++i)
    branch->results[i]->index = static_cast<std::uint32_t>(i);
  for (Block* side : branch->blocks) side->yields().erase(side->yields().begin() + at);
}

bool is_direct(const ir::Function& f) {
  bool direct = !f.cps;
  for (const Value* p : f.body->params) direct &= !p->type.is_cont();
  ir::walk(f.body, [&](const Op* op) {
    direct &= !op->is(Opcode::fun_, Opcode::closure_, Opcode::jump_, Opcode::halt_);
    return direct;
  });
  return direct;
}

bool Rewriter::run() {
  open(nullptr, 0, function_.body);
  while (!stack_.empty()) step();
  return changed_;
}

Value* Rewriter::now(Value* v) const {
  if (replaced_.empty()) return v;
  while (Value* const* by = replaced_.find(v)) v = *by;
  return v;
}

void Rewriter::replace(Value* from, Value* to) {
  if (from == to) return;
  // A constant serves many purposes: the name of one would mislead.
  if (!to->name && !constant(to)) to->name = from->name;
  replaced_[from] = to;
}

void Rewriter::open(Op* owner, std::size_t which, Block* block) {
  block->function = &function_;
  Frame frame{block, std::exchange(block->ops, {}), 0, owner, which, false, nullptr};
  block->ops.reserve(frame.ops.size());
  stack_.push_back(std::move(frame));
  block_opened(block);
}

void Rewriter::splice(Block* body, const Op* results_of) {
  changed_ = true;
  Frame frame{here(), std::exchange(body->ops, {}), 0, nullptr, 0, true, results_of};
  stack_.push_back(std::move(frame));
}

void Rewriter::close() {
  const Frame done = std::move(stack_.back());
  stack_.pop_back();
  if (done.spliced) return;
  block_closed(done.into);
  if (!done.owner) return;
  if (done.which + 1 < done.owner->blocks.size())
    open(done.owner, done.which + 1, done.owner->blocks[done.which + 1]);
  else
    leave(done.owner);
}

void Rewriter::step() {
  Frame& top = stack_.back();
  if (top.next == top.ops.size()) return close();
  Op* op = top.ops[top.next++];
  for (Value*& v : op->operands) {
    Value* by = now(v);
    changed_ |= by != v;
    v = by;
  }
  if (top.spliced && op->is(Opcode::yield_)) {
    if (const Op* construct = top.results_of)
      for (std::size_t i = 0; i < construct->results.size(); ++i)
        replace(construct->results[i], op->operands[i]);
    return;
  }
  Block* const into = top.into;
  if (enter(op) == Action::drop) {  // `top` may dangle from here on
    changed_ = true;
    return;
  }
  op->parent = into;
  for (Value* v : op->results) v->block = into;
  into->ops.push_back(op);
  if (!op->blocks.empty()) open(op, 0, op->blocks[0]);
}

}  // namespace lantern::passes
