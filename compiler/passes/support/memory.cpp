// Bounds on memory.
#include "lantern/compiler/passes/support/memory.hpp"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace lantern::passes {

namespace {

using ir::Builder;

/// Of what a loop works on the first few tensors; a bound may be too low.
constexpr std::size_t most_tensors = 8;

/// Tensors from outside that a loop starts from or reads.
std::vector<Value*> tensors_of(const Op* loop) {
  std::vector<Value*> list;
  std::unordered_set<const Value*> met;
  const auto add = [&](Value* v) {
    if (v->type.is_tensor() && !v->type.is_vector() && ir::visible_from(v, loop->parent) &&
        met.insert(v).second && list.size() < most_tensors)
      list.push_back(v);
  };
  for (Value* v : loop->operands) add(v);
  for (Block* block : loop->blocks)
    ir::walk(block, [&](const Op* op) {
      for (Value* v : op->operands) add(v);
    });
  return list;
}

Value* as_number(Builder& b, Value* v) {
  return b.emit(Opcode::cast_, {v}, static_cast<std::int64_t>(ir::Kind::f64));
}

/// Gives a copy of a loop tapes of its own, in place of those that only the loop works on.
void separate_tapes(ir::Module& module, const Op* loop, Op* copy) {
  std::unordered_map<std::int64_t, std::int64_t> own;
  const auto inside = [&](const Op* of, const auto& each) {
    for (Block* b : of->blocks)
      ir::walk(b, [&](Op* op) {
        if (is_on_tape(*op)) each(op);
      });
  };
  inside(copy, [&](const Op* op) { own[op->integer]; });
  if (own.empty()) return;
  for (const ir::Function* f : module.functions())
    ir::walk(f->body, [&](const Op* op) {
      if (is_on_tape(*op)) own.erase(op->integer);
      return op != loop && op != copy;
    });
  for (auto& [tape, number] : own) number = module.new_tape();
  inside(copy, [&](Op* op) {
    if (const auto it = own.find(op->integer); it != own.end()) op->integer = it->second;
  });
}

}  // namespace

std::int64_t element_bytes(ir::Kind kind) {
  return kind == ir::Kind::boolean ? 1 : kind == ir::Kind::i32 || kind == ir::Kind::f32 ? 4 : 8;
}

Value* elements_of_sizes(Builder& b, const std::vector<Value*>& sizes) {
  Value* all = nullptr;
  for (Value* size : sizes) all = all ? b.mul({all, as_number(b, size)}) : as_number(b, size);
  return all ? all : b.number(1);
}

Value* elements_of(Builder& b, Value* tensor) {
  return elements_of_sizes(b, b.sizes(tensor));
}

Value* may_take(Builder& b, Value* numbers, const Op* loop) {
  Value* held = nullptr;
  for (Value* t : tensors_of(loop)) {
    Value* const n = elements_of(b, t);
    held = held ? b.add({held, n}) : n;
  }
  Value* most = b.number(least_memory);
  if (held) most = b.emit(Opcode::max_, {most, b.mul({held, b.number(memory_factor)})});
  return b.le({numbers, most});
}

void put_before(Block* scratch, Op* loop) {
  Builder::before(loop).take(std::exchange(scratch->ops, {}));
}

Op* put_behind(Value* condition, Op* loop) {
  Builder b = Builder::before(loop);
  Op* const branch = b.branch(condition, ir::types_of(loop->results));
  for (std::size_t i = 0; i < loop->results.size(); ++i) branch->results[i]->name = loop->results[i]->name;
  ir::replace_uses(b.block(), ir::pairs(loop->results, branch->results));
  std::erase(b.block()->ops, loop);
  b.set_block(branch->blocks[0]);
  b.take(loop);
  b.yield(loop->results);
  return branch;
}

Op* keep_alternative(ir::Module& module, Op* loop, Value* condition) {
  Op* const branch = put_behind(condition, loop);
  Renaming names;
  Builder no(module, branch->blocks[1], loop->loc);
  Op* const copy = ir::clone(no, *loop, names);
  no.yield(copy->results);
  separate_tapes(module, loop, copy);
  return branch;
}

}  // namespace lantern::passes
