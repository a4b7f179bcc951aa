// One piece of state of one loop at a time, inner loops first.
#include "lantern/compiler/passes/promote.hpp"

#include <algorithm>
#include <ranges>

#include "lantern/compiler/passes/analysis/index_form.hpp"
#include "lantern/compiler/passes/analysis/loop_state.hpp"
#include "lantern/compiler/passes/simplify.hpp"

namespace lantern::passes {

namespace {

class Promotion {
 public:
  Promotion(ir::Module& module, Op* loop, std::size_t state)
      : module_(module), loop_(loop), body_(loop->blocks[1]), state_(state) {}

  /// The tensor after the loop, if its element has become a number.
  Value* run(const BodyUses& uses) {
    const auto use = state_use(uses, loop_, state_);
    return use && !use->whole && !use->updates.empty() && one_element(*use) ? replace(uses, *use) : nullptr;
  }

 private:
  /// True where all accesses are to one element, whose index is to be had before the loop.
  bool one_element(const StateUse& use) const {
    if (std::ranges::any_of(use.updates, [&](const Op* op) { return op->parent != body_; })) return false;
    const Op& first = *use.updates.front();
    const auto rank = static_cast<std::size_t>(first.operands[0]->type.rank());
    for (std::size_t d = 1; d <= rank; ++d) {
      const IndexForm index = index_form(first.operands[d]);
      if (std::ranges::any_of(index.unknowns(), [&](const Unknown& v) { return made_in(v.value, body_); }) ||
          !can_be_made_before(first.operands[d]))
        return false;
      for (const Op* op : use.accesses())
        if (!(index_form(op->operands[d]) == index)) return false;
    }
    return in_range_at(first, *loop_);
  }

  bool can_be_made_before(const Value* v) const {
    return !made_in(v, body_) ||
           (v->def && ir::info(v->def->code).effect == ir::Effect::none && v->def->blocks.empty() &&
            std::ranges::all_of(v->def->operands, [&](const Value* o) { return can_be_made_before(o); }));
  }

  Value* made_before(ir::Builder& b, Value* v) {
    if (!made_in(v, body_)) return v;
    std::vector<Value*> operands;
    for (Value* o : v->def->operands) operands.push_back(made_before(b, o));
    Op* const copy = b.op(v->def->code, std::move(operands), {v->type});
    copy->number = v->def->number;
    copy->integer = v->def->integer;
    return copy->result();
  }

  Value* replace(const BodyUses& uses, const StateUse& use) {
    Value* const tensor = loop_->operands[state_];
    const ir::Type element(tensor->type.element());
    const auto rank = tensor->type.rank();

    // s = x[i] before the loop, and x[i] = s after it.
    Block* const around = loop_->parent;
    const auto at = std::ranges::find(around->ops, loop_) - around->ops.begin();
    std::vector<Op*> rest(around->ops.begin() + at + 1, around->ops.end());
    around->ops.resize(static_cast<std::size_t>(at));
    ir::Builder b(module_, around);
    b.loc = use.updates.front()->loc;
    std::vector<Value*> place{tensor};
    for (int d = 1; d <= rank; ++d)
      place.push_back(made_before(b, use.updates.front()->operands[static_cast<std::size_t>(d)]));
    loop_->operands[state_] = b.emit(Opcode::get_, place);
    around->ops.push_back(loop_);
    Value* const before = loop_->results[state_];
    Value* const number = module_.new_value(element);
    number->def = loop_;
    number->block = around;
    number->index = before->index;
    loop_->results[state_] = number;
    place.push_back(number);
    Value* const after = b.emit(Opcode::set_, place);
    after->name = before->name;
    around->ops.insert(around->ops.end(), rest.begin(), rest.end());
    ir::walk(around, [&](Op* op) { std::ranges::replace(op->operands, before, after); });

    // In a trip: what the element is now.
    for (const Block* block : loop_->blocks) block->params[state_]->type = element;
    Value* now = body_->params[state_];
    std::unordered_map<const Value*, Value*> names;
    std::unordered_set<const Op*> gone;
    for (Value* v : use.values) {
      if (v->def) {
        Op* const update = v->def;
        if (update->is(Opcode::set_)) {
          now = update->operands.back();
          gone.insert(update);
        } else {
          update->code = Opcode::add_;
          update->operands = {now, update->operands.back()};
          v->type = element;
          now = v;
        }
      }
      for (const auto& [op, operand] : uses.of(v)) {
        if (op->is(Opcode::dim_) || op->is(Opcode::zeros_like_)) op->operands[operand] = tensor;
        if (!op->is(Opcode::get_) || operand != 0) continue;
        names[op->result()] = now;
        gone.insert(op);
      }
    }
    body_->ops.back()->operands[state_] = now;
    const auto named = [&](Value* v) {
      for (auto it = names.find(v); it != names.end(); it = names.find(v)) v = it->second;
      return v;
    };
    std::vector<Block*> blocks{body_};
    ir::walk(body_, [&](Op* op) {
      for (Value*& v : op->operands) v = named(v);
      blocks.insert(blocks.end(), op->blocks.begin(), op->blocks.end());
    });
    for (Block* block : blocks) std::erase_if(block->ops, [&](const Op* op) { return gone.contains(op); });
    return after;
  }

  ir::Module& module_;
  Op* loop_;
  Block* body_;
  std::size_t state_;
};

}  // namespace

namespace {

std::vector<Value*> promote_one(ir::Module& module, Op* loop) {
  std::vector<Value*> results = loop->results;
  if (loop->integer != 0) return results;  // a bound on memory
  std::optional<BodyUses> uses;
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (!loop->operands[i]->type.is_tensor()) continue;
    if (!uses) uses.emplace(loop);
    Value* const after = Promotion(module, loop, i).run(*uses);
    if (!after) continue;
    results[i] = after;
    uses.reset();
  }
  return results;
}

}  // namespace

std::vector<Value*> promote(ir::Module& module, Op* loop) {
  std::vector<Op*> inside;
  ir::walk(loop->blocks[1], [&](Op* op) {
    if (op->is(Opcode::loop_)) inside.push_back(op);
  });
  for (Op* inner : inside | std::views::reverse) promote_one(module, inner);
  return promote_one(module, loop);
}

void promote(ir::Module& module) {
  bool any = false;
  for (ir::Function* f : module.functions()) {
    if (!is_direct(*f)) continue;
    for (Op* loop : loops_in(*f) | std::views::reverse) {
      const std::vector<Value*> before = loop->results;
      any |= promote_one(module, loop) != before;
    }
  }
  if (any) simplify(module);
}

}  // namespace lantern::passes
