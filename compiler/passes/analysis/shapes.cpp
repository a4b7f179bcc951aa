// Shapes are followed to where they come from.
#include "lantern/compiler/passes/analysis/shapes.hpp"

#include <algorithm>

#include "lantern/ir/shape.hpp"

namespace lantern::passes {

namespace {

/// The tensor whose sizes are given to `fill` one by one, or null.
const Value* filled_like(const Op& fill) {
  const Value* like = nullptr;
  for (std::size_t d = 1; d < fill.operands.size(); ++d) {
    const Op* size = fill.operands[d]->def;
    if (!size || !size->is(Opcode::dim_) || size->integer != static_cast<std::int64_t>(d - 1)) return nullptr;
    if (like && size->operands[0] != like) return nullptr;
    like = size->operands[0];
  }
  return like && like->type.rank() == fill.result()->type.rank() ? like : nullptr;
}

const Block* around(const Block* b) { return b->parent ? b->parent->parent : nullptr; }

}  // namespace

void Shapes::note(const Op* op) {
  if (op->is(Opcode::push_)) return note_push(op);
  if (op->is(Opcode::pop_)) note_pop(op);
  if (op->is(Opcode::loop_)) return note_loop(op);
  if (op->is(Opcode::branch_, Opcode::call_)) note_ways(op);
  if (op->results.size() != 1 || !op->result()->type.is_tensor() || !op->blocks.empty()) return;
  const Value* const by = ir::shaped_like(*op);
  if (by && by->type.is_tensor()) origins_[op->result()] = of(by);
}

void Shapes::note_loop(const Op* loop) {
  const std::vector<bool> keeps = kept(loop);
  for (std::size_t i = 0; i < keeps.size(); ++i) {
    if (!keeps[i]) continue;
    Value* const initial = of(loop->operands[i]);
    origins_[loop->results[i]] = initial;
    for (const Block* b : loop->blocks) origins_[b->params[i]] = initial;
  }
}

void Shapes::note_ways(const Op* op) {
  for (std::size_t i = 0; i < op->results.size(); ++i)
    if (Value* const result = op->results[i]; result->type.is_tensor()) {
      const Value* const by = origin_of_ways(*op, i);
      // A result that was looked at before may have the shape of state whose origin was not known then.
      if (Value* const from = of(by ? by : of(result)); from != result) origins_[result] = from;
    }
}

/// What has the shape of a branch's result on both sides, or the argument that has that of a call's. Each result is
/// looked at once: so are those of functions that call themselves.
const Value* Shapes::origin_of_ways(const Op& op, std::size_t result) {
  if (!followed_.insert(op.results[result]).second) return nullptr;
  const auto given = [&](const Block* b) -> const Value* {  // not of a block that is being rewritten
    return b->terminated() ? origin(b->ops.back()->operands[result]) : nullptr;
  };
  if (op.is(Opcode::branch_)) {
    const Value* const a = given(op.blocks[0]);
    return a == given(op.blocks[1]) ? a : nullptr;
  }
  const Block* const body = op.callee->body;
  const Value* const from = op.callee->cps ? nullptr : given(body);
  return from && !from->def && from->block == body ? op.operands[from->index] : nullptr;
}

/// The same as `of`, also for what has not been walked, and where a fill's sizes are another's.
const Value* Shapes::origin(const Value* v) {
  for (;;) {
    v = of(v);
    if (!v->def) return v;
    const Value* by = nullptr;
    if (v->def->is(Opcode::branch_, Opcode::call_)) {
      by = origin_of_ways(*v->def, v->index);
      if (by) origins_[v] = const_cast<Value*>(by);
    } else if (v->def->is(Opcode::loop_))
      by = kept(v->def)[v->index] ? v->def->operands[v->index] : nullptr;
    else if (v->def->is(Opcode::fill_))
      by = filled_like(*v->def);
    else if (v->def->results.size() == 1)
      by = ir::shaped_like(*v->def);
    if (!by || !by->type.is_tensor()) return v;
    v = by;
  }
}

/// Assumed of all state at first; what an iteration hands on refutes it.
const std::vector<bool>& Shapes::kept(const Op* loop) {
  if (const auto it = kept_.find(loop); it != kept_.end()) return it->second;
  const Block* const body = loop->blocks[1];
  const std::size_t n = loop->operands.size();
  std::vector<bool> keeps(n);
  std::vector<const Value*> first(n), next(n);
  for (std::size_t i = 0; i < n; ++i) {
    keeps[i] = loop->results[i]->type.is_tensor() && loop->results[i]->type == loop->operands[i]->type;
    if (!keeps[i]) continue;
    first[i] = origin(loop->operands[i]);
    next[i] = origin(loop->blocks[1]->ops.back()->operands[i]);
  }
  const auto holds = [&](std::size_t i) {
    if (next[i]->def || next[i]->block != body) return next[i] == first[i];
    return keeps[next[i]->index] && first[next[i]->index] == first[i];
  };
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t i = 0; i < n; ++i)
      if (keeps[i] && !holds(i)) {
        keeps[i] = false;
        changed = true;
      }
  }
  return kept_[loop] = std::move(keeps);
}

Shapes::Shapes(const ir::Function& function) {
  const auto count = [&](const ir::Function& f) {
    ir::walk(f.body, [&](const Op* op) {
      if (op->is(Opcode::push_) && op->operands[0]->type.is_tensor()) ++tapes_[op->integer].pushes;
      if (op->is(Opcode::pop_) && op->result()->type.is_tensor()) ++tapes_[op->integer].pops;
    });
  };
  count(function);
  if (tapes_.empty()) return;
  for (const ir::Function* f : function.module->functions())
    if (f != &function) count(*f);
}

ir::Size Shapes::source(Value* t, std::size_t dimension) const {
  constexpr int longest_way = 64;
  ir::Size s{t, static_cast<int>(dimension)};
  for (int steps = 0; steps < longest_way; ++steps) {
    if (s.dimension < 0) {
      const Op* def = s.value->def;
      if (!def || !def->is(Opcode::dim_)) return s;
      s = {def->operands[0], static_cast<int>(def->integer)};
      continue;
    }
    if (s.value->type.dims()[static_cast<std::size_t>(s.dimension)] != ir::dynamic) return s;
    if (Value* const origin = of(s.value); origin != s.value) {
      s.value = origin;
      continue;
    }
    if (!s.value->def || s.value->def->results.size() != 1) return s;
    if (const auto sizes = sizes_.find(s.value); sizes != sizes_.end()) {
      const ir::Size& size = sizes->second[static_cast<std::size_t>(s.dimension)];
      if (!size.value) return s;
      s = size;
      continue;
    }
    const auto from = ir::size_source(*s.value->def, static_cast<std::size_t>(s.dimension));
    if (!from) return s;
    s = *from;
  }
  return s;
}

void Shapes::note_push(const Op* push) {
  const auto tape = tapes_.find(push->integer);
  if (tape == tapes_.end()) return;
  Value* const pushed = push->operands[0];
  Tape& all = tape->second;
  const bool first = all.origins.empty();
  all.origins.push_back(origin(pushed));
  for (std::size_t d = 0; d < pushed->type.dims().size(); ++d) {
    const ir::Size size = source(pushed, d);
    if (first)
      all.sizes.push_back(size);
    else if (d < all.sizes.size() &&
             (all.sizes[d].value != size.value || all.sizes[d].dimension != size.dimension))
      all.sizes[d].value = nullptr;
  }
}

/// Seen from the pop: of a block around it, and made before the push, which runs before the pop. Within a
/// loop it is the value of the iteration available if what an iteration pushes is popped in the same iteration, as one push and
/// one pop alone do.
bool Shapes::is_at_hand(const Value* v, const Op* pop, const Tape& tape) const {
  bool seen = false, repeated = false;
  for (const Block* b = pop->parent; b && !seen; b = around(b)) seen = b == v->block;
  for (const Block* b = v->block; b; b = around(b)) repeated |= b->parent && b->parent->is(Opcode::loop_);
  return seen && (!repeated || (tape.pushes == 1 && tape.pops == 1));
}

void Shapes::note_pop(const Op* pop) {
  const auto tape = tapes_.find(pop->integer);
  if (tape == tapes_.end()) return;
  const Tape& all = tape->second;
  if (all.origins.empty() || all.origins.size() != all.pushes) return;
  const Value* const shape = all.origins.front();
  if (std::ranges::count(all.origins, shape) == std::ssize(all.origins) && is_at_hand(shape, pop, all)) {
    origins_[pop->result()] = const_cast<Value*>(shape);
    return;
  }
  std::vector<ir::Size> sizes = all.sizes;
  for (ir::Size& s : sizes)
    if (s.value && !is_at_hand(s.value, pop, all)) s.value = nullptr;
  if (sizes.size() == pop->result()->type.dims().size()) sizes_[pop->result()] = std::move(sizes);
}

}  // namespace lantern::passes
