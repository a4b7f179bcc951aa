// Block by block: the operations of the formula stand where the composed one stood, and the last of them is its result.
#include "lantern/compiler/passes/array/expand.hpp"

#include <algorithm>

#include "lantern/ir/formula.hpp"
#include "lantern/ir/uses.hpp"

namespace lantern::passes {

namespace {

using ir::Block;
using ir::Formula;
using ir::Op;
using ir::Opcode;
using ir::Renaming;
using ir::Value;

class Expansion {
 public:
  Expansion(ir::Builder& b, const Op& op) : b_(b), op_(op) {}

  Value* value(const Formula& f) {
    switch (f.kind) {
      case Formula::Kind::number:
        return number(f.number);
      case Formula::Kind::variable:
        return op_.operands[static_cast<std::size_t>(f.variable - 'x')];
      default: {
        std::vector<Value*> arguments;
        for (const Formula& a : f.arguments) arguments.push_back(value(a));
        return b_.emit(f.op, arguments);
      }
    }
  }

 private:
  Value* number(double v) {
    const ir::Type& type = op_.result()->type;
    Value* const one = b_.number(v, ir::Type(type.element()));
    return type.is_tensor() ? b_.emit(Opcode::broadcast_, {one, op_.operands[0]}) : one;
  }

  ir::Builder& b_;
  const Op& op_;
};

class Expander {
 public:
  explicit Expander(ir::Function& f) : module_(*f.module), function_(f) {}

  bool run() {
    for (Block* block : ir::blocks_below(function_.body)) expand(block);
    ir::replace_uses(function_.body, written_out_);
    return !written_out_.empty();
  }

 private:
  void expand(Block* block) {
    if (std::ranges::none_of(block->ops, [](const Op* op) { return ir::info(op->code).composed; })) return;
    std::vector<Op*> before;
    before.swap(block->ops);
    ir::Builder b(module_, block);
    for (Op* op : before) {
      if (!ir::info(op->code).composed) {
        block->ops.push_back(op);
        continue;
      }
      b.loc = op->loc;
      Value* const v = Expansion(b, *op).value(ir::composed_value(op->code));
      if (op->result()->name && v->def && v->def->parent == block && !v->name) v->name = op->result()->name;
      written_out_[op->result()] = v;
    }
  }

  ir::Module& module_;
  ir::Function& function_;
  Renaming written_out_;
};

}  // namespace

bool expand(ir::Module& module) {
  bool any = false;
  for (ir::Function* f : module.functions()) any |= Expander(*f).run();
  return any;
}

}  // namespace lantern::passes
