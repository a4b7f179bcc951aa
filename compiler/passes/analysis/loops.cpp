// Counting loops and loops whose iterations are independent.
#include "lantern/compiler/passes/analysis/loops.hpp"

#include <algorithm>

#include "lantern/compiler/passes/analysis/index_form.hpp"
#include "lantern/compiler/passes/analysis/offset.hpp"
#include "lantern/ir/clone.hpp"

namespace lantern::passes {

std::optional<std::int64_t> step_of(const Op* loop, std::size_t state) {
  const Block* body = loop->blocks[1];
  if (!body->params[state]->type.is_integer()) return {};
  const Op* next = body->ops.back()->operands[state]->def;
  if (!next || !next->is(Opcode::add_, Opcode::sub_)) return {};
  // x + c, c + x or x - c
  const Value *x = next->operands[0], *c = next->operands[1];
  if (next->is(Opcode::add_) && constant(x)) std::swap(x, c);
  if (x != body->params[state] || !constant(c)) return {};
  return next->is(Opcode::add_) ? constant(c)->integer : -constant(c)->integer;
}

Value* stepped(ir::Builder& b, Value* first, std::int64_t step, Value* iterations) {
  const ir::Type type = first->type;
  Value* way =
      type == ir::I64 ? iterations : b.emit(Opcode::cast_, {iterations}, static_cast<std::int64_t>(type.kind()));
  if (step != 1) way = b.mul({way, b.integer(step, type)});
  return b.add({first, way});
}

bool cannot_overflow(const Value* v, int steps) {
  const Op* op = v->def;
  if (!op || steps == 0) return false;
  constexpr std::int64_t small = 1 << 20;
  if (op->is(Opcode::constant_)) return op->integer >= -small && op->integer <= small;
  if (!op->is(Opcode::add_, Opcode::sub_, Opcode::imin_, Opcode::imax_, Opcode::div_))
    return op->is(Opcode::dim_);
  return std::ranges::all_of(op->operands, [&](const Value* x) { return cannot_overflow(x, steps - 1); });
}

Value* iterations_between(ir::Builder& b, Value* first, Value* bound) {
  const bool from_zero = constant(first) && constant(first)->integer <= 0;
  if (!from_zero && !(cannot_overflow(first) && cannot_overflow(bound))) bound = b.imax({bound, first});
  return b.sub({bound, first});
}

std::optional<CountedLoop> counts(const Op* loop) {
  const Block *condition = loop->blocks[0], *body = loop->blocks[1];
  const Op* const test = condition->ops.back()->operands[0]->def;
  if (!test || !test->is(Opcode::lt_)) return {};
  Value *const low = test->operands[0], *const high = test->operands[1];
  const auto is_state = [&](const Value* v) { return v->block == condition && !v->def && v->type == ir::I64; };
  if (is_state(low)) {
    if ((high->block == condition && !constant(high)) || step_of(loop, low->index) != 1) return {};
    return CountedLoop{low->index, loop->operands[low->index], high, body->params[low->index]};
  }
  if (!is_state(high) || !constant(low) || constant(low)->integer != 0) return {};
  Value* const next = body->ops.back()->operands[high->index];
  if (!next->def || !next->def->is(Opcode::sub_) || step_of(loop, high->index) != -1) return {};
  return CountedLoop{high->index, nullptr, loop->operands[high->index], next, true};
}

std::optional<CountedLoop> counted(const Op* loop) {
  const auto found = counts(loop);
  return found && !found->down ? found : std::nullopt;
}

std::optional<CountedLoop> counts_down(const Op* loop) {
  const auto found = counts(loop);
  return found && found->down ? found : std::nullopt;
}

std::optional<CountedLoop> normalized_range(const Op* loop) {
  const auto found = counts(loop);
  const bool from_zero = found && (found->down || (constant(found->first) && constant(found->first)->integer == 0));
  return from_zero ? found : std::nullopt;
}

bool ends_by_comparison(const Op* loop) {
  return std::ranges::count_if(loop->blocks[0]->ops, [](const Op* op) { return !op->is(Opcode::constant_); }) <= 2;
}

bool same_number(const Value* a, const Value* b) {
  return a == b || (constant(a) && constant(b) && constant(a)->integer == constant(b)->integer);
}

std::optional<std::int64_t> constant_trip_count(const Op* loop) {
  const auto count = counted(loop);
  if (!count) return {};
  const Op *first = constant(count->first), *bound = constant(count->bound);
  if (!first || !bound) return {};
  return std::max<std::int64_t>(bound->integer - first->integer, 0);
}

std::optional<std::int64_t> known_trip_counts(const Op* loop) {
  const auto down = counts_down(loop);
  const Op* const from = down ? constant(down->bound) : nullptr;
  return from ? std::optional(from->integer) : constant_trip_count(loop);
}

std::optional<std::int64_t> most_iterations(const Op* loop) {
  if (const auto n = constant_trip_count(loop)) return n;
  const auto count = counted(loop);
  if (!count || !count->bound->def || !count->bound->def->is(Opcode::imin_)) return {};
  const Offset first = offset(count->first);
  for (const Value* end : count->bound->def->operands)
    if (const Offset o = offset(end); o.base == first.base)
      return std::max<std::int64_t>(static_cast<std::int64_t>(o.by - first.by), 0);
  return {};
}

std::optional<Filled> filled(const Value* v) {
  if (!v->type.is_tensor() || !v->def) return {};
  Filled f;
  for (; v->def && v->def->is(Opcode::zeros_like_); v = v->def->operands[0]) f.zeros = true;
  f.zero = f.zeros;
  if (!v->def || !v->def->is(Opcode::fill_) || !v->def->operands[0]->type.is_scalar()) {
    if (!f.zeros) return {};
    f.like = v;
    return f;
  }
  f.fill = v->def;
  if (f.zeros) return f;
  const Op* with = f.fill->operands[0]->def;
  if (with && with->is(Opcode::undef_)) return {};
  f.zero = with && with->is(Opcode::constant_) && with->number == 0 && with->integer == 0;
  return f;
}

Value* uninitialised_like(ir::Builder& b, const Value* v) {
  const Filled f = *filled(v);
  std::vector<Value*> fill{b.undef(ir::Type(v->type.element()))};
  for (std::size_t d = 0; d < static_cast<std::size_t>(v->type.rank()); ++d)
    fill.push_back(f.fill ? f.fill->operands[1 + d]
                          : b.emit(Opcode::dim_, {const_cast<Value*>(f.like)}, static_cast<std::int64_t>(d)));
  return b.op(Opcode::fill_, std::move(fill), {v->type})->result();
}

std::vector<Op*> loops_in(Block* block) {
  std::vector<Op*> loops;
  ir::walk(block, [&](Op* op) {
    if (op->is(Opcode::loop_)) loops.push_back(op);
  });
  return loops;
}

std::vector<const Op*> loops_around(const Block* block, const Op* outermost) {
  std::vector<const Op*> loops;
  for (const Op* op = block->parent; op; op = op == outermost ? nullptr : op->parent->parent)
    if (op->is(Opcode::loop_)) loops.push_back(op);
  std::ranges::reverse(loops);
  return loops;
}

Op* only_loop(const Block* body) {
  Op* found = nullptr;
  for (Op* op : body->ops) {
    const bool integer =
        ir::info(op->code).elementwise && op->result()->type.is_integer() && op->result()->type.is_scalar() && !divides_integers(*op);
    if (op->is(Opcode::constant_, Opcode::dim_, Opcode::yield_) || integer) continue;
    if (!op->is(Opcode::loop_) || found) return nullptr;
    found = op;
  }
  return found;
}

Value* first_condition(ir::Builder& b, const Op* loop) {
  Renaming first = ir::pairs(loop->blocks[0]->params, loop->operands);
  return ir::clone(b, *loop->blocks[0], first).front();
}

bool reads_loop_entry_value(const Uses& uses, const Op& get, std::size_t state, bool own) {
  const Value* v = get.operands[0];
  for (;;) {
    const Op* next = nullptr;
    for (const auto& [op, operand] : uses.of(v)) {
      if (op->is(Opcode::get_) && operand == 0) continue;
      if (next) return false;
      next = op;
    }
    if (!next) return false;
    if (next->is(Opcode::yield_)) return next->operands[state] == v;
    if (!is_write(*next) || next->operands[0] != v || !own ||
        !same_element(get, *next))
      return false;
    v = next->result();
  }
}

}  // namespace lantern::passes
