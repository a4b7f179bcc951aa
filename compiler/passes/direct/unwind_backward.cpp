// The backward half of unwind: mirrored constructs, frames on demand, adjoint cells as values.
#include <algorithm>
#include <utility>

#include "lantern/compiler/passes/analysis/index_form.hpp"
#include "lantern/compiler/passes/direct/unwinder.hpp"
#include "lantern/ir/checkpoint.hpp"
#include "lantern/ir/clone.hpp"
#include "lantern/ir/error.hpp"

namespace lantern::passes {

namespace {

/// True where no loop surrounds the region: a loop there has its iterations' forward and backward parts side by
/// side.
bool outermost(const Region& r) {
  for (const Region* at = &r; at; at = at->parent)
    if (at->kind == Region::Kind::body || at->kind == Region::Kind::iteration) return false;
  return true;
}

}  // namespace

/// The adjoint of x is called d_x.
const char* Unwinder::adjoint_name(Value* cell) const {
  Value* const* like = likes_.find(cell);
  const Value* primal = like ? *like : nullptr;
  if (cell->def && cell->def->is(Opcode::ref_new_)) primal = cell->def->operands[0];
  if (!primal) return nullptr;
  if (!primal->name)
    if (Value* const* now = fwd_.find(const_cast<Value*>(primal))) primal = *now;
  return primal->name ? module_.intern(std::string("d_") + primal->name) : nullptr;
}

/// What a backward part consists of belongs to it, also where it brings a forward part up again: that prints
/// nothing a second time. An iteration of a parallel loop keeps its two parts separate.
void Unwinder::mark_backward(Block* first, std::size_t from) {
  std::vector<std::pair<Block*, std::size_t>> todo{{first, from}};
  while (!todo.empty()) {
    const auto [block, start] = todo.back();
    todo.pop_back();
    const auto begin = block->ops.begin() + static_cast<std::ptrdiff_t>(start);
    block->ops.erase(std::remove_if(begin, block->ops.end(),
                                    [](const Op* op) {
                                      return op->is(Opcode::print_) && op->loc.part == ir::Part::forward;
                                    }),
                     block->ops.end());
    for (std::size_t i = start; i < block->ops.size(); ++i) {
      Op* const op = block->ops[i];
      if (parallel_.contains(op)) continue;
      op->loc.part = ir::Part::backward;
      for (Block* nested : op->blocks) todo.emplace_back(nested, 0);
    }
  }
}

// W of a chain: its segments from last to first; each is W(T), then P.
void Unwinder::backward(Region& r, const std::vector<Value*>& incoming) {
  for (std::size_t i = r.chain.size(); i-- > 0;) {
    Segment& s = r.chain[i];
    Op* t = s.block->ops[s.t];
    switch (s.kind) {
      case Segment::Kind::halt:
        break;
      case Segment::Kind::exit:
        pass_to(r, t->operands, 1, incoming);
        break;
      case Segment::Kind::inlined:
        pass_to(r, t->operands, 1, adjoints_of(r, s.continuation->blocks[0]->params));
        break;
      case Segment::Kind::branch:
        backward_branch(r, s, s.join_is_exit ? incoming : adjoints_of(r, s.continuation->blocks[0]->params));
        break;
      case Segment::Kind::loop:
        backward_loop(r, s);
        break;
      case Segment::Kind::call:
        backward_call(r, s, s.join_is_exit ? incoming : adjoints_of(r, s.continuation->blocks[0]->params));
        break;
    }
    backward_ops(r, s);
  }
}

/// Adjoints that arrived in a continuation's cells (null: zero), one per cell parameter.
std::vector<Value*> Unwinder::adjoints_of(Region& r, const std::vector<Value*>& params) {
  std::vector<Value*> out;
  for (Value* p : params)
    if (p->type.is_ref()) out.push_back(cell(r, p));
  return out;
}

/// Adds adjoints to the cells among the arguments of a jump.
void Unwinder::pass_to(Region& r, const std::vector<Value*>& args, std::size_t from,
                       const std::vector<Value*>& adjoints) {
  std::size_t at = 0;
  for (std::size_t i = from; i < args.size(); ++i)
    if (args[i]->type.is_ref()) {
      Value* a = adjoints[at++];
      if (a) add_cell(r, args[i], a, {});
    }
}

void Unwinder::backward_ops(Region& r, const Segment& s) {
  for (std::size_t i = s.t + 1; i < s.block->ops.size(); ++i) backward_op(r, s.block->ops[i]);
}

void Unwinder::backward_op(Region& r, Op* op) {
  switch (op->code) {
    case Opcode::ref_get_: {
      const auto value = value_cells_.find(op->operands[0]);
      Value* const v = value != value_cells_.end() ? at(r, value->second) : cell_or_zero(r, op->operands[0]);
      if (value == value_cells_.end() && !v->name && !constant(v)) v->name = adjoint_name(op->operands[0]);
      bwd_[op->result()] = v;
      return;
    }
    case Opcode::ref_add_:
      return add_cell(r, op->operands[0], bwd(r, op->operands[1]), op->loc);
    case Opcode::ref_acc_: {
      std::vector<Value*> operands{cell_or_zero(r, op->operands[0])};
      for (std::size_t i = 1; i < op->operands.size(); ++i) operands.push_back(bwd(r, op->operands[i]));
      set_cell(r, op->operands[0],
               into(r.bwd, op->loc).emit(ir::accumulated_by(*op), operands, 0, {}, op->text));
      return;
    }
    case Opcode::yield_:
      if (op->operands.empty()) return;
      break;
    default:
      break;
  }
  if (!op->blocks.empty()) throw InternalError("unwind: a construct in a backward part");
  std::vector<Value*> operands;
  for (Value* v : op->operands) operands.push_back(bwd(r, v));
  Op* copy = into(r.bwd, op->loc).op(op->code, std::move(operands));
  take_attributes(*copy, *op);
  for (Value* v : op->results) bwd_[v] = module_.add_result(copy, v->type, v->name);
}

void Unwinder::backward_branch(Region& r, Segment& s, const std::vector<Value*>& incoming) {
  Op* t = s.block->ops[s.t];
  Value* condition = at(r, s.forward->operands[0]);
  Op* op = module_.new_op(Opcode::branch_, r.bwd);
  op->operands = {condition};
  op->loc = t->loc;
  std::vector<Value*> touched;
  for (const auto& side : s.sides) {
    side->bwd = module_.new_block(op, r.bwd->function);
    op->blocks.push_back(side->bwd);
    backward(*side, incoming);
    for (Value* c : side->imported)
      if (std::find(touched.begin(), touched.end(), c) == touched.end()) touched.push_back(c);
  }
  for (const auto& side : s.sides) {
    std::vector<Value*> values;
    for (Value* c : touched) values.push_back(cell_or_zero(*side, c));
    into(side->bwd, t->loc).yield(std::move(values));
  }
  r.bwd->ops.push_back(op);
  for (Value* c : touched) set_cell(r, c, module_.add_result(op, c->type.content(), adjoint_name(c)));
}

/// Whether a loop in an iteration of a parallel loop is run for its frames alone: what it gives goes nowhere but
/// into sums that nothing looks at here. Run again, it is run once.
bool Unwinder::only_frames(const Region& r, const Segment& s) const {
  if (r.kind != Region::Kind::iteration) return false;
  bool plain = true;  // frames of its own, of which each is left out or made again with its iteration
  ir::walk(s.forward->blocks[1], [&](const Op* op) {
    plain &= !op->callee && (!op->is(Opcode::push_) || is_frame(*op)) && !op->is(Opcode::pop_);
  });
  if (!plain) return false;
  std::unordered_set<const Value*> given(s.forward->results.begin(), s.forward->results.end());
  const auto asks = [&](const Op* op) {
    return std::ranges::any_of(op->operands, [&](const Value* v) { return given.contains(v); });
  };
  for (std::size_t i = 0; i < r.fwd->ops.size(); ++i) {
    Op* const op = r.fwd->ops[i];
    if (op == s.forward) continue;
    bool asked = false;
    for (Block* b : op->blocks) ir::walk(b, [&](const Op* o) { asked |= asks(o); });
    if (!asked && !asks(op)) continue;
    if (asked || i >= r.forward_ops || !op->blocks.empty() || ir::info(op->code).effect != ir::Effect::none)
      return false;
    given.insert(op->results.begin(), op->results.end());
  }
  return true;
}

void Unwinder::backward_loop(Region& r, Segment& s) {
  const auto count = counted(s.forward);
  const bool is_doall = count && is_doall_write_only(s.forward) && may_run_twice(s.forward);
  if (is_doall && outermost(r)) return backward_parallel(r, s, *count);
  Region& body = *s.sides[0];
  body.is_doall = is_doall || passes::is_doall(s.forward);
  std::vector<Value*> carried, incoming;  // adjoint of the state, then the outer cells that iterations touch
  for (Value* c : cells_of(s.continuation->blocks[0]->params)) carried.push_back(cell_or_zero(r, c));
  Op* const op = open_backward_loop(r, s, body, nullptr, incoming);
  body.iterations = body.bwd->params[0];
  backward(body, incoming);
  if (is_doall && (cheaper_again(s) || only_frames(r, s))) {
    for (Block* b : s.forward->blocks) drop_frames(b);
    return backward_parallel(r, s, *count);
  }

  ir::Builder end = into(body.bwd, op->loc);
  yield_adjoints(r, s, body, end.sub({body.iterations, end.integer(1)}), carried);
  settle(body);

  std::vector<Value*> results;
  if (const auto memory = ir::LoopMemory::of(*s.continuation); memory.bounded()) {
    results = reverse_in_memory(r, s.forward, op, carried, memory);
  } else if (const auto length = segment_length(r, s.forward)) {
    results = reverse_in_segments(r, s.forward, op, carried, *length);
  } else {
    carried.insert(carried.begin(), trip_count_of(r, s.forward));
    results = run_reverse(op, r.bwd, nullptr, carried);
  }
  take_adjoints(r, s, body, results);
}

/// A loop of the backward part whose condition is still to be written; in its body `incoming` are the adjoints of the state.
Op* Unwinder::open_backward_loop(Region& r, Segment& s, Region& body, const char* index, std::vector<Value*>& incoming) {
  Op* const op = module_.new_op(Opcode::loop_, r.bwd);
  op->loc = s.block->ops[s.t]->loc;
  for (std::size_t i = 0; i < 2; ++i) op->blocks.push_back(module_.new_block(op, r.bwd->function));
  body.bwd = op->blocks[1];
  module_.add_param(body.bwd, ir::I64, index);
  for (Value* c : cells_of(s.continuation->blocks[0]->params))
    incoming.push_back(module_.add_param(body.bwd, c->type.content(), adjoint_name(c)));
  return op;
}

/// What one iteration passes on: the count, the adjoint of the state, and the outer cells it touched, with which the loop starts.
void Unwinder::yield_adjoints(Region& r, const Segment& s, Region& body, Value* next_index, std::vector<Value*>& initial) {
  std::vector<Value*> next{next_index};
  for (Value* c : cells_of(s.continuation->blocks[0]->params)) next.push_back(cell_or_zero(body, c));
  for (Value* c : body.imported) {
    next.push_back(body.cells[c]);
    initial.push_back(cell_or_zero(r, c));
  }
  into(body.bwd, s.block->ops[s.t]->loc).yield(next);
}

/// The adjoints that such a loop ends with.
void Unwinder::take_adjoints(Region& r, const Segment& s, const Region& body, const std::vector<Value*>& results) {
  const auto after_state = results.end() - static_cast<std::ptrdiff_t>(body.imported.size());
  for (std::size_t k = 0; k < body.imported.size(); ++k)
    set_cell(r, body.imported[k], after_state[static_cast<std::ptrdiff_t>(k)]);
  pass_to(r, s.block->ops[s.t]->operands, 1, std::vector<Value*>(results.begin() + 1, after_state));
}

void Unwinder::backward_call(Region& r, Segment& s, const std::vector<Value*>& incoming) {
  Op* t = s.block->ops[s.t];
  const ForwardBackward& h = *halves_.at(t->callee);
  std::vector<Value*> operands;
  if (ir::is_checkpointed(*t)) {
    for (std::size_t i = 0; i + 1 < t->operands.size(); ++i)
      if (!t->operands[i]->type.is_ref()) operands.push_back(bwd(r, t->operands[i]));
    into(r.bwd, t->loc).call(h.fwd, std::exchange(operands, {}));
  }
  for (std::size_t i : h.shared) operands.push_back(bwd(r, t->operands[i]));
  const std::vector<ir::Type>& results = t->callee->body->params.back()->type.parts();
  for (std::size_t i = 0, at = 0, value = 0; i < results.size(); ++i) {
    if (!results[i].is_ref()) {
      ++value;
      continue;
    }
    Value* a = incoming[at++];
    if (!a) a = zero_like(r, s.forward->results[value - 1]);
    if (!incoming[at - 1] && s.continuation) a = as_marked(r, s.continuation->blocks[0]->params[i], a);
    operands.push_back(a);
  }
  std::vector<Value*> cells;
  for (std::size_t i = 0; i + 1 < t->operands.size(); ++i)
    if (t->operands[i]->type.is_ref()) cells.push_back(t->operands[i]);
  // A cell passed twice goes in once; its second copy starts at zero and is added.
  const auto is_again = [&](std::size_t i) {
    return std::ranges::find(cells, cells[i]) != cells.begin() + static_cast<long>(i);
  };
  for (std::size_t i = 0; i < cells.size(); ++i)
    operands.push_back(is_again(i) ? zero(r, cells[i]) : cell_or_zero(r, cells[i]));
  Op* op = into(r.bwd, t->loc).call(h.bwd, std::move(operands));
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (is_again(i))
      add_cell(r, cells[i], op->results[i], t->loc);
    else
      set_cell(r, cells[i], op->results[i]);
  }
}

Value* Unwinder::bwd(Region& r, Value* original) {
  if (Value* const* known = bwd_.find(original)) return *known;
  return at(r, in_iteration(r, original));
}

/// The forward part's value. Inside a loop's body the header's values are this iteration's, not the final ones.
Value* Unwinder::in_iteration(const Region& r, Value* original) const {
  for (const Region* at_region = &r; at_region; at_region = at_region->parent) {
    const auto own = at_region->own.find(original);
    if (own != at_region->own.end()) return own->second;
  }
  return fwd(original);
}

/// The adjoint in a cell so far; null for zero.
Value* Unwinder::cell(Region& r, Value* c) {
  if (Value* const* own = r.cells.find(c)) return *own;
  if (r.declared.contains(c)) return nullptr;
  if (!r.parent) throw InternalError("unwind: a cell out of reach");
  r.imported.push_back(c);
  if (r.kind == Region::Kind::body || r.kind == Region::Kind::iteration) {
    Value* param = module_.add_param(r.bwd, c->type.content(), adjoint_name(c));
    return r.cells[c] = param;
  }
  return r.cells[c] = cell(*r.parent, c);
}

/// A zero of the shape of a forward value: made from what has that shape and is available, if there is such a
/// tensor.
Value* Unwinder::zero_like(Region& r, Value* forward_value) {
  if (forward_value->type.is_scalar()) return into(r.bwd, {}).zero_like(forward_value);
  const ir::Kind element = forward_value->type.element();
  const auto home = homes_.find(forward_value->block);
  if (!at_hand(r, forward_value) && (home == homes_.end() || !home->second->saved.contains(forward_value))) {
    auto* const source = const_cast<Value*>(shape_source(forward_value));
    if (at_hand(r, source) || homes_.contains(source->block)) forward_value = source;
  }
  Value* const zeros = into(r.bwd, {}).zero_like(at(r, forward_value));
  if (forward_value->type.element() == element) return zeros;
  return into(r.bwd, {}).emit(Opcode::cast_, {zeros}, static_cast<std::int64_t>(element));  // of a condition
}

Value* Unwinder::zero(Region& r, Value* c) {
  Value* const* like = likes_.find(c);
  if (!like) throw InternalError("unwind: a cell without a shape");
  Value* const* const known = (*like)->type.is_scalar() ? like : bwd_.find(*like);
  return as_marked(r, c, known ? into(r.bwd, {}).zero_like(*known) : zero_like(r, in_iteration(r, *like)));
}

/// The zero with which a cell begins, made of one that has its shape.
Value* Unwinder::as_marked(Region& r, const Value* c, Value* zero) {
  if (!marked_.contains(c)) return zero;
  ir::Builder b = into(r.bwd, {});
  Value* const minus = b.number(-0.0, ir::Type(zero->type.element()));
  return zero->type.is_scalar() ? minus : b.emit(Opcode::broadcast_, {minus, zero});
}

Value* Unwinder::cell_or_zero(Region& r, Value* c) {
  Value* v = cell(r, c);
  return v ? v : zero(r, c);
}

void Unwinder::set_cell(Region& r, Value* c, Value* v) {
  cell(r, c);  // imports it where it belongs to an enclosing region
  r.cells[c] = v;
}

void Unwinder::add_cell(Region& r, Value* c, Value* v, const ir::Location& loc) {
  Value* before = cell(r, c);
  r.cells[c] = before ? into(r.bwd, loc).add({before, v}) : v;
}

}  // namespace lantern::passes
