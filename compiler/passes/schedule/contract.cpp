// Block by block; a product in another block than its sum may be formed less often, and stays.
#include "lantern/compiler/passes/schedule/contract.hpp"

#include <algorithm>
#include <unordered_set>

#include "lantern/ir/uses.hpp"

namespace lantern::passes {

namespace {

using ir::Block;
using ir::Op;
using ir::Opcode;
using ir::Value;

class FmaContraction {
 public:
  explicit FmaContraction(ir::Function& f) : module_(*f.module), blocks_(ir::blocks_below(f.body)), uses_(f) {}

  void run() {
    for (Block* block : blocks_) {
      std::vector<Op*> before;
      before.swap(block->ops);
      for (Op* op : before) {
        contract(op, block);
        block->ops.push_back(op);
      }
      std::erase_if(block->ops, [&](const Op* op) { return absorbed_.contains(op); });
    }
  }

 private:
  /// The product that an operand is, if nothing else asks for it.
  Op* product(const Value* v, const Block* block) const {
    Op* const op = v->def;
    return op && op->is(Opcode::mul_) && op->parent == block && uses_.once(v) ? op : nullptr;
  }

  void contract(Op* op, Block* block) {
    const bool subtracts = op->is(Opcode::sub_);
    if (!subtracts && !op->is(Opcode::add_)) return;
    if (!op->result()->type.is_float_element() || op->result()->type.is_tensor()) return;
    Value *const x = op->operands[0], *const y = op->operands[1];
    if (Op* const p = product(x, block))
      fuse(op, p, p->operands[0], subtracts ? negative(y, op, block) : y);
    else if (Op* const q = product(y, block))
      fuse(op, q, subtracts ? negative(q->operands[0], op, block) : q->operands[0], x);
  }

  void fuse(Op* op, const Op* product, Value* factor, Value* summand) {
    op->code = Opcode::fma_;
    op->operands = {factor, product->operands[1], summand};
    absorbed_.insert(product);
  }

  Value* negative(Value* v, const Op* user, Block* block) {
    Op* const op = module_.new_op(Opcode::neg_, block);
    op->loc = user->loc;
    op->operands = {v};
    block->ops.push_back(op);
    return module_.add_result(op, v->type);
  }

  ir::Module& module_;
  std::vector<Block*> blocks_;
  ir::Uses uses_;
  std::unordered_set<const Op*> absorbed_;
};

}  // namespace

void contract(ir::Module& module) {
  for (ir::Function* f : module.functions()) FmaContraction(*f).run();
}

}  // namespace lantern::passes
