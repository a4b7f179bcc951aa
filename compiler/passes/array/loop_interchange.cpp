// Nests of two loops, from the inside to the outside.
#include "lantern/compiler/passes/array/loop_interchange.hpp"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <vector>

#include "lantern/compiler/passes/analysis/index_form.hpp"
#include "lantern/compiler/passes/analysis/loop_state.hpp"
#include "lantern/compiler/passes/analysis/loops.hpp"
#include "lantern/compiler/passes/canonical/simplify.hpp"
#include "lantern/compiler/passes/support/build_loop.hpp"
#include "lantern/compiler/passes/support/remarks.hpp"
#include "lantern/ir/clone.hpp"

namespace lantern::passes {

namespace {

constexpr std::int64_t few_iterations = 8;      ///< an inner loop of so many is not worth while
constexpr std::size_t largest_body = 400;  ///< operations

/// True for what computes numbers, and neither fails nor is seen by anybody.
bool computes(const Op& op) {
  const auto number = [](const Value* v) { return v->type.is_scalar() && !v->type.is_vector(); };
  return is_pure(op) && op.results.size() == 1 && number(op.result()) && std::ranges::all_of(op.operands, number) &&
         !divides_integers(op);
}

/// A loop that does nothing but run another one, and compute numbers for it.
class Interchange {
 public:
  Interchange(Op* outer, const Uses& uses) : outer_(outer), uses_(uses) {}

  /// Writes the other order in front where that is worth while, and notes what its results represent.
  bool run(Renaming& instead) {
    if (!perfect() || !counts() || !sums() || !pays()) return false;
    rewrite(instead);
    remark("loop_interchange", inner_->loc,
           "is the outer one of two loops: each sum goes along what it reads");
    return true;
  }

 private:
  // ---- the loops

  const Block* body() const { return outer_->blocks[1]; }
  const Block* inner_body() const { return inner_->blocks[1]; }
  bool outside(const Value* v) const { return !made_in(v, body()) && !made_in(v, outer_->blocks[0]); }

  bool perfect() {
    for (Op* op : body()->ops) {
      if (op->is(Opcode::yield_)) continue;
      if (op->is(Opcode::loop_)) {
        if (inner_) return false;
        inner_ = op;
      } else {
        work_.push_back(op);
      }
    }
    if (!inner_ || body()->ops.size() + inner_body()->ops.size() > largest_body) return false;
    for (Op* op : inner_body()->ops)
      if (!op->is(Opcode::yield_)) work_.push_back(op);
    return std::ranges::all_of(work_, [](const Op* op) { return is_access(*op) || computes(*op); });
  }

  /// What a loop counts by, as a piece of its state; its condition asks for nothing else.
  struct Count {
    std::size_t state = 0;
    Counter counter;
  };
  static std::optional<Count> count(const Op* loop) {
    const auto counter = counter_of(loop);
    if (!counter || !ends_by_comparison(loop)) return {};
    return Count{counter->index->index, *counter};
  }

  bool counts() {
    const auto o = count(outer_), i = count(inner_);
    if (!o || !i) return false;
    by_outer_ = *o;
    by_inner_ = *i;
    if (uses_.count(outer_->results[o->state]) + uses_.count(inner_->results[i->state]) > 0) return false;
    // The inner loop is the same in all iterations.
    if (!outside(inner_->operands[i->state])) return false;
    for (const Op* op : inner_->blocks[0]->ops)
      for (const Value* v : op->operands)
        if (v->block != inner_->blocks[0] && !outside(v)) return false;
    // All other state goes through both.
    if (outer_->results.size() != inner_->results.size()) return false;
    for (std::size_t s = 0; s < outer_->results.size(); ++s) {
      if (s == o->state) continue;
      const Value* const p = body()->params[s];
      const auto& into = uses_.of(p);
      if (into.size() != 1 || into[0].op != inner_ || into[0].operand == i->state) return false;
      const std::size_t at = into[0].operand;
      if (body()->ops.back()->operands[s] != inner_->results[at] || !uses_.once(inner_->results[at]))
        return false;
      state_.push_back({s, at});
    }
    return true;
  }

  // ---- the iterations of the outer loop may come in any order

  /// Nothing is carried but tensors that are read, or of which one element is added to in an iteration.
  bool sums() const {
    return std::ranges::all_of(state_, [&](const auto& s) {
      const auto use = state_use(uses_, outer_, s.first);
      if (!use || use->extreme || use->whole || use->sum) return false;
      return use->updates.empty() || (use->updates.size() == 1 && use->only_summed());
    });
  }

  // ---- whether it is worth while

  /// How an access moves in memory from one iteration of a loop to the next: by so many elements, or far.
  static constexpr std::int64_t far = 1 << 20;
  struct Moves {
    std::int64_t outer = 0, inner = 0;
  };
  static std::optional<std::int64_t> way(const IndexForm& f, const Value* index) {
    const auto s = f.split(index);
    if (!s) return {};
    if (s->coefficient == IndexForm()) return 0;
    const auto n = s->coefficient.number();
    return n ? std::abs(*n) : far;
  }
  std::optional<Moves> moves(const Op& access) const {
    IndexForm flat;
    for (std::size_t d = 0; d < static_cast<std::size_t>(access.operands[0]->type.rank()); ++d) {
      const IndexForm index = index_form(access.operands[1 + d]);
      if (d > 0) flat = flat * size_form(access.operands[0], d);
      flat += index;
    }
    for (const Unknown& u : flat.unknowns())
      if (u.value != by_outer_.counter.index && u.value != by_inner_.counter.index && !u.is_size() &&
          !outside(u.value))
        return {};
    const auto o = way(flat, by_outer_.counter.index), i = way(flat, by_inner_.counter.index);
    if (!o || !i) return {};
    return Moves{*o, *i};
  }

  bool pays() {
    if (const auto n = constant_trip_count(outer_); n && *n < few_iterations) return false;
    constexpr std::int64_t leap = 4;  // beyond this, of a line of the cache less than half is used
    int leaps_now = 0, leaps_then = 0;
    bool by_inner = false;  // moves indices that may be out of range
    for (const Op* op : work_) {
      if (!is_access(*op)) continue;
      const auto m = moves(*op);
      if (!m) return false;
      leaps_now += m->inner >= leap;
      leaps_then += m->outer >= leap;
      // Only sums go inwards, each of an element that stays.
      if (!op->is(Opcode::get_) && (m->outer != 0 || m->inner == 0)) return false;
      for (std::size_t d = 0; d < static_cast<std::size_t>(op->operands[0]->type.rank()); ++d) {
        if (in_range(*op, d)) continue;
        const IndexForm index = index_form(op->operands[1 + d]);
        const auto o = way(index, by_outer_.counter.index), i = way(index, by_inner_.counter.index);
        // What the outer loop alone computes is not computed where the inner one has no iteration.
        if (o != 0 || op->parent == body()) {
          if (i != 0 || !o || *o > 1) return false;
          asked_.push_back({op, d});
        }
        by_inner |= i != 0;
      }
    }
    if (!by_inner && std::ranges::none_of(asked_, [&](const auto& a) { return a.first->parent == body(); }))
      asked_.clear();
    return leaps_then < leaps_now;
  }

  /// Whether the indices that may be out of range as the outer loop goes on are in range in all its iterations, so
  /// that the first one that is not is the same in both orders.
  Value* condition(ir::Builder& b) const {
    Value* all = nullptr;
    const auto need = [&](Opcode compare, Value* x, Value* y) {
      Value* const v = b.emit(compare, {x, y});
      all = all ? b.land({all, v}) : v;
    };
    for (const auto& [op, d] : asked_) {
      const Counter& c = by_outer_.counter;
      const IndexForm index = index_form(op->operands[1 + d]);
      Value *low = materialise(b, index.with(c.index, c.first)), *high = materialise(b, index.with(c.index, c.last));
      if (const auto by = index.split(c.index)->coefficient.number(); by && *by < 0) std::swap(low, high);
      need(Opcode::le_, b.integer(0), low);
      need(Opcode::le_, low, high);
      need(Opcode::lt_, high, materialise(b, size_form(op->operands[0], d)));
    }
    return all;
  }

  // ---- the other order

  /// A loop like another one, over this state; its counter comes first.
  Op* loop_like(ir::Builder& b, const Op& like, const Count& count, const std::vector<Value*>& state) const {
    std::vector<Value*> operands{like.operands[count.state]};
    operands.insert(operands.end(), state.begin(), state.end());
    Op* const loop = b.op(Opcode::loop_, operands, ir::types_of(operands));
    ir::take_attributes(*loop, like);
    for (int i = 0; i < 2; ++i) {
      loop->blocks.push_back(b.module().new_block(loop, b.block()->function));
      for (const Value* v : operands) b.module().add_param(loop->blocks.back(), v->type);
    }
    for (const std::size_t i : {0u, 1u})
      loop->blocks[i]->params[0]->name = like.blocks[i]->params[count.state]->name;
    ir::Builder condition(b.module(), loop->blocks[0], like.loc);
    Renaming names{{like.blocks[0]->params[count.state], loop->blocks[0]->params[0]}};
    condition.yield(ir::clone(condition, *like.blocks[0], names));
    return loop;
  }

  /// What it counts by in the next iteration.
  static Value* next(ir::Builder& b, const Op& like, const Count& count, Value* index) {
    const Op& step = *like.blocks[1]->ops.back()->operands[count.state]->def;
    return b.emit(step.is(Opcode::sub_) ? Opcode::sub_ : Opcode::add_, {index, b.integer(1)});
  }

  void rewrite(Renaming& instead) {
    ir::Builder b = ir::Builder::before(outer_, inner_->loc);
    std::vector<Value*> results;
    if (asked_.empty()) {
      results = other_order(b);
    } else {
      std::vector<ir::Type> types;
      for (const auto& [s, at] : state_) types.push_back(outer_->results[s]->type);
      results = build_branch(
          b, condition(b), types, [&](ir::Builder& other) { return other_order(other); },
          [&](ir::Builder& same) {
            Renaming names;
            const Op* const copy = ir::clone(same, *outer_, names);
            std::vector<Value*> given;
            for (const auto& [s, at] : state_) given.push_back(copy->results[s]);
            return given;
          });
    }
    for (std::size_t i = 0; i < state_.size(); ++i) {
      const Value* const before = outer_->results[state_[i].first];
      results[i]->name = before->name;
      instead[before] = results[i];
    }
  }

  /// What the loops leave of the state.
  std::vector<Value*> other_order(ir::Builder& b) const {
    std::vector<Value*> start;
    for (const auto& [s, at] : state_) start.push_back(outer_->operands[s]);
    Op* const first = loop_like(b, *inner_, by_inner_, start);
    ir::Builder around(b.module(), first->blocks[1], outer_->loc);
    const auto& carried = first->blocks[1]->params;
    Op* const second = loop_like(around, *outer_, by_outer_, {carried.begin() + 1, carried.end()});
    ir::Builder inside(b.module(), second->blocks[1], inner_->loc);
    Renaming names{{by_outer_.counter.index, second->blocks[1]->params[0]},
                   {by_inner_.counter.index, first->blocks[1]->params[0]}};
    for (std::size_t i = 0; i < state_.size(); ++i)
      names[inner_body()->params[state_[i].second]] = second->blocks[1]->params[1 + i];
    for (const Op* op : work_) ir::clone(inside, *op, names);
    std::vector<Value*> then{next(inside, *outer_, by_outer_, second->blocks[1]->params[0])};
    for (const auto& [s, at] : state_)
      then.push_back(ir::renamed(names, inner_body()->ops.back()->operands[at]));
    inside.yield(then);
    then = {next(around, *inner_, by_inner_, first->blocks[1]->params[0])};
    then.insert(then.end(), second->results.begin() + 1, second->results.end());
    around.yield(then);
    return {first->results.begin() + 1, first->results.end()};
  }

  Op* outer_;
  const Uses& uses_;  ///< of the function
  Op* inner_ = nullptr;
  std::vector<const Op*> work_;  ///< what an iteration of both does, in order
  Count by_outer_, by_inner_;
  std::vector<std::pair<const Op*, std::size_t>> asked_;  ///< accesses and dimensions, see condition
  std::vector<std::pair<std::size_t, std::size_t>>
      state_;  ///< of the outer loop, and which of the inner one it is
};

}  // namespace

void loop_interchange(ir::Module& module) {
  bool any = false;
  for (ir::Function* f : module.functions()) {
    if (!is_direct(*f)) continue;
    const std::vector<Op*> loops = loops_in(*f);
    if (loops.size() < 2) continue;
    const Uses uses(*f);
    std::vector<Op*> gone;
    Renaming instead;
    for (Op* loop : loops)
      if (Interchange(loop, uses).run(instead)) gone.push_back(loop);
    if (gone.empty()) continue;
    any = true;
    erase(gone);
    ir::replace_uses(f->body, instead);
  }
  if (any) simplify(module);
}

}  // namespace lantern::passes
