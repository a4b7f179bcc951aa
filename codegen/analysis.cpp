// Facts about a module that printing needs.
#include "lantern/codegen/analysis.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "lantern/codegen/c/prelude.hpp"
#include "lantern/ir/checkpoint.hpp"
#include "lantern/ir/error.hpp"
#include "lantern/ir/notation.hpp"
#include "lantern/ir/shape.hpp"

namespace lantern::codegen {

bool owns_memory(const ir::Type& type) {
  return type.is_tensor() || (type.is_ref() && type.content().is_tensor());
}

std::vector<const ir::Function*> reachable(const ir::Module& module) {
  if (!module.entry) throw InternalError("a module without entry");
  std::vector<const ir::Function*> order;
  std::unordered_set<const ir::Function*> seen{module.entry};
  struct Visit {
    const ir::Function* function;
    std::vector<const ir::Function*> callees;
    std::size_t next = 0;
  };
  const auto visit = [](const ir::Function* f) {
    Visit v{f, {}, 0};
    ir::walk(f->body, [&](const Op* op) {
      if (op->callee) v.callees.push_back(op->callee);
    });
    return v;
  };
  std::vector<Visit> stack{visit(module.entry)};
  while (!stack.empty()) {
    Visit& top = stack.back();
    if (top.next == top.callees.size()) {
      order.push_back(top.function);
      stack.pop_back();
      continue;
    }
    const ir::Function* callee = top.callees[top.next++];
    if (seen.insert(callee).second) stack.push_back(visit(callee));
  }
  return order;
}

Escapes::Escapes(const std::vector<const ir::Function*>& functions) {
  const auto size = [](const ir::Type& type) -> std::int64_t {
    if (type.is_vector()) return taped_bytes(type);
    switch (type.kind()) {
      case ir::Kind::boolean:
        return 1;
      case ir::Kind::i32:
      case ir::Kind::f32:
        return 4;
      default:
        return 8;
    }
  };
  for (const ir::Function* f : functions) {
    ir::walk(f->body, [&](const Op* op) {
      if (!op->is(Opcode::push_, Opcode::pop_)) return;
      for (const ir::Value* v : op->operands) tape_sizes_[op->integer].insert(size(v->type));
    });
    for (const auto& [tape, n] : (own_[f] = own(f->body)).tape_uses) tape_uses_[tape] += n;
  }
  // Callees come first, so that few rounds suffice.
  for (bool changed = true; changed;) {
    changed = false;
    for (const ir::Function* f : functions)
      if (!from(f) && from(f->body)) changed = functions_.insert(f).second;
  }
}

Escapes::Own Escapes::own(ir::Block* body) {
  Own found;
  ir::walk(body, [&](const Op* op) {
    if (ir::is_on_tape(*op)) {
      ++found.tape_uses[op->integer];
      for (const ir::Value* v : op->operands)
        if (owns_memory(v->type) && !ir::owns_elements(*op)) found.tensor_tapes.insert(op->integer);
    }
    found.cell |= op->is(Opcode::ref_set_) && owns_memory(op->operands[1]->type);
    found.jump |= op->is(Opcode::jump_);
  });
  return found;
}

bool Escapes::from(ir::Block* body) const {
  Own all = own(body);
  const auto called = ir::callees(body);
  // A function that calls itself may push in one call what it pops in another.
  const bool recursive = called.contains(body->function);
  if (recursive && std::ranges::any_of(called, [&](const ir::Function* f) { return from(f); })) return true;
  for (const ir::Function* f : called) {
    const auto its = own_.find(f);
    if (its == own_.end()) continue;
    all.cell |= its->second.cell;
    all.jump |= its->second.jump;
    if (recursive) continue;
    for (const auto& [tape, n] : its->second.tape_uses) all.tape_uses[tape] += n;
    all.tensor_tapes.insert(its->second.tensor_tapes.begin(), its->second.tensor_tapes.end());
  }
  // A continuation may be anything that the module holds.
  if (all.cell || (all.jump && !functions_.empty())) return true;
  // Whoever holds all uses of a tape, in what it calls too, pops what it pushes.
  return std::ranges::any_of(
      all.tensor_tapes, [&](std::int64_t tape) { return all.tape_uses.at(tape) != tape_uses_.at(tape); });
}

int Escapes::tape_uses(std::int64_t tape) const {
  const auto it = tape_uses_.find(tape);
  return it == tape_uses_.end() ? 0 : it->second;
}

std::int64_t Escapes::tape_slot(std::int64_t tape) const {
  const auto it = tape_sizes_.find(tape);
  return it == tape_sizes_.end() || it->second.size() <= 1 ? 0 : 8;
}

namespace {

/// Follows a value back. What was found is kept: of nested branches each asks for what is inside twice.
class MemoryRoots {
 public:
  /// `views`: reshapes are looked behind too.
  explicit MemoryRoots(bool views = false) : views_(views) {}

  /// `depth`: of the calls that are looked into; functions may call themselves.
  const ir::Value* of(const ir::Value* v, int depth = 0) {
    const auto found = known_.find({v, depth});
    if (found != known_.end()) return found->second;
    const ir::Value* const root = follow(v, depth);
    return known_[{v, depth}] = root;
  }

 private:
  const ir::Value* follow(const ir::Value* v, int depth) {
    constexpr int deepest = 4;
    while (v->def) {
      const Op& op = *v->def;
      if (op.is(Opcode::call_)) {
        const ir::Block* body = op.callee->body;
        if (op.callee->cps || depth == deepest) return v;
        const ir::Value* root = of(body->ops.back()->operands[v->index], depth + 1);
        if (root->def || root->block != body) return v;
        v = op.operands[root->index];
      } else if (op.is(Opcode::loop_)) {
        const ir::Block* body = op.blocks[1];
        if (of(body->ops.back()->operands[v->index], depth) != body->params[v->index]) return v;
        v = op.operands[v->index];
      } else if (op.is(Opcode::branch_)) {
        const ir::Value* root = of(op.blocks[0]->ops.back()->operands[v->index], depth);
        if (root != of(op.blocks[1]->ops.back()->operands[v->index], depth)) return v;
        v = root;
      } else if (op.in_place || (views_ && op.is(Opcode::reshape_))) {
        v = op.operands[0];
      } else {
        return v;
      }
    }
    return v;
  }

  bool views_;
  std::map<std::pair<const ir::Value*, int>, const ir::Value*> known_;
};

}  // namespace

const ir::Value* memory_root(const ir::Value* v) { return MemoryRoots().of(v); }
const ir::Value* storage_root(const ir::Value* v) { return MemoryRoots(true).of(v); }

bool keeps_memory(const Op& loop, std::size_t state) {
  const ir::Block* body = loop.blocks[1];
  return memory_root(body->ops.back()->operands[state]) == body->params[state];
}

bool begins_with_zeros(const Op& product, const LiveUses& uses) {
  const ir::Value* base = product.operands[0];
  if (!product.in_place || !base->def || !base->def->is(Opcode::fill_) || base->block != product.parent ||
      !uses.only_reader(base))
    return false;
  const Op* value = base->def->operands[0]->def;
  return value && value->is(Opcode::constant_) && value->number == 0 && !std::signbit(value->number);
}

bool adds_to_zeros(const Op& product, const LiveUses& uses) {
  if (!begins_with_zeros(product, uses)) return false;
  if (product.is(Opcode::gemm_)) {  // a part of a tensor may be all of it
    const auto& fill = product.operands[0]->def->operands;
    const auto& o = product.operands;
    const Op* const start = o[4]->def;
    return fill.size() == 3 && start && start->is(Opcode::constant_) && start->integer == 0 &&
           o[5] == fill[2] && o[12] == fill[1] && o[13] == fill[2];
  }
  const ir::Notation n = *ir::concrete_notation(product);
  return std::ranges::all_of(n.result, [](const ir::Subscript& s) { return s.is_letter(); });
}

bool stays_out_of_line(const ir::Function& f) {
  constexpr std::size_t longest_inlined = 200, loop_weight = 40;
  if (f.body->ops.size() > longest_inlined) return true;
  std::size_t sum = 0;
  ir::walk(f.body, [&](const Op* op) { sum += op->is(Opcode::loop_) ? loop_weight : 1; });
  return sum > longest_inlined;
}

}  // namespace lantern::codegen
