// Operations and blocks, written again.
#include "lantern/compiler/passes/support/copies.hpp"

#include <algorithm>

namespace lantern::passes {

void take_attributes(Op& copy, const Op& from) {
  copy.number = from.number;
  copy.integer = from.integer;
  copy.callee = from.callee;
  copy.text = from.text;
  copy.loc = from.loc;
}

Op* copy_op(ir::Builder& b, const Op& op, Renaming& names, const std::unordered_set<const Op*>& left_out) {
  const auto now = [&](Value* v) {
    const auto it = names.find(v);
    return it == names.end() ? v : it->second;
  };
  Op* const made = b.module().new_op(op.code, b.block());
  take_attributes(*made, op);
  for (Value* v : op.operands) made->operands.push_back(now(v));
  for (const Value* r : op.results) names[r] = b.module().add_result(made, r->type, r->name);
  for (const Block* from : op.blocks) {
    Block* const block = b.module().new_block(made, b.block()->function);
    made->blocks.push_back(block);
    for (const Value* p : from->params) names[p] = b.module().add_param(block, p->type, p->name);
    ir::Builder in(b.module(), block);
    in.yield(copy_block(in, *from, names, left_out));
  }
  b.block()->ops.push_back(made);
  return made;
}

std::vector<Value*> copy_block(ir::Builder& b, const Block& from, Renaming& names,
                               const std::unordered_set<const Op*>& left_out) {
  for (const Op* op : from.ops) {
    if (op->is(Opcode::yield_)) {
      std::vector<Value*> values;
      for (Value* v : op->operands) {
        const auto it = names.find(v);
        values.push_back(it == names.end() ? v : it->second);
      }
      return values;
    }
    if (left_out.contains(op)) {
      const auto it = names.find(op->operands[0]);
      names[op->result()] = it == names.end() ? op->operands[0] : it->second;
    } else {
      copy_op(b, *op, names, left_out);
    }
  }
  return {};
}

Gap::Gap(Op* op) : block(op->parent) {
  const auto here = std::ranges::find(block->ops, op);
  behind.assign(here + 1, block->ops.end());
  block->ops.erase(here, block->ops.end());
}

void Gap::close() { block->ops.insert(block->ops.end(), behind.begin(), behind.end()); }

}  // namespace lantern::passes
