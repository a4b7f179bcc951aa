// Which loops write all of a tensor before anything reads it.
#include "lantern/compiler/passes/unfill.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "lantern/compiler/passes/loops.hpp"
#include "lantern/compiler/passes/simplify.hpp"

namespace lantern::passes {

namespace {

/// What made a tensor of one value: a `fill`, of zeros_like too. Null for others, and without a value.
const Op* fill_of(const Value* v) {
  while (v->def && v->def->is(Opcode::zeros_like_)) v = v->def->operands[0];
  if (!v->type.is_tensor() || !v->def || !v->def->is(Opcode::fill_)) return nullptr;
  const Value* with = v->def->operands[0];
  return with->type.is_scalar() ? v->def : nullptr;
}

bool has_value(const Value* filled) {
  if (!filled->def->is(Opcode::fill_)) return true;
  const Op* with = filled->def->operands[0]->def;
  return !with || !with->is(Opcode::undef_);
}

/// Memory for a tensor, before a loop.
Value* without_values(ir::Module& module, Op* loop, const Op* fill, const ir::Type& type) {
  Op* undef = module.new_op(Opcode::undef_, loop->parent);
  Op* memory = module.new_op(Opcode::fill_, loop->parent);
  undef->loc = memory->loc = fill->loc;
  memory->operands = fill->operands;
  memory->operands[0] = module.add_result(undef, ir::Type(type.element()));
  auto& ops = loop->parent->ops;
  ops.insert(std::find(ops.begin(), ops.end(), loop), {undef, memory});
  return module.add_result(memory, type);
}

/// The updates that a loop, with the loops in it, makes to one of its tensors in every trip.
class Writes {
 public:
  Writes(const Op* loop, std::size_t state, const Op* fill)
      : uses_(loop), sizes_(fill->operands.begin() + 1, fill->operands.end()) {
    understood_ = collect(loop, state);
  }

  /// True where they leave no element as it was, and nothing else uses the tensor meanwhile.
  bool cover_all() const { return understood_ && covered_; }

 private:
  bool collect(const Op* loop, std::size_t state) {
    const auto count = counted(loop);
    const Block* body = loop->blocks[1];
    if (!count || !uses_.of(loop->blocks[0]->params[state]).empty()) return false;
    const Op* first = constant(loop->operands[count->index]);
    if (!first || first->integer != 0) return false;
    bounds_[body->params[count->index]] = count->bound;
    for (const Value* v = body->params[state];;) {
      const auto& all = uses_.of(v);
      if (all.size() != 1 || all[0].op->parent != body) return false;
      const auto [op, operand] = all[0];
      if (op->is(Opcode::yield_)) {
        bounds_.erase(body->params[count->index]);
        return operand == state;
      }
      if (operand == 0 && op->is(Opcode::set_)) {
        note(*op);
        v = op->result();
      } else if (op->is(Opcode::loop_) && collect(op, operand)) {
        v = op->results[operand];
      } else {
        return false;
      }
    }
  }

  /// One update. The loops around it run over whole dimensions, all of them: or where one makes no trip,
  /// elements would be left.
  void note(const Op& set) {
    std::set<const Value*> loops;
    std::vector<const Value*> place;  ///< the loops' indices, and null at the constant
    std::size_t at = 0;
    const Op* number = nullptr;
    for (std::size_t i = 0; i < sizes_.size(); ++i) {
      const Value* index = set.operands[i + 1];
      const auto bound = bounds_.find(index);
      if (bound != bounds_.end() && same_number(bound->second, sizes_[i]) && loops.insert(index).second) {
        place.push_back(index);
      } else if (!number && constant(index)) {
        number = constant(index);
        place.push_back(nullptr);
        at = i;
      } else {
        return;
      }
    }
    if (loops.size() != bounds_.size()) return;
    if (!number) {
      covered_ = true;
      return;
    }
    const Op* size = constant(sizes_[at]);
    if (!size || number->integer < 0 || number->integer >= size->integer) return;
    auto& numbers = numbers_[place];
    numbers.insert(number->integer);
    covered_ |= static_cast<std::int64_t>(numbers.size()) == size->integer;
  }

  BodyUses uses_;
  std::vector<Value*> sizes_;
  std::map<const Value*, const Value*> bounds_;  ///< of the loops around what is looked at, by index
  std::map<std::vector<const Value*>, std::set<std::int64_t>> numbers_;
  bool understood_ = false, covered_ = false;
};

}  // namespace

void unfill(ir::Module& module) {
  bool any = false;
  for (ir::Function* f : module.functions()) {
    if (!is_direct(*f)) continue;
    std::vector<Op*> loops;
    ir::walk(f->body, [&](Op* op) {
      if (op->is(Opcode::loop_)) loops.push_back(op);
    });
    for (Op* loop : loops)
      for (std::size_t i = 0; i < loop->operands.size(); ++i) {
        const Value* start = loop->operands[i];
        const Op* fill = fill_of(start);
        if (!fill || !has_value(start) || !Writes(loop, i, fill).cover_all()) continue;
        loop->operands[i] = without_values(module, loop, fill, start->type);
        any = true;
      }
  }
  if (any) eliminate_dead(module);
}

}  // namespace lantern::passes
