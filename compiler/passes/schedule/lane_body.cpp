// One block of iterations: what differs from iteration to iteration becomes a vector, what all share stays a scalar.
#include "lantern/compiler/passes/schedule/lane_body.hpp"

#include <algorithm>
#include <utility>

#include "lantern/compiler/passes/analysis/index_form.hpp"
#include "lantern/compiler/passes/analysis/iterations.hpp"
#include "lantern/compiler/passes/support/build_loop.hpp"
#include "lantern/ir/clone.hpp"

namespace lantern::passes {

namespace {

ir::Type with_lanes(const ir::Type& t, int lanes) {
  if (t.is_scalar()) return ir::Type::vector(t.kind(), lanes);
  std::vector<std::int64_t> dims = t.dims();
  dims.push_back(lanes);
  return ir::Type::tensor(t.element(), std::move(dims));
}

/// The comparison that tells which operand a minimum or maximum takes, where the same block makes it, too:
/// min(x, y) is x where x <= y or y is NaN.
const Op* choice_of(const Op& op) {
  if (!op.is(Opcode::min_, Opcode::max_) || !(op.result()->type == ir::F64)) return nullptr;
  Value *const x = op.operands[0], *const y = op.operands[1];
  const std::vector<Value*> first = op.is(Opcode::min_) ? std::vector{x, y} : std::vector{y, x}, nan{y, y};
  const auto is = [](const Value* v, Opcode code, const std::vector<Value*>& operands) {
    return v->def && v->def->is(code) && v->def->operands == operands;
  };
  const auto found = std::ranges::find_if(op.parent->ops, [&](const Op* o) {
    return o->is(Opcode::lor_) && is(o->operands[0], Opcode::le_, first) && is(o->operands[1], Opcode::ne_, nan);
  });
  return found == op.parent->ops.end() ? nullptr : *found;
}

}  // namespace

ir::Type LaneBody::type_of(const Value* v) const { return varies(v) ? with_lanes(v->type, lanes_) : v->type; }

std::vector<Value*> LaneBody::run(Value* lo, Value* first, Value* active, const std::vector<Value*>& state) {
  const Block* body = plan_.loop->blocks[1];
  builder_.loc = plan_.loop->loc;
  if (lanes_ > 1) lane_ = builder_.emit(Opcode::lane_index_, {}, lanes_);
  find_wanted();
  if (active) {
    working_ = builder_.lt({lane_, splat(active)});
    active_ = active;
  }
  Value* const index = lane_ ? builder_.add({splat(first), lane_}) : first;
  first_ = first;
  now_[plan_.iteration] = index;
  for (Value* p : body->params) {
    if (p->index == plan_.index) {
      if (plan_.down) now_[p] = builder_.add({index, splat(builder_.integer(1))});
    } else if (plan_.counts_along(p->index)) {
      const std::int64_t step = *step_of(plan_.loop, p->index);
      Value* iterations = builder_.sub({index, splat(lo)});
      if (step != 1) iterations = builder_.mul({iterations, splat(builder_.integer(step))});
      now_[p] = builder_.add({iterations, splat(now(plan_.loop->operands[p->index]))});
    } else {
      now_[p] = state[p->index];
    }
  }
  pack(index);
  block(body);
  std::vector<Value*> next;
  const Op* yield = body->ops.back();
  for (Value* p : body->params) {
    Value* v = yield->operands[p->index];
    if (p->index == plan_.index || plan_.counts_along(p->index))
      next.push_back(nullptr);
    else
      next.push_back(lane_ && plan_.reductions.contains(p) ? in_lanes(v) : now(v));
  }
  return next;
}

Value* LaneBody::now(Value* v) const {
  const auto it = now_.find(v);
  return it == now_.end() ? outside_(v) : it->second;
}

Value* LaneBody::in_lanes(Value* v) {
  Value* x = now(v);
  if (varies(v)) return x;
  if (v->type.is_scalar()) return x->type.is_vector() ? x : splat(x);
  // A tensor of one value throughout: plan_lanes saw to that.
  const Op* def = v->def;
  if (def->is(Opcode::undef_))
    return builder_.undef(with_lanes(v->type, lanes_));
  if (def->is(Opcode::zeros_like_)) return zeros(with_lanes(v->type, lanes_), now(def->operands[0]));
  std::vector<Value*> operands;
  for (Value* o : def->operands) operands.push_back(now(o));
  operands.push_back(builder_.integer(lanes_));
  return builder_.emit(Opcode::fill_, operands, 0, with_lanes(v->type, lanes_).dims());
}

Value* LaneBody::zeros(const ir::Type& type, Value* like) {
  std::vector<Value*> operands{builder_.number(0, ir::Type(type.element()))};
  for (int i = 0; i < type.rank(); ++i)
    operands.push_back(i < like->type.rank() ? builder_.emit(Opcode::dim_, {like}, i)
                                             : builder_.integer(lanes_));
  return builder_.emit(Opcode::fill_, operands, 0, type.dims());
}

Value* LaneBody::only_active(Value* vector) {
  if (!working_) return vector;
  Value* zero = splat(builder_.number(-0.0, ir::Type(vector->type.kind())));
  return builder_.select({working_, vector, zero});
}

void LaneBody::block(const Block* b) {
  for (Op* op : b->ops)
    if (!op->is(Opcode::yield_)) operation(op);
}

void LaneBody::operation(Op* op) {
  if (op->results.size() == 1 && op->result() == plan_.iteration) return;
  builder_.loc = op->loc;
  switch (op->code) {
    case Opcode::loop_:
      return loop(op);
    case Opcode::branch_:
      return branch(op);
    case Opcode::get_:
      return get(op);
    case Opcode::set_:
    case Opcode::add_at_:
      return update(op);
    case Opcode::push_:
    case Opcode::pop_:
      return tape(op);
    case Opcode::zeros_like_:
      if (varies(op->operands[0])) return define(op, zeros(op->result()->type, now(op->operands[0])));
      break;
    default:
      break;
  }
  if (!op->results.empty() && is_summed(op->result())) return summed(op);
  if (op->results.empty() || !varies(op->result()) || op->is(Opcode::dim_)) return plain(op);
  std::vector<Value*> operands;
  for (Value* v : op->operands) operands.push_back(in_lanes(v));
  if (const Op* const choice = lanes_ > 1 ? choice_of(*op) : nullptr) {
    // Compared once; cse finds the comparison again.
    std::vector<Value*> asked;
    for (const Value* part : choice->operands)
      asked.push_back(builder_.emit(part->def->code, {in_lanes(part->def->operands[0]), in_lanes(part->def->operands[1])}));
    return define(op, builder_.select({builder_.emit(Opcode::lor_, asked), operands[0], operands[1]}));
  }
  define(op, builder_.emit(op->code, operands, op->integer));
}

void LaneBody::define(const Op* op, Value* v) {
  if (!v->name) v->name = op->result()->name;
  now_[op->result()] = v;
  if (wanted_.contains(op->result())) sums_[op->result()] = sum(v);
}

void LaneBody::find_wanted() {
  if (lanes_ == 1) return;
  ir::walk(plan_.loop->blocks[1], [&](const Op* op) {
    if (op->results.empty() || !is_summed(op->result()) || !op->result()->type.is_scalar()) return;
    for (const Value* x : op->operands)
      if (varies(x)) wanted_.insert(x);
  });
}

Value* LaneBody::sum_of(Value* v) {
  if (is_summed(v)) return now(v);
  if (const auto it = sums_.find(v); it != sums_.end()) return it->second;
  if (!varies(v)) return times_active(now(v));
  // A factor that all lanes share comes after the sum.
  if (const Op* def = v->def; def && def->is(Opcode::mul_))
    for (std::size_t i = 0; i < 2; ++i)
      if (!varies(def->operands[i]) && now(def->operands[i])->type.is_scalar())
        return builder_.mul({now(def->operands[i]), sum_of(def->operands[1 - i])});
  return sum(now(v));
}

Value* LaneBody::times_active(Value* v) {
  if (const Op* c = constant(v); c && c->number == 0) return v;
  Value* times = active_ ? builder_.emit(Opcode::cast_, {active_}, static_cast<std::int64_t>(v->type.kind()))
                         : builder_.number(lanes_, v->type);
  return builder_.mul({v, times});
}

void LaneBody::summed(const Op* op) {
  std::vector<Value*> operands;
  for (Value* v : op->operands) operands.push_back(now(v));
  switch (op->code) {
    case Opcode::get_:
      break;
    case Opcode::set_:
    case Opcode::add_at_:
      operands.back() = sum_of(op->operands.back());
      break;
    case Opcode::mul_:
    case Opcode::div_:
      for (std::size_t i = 0; i < 2; ++i)
        if (plan_.varying.contains(op->operands[i])) operands[i] = sum_of(op->operands[i]);
      break;
    default:
      for (std::size_t i = 0; i < operands.size(); ++i) operands[i] = sum_of(op->operands[i]);
  }
  define(op, builder_.emit(op->code, operands));
}

void LaneBody::pack(Value* index) {
  if (lanes_ == 1) return;
  std::unordered_set<const Value*> done;
  ir::walk(plan_.loop->blocks[1], [&](const Op* op) {
    if (!op->is(Opcode::get_) || !plan_.packed.contains(op->operands[0]) ||
        !done.insert(op->operands[0]).second)
      return;
    Value* t = now(op->operands[0]);
    Value* n = builder_.emit(Opcode::dim_, {t}, 1);
    const std::int64_t dims[] = {t->type.dims()[1], lanes_};
    // Memory: the loop sets all of it.
    Value* none = builder_.undef(ir::F64);
    Value* rows = builder_.emit(Opcode::fill_, {none, n, builder_.integer(lanes_)}, 0, dims);
    packed_[op->operands[0]] =
        build_for(builder_, builder_.integer(0), n, rows, [&](ir::Builder& inside, Value* i, Value* all) {
          Value* row = active_ ? inside.emit(Opcode::lane_get_, {t, index, i, active_})
                               : inside.emit(Opcode::get_, {t, index, i});
          return inside.emit(Opcode::set_, {all, i, lane_, row});
        });
  });
}

void LaneBody::plain(const Op* op) {
  std::vector<Value*> operands;
  for (Value* v : op->operands) operands.push_back(now(v));
  ir::clone_over(builder_, *op, std::move(operands), now_);
}

void LaneBody::get(const Op* op) {
  if (is_summed(op->result())) return summed(op);
  if (!varies(op->result())) return plain(op);
  std::vector<Value*> operands;
  for (Value* v : op->operands) operands.push_back(now(v));
  if (guard(*op, operands))
    if (Value* const read = whole_or_by_lanes(*op, operands)) return define(op, read);
  const auto row = packed_.find(op->operands[0]);
  if (row != packed_.end() && op->operands[1] == plan_.iteration && !varies(op->operands[2]))
    return define(op, builder_.emit(Opcode::get_, {row->second, operands[2], lane_}));
  const bool own = varies(op->operands[0]);
  if (own) operands.push_back(lane_);
  if (active_ && (!own || scattered(*op, op->operands.size()))) {
    operands.push_back(active_);
    return define(op, builder_.emit(Opcode::lane_get_, operands));
  }
  define(op, builder_.emit(Opcode::get_, operands));
}

std::optional<std::int64_t> LaneBody::lane_step(const Value* index) {
  if (!varies(index)) return 0;
  if (index == plan_.iteration) return 1;
  const Op* const def = index->def;
  if (!def) {
    const bool counts = plan_.down && index->index == plan_.index && index->block == plan_.loop->blocks[1];
    return counts ? std::optional<std::int64_t>(1) : std::nullopt;
  }
  if (!def->is(Opcode::add_, Opcode::sub_)) return {};
  if (const auto [known, unknown] = steps_.try_emplace(index); !unknown) return known->second;
  const auto x = lane_step(def->operands[0]), y = lane_step(def->operands[1]);
  std::int64_t step = 0;
  if (!x || !y) return {};
  if (def->is(Opcode::add_) ? __builtin_add_overflow(*x, *y, &step) : __builtin_sub_overflow(*x, *y, &step)) return {};
  return steps_[index] = step;
}

Value* LaneBody::first_of(Value* index, std::unordered_map<const Value*, Value*>& made) {
  if (!varies(index)) return now(index);
  if (index == plan_.iteration) return first_;
  if (!index->def) return builder_.add({first_, builder_.integer(1)});
  if (const auto known = made.find(index); known != made.end()) return known->second;
  Value* const x = first_of(index->def->operands[0], made);
  return made[index] = builder_.emit(index->def->code, {x, first_of(index->def->operands[1], made)});
}

Value* LaneBody::whole_or_by_lanes(const Op& op, const std::vector<Value*>& guarded) {
  const auto rank = static_cast<std::size_t>(op.operands[0]->type.rank());
  for (std::size_t d = 1; d <= rank; ++d)
    if (!(op.operands[d]->type == ir::I64) || (d < rank && varies(op.operands[d]))) return nullptr;
  if (lane_step(op.operands[rank]) != 1) return nullptr;
  std::unordered_map<const Value*, Value*> made;
  Value* const first = first_of(op.operands[rank], made);
  Value* const tensor = guarded.front();
  Value* const count = active_ ? active_ : builder_.integer(lanes_);
  Value* in_range = nullptr;
  std::vector<Value*> whole = guarded;
  for (std::size_t d = 1; d <= rank; ++d) {
    Value* const size = builder_.emit(Opcode::dim_, {tensor}, static_cast<std::int64_t>(d - 1));
    Value* const from = d < rank ? now(op.operands[d]) : first;
    Value* const most = builder_.sub({size, d < rank ? builder_.integer(1) : count});
    Value* const here =
        builder_.emit(Opcode::land_, {builder_.le({builder_.integer(0), from}), builder_.le({from, most})});
    in_range = in_range ? builder_.land({in_range, here}) : here;
    whole[d] = d < rank ? from : builder_.add({splat(from), lane_});
  }
  const bool reads = op.is(Opcode::get_);
  const Opcode some = reads ? Opcode::lane_get_ : Opcode::lane_add_at_;
  Op* const branch = builder_.branch(in_range, {type_of(op.result())});
  Block* const outer = builder_.block();
  for (const std::size_t side : {0u, 1u}) {
    builder_.set_block(branch->blocks[side]);
    std::vector<Value*> operands = side == 0 ? whole : guarded;
    if (active_) operands.push_back(active_);
    builder_.yield({builder_.emit(active_ ? some : op.code, operands)});
  }
  builder_.set_block(outer);
  return branch->result();
}

bool LaneBody::scattered(const Op& op, std::size_t last) const {
  return std::any_of(op.operands.begin() + 1, op.operands.begin() + static_cast<std::ptrdiff_t>(last),
                     [&](const Value* v) { return varies(v); });
}

void LaneBody::update(const Op* op) {
  if (is_summed(op->result())) return summed(op);
  std::vector<Value*> operands;
  for (Value* v : op->operands) operands.push_back(now(v));
  const bool guarded = guard(*op, operands);
  const bool shared = is_shared(op->result());
  const bool lanes = scattered(*op, op->operands.size() - 1) || guarded;
  if (taken_) operands.back() = chosen(*op, operands);
  if (taken_ && shared && !lanes) {
    operands.back() = sum(operands.back());
  } else if (shared && !lanes) {
    operands.back() = sum_of(op->operands.back());
  } else if (shared || varies(op->result())) {
    if (!shared) {
      operands[0] = in_lanes(op->operands[0]);
      operands.insert(operands.end() - 1, lane_);
    }
    if (!taken_) operands.back() = in_lanes(op->operands.back());
    if (guarded)
      if (Value* const added = whole_or_by_lanes(*op, operands)) return define(op, added);
    if (active_ && lanes) {
      operands.push_back(active_);
      return define(op,
                    builder_.emit(op->is(Opcode::set_) ? Opcode::lane_set_ : Opcode::lane_add_at_, operands));
    }
  }
  define(op, builder_.emit(op->code, operands));
}

bool LaneBody::guard(const Op& op, std::vector<Value*>& operands) {
  if (!taken_ || !plan_.guarded.contains(&op)) return false;
  for (std::size_t d = 1; d <= static_cast<std::size_t>(op.operands[0]->type.rank()); ++d)
    operands[d] = builder_.select({taken_, in_lanes(op.operands[d]), splat(builder_.integer(0))});
  return true;
}

Value* LaneBody::chosen(const Op& op, std::vector<Value*> operands) {
  Value* const given = in_lanes(op.operands.back());
  Value* otherwise = nullptr;
  if (op.is(Opcode::add_at_)) {
    otherwise = splat(builder_.number(-0.0, ir::Type(given->type.kind())));
  } else {
    operands.back() = active_;
    if (!active_) operands.pop_back();
    otherwise = builder_.emit(active_ ? Opcode::lane_get_ : Opcode::get_, operands);
  }
  return builder_.select({taken_, given, otherwise});
}

void LaneBody::tape(const Op* op) {
  if (op->is(Opcode::push_)) {
    const bool lanes = varying_tape(op->integer);
    std::vector<Value*> operands;
    for (Value* v : op->operands) operands.push_back(lanes ? in_lanes(v) : now(v));
    builder_.op(Opcode::push_, operands)->integer = own_tape(op->integer);
    return;
  }
  const std::vector<ir::Type> types = types_of(op->results);
  Op* pop = builder_.op(Opcode::pop_, {}, types);
  pop->integer = own_tape(op->integer);
  give_results(op, pop);
}

std::vector<ir::Type> LaneBody::types_of(const std::vector<Value*>& values) const {
  std::vector<ir::Type> types;
  for (const Value* v : values) types.push_back(type_of(v));
  return types;
}

void LaneBody::give_results(const Op* op, const Op* copy) {
  for (std::size_t i = 0; i < op->results.size(); ++i) {
    copy->results[i]->name = op->results[i]->name;
    now_[op->results[i]] = copy->results[i];
  }
}

std::int64_t LaneBody::own_tape(std::int64_t tape) {
  if (plan_.outer_tapes.contains(tape)) return tapes_.of(module_, plan_, tape, lanes_);
  const auto [it, added] = own_tapes_.try_emplace(tape, 0);
  if (added) it->second = module_.new_tape();
  return it->second;
}

bool LaneBody::varying_tape(std::int64_t tape) {
  if (lanes_ == 1) return false;
  if (plan_.outer_tapes.contains(tape)) return true;
  if (varying_tapes_.empty())
    ir::walk(plan_.loop->blocks[1], [&](const Op* op) {
      if (op->is(Opcode::pop_)) varying_tapes_[op->integer] = varies(op->results[0]);
    });
  const auto it = varying_tapes_.find(tape);
  return it != varying_tapes_.end() && it->second;
}

void LaneBody::loop(const Op* op) {
  const std::vector<ir::Type> types = types_of(op->results);
  std::vector<Value*> initial;
  for (std::size_t i = 0; i < op->operands.size(); ++i) initial.push_back(as(op->results[i], op->operands[i]));
  Op* copy = builder_.op(Opcode::loop_, initial, types);
  Block* const outer = builder_.block();
  for (std::size_t k = 0; k < 2; ++k) {
    Block* b = module_.new_block(copy, outer->function);
    copy->blocks.push_back(b);
    for (std::size_t i = 0; i < types.size(); ++i) {
      Value* p = op->blocks[k]->params[i];
      now_[p] = module_.add_param(b, types[i], p->name);
    }
    builder_.set_block(b);
    block(op->blocks[k]);
    std::vector<Value*> results;
    const Op* yield = op->blocks[k]->ops.back();
    for (std::size_t i = 0; i < yield->operands.size(); ++i)
      results.push_back(k == 0 ? now(yield->operands[i]) : as(op->results[i], yield->operands[i]));
    builder_.yield(results);
  }
  builder_.set_block(outer);
  give_results(op, copy);
}

/// What a side of a branch has changed, as it was before.
Value* LaneBody::before(Value* v, const Block* side) {
  while (made_in(v, side))
    v = v->def->is(Opcode::branch_) ? v->def->blocks[0]->ops.back()->operands[v->index] : v->def->operands[0];
  return v;
}

/// A side of a branch that is worth a question whether a lane takes it: with much to do where the other one
/// leaves all as it is, and of which nothing is left but its results. (Where both have something to do, as
/// where a formula replaces another one near a singular point, most lanes take the same side.)
bool LaneBody::branch_on_any_lane(const Op* op, std::size_t side) const {
  constexpr std::int64_t much = 24;
  if (lanes_ == 1 || weight(op->blocks[side]) < much || weight(op->blocks[1 - side]) > 0) return false;
  bool alone = std::ranges::all_of(
      op->results, [&](const Value* v) { return v->type.is_scalar() && varies(v) && !is_summed(v); });
  ir::walk(op->blocks[side], [&](const Op* o) {
    alone &= !o->is(Opcode::push_, Opcode::pop_) && !is_write(*o) && !o->callee &&
             ir::info(o->code).effect == ir::Effect::none &&
             std::ranges::none_of(o->results, [&](const Value* v) { return is_shared(v) || is_summed(v); });
  });
  return alone;
}

/// What a side of a branch gives in lanes; null for a tensor that all iterations change.
std::vector<Value*> LaneBody::side(const Op* op, std::size_t k, Value* taken) {
  std::vector<Value*> results;
  Value* const around = std::exchange(taken_, taken);
  block(op->blocks[k]);
  taken_ = around;
  for (Value* v : op->blocks[k]->ops.back()->operands) {
    results.push_back(is_shared(v) ? nullptr : in_lanes(v));
    // The other side, and what follows, goes on with what this one has made of a tensor that all iterations
    // change.
    if (is_shared(v)) now_[before(v, op->blocks[k])] = now(v);
  }
  return results;
}

/// Both sides in every lane (plan_lanes saw that they can be), then a choice. A side with much to do is left
/// out where no lane takes it, as weights that are zero, or distances beyond a cutoff, have it for many iterations
/// on end. (Branches on superword condition codes: Shin, "Introducing control flow into vectorized code",
/// PACT 2007.)
void LaneBody::both_sides(const Op* op) {
  Value* const condition = now(op->operands[0]);
  const auto taken = [&](std::size_t k) {
    Value* const here = k == 0 ? condition : builder_.emit(Opcode::lnot_, {condition});
    return taken_ ? builder_.land({taken_, here}) : here;
  };
  const auto choose = [&](const std::vector<Value*>& first, const std::vector<Value*>& second,
                          std::size_t i) {
    return builder_.select({condition, first[i], second[i]});
  };
  for (const std::size_t k : {0u, 1u}) {
    if (!branch_on_any_lane(op, k)) continue;
    const std::vector<Value*> other = side(op, 1 - k, taken(1 - k));
    Value* const here = taken(k);
    Op* const guard = builder_.branch(builder_.emit(Opcode::lane_any_, {here}), ir::types_of(other));
    Block* const outer = builder_.block();
    builder_.set_block(guard->blocks[0]);
    const std::vector<Value*> own = side(op, k, here);
    std::vector<Value*> chosen;
    for (std::size_t i = 0; i < own.size(); ++i)
      chosen.push_back(choose(k == 0 ? own : other, k == 0 ? other : own, i));
    builder_.yield(chosen);
    builder_.set_block(guard->blocks[1]);
    builder_.yield(other);
    builder_.set_block(outer);
    give_results(op, guard);
    return;
  }
  const std::vector<Value*> first = side(op, 0, taken(0)), second = side(op, 1, taken(1));
  for (std::size_t i = 0; i < op->results.size(); ++i) {
    // A tensor that all iterations change has been changed, by the lanes that take a side.
    if (!first[i]) {
      now_[op->results[i]] = now(before(op->blocks[1]->ops.back()->operands[i], op->blocks[1]));
      continue;
    }
    Value* chosen = choose(first, second, i);
    chosen->name = op->results[i]->name;
    now_[op->results[i]] = chosen;
  }
}

void LaneBody::branch(const Op* op) {
  if (varies(op->operands[0])) return both_sides(op);
  const std::vector<ir::Type> types = types_of(op->results);
  Op* copy = builder_.branch(now(op->operands[0]), types);
  Block* const outer = builder_.block();
  for (std::size_t k = 0; k < 2; ++k) {
    builder_.set_block(copy->blocks[k]);
    block(op->blocks[k]);
    std::vector<Value*> results;
    for (std::size_t i = 0; i < types.size(); ++i)
      results.push_back(as(op->results[i], op->blocks[k]->ops.back()->operands[i]));
    builder_.yield(results);
  }
  builder_.set_block(outer);
  give_results(op, copy);
}

}  // namespace lantern::passes
