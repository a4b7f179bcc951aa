// Copies of an iteration's operations, at other iterations' indices.
#include "lantern/compiler/passes/array/iteration_cloner.hpp"

#include <algorithm>
#include <unordered_set>

#include "lantern/ir/clone.hpp"
#include "lantern/ir/library_function.hpp"

namespace lantern::passes {

std::optional<IterationRange> iteration_range(const Op* loop) {
  if (!loop->is(Opcode::loop_) || loop->integer != 0 || !ends_by_comparison(loop)) return {};
  const auto count = counts(loop);
  if (!count) return {};
  return IterationRange{count->index, count->number, count->down ? 1 : 0, count->down ? Offset() : offset(count->first),
                        offset(count->bound)};
}

bool is_rematerialisable(std::vector<const Value*> values, const std::function<bool(const Value*)>& inside,
                         const std::function<bool(const Value*)>& counts, const std::function<bool(const Op&)>& unchanged,
                         bool popped) {
  constexpr std::size_t most_cloned = 300;
  std::unordered_set<const Op*> seen;
  while (!values.empty()) {
    const Value* const v = values.back();
    values.pop_back();
    if (!inside(v)) continue;
    if (!v->def) {
      if (!counts(v)) return false;
      continue;
    }
    const Op& op = *v->def;
    if (!seen.insert(&op).second || (popped && op.is(Opcode::pop_))) continue;
    if (op.is(Opcode::branch_)) {  // a nest's branches are pure
      bool own = true;
      for (Block* side : op.blocks)
        ir::walk(side, [&](const Op* o) {
          own &= !o->is(Opcode::get_) || !inside(o->operands[0]);
          values.insert(values.end(), o->operands.begin(), o->operands.end());
        });
      if (!own) return false;
      values.push_back(op.operands[0]);
      continue;
    }
    if (is_write(op) || !op.blocks.empty() || seen.size() > most_cloned ||
        ir::info(op.code).effect != ir::Effect::none)
      return false;
    const bool state = op.is(Opcode::get_) && inside(op.operands[0]);
    if (state && !unchanged(op)) return false;
    values.insert(values.end(), op.operands.begin() + (state ? 1 : 0), op.operands.end());
  }
  return true;
}

std::size_t price(const Op& op) {
  constexpr std::size_t function = 40, division = 16;
  if (op.results.empty() || op.is(Opcode::constant_)) return 0;
  if (op.is(Opcode::branch_)) return price(*op.blocks[0]) + price(*op.blocks[1]) + 1;
  if (op.result()->type == ir::I64 && !op.is(Opcode::get_)) return 0;  // of an address
  const bool slow = (op.is(Opcode::div_, Opcode::sqrt_)) && op.result()->type.is_float_element();
  return ir::is_library_function(op.code) ? function : slow ? division : 1;
}

std::size_t price(const Block& b) {
  std::size_t sum = 0;
  for (const Op* op : b.ops) sum += price(*op);
  return sum;
}

Value* materialise(ir::Builder& b, const Offset& o) {
  const auto by = static_cast<std::int64_t>(o.by);
  if (!o.base) return b.integer(by);
  auto* const base = const_cast<Value*>(o.base);
  if (by == 0) return base;
  return b.emit(by > 0 ? Opcode::add_ : Opcode::sub_, {base, b.integer(by > 0 ? by : -by)});
}

Value* IterationCloner::number(std::size_t loop, std::int64_t shift) {
  Value*& v = numbers_[loop][shift];
  const Offset& base = loops_[loop].base;
  if (!v) v = materialise(b_, {base.base, base.by + static_cast<std::uint64_t>(shift)});
  return v;
}

Value* IterationCloner::at(Value* v, const Shifts& shifts) {
  const auto around =
      std::ranges::find_if(loops_, [&](const IterationBase& l) { return v->block == l.loop->blocks[1]; });
  if (around == loops_.end()) return v;
  if (v->type == ir::I64) {
    const Offset o = offset(v);
    for (std::size_t k = 0; k < loops_.size(); ++k)
      if (o.base == loops_[k].loop->blocks[1]->params[loops_[k].range.index])
        return number(k, shifts[k] + loops_[k].range.ahead + static_cast<std::int64_t>(o.by));
  }
  if (!v->def) return at(around->loop->operands[v->index], shifts);
  const std::pair key{v, constant(v) ? Shifts(loops_.size(), 0) : shifts};
  if (const auto it = made_.find(key); it != made_.end()) return it->second;
  if (v->def->is(Opcode::branch_)) {
    const Op* const made = copy_branch(*v->def, shifts);
    for (const Value* r : v->def->results) made_[std::pair{r, shifts}] = made->results[r->index];
    return made->results[v->index];
  }
  Value* const made = copy(*v->def, shifts);
  return made_[key] = made;
}

Op* IterationCloner::copy_branch(const Op& op, const Shifts& shifts) {
  Renaming names;
  const auto rename = [&](Value* v) {
    const auto is_inside = [&](const IterationBase& l) { return v->block == l.loop->blocks[1]; };
    if (std::ranges::any_of(loops_, is_inside)) names[v] = at(v, shifts);
  };
  for (Value* v : op.operands) rename(v);
  for (Block* side : op.blocks)
    ir::walk(side, [&](const Op* inner) {
      for (Value* v : inner->operands) rename(v);
    });
  return ir::clone(b_, op, names);
}

Value* IterationCloner::copy(const Op& op, const Shifts& shifts) {
  std::vector<Value*> operands;
  for (Value* v : op.operands) operands.push_back(at(v, shifts));
  const Key key{op.code, op.integer, operands};
  if (!operands.empty())
    if (const auto it = equal_.find(key); it != equal_.end()) return it->second;
  Op* const made = b_.op(op.code, operands, {op.result()->type});
  take_attributes(*made, op);
  made->result()->name = op.result()->name;
  if (!operands.empty()) equal_[key] = made->result();
  return made->result();
}

}  // namespace lantern::passes
