// Counting loops and loops whose trips are independent.
#include "lantern/compiler/passes/loops.hpp"

#include <algorithm>

#include "lantern/compiler/passes/updates.hpp"

namespace lantern::passes {

std::optional<std::int64_t> step_of(const Op* loop, std::size_t state) {
  const Block* body = loop->blocks[1];
  if (!body->params[state]->type.is_integer()) return {};
  const Op* next = body->ops.back()->operands[state]->def;
  if (!next || !(next->is(Opcode::add_) || next->is(Opcode::sub_))) return {};
  // x + c, c + x or x - c
  const Value *x = next->operands[0], *c = next->operands[1];
  if (next->is(Opcode::add_) && constant(x)) std::swap(x, c);
  if (x != body->params[state] || !constant(c)) return {};
  return next->is(Opcode::add_) ? constant(c)->integer : -constant(c)->integer;
}

Value* stepped(ir::Builder& b, Value* first, std::int64_t step, Value* trips) {
  const ir::Type type = first->type;
  Value* way =
      type == ir::I64 ? trips : b.emit(Opcode::cast_, {trips}, static_cast<std::int64_t>(type.kind()));
  if (step != 1) way = b.emit(Opcode::mul_, {way, b.integer(step, type)});
  return b.emit(Opcode::add_, {first, way});
}

bool far_from_wrapping(const Value* v, int steps) {
  const Op* op = v->def;
  if (!op || steps == 0) return false;
  constexpr std::int64_t small = 1 << 20;
  if (op->is(Opcode::constant_)) return op->integer >= -small && op->integer <= small;
  switch (op->code) {
    case Opcode::dim_:
      return true;
    case Opcode::add_:
    case Opcode::sub_:
    case Opcode::imin_:
    case Opcode::imax_:
    case Opcode::div_:
      return std::ranges::all_of(op->operands,
                                 [&](const Value* x) { return far_from_wrapping(x, steps - 1); });
    default:
      return false;
  }
}

Value* trips_between(ir::Builder& b, Value* first, Value* bound) {
  const bool from_zero = constant(first) && constant(first)->integer <= 0;
  if (!from_zero && !(far_from_wrapping(first) && far_from_wrapping(bound)))
    bound = b.emit(Opcode::imax_, {bound, first});
  return b.emit(Opcode::sub_, {bound, first});
}

std::optional<CountedLoop> counted(const Op* loop) {
  const Block* condition = loop->blocks[0];
  const Value* test = condition->ops.back()->operands[0];
  if (!test->def || !test->def->is(Opcode::lt_)) return {};
  Value* const index = test->def->operands[0];
  Value* const bound = test->def->operands[1];
  if (index->block != condition || index->def || (bound->block == condition && !constant(bound))) return {};
  if (!(index->type == ir::I64) || step_of(loop, index->index) != 1) return {};
  return CountedLoop{index->index, bound};
}

bool same_number(const Value* a, const Value* b) {
  return a == b || (constant(a) && constant(b) && constant(a)->integer == constant(b)->integer);
}

std::optional<std::int64_t> constant_trips(const Op* loop) {
  const auto count = counted(loop);
  if (!count) return {};
  const Op *first = constant(loop->operands[count->index]), *bound = constant(count->bound);
  if (!first || !bound) return {};
  return std::max<std::int64_t>(bound->integer - first->integer, 0);
}

std::optional<Countdown> counts_down(const Op* loop) {
  const Block* condition = loop->blocks[0];
  const Value* test = condition->ops.back()->operands[0];
  if (!test->def || !test->def->is(Opcode::lt_)) return {};
  const Op* zero = constant(test->def->operands[0]);
  const Value* n = test->def->operands[1];
  if (!zero || zero->integer != 0 || n->block != condition || n->def || !(n->type == ir::I64)) return {};
  const Block* body = loop->blocks[1];
  Value* next = body->ops.back()->operands[n->index];
  if (!next->def || !next->def->is(Opcode::sub_) || next->def->operands[0] != body->params[n->index])
    return {};
  const Op* one = constant(next->def->operands[1]);
  if (!one || one->integer != 1) return {};
  return Countdown{n->index, next};
}

std::optional<WholeTrips> whole_trips(const Op* loop) {
  if (const auto up = counted(loop)) {
    const Op* first = constant(loop->operands[up->index]);
    if (!first || first->integer != 0) return {};
    return WholeTrips{loop->blocks[1]->params[up->index], up->bound};
  }
  if (const auto down = counts_down(loop)) return WholeTrips{down->trip, loop->operands[down->index]};
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

std::vector<Op*> loops_in(const ir::Function& f) {
  std::vector<Op*> loops;
  ir::walk(f.body, [&](Op* op) {
    if (op->is(Opcode::loop_)) loops.push_back(op);
  });
  return loops;
}

BodyUses::BodyUses(const Op* loop) {
  for (Block* b : loop->blocks)
    ir::walk(b, [&](Op* op) {
      for (std::size_t i = 0; i < op->operands.size(); ++i) uses_[op->operands[i]].push_back({op, i});
    });
}

const std::vector<BodyUses::Use>& BodyUses::of(const Value* v) const {
  static const std::vector<Use> none;
  const auto it = uses_.find(v);
  return it == uses_.end() ? none : it->second;
}

namespace {

constexpr std::size_t anywhere = ~std::size_t{0};

/// True for what is made in the block, or in one inside it.
bool in_block_of(const Value* v, const Block* block) {
  const Block* b = v->block;
  while (b && b != block) b = b->parent ? b->parent->parent : nullptr;
  return b != nullptr;
}

/// The operation of `block` that is `op` or holds it; null where it is not in the block.
const Op* in_block(const Op* op, const Block* block) {
  while (op && op->parent != block) op = op->parent->parent;
  return op;
}

/// As accumulates(); `state` may be `anywhere`, and then says which operand of the yield it was.
bool passed_on(const BodyUses& uses, Value* v, const Block* block, std::size_t& state,
               std::vector<const Op*>& updates, std::vector<Value*>* chain) {
  for (;;) {
    if (chain) chain->push_back(v);
    // Beside the block's own uses there may be others, of the other side of a branch.
    const BodyUses::Use* use = nullptr;
    const Op* holder = nullptr;
    for (const BodyUses::Use& u : uses.of(v)) {
      const Op* const top = in_block(u.op, block);
      if (!top) continue;
      if (use && (top != holder || u.op == holder || use->op == holder)) return false;
      use = &u;
      holder = top;
    }
    if (!use) return false;
    if (holder != use->op) {
      // Both sides of a branch pass it on, to the same result.
      if (!holder->is(Opcode::branch_)) return false;
      std::size_t result = anywhere;
      for (const Block* side : holder->blocks)
        if (!passed_on(uses, v, side, result, updates, chain)) return false;
      v = holder->results[result];
      continue;
    }
    const Op* const op = use->op;
    const std::size_t operand = use->operand;
    switch (op->code) {
      case Opcode::yield_:
        if (state == anywhere) state = operand;
        return operand == state;
      case Opcode::add_:
        if (!v->type.is_scalar()) return false;
        break;
      case Opcode::sub_:
        if (!v->type.is_scalar() || operand != 0) return false;
        break;
      case Opcode::set_:
      case Opcode::add_at_:
        if (operand != 0) return false;
        updates.push_back(op);
        break;
      case Opcode::loop_: {
        const Block *condition = op->blocks[0], *body = op->blocks[1];
        std::size_t next = operand;
        if (!uses.of(condition->params[operand]).empty() ||
            !passed_on(uses, body->params[operand], body, next, updates, chain))
          return false;
        v = op->results[operand];
        continue;
      }
      default:
        return false;
    }
    v = op->result();
  }
}

}  // namespace

bool moves(const Value* v, const Value* trip) {
  if (v == trip) return true;
  if (!v->def || !(v->def->is(Opcode::add_) || v->def->is(Opcode::sub_))) return false;
  const auto fixed = [&](const Value* x) { return constant(x) || !in_block_of(x, trip->block); };
  const Value *x = v->def->operands[0], *y = v->def->operands[1];
  return (moves(x, trip) && fixed(y)) || (moves(y, trip) && fixed(x));
}

bool apart_by_index(const std::vector<const Op*>& accesses, const Value* trip) {
  if (accesses.empty()) return false;
  const auto rank = static_cast<std::size_t>(accesses.front()->operands[0]->type.rank());
  for (std::size_t d = 1; d <= rank; ++d) {
    const Value* const index = accesses.front()->operands[d];
    if (moves(index, trip) &&
        std::ranges::all_of(accesses, [&](const Op* op) { return op->operands[d] == index; }))
      return true;
  }
  return false;
}

bool accumulates(const BodyUses& uses, Value* v, const Block* block, std::size_t state, const Value* index,
                 std::vector<Value*>* chain) {
  std::vector<const Op*> updates;
  if (!passed_on(uses, v, block, state, updates, chain)) return false;
  // Sums may go anywhere; what is set, and added to beside, is the trip's own.
  return std::ranges::none_of(updates, [](const Op* op) { return op->is(Opcode::set_); }) ||
         apart_by_index(updates, index);
}

namespace {

/// Whether running the block may print, in functions that it calls too.
bool prints(Block* block) {
  std::vector<Block*> todo{block};
  std::unordered_set<const ir::Function*> seen;
  bool found = false;
  while (!todo.empty() && !found) {
    Block* const b = todo.back();
    todo.pop_back();
    ir::walk(b, [&](const Op* op) {
      found |= op->is(Opcode::print_);
      if (op->callee && seen.insert(op->callee).second) todo.push_back(op->callee->body);
    });
  }
  return found;
}

}  // namespace

bool as_before_loop(const BodyUses& uses, const Op& get, std::size_t state, bool own) {
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
    if (!(next->is(Opcode::set_) || next->is(Opcode::add_at_)) || next->operands[0] != v || !own ||
        !same_element(get, *next))
      return false;
    v = next->result();
  }
}

bool separable(const Op* loop, const CountedLoop& count) {
  Block* const body = loop->blocks[1];
  // What trips print keeps its order.
  if (prints(body)) return false;
  const BodyUses uses(loop);
  // The condition asks nothing else.
  if (std::ranges::count_if(loop->blocks[0]->ops, [](const Op* op) { return !op->is(Opcode::constant_); }) >
      2)
    return false;
  for (std::size_t i = 0; i < body->params.size(); ++i) {
    if (step_of(loop, i)) continue;
    if (!accumulates(uses, body->params[i], body, i, body->params[count.index])) return false;
  }
  return true;
}

}  // namespace lantern::passes
