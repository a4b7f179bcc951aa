// One branch at a time, inner ones first.
#include "lantern/compiler/passes/array/branch_writes.hpp"

#include <algorithm>
#include <vector>

#include "lantern/compiler/passes/support/rewrite.hpp"

namespace lantern::passes {

namespace {

constexpr int most_index_operations = 8;  ///< that both sides make

class Branch {
 public:
  explicit Branch(Op* branch) : branch_(branch), uses_(branch) {}

  bool run() {
    bool any = false;
    for (std::size_t i = branch_->results.size(); i-- > 0;)
      if (branch_->results[i]->type.is_tensor()) any |= sink(i);
    return any;
  }

 private:
  using Writes = std::vector<Op*>;

  bool sink(std::size_t result) {
    Writes writes[2];
    const Value* starts[2];
    for (const std::size_t side : {0u, 1u}) starts[side] = writes_of(side, result, writes[side]);
    if (starts[0] != starts[1] || writes[0].empty() || writes[0].size() != writes[1].size()) return false;
    left_ = most_index_operations;
    for (std::size_t k = 0; k < writes[0].size(); ++k)
      if (!is_same_write(*writes[0][k], *writes[1][k])) return false;

    Value* now = const_cast<Value*>(starts[0]);
    ir::Builder before = ir::Builder::before(branch_), after = ir::Builder::after(branch_);
    for (std::size_t k = 0; k < writes[0].size(); ++k) {
      Op* const write = writes[0][k];
      Value* const chosen = before.module().add_result(branch_, write->operands.back()->type);
      for (const std::size_t side : {0u, 1u})
        branch_->blocks[side]->yields().push_back(writes[side][k]->operands.back());
      std::vector<Value*> operands{now};
      for (std::size_t d = 1; d + 1 < write->operands.size(); ++d) operands.push_back(outside(before, write->operands[d]));
      operands.push_back(chosen);
      after.loc = write->loc;
      if (write->loc.line != writes[1][k]->loc.line) after.loc.line = branch_->loc.line, after.loc.column = branch_->loc.column;
      now = after.op(write->code, operands, {write->result()->type})->result();
    }
    Value* const old = branch_->results[result];
    now->name = old->name;
    ir::replace_uses(branch_->parent, old, now);
    remove_result(branch_, result);
    for (const Writes& side : writes) erase(side);
    return true;
  }

  /// What a side has written at its end, in order, of what only the next one uses; the tensor that it starts from.
  const Value* writes_of(std::size_t side, std::size_t result, Writes& writes) const {
    const Block* const block = branch_->blocks[side];
    const Value* v = const_cast<Block*>(block)->yields()[result];
    while (v->def && v->def->parent == block && is_write(*v->def) && uses_.once(v)) {
      writes.push_back(v->def);
      v = v->def->operands[0];
    }
    std::ranges::reverse(writes);
    // What prints or calls stays behind the write before it, which may fail.
    const auto is_seen = [](const Op* op) {
      return op->is(Opcode::print_, Opcode::call_) || !op->blocks.empty();
    };
    const auto first = writes.empty() ? block->ops.end() : std::ranges::find(block->ops, writes.front());
    if (std::any_of(first, block->ops.end(), is_seen)) writes.clear();
    return v;
  }

  /// Whether they write the same element in the same way.
  bool is_same_write(const Op& a, const Op& b) {
    if (a.code != b.code || a.loc.part != b.loc.part || a.integer != b.integer || !(a.result()->type == b.result()->type) ||
        !(a.operands.back()->type == b.operands.back()->type))
      return false;
    for (std::size_t d = 1; d + 1 < a.operands.size(); ++d)
      if (!same_index(a.operands[d], b.operands[d])) return false;
    return true;
  }

  /// Whether the sides have one index, from outside or made by the same operations.
  bool same_index(const Value* a, const Value* b) {
    if (a == b) return true;
    const Op *const x = a->def, *const y = b->def;
    if (!x || !y || !is_inside(a) || !is_inside(b) || left_-- <= 0 || !(a->type == b->type)) return false;
    if (x->is(Opcode::constant_) && y->is(Opcode::constant_)) return same_constant(*x, *y);
    const bool moves = x->code == y->code && x->is(Opcode::add_, Opcode::sub_, Opcode::mul_);
    return moves && same_index(x->operands[0], y->operands[0]) && same_index(x->operands[1], y->operands[1]);
  }
  bool is_inside(const Value* v) const { return std::ranges::find(branch_->blocks, v->block) != branch_->blocks.end(); }

  /// An index of a side, made before the branch.
  Value* outside(ir::Builder& before, Value* v) {
    Renaming names;
    return ir::clone_value(before, v, [&](const Value* x) { return is_inside(x); }, names);
  }

  Op* branch_;
  Uses uses_;  ///< as the sides were
  int left_ = 0;
};

}  // namespace

bool sink_branch_writes(Block* block) {
  std::vector<Op*> branches;
  ir::walk(block, [&](Op* op) {
    if (op->is(Opcode::branch_) && std::ranges::any_of(op->results, [](const Value* r) { return r->type.is_tensor(); }))
      branches.push_back(op);
  });
  bool any = false;
  for (std::size_t i = branches.size(); i-- > 0;) any |= Branch(branches[i]).run();
  return any;
}

}  // namespace lantern::passes
