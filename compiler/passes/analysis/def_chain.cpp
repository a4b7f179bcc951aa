// Chains of updates through loops and branches.
#include "lantern/compiler/passes/analysis/def_chain.hpp"

#include <algorithm>
#include <unordered_map>

#include "lantern/compiler/passes/analysis/loops.hpp"

namespace lantern::passes {

const Op* owner(const Value* v) { return v->def ? v->def : v->block->parent; }

bool DefChain::collect_defs(const Op* loop, std::size_t state) {
  const Block* const body = loop->blocks[1];
  return chain(body, body->ops.back()->operands[state]) == body->params[state];
}

/// The versions in a block, from one to the first, and what writes them: gives the one before, from outside
/// or the block's parameter; null where something else makes one.
const Value* DefChain::chain(const Block* block, const Value* v) {
  while (v->block == block && v->def) {
    values.insert(v);
    Op* const op = v->def;
    if (is_write(*op)) {
      writes.push_back(op);
      v = op->operands[0];
    } else if (op->is(Opcode::loop_)) {
      if (!collect_defs(op, v->index)) return nullptr;
      v = op->operands[v->index];
    } else if (op->is(Opcode::branch_)) {
      const Value* sides[2];
      for (std::size_t i = 0; i < 2; ++i)
        sides[i] = chain(op->blocks[i], op->blocks[i]->ops.back()->operands[v->index]);
      if (!sides[0] || sides[0] != sides[1]) return nullptr;
      v = sides[0];
    } else {
      return nullptr;
    }
  }
  values.insert(v);
  return v;
}

bool DefChain::forwards(const Op& op, std::size_t operand) const {
  const Op* const to = op.is(Opcode::yield_) ? op.parent->parent : &op;
  return to && values.contains(to->is(Opcode::loop_) ? to->blocks[1]->params[operand] : to->results[operand]);
}

namespace {

/// Whether in one iteration of a body a write comes after the version that was read.
bool follows(const Op& write, const Value* read, const Block* body) {
  if (!read->def && read->block == body) return true;
  std::unordered_map<const Block*, const Op*> around;  // the reading's place in the blocks around it
  for (const Op* op = owner(read);; op = op->parent->parent) {
    around[op->parent] = op;
    if (op->parent == body) break;
  }
  const Op* op = &write;
  while (!around.contains(op->parent)) op = op->parent->parent;
  const auto place = [](const Op* o) { return std::ranges::find(o->parent->ops, o); };
  return place(op) > place(around[op->parent]);
}

}  // namespace

Reads reads_of(const DefChain& versions, const Op* loop) {
  Reads found;
  const auto before_an_iteration = [&](const Op* asking) {
    ir::walk(asking->blocks[0], [&](const Op* o) {
      for (const Value* v : o->operands) found.others |= v->type.is_tensor() && v->block == asking->blocks[0];
    });
  };
  before_an_iteration(loop);
  ir::walk(loop->blocks[1], [&](const Op* op) {
    for (std::size_t i = 0; i < op->operands.size(); ++i) {
      if (!versions.values.contains(op->operands[i])) continue;
      if (op->is(Opcode::get_))
        found.gets.push_back(op);
      else if (op->is(Opcode::yield_, Opcode::loop_))
        found.others |= !versions.forwards(*op, i);
      else
        found.others |= !(op->is(Opcode::dim_, Opcode::zeros_like_) || (i == 0 && is_write(*op)));
    }
    if (op->is(Opcode::loop_)) before_an_iteration(op);
  });
  return found;
}

bool is_independent_of(const Op& access, const Op& write, const Op* outermost, Iteration when) {
  const Value* const read = access.operands[0];
  const auto mine = loops_around(read->block, outermost), its = loops_around(write.parent, outermost);
  std::size_t common = 0;
  for (; common < mine.size() && common < its.size() && mine[common] == its[common]; ++common) {
    // In a later iteration of this loop, those around it in the same.
    if (!counter_of(mine[common]) || !no_alias(access, write, mine[common], when)) return false;
  }
  // After it in the same iteration of all.
  const Op* const innermost = mine[common - 1];
  return follows(write, read, innermost->blocks[1]) != (when == Iteration::later) ||
         no_alias(access, write, innermost, Iteration::same);
}

}  // namespace lantern::passes
