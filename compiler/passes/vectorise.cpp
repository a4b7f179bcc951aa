// A planned loop written again with lanes: first whole blocks of trips, then what is left with idle lanes.
//
//   for (i = lo; i < hi; ++i) BODY       becomes      for (; i + W <= hi; i += W) BODY in lanes i .. i+W-1
//                                                     if (i < hi) BODY in lanes i .. hi-1, the rest repeat
//                                                     hi-1
#include "lantern/compiler/passes/vectorise.hpp"

#include <algorithm>
#include <functional>
#include <memory>

#include "lantern/compiler/passes/lanes.hpp"
#include "lantern/compiler/passes/remarks.hpp"
#include "lantern/compiler/passes/simplify.hpp"
#include "lantern/ir/error.hpp"

namespace lantern::passes {

namespace {

ir::Type with_lanes(const ir::Type& t, int lanes) {
  if (t.is_scalar()) return ir::Type::vector(t.kind(), lanes);
  std::vector<std::int64_t> dims = t.dims();
  dims.push_back(lanes);
  return ir::Type::tensor(t.element(), std::move(dims));
}

/// True for an integer of the state that moves on with the index.
bool counts_along(const LanePlan& plan, std::size_t state) {
  return !plan.down && state != plan.index && step_of(plan.loop, state);
}

/// What stands for a value of the code around the loop by now.
using Resolve = std::function<Value*(Value*)>;

/// One version of a loop's body in lanes.
class LaneBody {
 public:
  LaneBody(ir::Module& module, const LanePlan& plan, const Resolve& outside, Block* into)
      : module_(module), plan_(plan), outside_(outside), builder_(module, into) {}

  /// The trips `first` .. of a whole block, or as many as `active` says.
  /// `state`: the loop's state by body parameter, vectors for sums. Gives the next state in the same form.
  std::vector<Value*> run(Value* lo, Value* first, Value* active, const std::vector<Value*>& state) {
    const Block* body = plan_.loop->blocks[1];
    builder_.loc = plan_.loop->loc;
    lane_ = lane_index();
    find_wanted();
    if (active) {
      working_ = builder_.emit(Opcode::lt_, {lane_, splat(active)});
      active_ = active;
    }
    Value* const index = builder_.emit(Opcode::add_, {splat(first), lane_});
    now_[plan_.trip] = index;
    for (Value* p : body->params) {
      if (p->index == plan_.index) {
        if (plan_.down) now_[p] = builder_.emit(Opcode::add_, {index, splat(builder_.integer(1))});
      } else if (counts_along(plan_, p->index)) {
        const std::int64_t step = *step_of(plan_.loop, p->index);
        Value* trips = builder_.emit(Opcode::sub_, {index, splat(lo)});
        if (step != 1) trips = builder_.emit(Opcode::mul_, {trips, splat(builder_.integer(step))});
        now_[p] = builder_.emit(Opcode::add_, {trips, splat(now(plan_.loop->operands[p->index]))});
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
      if (p->index == plan_.index || counts_along(plan_, p->index))
        next.push_back(nullptr);
      else
        next.push_back(plan_.reductions.contains(p) ? in_lanes(v) : now(v));
    }
    return next;
  }

  /// The sum of a vector over the lanes that are not idle.
  Value* sum(Value* v) { return builder_.emit(Opcode::lane_sum_, {only_active(v)}); }
  ir::Builder& builder() { return builder_; }

 private:
  bool varies(const Value* v) const { return plan_.is_varying(v); }

  Value* now(Value* v) const {
    const auto it = now_.find(v);
    return it == now_.end() ? outside_(v) : it->second;
  }
  Value* lane_index() { return builder_.emit(Opcode::lane_index_, {}, plan_.lanes); }
  Value* splat(Value* v) { return builder_.emit(Opcode::lane_splat_, {v}, plan_.lanes); }

  /// A scalar as a vector, a tensor with a dimension of lanes.
  Value* in_lanes(Value* v) {
    Value* x = now(v);
    if (varies(v)) return x;
    if (v->type.is_scalar()) return x->type.is_vector() ? x : splat(x);
    // A tensor of one value throughout: plan_lanes saw to that.
    const Op* def = v->def;
    if (def->is(Opcode::undef_))
      return builder_.op(Opcode::undef_, {}, {with_lanes(v->type, plan_.lanes)})->result();
    if (def->is(Opcode::zeros_like_)) return zeros(with_lanes(v->type, plan_.lanes), now(def->operands[0]));
    std::vector<Value*> operands;
    for (Value* o : def->operands) operands.push_back(now(o));
    operands.push_back(builder_.integer(plan_.lanes));
    return builder_.emit(Opcode::fill_, operands, 0, with_lanes(v->type, plan_.lanes).dims());
  }

  /// Zeros of a type whose first dimensions are those of `like`; a dimension of lanes may follow.
  Value* zeros(const ir::Type& type, Value* like) {
    std::vector<Value*> operands{builder_.number(0, ir::Type(type.element()))};
    for (int i = 0; i < type.rank(); ++i)
      operands.push_back(i < like->type.rank() ? builder_.emit(Opcode::dim_, {like}, i)
                                               : builder_.integer(plan_.lanes));
    return builder_.emit(Opcode::fill_, operands, 0, type.dims());
  }

  Value* only_active(Value* vector) {
    if (!working_) return vector;
    Value* zero = splat(builder_.number(0, ir::Type(vector->type.kind())));
    return builder_.emit(Opcode::select_, {working_, vector, zero});
  }

  void block(const Block* b) {
    for (Op* op : b->ops)
      if (!op->is(Opcode::yield_)) operation(op);
  }

  void operation(Op* op) {
    if (op->results.size() == 1 && op->result() == plan_.trip) return;
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
    if (!op->results.empty() && plan_.is_summed(op->result())) return summed(op);
    if (op->results.empty() || !varies(op->result()) || op->is(Opcode::dim_)) return plain(op);
    std::vector<Value*> operands;
    for (Value* v : op->operands) operands.push_back(in_lanes(v));
    define(op, builder_.emit(op->code, operands, op->integer));
  }

  void define(const Op* op, Value* v) {
    if (!v->name) v->name = op->result()->name;
    now_[op->result()] = v;
    if (wanted_.contains(op->result())) sums_[op->result()] = sum(v);
  }

  /// Values whose sum is asked for further in: it is taken where they are made.
  void find_wanted() {
    ir::walk(plan_.loop->blocks[1], [&](const Op* op) {
      if (op->results.empty() || !plan_.is_summed(op->result()) || !op->result()->type.is_scalar()) return;
      for (const Value* x : op->operands)
        if (varies(x)) wanted_.insert(x);
    });
  }

  /// A value summed over the lanes.
  Value* sum_of(Value* v) {
    if (plan_.is_summed(v)) return now(v);
    if (const auto it = sums_.find(v); it != sums_.end()) return it->second;
    if (!varies(v)) return times_active(now(v));
    // A factor that all lanes share comes after the sum.
    if (const Op* def = v->def; def && def->is(Opcode::mul_))
      for (std::size_t i = 0; i < 2; ++i)
        if (!varies(def->operands[i]) && now(def->operands[i])->type.is_scalar())
          return builder_.emit(Opcode::mul_, {now(def->operands[i]), sum_of(def->operands[1 - i])});
    return sum(now(v));
  }

  /// What all lanes have alike, as often as there are lanes at work.
  Value* times_active(Value* v) {
    if (const Op* c = constant(v); c && c->number == 0) return v;
    Value* times = active_
                       ? builder_.emit(Opcode::cast_, {active_}, static_cast<std::int64_t>(v->type.kind()))
                       : builder_.number(plan_.lanes, v->type);
    return builder_.emit(Opcode::mul_, {v, times});
  }

  /// An operation of which only the sum over the lanes is needed.
  void summed(const Op* op) {
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

  /// Rows that inner loops read over and over are laid out once, lane beside lane.
  void pack(Value* index) {
    std::unordered_set<const Value*> done;
    ir::walk(plan_.loop->blocks[1], [&](const Op* op) {
      if (!op->is(Opcode::get_) || !plan_.packed.contains(op->operands[0]) ||
          !done.insert(op->operands[0]).second)
        return;
      Value* t = now(op->operands[0]);
      Value* n = builder_.emit(Opcode::dim_, {t}, 1);
      const std::int64_t dims[] = {t->type.dims()[1], plan_.lanes};
      Value* rows =
          builder_.emit(Opcode::fill_, {builder_.number(0), n, builder_.integer(plan_.lanes)}, 0, dims);
      Op* loop = builder_.op(Opcode::loop_, {builder_.integer(0), rows}, {ir::I64, rows->type});
      Block* const outer = builder_.block();
      for (int k = 0; k < 2; ++k) {
        Block* b = module_.new_block(loop, outer->function);
        loop->blocks.push_back(b);
        Value* i = module_.add_param(b, ir::I64);
        Value* all = module_.add_param(b, rows->type);
        builder_.set_block(b);
        if (k == 0) {
          builder_.yield({builder_.emit(Opcode::lt_, {i, n})});
        } else {
          Value* row = active_ ? builder_.emit(Opcode::lane_get_, {t, index, i, active_})
                               : builder_.emit(Opcode::get_, {t, index, i});
          builder_.yield({builder_.emit(Opcode::add_, {i, builder_.integer(1)}),
                          builder_.emit(Opcode::set_, {all, i, lane_, row})});
        }
      }
      builder_.set_block(outer);
      packed_[op->operands[0]] = loop->results[1];
    });
  }

  /// What all lanes compute alike.
  void plain(const Op* op) {
    std::vector<Value*> operands;
    for (Value* v : op->operands) operands.push_back(now(v));
    std::vector<ir::Type> types;
    for (const Value* v : op->results) types.push_back(v->type);
    Op* copy = builder_.op(op->code, operands, types);
    copy->number = op->number;
    copy->integer = op->integer;
    copy->text = op->text;
    for (std::size_t i = 0; i < op->results.size(); ++i) {
      copy->results[i]->name = op->results[i]->name;
      now_[op->results[i]] = copy->results[i];
    }
  }

  void get(const Op* op) {
    if (plan_.is_summed(op->result())) return summed(op);
    if (!varies(op->result())) return plain(op);
    std::vector<Value*> operands;
    for (Value* v : op->operands) operands.push_back(now(v));
    const auto row = packed_.find(op->operands[0]);
    if (row != packed_.end() && op->operands[1] == plan_.trip && !varies(op->operands[2]))
      return define(op, builder_.emit(Opcode::get_, {row->second, operands[2], lane_}));
    const bool own = varies(op->operands[0]);
    if (own) operands.push_back(lane_);
    if (active_ && (!own || scattered(*op, op->operands.size()))) {
      operands.push_back(active_);
      return define(op, builder_.emit(Opcode::lane_get_, operands));
    }
    define(op, builder_.emit(Opcode::get_, operands));
  }

  /// True where the lanes access different elements.
  bool scattered(const Op& op, std::size_t last) const {
    return std::any_of(op.operands.begin() + 1, op.operands.begin() + static_cast<std::ptrdiff_t>(last),
                       [&](const Value* v) { return varies(v); });
  }

  void update(const Op* op) {
    if (plan_.is_summed(op->result())) return summed(op);
    std::vector<Value*> operands;
    for (Value* v : op->operands) operands.push_back(now(v));
    const bool shared = plan_.is_shared(op->result());
    const bool lanes = scattered(*op, op->operands.size() - 1);
    if (shared && !lanes) {
      operands.back() = sum_of(op->operands.back());
    } else if (shared || varies(op->result())) {
      if (!shared) {
        operands[0] = in_lanes(op->operands[0]);
        operands.insert(operands.end() - 1, lane_);
      }
      operands.back() = in_lanes(op->operands.back());
      if (active_ && lanes) {
        operands.push_back(active_);
        return define(
            op, builder_.emit(op->is(Opcode::set_) ? Opcode::lane_set_ : Opcode::lane_add_at_, operands));
      }
    }
    define(op, builder_.emit(op->code, operands));
  }

  void tape(const Op* op) {
    if (op->is(Opcode::push_)) {
      const bool lanes = varying_tape(op->integer);
      std::vector<Value*> operands;
      for (Value* v : op->operands) operands.push_back(lanes ? in_lanes(v) : now(v));
      builder_.op(Opcode::push_, operands)->integer = own_tape(op->integer);
      return;
    }
    std::vector<ir::Type> types;
    for (const Value* v : op->results) types.push_back(type_of(v));
    Op* pop = builder_.op(Opcode::pop_, {}, types);
    pop->integer = own_tape(op->integer);
    for (std::size_t i = 0; i < types.size(); ++i) {
      pop->results[i]->name = op->results[i]->name;
      now_[op->results[i]] = pop->results[i];
    }
  }

  /// Each version of the body has tapes of its own, so that it is seen to pop whatever it pushes.
  std::int64_t own_tape(std::int64_t tape) {
    if (plan_.outer_tapes.contains(tape)) return tape;
    const auto [it, added] = own_tapes_.try_emplace(tape, 0);
    if (added) it->second = module_.new_tape();
    return it->second;
  }

  /// A tape holds vectors where what is popped varies.
  bool varying_tape(std::int64_t tape) {
    if (plan_.outer_tapes.contains(tape)) return true;
    if (tapes_.empty())
      ir::walk(plan_.loop->blocks[1], [&](const Op* op) {
        if (op->is(Opcode::pop_)) tapes_[op->integer] = varies(op->results[0]);
      });
    const auto it = tapes_.find(tape);
    return it != tapes_.end() && it->second;
  }

  ir::Type type_of(const Value* v) const { return varies(v) ? with_lanes(v->type, plan_.lanes) : v->type; }
  Value* as(const Value* like, Value* v) { return varies(like) ? in_lanes(v) : now(v); }

  void loop(const Op* op) {
    std::vector<Value*> initial;
    std::vector<ir::Type> types;
    for (std::size_t i = 0; i < op->operands.size(); ++i) {
      initial.push_back(as(op->results[i], op->operands[i]));
      types.push_back(type_of(op->results[i]));
    }
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
    for (std::size_t i = 0; i < types.size(); ++i) {
      copy->results[i]->name = op->results[i]->name;
      now_[op->results[i]] = copy->results[i];
    }
  }

  void branch(const Op* op) {
    if (varies(op->operands[0])) {
      // Both sides in every lane, then a choice (plan_lanes saw that there is nothing but arithmetic).
      std::vector<Value*> sides[2];
      for (std::size_t k = 0; k < 2; ++k) {
        block(op->blocks[k]);
        for (Value* v : op->blocks[k]->ops.back()->operands) sides[k].push_back(in_lanes(v));
      }
      for (std::size_t i = 0; i < op->results.size(); ++i) {
        Value* chosen = builder_.emit(Opcode::select_, {now(op->operands[0]), sides[0][i], sides[1][i]});
        chosen->name = op->results[i]->name;
        now_[op->results[i]] = chosen;
      }
      return;
    }
    std::vector<ir::Type> types;
    for (const Value* v : op->results) types.push_back(type_of(v));
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
    for (std::size_t i = 0; i < types.size(); ++i) {
      copy->results[i]->name = op->results[i]->name;
      now_[op->results[i]] = copy->results[i];
    }
  }

  ir::Module& module_;
  const LanePlan& plan_;
  const Resolve& outside_;
  ir::Builder builder_;
  std::unordered_map<const Value*, Value*> now_;
  std::unordered_map<std::int64_t, bool> tapes_;
  std::unordered_map<std::int64_t, std::int64_t> own_tapes_;
  std::unordered_set<const Value*> wanted_;
  std::unordered_map<const Value*, Value*> sums_;
  std::unordered_map<const Value*, Value*> packed_;
  Value* lane_ = nullptr;
  Value* working_ = nullptr;  ///< true in the lanes that work; null where all do
  Value* active_ = nullptr;   ///< how many that are
};

/// Puts the blocked loops where the loop stood; its results are replaced by what they give.
class Blocked {
 public:
  Blocked(ir::Module& module, const LanePlan& plan, const Resolve& outside, Block* into)
      : module_(module), plan_(plan), outside_(outside), b_(module, into) {
    b_.loc = plan.loop->loc;
    for (std::size_t i = 0; i < plan.loop->operands.size(); ++i)
      if (i != plan.index && !counts_along(plan, i)) carried_.push_back(i);
  }

  std::vector<Value*> run() { return plan_.down ? down() : up(); }

 private:
  // for (i = lo; i + W <= hi; i += W) block; if (i < hi) the rest
  std::vector<Value*> up() {
    const Op* loop = plan_.loop;
    Value* const lo = loop->operands[plan_.index];
    const Op* fixed = constant(plan_.bound);
    Value* const hi = fixed ? b_.integer(fixed->integer) : outside_(plan_.bound);
    const std::vector<Value*> whole = blocks(lo, lo, [&](ir::Builder& test, Value* i) {
      return test.emit(Opcode::lt_, {test.emit(Opcode::add_, {i, test.integer(plan_.lanes - 1)}), hi});
    });
    const std::vector<Value*> all = rest(lo, whole[0], hi, {whole.begin() + 1, whole.end()});
    std::vector<Value*> results = finish(whole, all);
    Value* trips = nullptr;
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (results[i]) continue;
      const std::int64_t step = *step_of(loop, i);
      if (!trips) trips = b_.emit(Opcode::sub_, {b_.emit(Opcode::imax_, {lo, hi}), lo});
      Value* moved = step == 1 ? trips : b_.emit(Opcode::mul_, {trips, b_.integer(step)});
      results[i] = b_.emit(Opcode::add_, {loop->operands[i], moved});
    }
    return results;
  }

  // i = n - n % W; if (i < n) the rest; while (0 < i) { i -= W; block }
  std::vector<Value*> down() {
    Value* const n = plan_.loop->operands[plan_.index];
    Value* const w = b_.integer(plan_.lanes);
    Value* const zero = b_.integer(0);
    Value* const start =
        b_.emit(Opcode::mul_, {b_.emit(Opcode::div_, {b_.emit(Opcode::imax_, {n, zero}), w}), w});
    std::vector<Value*> before;
    for (const std::size_t i : carried_) before.push_back(is_sum(i) ? nullptr : plan_.loop->operands[i]);
    const std::vector<Value*> some = rest(zero, start, n, before);
    for (std::size_t k = 0; k < carried_.size(); ++k)
      if (!is_sum(carried_[k])) before[k] = some[k];
    const std::vector<Value*> whole = blocks(
        zero, start,
        [&](ir::Builder& test, Value* i) {
          return test.emit(Opcode::lt_, {zero, i});
        },
        before);
    std::vector<Value*> last{whole.begin() + 1, whole.end()};
    for (std::size_t k = 0; k < carried_.size(); ++k)
      if (is_sum(carried_[k])) last[k] = some[k];
    std::vector<Value*> results = finish(whole, last);
    results[plan_.index] = b_.emit(Opcode::imin_, {n, zero});
    return results;
  }

  /// The loop over whole blocks: the index it ends at, then the carried state, vectors for sums.
  template <class Test>
  std::vector<Value*> blocks(Value* lo, Value* start, Test&& condition_of,
                             const std::vector<Value*>& from = {}) {
    std::vector<Value*> initial{start};
    for (std::size_t k = 0; k < carried_.size(); ++k) {
      const std::size_t i = carried_[k];
      initial.push_back(is_sum(i) ? zeros(b_, i) : from.empty() ? plan_.loop->operands[i] : from[k]);
    }
    std::vector<ir::Type> types;
    for (const Value* v : initial) types.push_back(v->type);
    Op* op = b_.op(Opcode::loop_, initial, types);
    Block* condition = new_block(op, types);
    ir::Builder test(module_, condition);
    test.loc = plan_.loop->loc;
    test.yield({condition_of(test, condition->params[0])});
    Block* body = new_block(op, types);
    for (std::size_t k = 0; k < carried_.size(); ++k) body->params[k + 1]->name = name(carried_[k]);
    LaneBody lanes(module_, plan_, outside_, body);
    ir::Builder& in = lanes.builder();
    in.loc = plan_.loop->loc;
    Value* first = body->params[0];
    if (plan_.down) first = in.emit(Opcode::sub_, {first, in.integer(plan_.lanes)});
    const std::vector<Value*> next =
        lanes.run(lo, first, nullptr, state({body->params.begin() + 1, body->params.end()}));
    std::vector<Value*> values{plan_.down ? first : in.emit(Opcode::add_, {first, in.integer(plan_.lanes)})};
    for (const std::size_t i : carried_) values.push_back(next[i]);
    in.yield(values);
    return op->results;
  }

  /// The incomplete block that starts at `first`, if there is one: the carried state, numbers for sums.
  std::vector<Value*> rest(Value* lo, Value* first, Value* hi, const std::vector<Value*>& before) {
    std::vector<ir::Type> types;
    for (const std::size_t i : carried_) types.push_back(plan_.loop->operands[i]->type);
    Op* op = b_.branch(b_.emit(Opcode::lt_, {first, hi}), types);
    ir::Builder some(module_, op->blocks[0]);
    some.loc = plan_.loop->loc;
    std::vector<Value*> start = before;
    for (std::size_t k = 0; k < carried_.size(); ++k)
      if (is_sum(carried_[k])) start[k] = zeros(some, carried_[k]);
    Value* const active = some.emit(Opcode::sub_, {hi, first});
    LaneBody tail(module_, plan_, outside_, op->blocks[0]);
    const std::vector<Value*> end = tail.run(lo, first, active, state(start));
    std::vector<Value*> values;
    for (const std::size_t i : carried_) values.push_back(is_sum(i) ? tail.sum(end[i]) : end[i]);
    tail.builder().yield(values);
    ir::Builder none(module_, op->blocks[1]);
    values.clear();
    for (std::size_t k = 0; k < carried_.size(); ++k)
      values.push_back(is_sum(carried_[k]) ? none.number(0, types[k]) : before[k]);
    none.yield(values);
    return op->results;
  }

  /// The loop's results: `whole` from the blocks (sums), `last` what came after them, or before.
  std::vector<Value*> finish(const std::vector<Value*>& whole, const std::vector<Value*>& last) {
    std::vector<Value*> results(plan_.loop->operands.size(), nullptr);
    for (std::size_t k = 0; k < carried_.size(); ++k) {
      const std::size_t i = carried_[k];
      results[i] = last[k];
      if (!is_sum(i)) continue;
      Value* total = b_.emit(Opcode::add_, {b_.emit(Opcode::lane_sum_, {whole[k + 1]}), last[k]});
      results[i] = b_.emit(Opcode::add_, {plan_.loop->operands[i], total});
    }
    return results;
  }

  bool is_sum(std::size_t i) const { return plan_.reductions.contains(plan_.loop->blocks[1]->params[i]); }
  const char* name(std::size_t i) const { return plan_.loop->blocks[1]->params[i]->name; }

  Value* zeros(ir::Builder& b, std::size_t i) const {
    return b.emit(Opcode::lane_splat_, {b.number(0, plan_.loop->operands[i]->type)}, plan_.lanes);
  }

  /// The carried state by place in the loop's state.
  std::vector<Value*> state(const std::vector<Value*>& values) const {
    std::vector<Value*> by_index(plan_.loop->operands.size(), nullptr);
    for (std::size_t k = 0; k < carried_.size(); ++k) by_index[carried_[k]] = values[k];
    return by_index;
  }

  Block* new_block(Op* op, const std::vector<ir::Type>& types) {
    Block* b = module_.new_block(op, b_.block()->function);
    for (const ir::Type& t : types) module_.add_param(b, t);
    op->blocks.push_back(b);
    return b;
  }

  ir::Module& module_;
  const LanePlan& plan_;
  const Resolve& outside_;
  ir::Builder b_;
  std::vector<std::size_t> carried_;  ///< state that does not just count
};

/// Which loops of a function run in lanes: the outermost that can. Loops that share a tape do so together.
class Choice {
 public:
  Choice(const ir::Function& f, const TapeUses& tapes, int native) : tapes_(tapes), native_(native) {
    consider(f.body);
    while (refute()) {
    }
    agree();
  }
  const LanePlan* plan(const Op* loop) const {
    const auto it = plans_.find(loop);
    return it == plans_.end() ? nullptr : it->second.get();
  }

 private:
  void consider(const Block* block) {
    ir::walk(const_cast<Block*>(block), [&](Op* op) {
      if (!op->is(Opcode::loop_)) return true;
      auto plan = plan_lanes(op, tapes_, native_);
      if (!plan) return true;
      plans_[op] = std::move(plan);
      return false;
    });
  }

  /// The planned loop around an operation.
  const Op* planned(const Op* op) const {
    for (const Block* b = op->parent; b && b->parent; b = b->parent->parent)
      if (plans_.contains(b->parent)) return b->parent;
    return nullptr;
  }

  /// How many loops lie between an operation and the planned loop around it.
  static std::size_t depth(const Op* op, const Op* planned) {
    std::size_t n = 0;
    for (const Op* around = op->parent->parent; around != planned; around = around->parent->parent)
      n += around->is(Opcode::loop_);
    return n;
  }

  /// Takes out one loop that shares a tape with code that is not in lanes, or in those of a loop further in:
  /// the values would lie in another order. What is inside it may be in lanes.
  bool refute() {
    for (const auto& [loop, plan] : plans_)
      for (const std::int64_t tape : plan->outer_tapes) {
        std::size_t deepest = 0;
        for (const Op* use : tapes_.at(tape))
          if (planned(use) == loop) deepest = std::max(deepest, depth(use, loop));
        for (const Op* use : tapes_.at(tape)) {
          const Op* other = planned(use);
          if (other && depth(use, other) >= deepest) continue;
          const Op* out = loop;
          remark("vectorise", out->loc, "does not run in lanes: its tape is shared with code that does not");
          plans_.erase(out);
          for (const Block* b : out->blocks) consider(b);
          return true;
        }
      }
    return false;
  }

  /// Loops that share a tape have equally many lanes.
  void agree() {
    for (bool changed = true; changed;) {
      changed = false;
      for (auto& [loop, plan] : plans_)
        for (const std::int64_t tape : plan->outer_tapes)
          for (const Op* use : tapes_.at(tape)) {
            const int other = plans_.at(planned(use))->lanes;
            if (other >= plan->lanes) continue;
            plan->lanes = other;
            changed = true;
          }
    }
  }

  const TapeUses& tapes_;
  int native_;
  std::unordered_map<const Op*, std::unique_ptr<LanePlan>> plans_;
};

class Vectoriser : public Rewriter {
 public:
  Vectoriser(ir::Function& f, const Choice& choice) : Rewriter(f), choice_(choice) {}

 protected:
  Action enter(Op* op) override {
    const LanePlan* plan = op->is(Opcode::loop_) ? choice_.plan(op) : nullptr;
    if (!plan) return Action::keep;
    remark("vectorise", op->loc, "runs in " + std::to_string(plan->lanes) + " lanes");
    const std::vector<Value*> results = Blocked(
                                            module(), *plan, [this](Value* v) { return now(v); }, here())
                                            .run();
    for (std::size_t i = 0; i < results.size(); ++i) replace(op->results[i], results[i]);
    return Action::drop;
  }

 private:
  const Choice& choice_;
};

}  // namespace

void vectorise(ir::Module& module, int native) {
  const TapeUses tapes = tape_uses(module);
  bool changed = false;
  for (ir::Function* f : module.functions()) {
    if (!is_direct(*f)) continue;
    const Choice choice(*f, tapes, native);
    if (!Vectoriser(*f, choice).run()) continue;
    changed = true;
    cse(*f);
  }
  if (changed) eliminate_dead(module);
}

}  // namespace lantern::passes
