// A walk over the blocks of the host: those outside of parallel loops.
#include "lantern/compiler/passes/schedule/device.hpp"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "lantern/compiler/passes/analysis/loops.hpp"
#include "lantern/ir/op.hpp"

namespace lantern::passes {

namespace {

using ir::Builder;

/// A scalar without effects, which may be computed again; a division of integers may fail.
bool is_pure_scalar(const Op& op) {
  if (op.results.size() != 1 || !op.result()->type.is_scalar() || op.result()->type.is_vector()) return false;
  if (ir::divides_integers(op)) return false;
  return ir::info(op.code).elementwise || op.is(Opcode::cast_);
}

class DeviceScalars {
 public:
  explicit DeviceScalars(ir::Function& f) : function_(f), uses_(f) {}

  void run() {
    std::vector<Op*> loops;
    std::vector<Block*> blocks;
    ir::walk(function_.body, [&](Op* op) {
      if (blocks.empty() || blocks.back() != op->parent)
        if (std::ranges::find(blocks, op->parent) == blocks.end()) blocks.push_back(op->parent);
      if (op->is(Opcode::loop_) && ir::is_parallel(*op)) {
        for (Value* v : op->results)
          if (v->type.is_scalar()) made_there_.insert(v);
        loops.push_back(op);
        return false;
      }
      if (op->is(Opcode::argmax_) || (op->is(Opcode::get_) && only_read(op->operands[0]))) made_there_.insert(op->result());
      if (is_pure_scalar(*op) && std::ranges::any_of(op->operands, [&](Value* v) { return made_there_.contains(v); }))
        made_there_.insert(op->result());
      return true;
    });
    for (Op* loop : loops) take_into(*loop);
    for (Block* block : blocks) delay(*block);
  }

 private:
  /// A tensor that nothing changes: an element is the same wherever it is read.
  bool only_read(const Value* t) const {
    return std::ranges::all_of(uses_.of(t), [](const ir::Use& use) {
      return use.op->is(Opcode::get_, Opcode::dim_, Opcode::forget_);
    });
  }

  bool copied(const Value* v) const {
    return made_there_.contains(v) && v->def && (is_pure_scalar(*v->def) || v->def->is(Opcode::get_));
  }

  /// The loop computes what it captures, where its iterations begin.
  void take_into(Op& loop) {
    Op* inner = &loop;
    while (Op* const next = only_loop(inner->blocks[1])) {
      if (!ir::is_parallel(*next)) break;
      inner = next;
    }
    Block* const body = inner->blocks[1];
    std::unordered_set<const Value*> own;
    ir::Renaming names;
    std::vector<std::pair<Op*, std::size_t>> places;
    ir::walk(body, [&](Op* op) {
      for (std::size_t i = 0; i < op->operands.size(); ++i)
        if (copied(op->operands[i])) places.emplace_back(op, i);
    });
    if (places.empty()) return;
    Builder b = Builder::before(body->ops.front());
    std::size_t left = 64;  // operations, at most, that an iteration does again
    for (const auto& [op, i] : places)
      if (Value* copy = copy_of(op->operands[i], b, names, left)) op->operands[i] = copy;
  }

  Value* copy_of(Value* v, Builder& b, ir::Renaming& names, std::size_t& left) {
    if (const auto it = names.find(v); it != names.end()) return it->second;
    if (!copied(v)) return v;
    if (left == 0) return nullptr;
    --left;
    std::vector<Value*> operands;
    for (Value* o : v->def->operands) {
      Value* copy = copy_of(o, b, names, left);
      if (!copy) return nullptr;
      operands.push_back(copy);
    }
    b.loc = v->def->loc;
    ir::clone_over(b, *v->def, std::move(operands), names);
    return names.at(v);
  }

  /// What the host computes of such numbers moves down to where it needs them.
  void delay(Block& block) {
    const Uses uses(function_);
    std::vector<Op*> order(block.ops.rbegin(), block.ops.rend());
    std::unordered_map<const Op*, std::size_t> place;
    for (std::size_t i = 0; i < block.ops.size(); ++i) place[block.ops[i]] = i;
    std::unordered_set<const Op*> dead;
    for (Op* op : order) {
      if (op->results.size() != 1 || !copied(op->result())) continue;
      std::size_t first = block.ops.size();
      for (const ir::Use& use : uses.of(op->result())) {
        if (dead.contains(use.op)) continue;
        const Op* at = use.op;
        while (at && at->parent != &block) at = at->parent->parent;
        if (at) first = std::min(first, place.at(at));
      }
      const std::size_t from = place.at(op);
      if (first == block.ops.size()) dead.insert(op);
      if (first == block.ops.size() || first <= from + 1) continue;
      const auto begin = block.ops.begin();
      std::rotate(begin + static_cast<std::ptrdiff_t>(from), begin + static_cast<std::ptrdiff_t>(from) + 1,
                  begin + static_cast<std::ptrdiff_t>(first));
      for (std::size_t i = from; i < first; ++i) place[block.ops[i]] = i;
    }
    std::erase_if(block.ops, [&](const Op* op) { return dead.contains(op); });
  }

  ir::Function& function_;
  Uses uses_;
  std::unordered_set<const Value*> made_there_;
};

}  // namespace

void device_scalars(ir::Module& module) {
  for (ir::Function* f : module.functions())
    if (is_direct(*f)) DeviceScalars(*f).run();
}

}  // namespace lantern::passes
