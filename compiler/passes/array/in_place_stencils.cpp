// Reads of what a loop started from become reads of its state.
#include "lantern/compiler/passes/array/in_place_stencils.hpp"

#include <algorithm>
#include <array>
#include <ranges>
#include <unordered_map>
#include <utility>

#include "lantern/compiler/passes/analysis/index_form.hpp"
#include "lantern/compiler/passes/analysis/def_chain.hpp"
#include "lantern/compiler/passes/analysis/loops.hpp"

namespace lantern::passes {

namespace {

/// Reads of what a loop started from, each where the iteration, or one of a loop inside, has changed nothing yet.
class InPlaceRestoration {
 public:
  InPlaceRestoration(Op* loop, std::size_t state, const Uses& all)
      : loop_(loop), state_(state), start_(loop->operands[state]), all_(all) {}

  void run() {
    if (!start_->type.is_tensor() || (!start_->def && !start_->block->parent)) return;
    std::vector<Op*> reads;
    for (const auto& [op, operand] : all_.of(start_)) {
      if ((op == loop_ && operand == state_) || op->is(Opcode::dim_) || on_other_side(op)) continue;
      if (!op->is(Opcode::get_) || !made_in(op->result(), loop_->blocks[1])) return;
      reads.push_back(op);
    }
    if (reads.empty() || !versions_.collect_defs(loop_, state_) || versions_.writes.empty()) return;
    std::vector<Value*> now;
    for (const Op* read : reads) {
      now.push_back(at_start_of_iteration(*read));
      if (!now.back()) return;
    }
    for (std::size_t i = 0; i < reads.size(); ++i) reads[i]->operands[0] = now[i];
    const bool unchanged = std::ranges::all_of(reads, [&](const Op* read) {
      return std::ranges::all_of(versions_.writes,
                                 [&](const Op* w) { return is_independent_of(*read, *w, loop_, Iteration::earlier); });
    });
    for (Op* read : reads)
      if (!unchanged) read->operands[0] = start_;
  }

 private:
  /// True for what is on the other side of a branch than the loop, so that only one of them runs after the start is made.
  bool on_other_side(const Op* use) const {
    std::unordered_map<const Op*, const Block*> sides;
    for (const Block* b = loop_->parent; b != start_->block; b = b->parent->parent) {
      if (!b->parent || !b->parent->is(Opcode::branch_)) break;
      sides[b->parent] = b;
    }
    for (const Block* b = use->parent; b && b->parent; b = b->parent->parent)
      if (const auto side = sides.find(b->parent); side != sides.end()) return side->second != b;
    return false;
  }

  /// The tensor as the iteration finds it that reads it; null where it may have been changed in the iteration.
  Value* at_start_of_iteration(const Op& read) const {
    const Block* const body = read.parent;
    if (!body->parent || !body->parent->is(Opcode::loop_)) return nullptr;
    Value* tensor = nullptr;
    for (Value* p : body->params)
      if (versions_.values.contains(p)) tensor = p;
    for (const Op* op : body->ops) {
      if (op == &read) return tensor;
      if (std::ranges::any_of(op->results, [&](const Value* r) { return versions_.values.contains(r); }))
        return nullptr;
    }
    return nullptr;
  }

  Op* loop_;
  std::size_t state_;
  Value* start_;
  const Uses& all_;
  DefChain versions_;
};

/// A sum of adjoints that starts from zeros beside a tensor of adjoints, both carried by a loop and by those inside it.
class JointAdjoints {
 public:
  JointAdjoints(Op* loop, std::size_t tensor, std::size_t sum) { fits_ = descend(loop, tensor, sum); }

  /// Adds to the tensor instead; whether that may be done.
  bool run() {
    if (!fits_ || std::ranges::any_of(sums_, [&](const Op* add) { return meets_later(*add); })) return false;
    Value *&tensor = yields_->at(tensor_), *&sum = yields_->at(sum_);
    sums_.front()->operands[0] = tensor;
    tensor = std::exchange(sum, start_);
    return true;
  }

 private:
  bool descend(Op* loop, std::size_t tensor, std::size_t sum) {
    Block* const body = loop->blocks[1];
    if (loop->integer != 0 || !counter_of(loop)) return false;
    nest_.push_back(loop);
    const Uses uses(loop);
    for (const std::size_t state : {tensor, sum})
      if (uses.count(loop->blocks[0]->params[state]) > 0) return false;
    Value* const t = body->yields()[tensor];
    Value* const s = body->yields()[sum];
    const std::size_t at[2] = {t->index, s->index};
    Value *const tensor_start = body->params[tensor], *const sum_start = body->params[sum];
    if (Op* const inner = s->def; inner && inner->is(Opcode::loop_))
      return t->def == inner && inner->operands[at[0]] == tensor_start && inner->operands[at[1]] == sum_start &&
             std::ranges::all_of(std::array{t, s, tensor_start, sum_start}, [&](Value* v) { return uses.once(v); }) &&
             descend(inner, at[0], at[1]);
    yields_ = &body->yields();
    tensor_ = tensor;
    sum_ = sum;
    start_ = sum_start;
    return sum_of_elements(uses, s) && uses_of_elements(uses, t, tensor_start);
  }

  /// Collects the additions to the second tensor. False where something reads one of its elements.
  bool sum_of_elements(const Uses& uses, Value* v) {
    for (; v != start_; v = v->def->operands[0]) {
      if (!v->def || !v->def->is(Opcode::add_at_) || v->block != start_->block || !uses.once(v)) return false;
      sums_.insert(sums_.begin(), v->def);
    }
    return uses.once(start_) && !sums_.empty();
  }

  /// The accesses to the tensor, all of them before the first sum.
  bool uses_of_elements(const Uses& uses, const Value* v, const Value* start) {
    for (;; v = v->def->operands[0]) {
      for (const auto& [op, operand] : uses.of(v))
        if (op->is(Opcode::get_))
          accesses_.push_back(op);
        else if (operand != 0 && !op->is(Opcode::yield_))
          return false;
        else if (!is_write(*op) && !op->is(Opcode::yield_))
          return false;
      if (v == start) break;
      if (!v->def || !is_write(*v->def) || v->block != start->block) return false;
      accesses_.push_back(v->def);
    }
    const auto& ops = start->block->ops;
    const auto first = std::ranges::find(ops, sums_.front());
    return std::ranges::all_of(accesses_, [&](const Op* op) { return std::find(ops.begin(), first, op) != first; });
  }

  /// Whether an iteration after this one accesses the element.
  bool meets_later(const Op& add) const {
    return std::ranges::any_of(accesses_, [&](const Op* access) {
      return std::ranges::any_of(nest_,
                                 [&](const Op* loop) { return !no_alias(*access, add, loop, Iteration::earlier); });
    });
  }

  bool fits_ = false;
  std::vector<const Op*> nest_;
  std::vector<Value*>* yields_ = nullptr;  ///< of the innermost loop
  std::size_t tensor_ = 0, sum_ = 0;
  Value* start_ = nullptr;
  std::vector<Op*> sums_;
  std::vector<const Op*> accesses_;
};

/// Of two results of a loop that are added, the one that starts from 0, or from -0 as marked adjoints do; null for others.
const Value* sum_from_zeros(const Op& sum, const Uses& uses) {
  const auto result = [&](const Value* v) { return v->def && v->def->is(Opcode::loop_) && uses.once(v); };
  if (!sum.is(Opcode::add_) || !sum.result()->type.is_tensor() || !result(sum.operands[0]) ||
      !result(sum.operands[1]) || sum.operands[0]->def != sum.operands[1]->def)
    return nullptr;
  for (const Value* v : sum.operands)
    if (is_zero(v->def->operands[v->index]) && v->type == sum.result()->type) return v;
  return nullptr;
}

}  // namespace

void in_place_adjoints(ir::Module& module) {
  for (ir::Function* f : module.functions()) {
    if (!is_direct(*f)) continue;
    const Uses uses(*f);
    Renaming joint;
    std::vector<Op*> done;
    ir::walk(f->body, [&](Op* op) {
      const Value* const sum = sum_from_zeros(*op, uses);
      if (!sum) return;
      const Value* const tensor = op->operands[op->operands[0] == sum ? 1 : 0];
      if (!(tensor->type == sum->type) || !JointAdjoints(sum->def, tensor->index, sum->index).run()) return;
      joint[op->result()] = const_cast<Value*>(tensor);
      done.push_back(op);
    });
    if (done.empty()) continue;
    erase(done);
    ir::replace_uses(f->body, joint);
  }
}

void in_place_stencils(ir::Module& module) {
  for (ir::Function* f : module.functions()) {
    if (!is_direct(*f)) continue;
    const Uses uses(*f);
    for (Op* loop : loops_in(*f))
      for (std::size_t i = 0; i < loop->operands.size(); ++i)
        if (loop->integer == 0) InPlaceRestoration(loop, i, uses).run();
  }
}

void in_place_stencils(Op* loop) {
  std::vector<Op*> loops{loop};
  for (const Block* b : loop->blocks)
    ir::walk(const_cast<Block*>(b), [&](Op* op) {
      if (op->is(Opcode::loop_)) loops.push_back(op);
    });
  const Uses uses(loop);
  for (Op* inner : std::views::reverse(loops))  // inner ones first
    for (std::size_t i = 0; i < inner->operands.size(); ++i) {
      const Value* const start = inner->operands[i];
      if (!start->def && start->block->parent && start->block->parent->is(Opcode::loop_)) InPlaceRestoration(inner, i, uses).run();
    }
}

}  // namespace lantern::passes
