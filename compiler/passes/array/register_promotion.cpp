// One piece of state of one loop at a time, inner loops first.
#include "lantern/compiler/passes/array/register_promotion.hpp"

#include <algorithm>
#include <ranges>
#include <unordered_set>

#include "lantern/compiler/passes/analysis/loop_state.hpp"
#include "lantern/compiler/passes/analysis/def_chain.hpp"
#include "lantern/compiler/passes/canonical/simplify.hpp"
#include "lantern/compiler/passes/support/build_loop.hpp"
#include "lantern/compiler/passes/support/memory.hpp"
#include "lantern/ir/clone.hpp"

namespace lantern::passes {

namespace {

class Promotion {
 public:
  Promotion(ir::Module& module, Op* loop, std::size_t state)
      : module_(module), loop_(loop), body_(loop->blocks[1]), state_(state) {}

  /// Whether the element has become a number; then `results`, which represent the loop's, are brought up to
  /// date.
  bool run(const Uses& uses, std::vector<Value*>& results) {
    const auto use = state_use(uses, loop_, state_);
    if (!use || use->updates.empty() || !use->is_straight(loop_) || !one_element(*use)) return false;
    if (!in_range_at(*use->updates.front(), *loop_)) ask_for_an_iteration(results);
    Value* const before = loop_->results[state_];
    Value* const after = replace(uses, *use);
    std::ranges::replace(results, before, after);
    return true;
  }

 private:
  /// True where one element is changed, whose index is to be had before the loop; others are only read.
  bool one_element(const LoopStateSummary& use) {
    const Op& first = *use.updates.front();
    const auto rank = static_cast<std::size_t>(first.operands[0]->type.rank());
    for (std::size_t d = 1; d <= rank; ++d)
      if (!made_outside(index_form(first.operands[d]), body_) || !can_be_made_before(first.operands[d])) return false;
    if (!std::ranges::all_of(use.updates, [&](const Op* op) { return same_place(*op, first); })) return false;
    for (const Op* op : use.reads)
      if (!same_place(*op, first)) {
        if (!no_alias(*op, first)) return false;
        others_.insert(op);
      }
    return true;
  }

  /// loop    becomes    if (there is an iteration) loop else the state as it was
  void ask_for_an_iteration(std::vector<Value*>& results) {
    ir::Builder b = ir::Builder::before(loop_);
    Op* const branch = put_behind(first_condition(b, loop_), loop_);
    const Renaming now = ir::pairs(loop_->results, branch->results);
    for (Value*& v : results) v = ir::renamed(now, v);
    b.set_block(branch->blocks[1]);
    b.yield(loop_->operands);
  }

  bool can_be_made_before(const Value* v) const {
    return !made_in(v, body_) ||
           (v->def && is_pure(*v->def) &&
            std::ranges::all_of(v->def->operands, [&](const Value* o) { return can_be_made_before(o); }));
  }

  Value* replace(const Uses& uses, const LoopStateSummary& use) {
    Value* const tensor = loop_->operands[state_];
    const ir::Type element(tensor->type.element());

    // s = x[i] before the loop, and x[i] = s after it.
    ir::Builder b = ir::Builder::before(loop_), behind = ir::Builder::after(loop_);
    b.loc = behind.loc = use.updates.front()->loc;
    std::vector<Value*> place{tensor};
    Renaming before_loop;
    for (std::size_t d = 1; d <= tensor->type.dims().size(); ++d)
      place.push_back(ir::clone_value(
          b, use.updates.front()->operands[d], [&](const Value* v) { return made_in(v, body_); }, before_loop));
    loop_->operands[state_] = b.emit(Opcode::get_, place);
    Value* const before = loop_->results[state_];
    Value* const number = module_.new_value(element);
    number->def = loop_;
    number->block = loop_->parent;
    number->index = before->index;
    loop_->results[state_] = number;
    place.push_back(number);
    Value* const after = behind.emit(Opcode::set_, place);
    after->name = before->name;
    ir::replace_uses(loop_->parent, before, after);

    // In an iteration: what the element is now.
    for (const Block* block : loop_->blocks) block->params[state_]->type = element;
    Value* now = body_->params[state_];
    Renaming names;
    std::vector<Op*> gone;
    for (Value* v : use.values) {
      if (v->def) {
        Op* const update = v->def;
        if (update->is(Opcode::set_)) {
          now = update->operands.back();
          gone.push_back(update);
        } else {
          update->code = Opcode::add_;
          update->operands = {now, update->operands.back()};
          v->type = element;
          now = v;
        }
      }
      for (const auto& [op, operand] : uses.of(v)) {
        if (op->is(Opcode::dim_, Opcode::zeros_like_)) op->operands[operand] = tensor;
        if (!op->is(Opcode::get_) || operand != 0) continue;
        if (others_.contains(op)) {
          op->operands[0] = tensor;
          continue;
        }
        names[op->result()] = now;
        gone.push_back(op);
      }
    }
    body_->ops.back()->operands[state_] = now;
    ir::replace_uses(body_, names);
    erase(gone);
    return after;
  }

  ir::Module& module_;
  Op* loop_;
  Block* body_;
  std::size_t state_;
  std::unordered_set<const Op*> others_;  ///< read elements that the loop does not change
};

}  // namespace

namespace {

/// Sums in elements of an adjoint, one element at a time.
class SumPromotion {
 public:
  SumPromotion(ir::Module& module, Op* loop, std::size_t state)
      : module_(module), loop_(loop), body_(loop->blocks[1]), state_(state) {}

  bool run() {
    const Uses uses(loop_);
    const auto use = state_use(uses, loop_, state_);
    if (!use || use->whole) return false;
    for (const Op* op : use->updates) {
      if (!is_element(*op) || !(use->is_pure_accumulation() || is_only_added_to(*op, *use))) continue;
      std::vector<Op*> same;
      for (const Value* v : use->values)
        if (v->def && is_there(*v->def, *op)) same.push_back(v->def);
      replace(same);
      return true;
    }
    return false;
  }

 private:
  std::size_t rank() const { return static_cast<std::size_t>(loop_->operands[state_]->type.rank()); }

  /// An element of a derivative's, in every iteration of the loop the same.
  bool is_element(const Op& op) const {
    return op.parent == body_ && is_sum_of_adjoints(op) &&
           std::all_of(op.operands.begin() + 1, op.operands.end() - 1,
                       [&](const Value* v) { return constant(v) || !made_in(v, body_); });
  }
  /// True where all other accesses to the tensor certainly reach other elements, or add to adjoints as well: the order of
  /// these sums is free, so that it does not matter whether some of them reach this element.
  bool is_only_added_to(const Op& element, const LoopStateSummary& use) const {
    return std::ranges::all_of(use.accesses(), [&](const Op* other) {
      return is_sum_of_adjoints(*other) || no_alias(*other, element);
    });
  }
  static bool is_sum_of_adjoints(const Op& op) { return op.is(Opcode::add_at_) && op.loc.part == ir::Part::backward; }
  bool is_there(const Op& op, const Op& first) const {
    return op.parent == body_ && op.is(Opcode::add_at_) && same_place(op, first);
  }

  void replace(const std::vector<Op*>& updates) {
    const ir::Type element(loop_->operands[state_]->type.element());
    const bool in_range = in_range_at(*updates.front(), *loop_);
    const auto& around = loop_->parent->ops;
    const std::vector<Op*> rest(std::ranges::find(around, loop_) + 1, around.end());
    ir::Builder b = ir::Builder::before(loop_), behind = ir::Builder::after(loop_);
    b.loc = behind.loc = updates.front()->loc;
    Value* sum = nullptr;
    Value* const has_iterations = in_range ? nullptr : first_condition(b, loop_);
    loop_->operands.push_back(b.number(-0.0, element));
    for (Block* block : loop_->blocks) sum = module_.add_param(block, element);
    Value* const total = module_.add_result(loop_, element);
    const auto added = [&](ir::Builder& to) {
      std::vector<Value*> place{loop_->results[state_]};
      for (std::size_t d = 1; d <= rank(); ++d) place.push_back(made_here(to, updates.front()->operands[d]));
      place.push_back(total);
      return to.emit(Opcode::add_at_, place);
    };
    Value* after = nullptr;
    if (has_iterations) {
      // The element need not exist where the loop has no iteration.
      Value* const before = loop_->results[state_];
      after = build_branch(behind, has_iterations, before->type, added, [&](ir::Builder&) { return before; });
    } else {
      after = added(behind);
    }
    for (Op* op : rest) replace_in(op, loop_->results[state_], after);

    for (Op* op : updates) {
      Value* const result = op->result();
      for (Op* other : body_->ops)
        if (other != op) replace_in(other, result, op->operands[0]);
      op->code = Opcode::add_;
      op->operands = {sum, op->operands.back()};
      result->type = element;
      sum = result;
    }
    body_->ops.back()->operands.push_back(sum);
  }

  static void replace_in(Op* op, Value* from, Value* to) {
    std::ranges::replace(op->operands, from, to);
    for (Block* block : op->blocks)
      ir::walk(block, [&](Op* o) { std::ranges::replace(o->operands, from, to); });
  }

  ir::Module& module_;
  Op* loop_;
  Block* body_;
  std::size_t state_;
};

std::vector<Value*> promote_one(ir::Module& module, Op* loop) {
  std::vector<Value*> results = loop->results;
  if (loop->integer != 0) return results;  // a bound on memory
  std::optional<Uses> uses;
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (!loop->operands[i]->type.is_tensor()) continue;
    if (!uses) uses.emplace(loop);
    if (Promotion(module, loop, i).run(*uses, results)) uses.reset();
  }
  return results;
}

}  // namespace

std::vector<Value*> register_promotion(ir::Module& module, Op* loop) {
  for (Op* inner : loops_in(loop->blocks[1]) | std::views::reverse) promote_one(module, inner);
  return promote_one(module, loop);
}

void register_promotion(ir::Module& module) {
  bool any = false;
  for (ir::Function* f : module.functions()) {
    if (!is_direct(*f)) continue;
    for (Op* loop : loops_in(*f) | std::views::reverse) {
      const std::vector<Value*> before = loop->results;
      any |= promote_one(module, loop) != before;
      for (std::size_t i = 0; i < loop->operands.size() && loop->integer == 0; ++i)
        while (loop->operands[i]->type.is_tensor() && SumPromotion(module, loop, i).run()) any = true;
    }
  }
  if (any) simplify(module);
}

}  // namespace lantern::passes
