#include "lantern/compiler/passes/support/nests.hpp"

#include <vector>

namespace lantern::passes {

namespace {

using ir::Builder;
using ir::Value;

class Nest {
 public:
  Nest(std::size_t depth, const NestSize& size, const NestBody& body)
      : depth_(depth), size_(size), body_(body) {}

  Value* write(Builder& b, Value* state) {
    if (at_.size() == depth_) return body_(b, state, at_);
    Value* const size = size_(b, at_);
    ir::Module& module = *b.block()->function->module;
    ir::Op* loop = b.op(ir::Opcode::loop_, {b.integer(0, size->type), state}, {size->type, state->type});
    for (int i = 0; i < 2; ++i) {
      loop->blocks.push_back(module.new_block(loop, b.block()->function));
      module.add_param(loop->blocks.back(), size->type);
      module.add_param(loop->blocks.back(), state->type);
    }
    Builder condition(module, loop->blocks[0]), inside(module, loop->blocks[1]);
    condition.loc = inside.loc = b.loc;
    condition.yield({condition.emit(ir::Opcode::lt_, {loop->blocks[0]->params[0], size})});
    Value* const index = loop->blocks[1]->params[0];
    at_.push_back(index);
    Value* const next = write(inside, loop->blocks[1]->params[1]);
    at_.pop_back();
    inside.yield({inside.emit(ir::Opcode::add_, {index, inside.integer(1, size->type)}), next});
    return loop->result(1);
  }

 private:
  std::size_t depth_;
  const NestSize& size_;
  const NestBody& body_;
  std::vector<Value*> at_;  ///< indices of the loops around
};

}  // namespace

Value* nest(Builder& b, Value* state, std::size_t depth, const NestSize& size, const NestBody& body) {
  return Nest(depth, size, body).write(b, state);
}

}  // namespace lantern::passes
