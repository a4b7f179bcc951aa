#include "lantern/compiler/passes/support/build_loop.hpp"

namespace lantern::passes {

using ir::Builder;
using ir::FunctionRef;
using ir::Opcode;
using ir::Value;

LoopValues build_while(Builder& b, const LoopValues& initial, FunctionRef<Value*(Builder&, const LoopValues&)> condition,
                       FunctionRef<LoopValues(Builder&, const LoopValues&)> body, const ir::Op* like) {
  ir::Module& module = b.module();
  ir::Op* const loop = module.new_op(Opcode::loop_, b.block());
  loop->loc = b.loc;
  loop->operands = initial;
  for (std::size_t i = 0; i < 2; ++i) {
    loop->blocks.push_back(module.new_block(loop, b.block()->function));
    for (const Value* v : like ? like->blocks[i]->params : initial)
      module.add_param(loop->blocks.back(), v->type, v->name);
  }
  Builder head(module, loop->blocks[0], b.loc), inside(module, loop->blocks[1], b.loc);
  head.yield({condition(head, loop->blocks[0]->params)});
  inside.yield(body(inside, loop->blocks[1]->params));
  b.take(loop);
  for (const Value* v : like ? like->results : initial) module.add_result(loop, v->type, v->name);
  return loop->results;
}

LoopValues build_for(Builder& b, Value* first, Value* bound, const LoopValues& initial,
                     FunctionRef<LoopValues(Builder&, Value*, const LoopValues&)> body) {
  LoopValues state{first};
  state.insert(state.end(), initial.begin(), initial.end());
  LoopValues after = build_while(
      b, state,
      [&](Builder& head, const LoopValues& now) {
        return head.lt({now[0], bound});
      },
      [&](Builder& inside, const LoopValues& now) {
        LoopValues next = body(inside, now[0], LoopValues(now.begin() + 1, now.end()));
        next.insert(next.begin(), inside.add({now[0], inside.integer(1, now[0]->type)}));
        return next;
      });
  after.erase(after.begin());
  return after;
}

Value* build_for(Builder& b, Value* first, Value* bound, Value* initial,
                 FunctionRef<Value*(Builder&, Value*, Value*)> body) {
  return build_for(b, first, bound, LoopValues{initial}, [&](Builder& inside, Value* index, const LoopValues& state) {
    return LoopValues{body(inside, index, state[0])};
  })[0];
}

LoopValues build_branch(Builder& b, Value* condition, const std::vector<ir::Type>& types,
                        FunctionRef<LoopValues(Builder&)> yes, FunctionRef<LoopValues(Builder&)> no) {
  const ir::Op* const branch = b.branch(condition, types);
  Builder first(b.module(), branch->blocks[0], b.loc), second(b.module(), branch->blocks[1], b.loc);
  first.yield(yes(first));
  second.yield(no(second));
  return branch->results;
}

Value* build_branch(Builder& b, Value* condition, const ir::Type& type, FunctionRef<Value*(Builder&)> yes,
                    FunctionRef<Value*(Builder&)> no) {
  return build_branch(
      b, condition, std::vector<ir::Type>{type}, [&](Builder& side) { return LoopValues{yes(side)}; },
      [&](Builder& side) { return LoopValues{no(side)}; })[0];
}

namespace {

Value* nest_from(Builder& b, Value* state, std::size_t depth, NestSize size, NestBody body, LoopValues& indices) {
  if (indices.size() == depth) return body(b, state, indices);
  Value* const bound = size(b, indices);
  return build_for(b, b.integer(0, bound->type), bound, state, [&](Builder& inside, Value* index, Value* now) {
    indices.push_back(index);
    Value* const next = nest_from(inside, now, depth, size, body, indices);
    indices.pop_back();
    return next;
  });
}

}  // namespace

Value* build_nest(Builder& b, Value* initial, std::size_t depth, NestSize size, NestBody body) {
  LoopValues indices;
  return nest_from(b, initial, depth, size, body, indices);
}

void remove_state(ir::Op* loop, std::size_t state) {
  const auto take = [&](std::vector<Value*>& values) {
    values.erase(values.begin() + static_cast<std::ptrdiff_t>(state));
  };
  const auto renumber = [&](const std::vector<Value*>& values) {
    for (std::size_t i = state; i < values.size(); ++i) values[i]->index = static_cast<std::uint32_t>(i);
  };
  take(loop->blocks[1]->yields());
  take(loop->operands);
  for (std::vector<Value*>* values : {&loop->results, &loop->blocks[0]->params, &loop->blocks[1]->params}) {
    take(*values);
    renumber(*values);
  }
}

}  // namespace lantern::passes
