// A planned loop written again with lanes: first whole blocks of iterations, of fewer and fewer lanes, then what
// is left, iteration by iteration or with idle lanes.
//
//   for (i = lo; i < hi; ++i) BODY
//   becomes
//   for (; i < hi - (W - 1); i += W) BODY in lanes i .. i+W-1
//   for (; i < hi; i += w) BODY in lanes i .. min(i+w, hi)-1, the others idle
#include "lantern/compiler/passes/schedule/vectorise.hpp"

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>

#include "lantern/compiler/passes/analysis/index_form.hpp"
#include "lantern/compiler/passes/array/iteration_cloner.hpp"
#include "lantern/compiler/passes/canonical/simplify.hpp"
#include "lantern/compiler/passes/schedule/lane_body.hpp"
#include "lantern/compiler/passes/support/remarks.hpp"
#include "lantern/ir/error.hpp"

namespace lantern::passes {

namespace {

/// Puts the blocked loops where the loop stood; its results are replaced by what they give.
class Blocked {
 public:
  Blocked(ir::Module& module, const LanePlan& plan, LaneTapes& tapes, const Resolve& outside, Block* into)
      : module_(module), plan_(plan), tapes_(tapes), outside_(outside), b_(module, into) {
    b_.loc = plan.loop->loc;
    for (std::size_t i = 0; i < plan.loop->operands.size(); ++i)
      if (i != plan.index && !plan.counts_along(i)) carried_.push_back(i);
    for (const int lanes : plan.blocks.whole) parts_.push_back({lanes, lanes});
    const std::vector<int>& rest = plan.blocks.rest;
    for (std::size_t k = 0; k < rest.size(); ++k)
      parts_.push_back({rest[k], k + 1 < rest.size() ? rest[k + 1] + 1 : 1});
  }

  std::vector<Value*> run() { return plan_.down ? down() : up(); }

 private:
  /// Blocks of one width, one after the other.
  struct Part {
    int lanes = 1;
    int least = 1;  ///< iterations that are left for there to be another block; if fewer than lanes, some are idle
    bool idle() const { return least < lanes; }
  };
  /// Where the iterations have got to, and the carried state, numbers for sums.
  struct Running {
    Value* at;
    std::vector<Value*> state;
  };

  /// for (i = lo; i + W <= hi; i += W) block; and so on with fewer lanes; then what is left
  std::vector<Value*> up() {
    const Op* loop = plan_.loop;
    Value* const lo = loop->operands[plan_.index];
    const Op* fixed = constant(plan_.bound);
    Value* const hi = fixed ? b_.integer(fixed->integer) : outside_(plan_.bound);
    Running now{lo, initial()};
    for (std::size_t k = 0; k < parts_.size(); ++k) {
      const std::optional<std::int64_t> blocks = known_blocks(k);
      if (blocks == 0) continue;
      now = part(k, lo, hi, now, blocks);
    }
    std::vector<Value*> results = by_place(now.state);
    Value* iterations = nullptr;
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (results[i]) continue;
      const std::int64_t step = *step_of(loop, i);
      if (!iterations) iterations = b_.sub({b_.imax({lo, hi}), lo});
      Value* moved = step == 1 ? iterations : b_.mul({iterations, b_.integer(step)});
      results[i] = b_.add({loop->operands[i], moved});
    }
    return results;
  }

  /// The mirror: what is left, then blocks of more and more lanes.
  std::vector<Value*> down() {
    Value* const n = plan_.loop->operands[plan_.index];
    Value* const zero = b_.integer(0);
    // Where each part begins: its blocks reach from there to where the next one begins.
    std::vector<Value*> starts{zero};
    for (std::size_t k = 0; k + 1 < parts_.size(); ++k) starts.push_back(end_of(k, starts[k], n));
    Running now{n, initial()};
    for (std::size_t k = parts_.size(); k-- > 0;) {
      const std::optional<std::int64_t> blocks = known_blocks(k);
      if (blocks == 0) continue;
      now = part(k, starts[k], n, now, blocks);
    }
    std::vector<Value*> results = by_place(now.state);
    results[plan_.index] = b_.imin({n, zero});
    return results;
  }

  /// Where a part ends that begins at `start`, of n iterations.
  Value* end_of(std::size_t k, Value* start, Value* n) {
    const Part& p = parts_[k];
    if (iterations_) return b_.integer(*iterations_ - left_before(k + 1));
    const auto multiple = [&](Value* v) {
      Value* const w = b_.integer(p.lanes);
      return b_.mul({b_.div({v, w}), w});
    };
    if (!p.idle()) return multiple(b_.imax({n, b_.integer(0)}));
    Value* const left = b_.sub({n, start});
    Value* const enough = multiple(b_.add({left, b_.integer(p.lanes - p.least)}));
    return b_.imin({n, b_.add({start, enough})});
  }

  /// How many iterations are left for a part, and how many blocks it has, where the number of iterations is known.
  std::int64_t left_before(std::size_t part) const {
    std::int64_t left = *iterations_;
    for (std::size_t k = 0; k < part; ++k) left -= std::min(left, blocks_of(k, left) * parts_[k].lanes);
    return left;
  }
  std::int64_t blocks_of(std::size_t k, std::int64_t left) const {
    const Part& p = parts_[k];
    return (left + p.lanes - p.least) / p.lanes;
  }
  std::optional<std::int64_t> known_blocks(std::size_t k) const {
    if (!iterations_) return {};
    return blocks_of(k, left_before(k));
  }

  /// True for a part that has one block at most.
  bool at_most_one(std::size_t k) const {
    if (k == 0) return false;
    const Part &p = parts_[k], &before = parts_[k - 1];
    return before.idle() || before.lanes <= (p.idle() ? 1 : 2) * p.lanes;
  }

  /// The blocks of a part, from `now` on. `lo`: where iterations are counted from; of a loop that counts down,
  /// where the part begins. `end`: how far all iterations reach.
  Running part(std::size_t k, Value* lo, Value* end, const Running& now, std::optional<std::int64_t> known) {
    const Part& p = parts_[k];
    Edges edges{p, lo, end, end, plan_.down && known != 1 && p.idle() && !at_most_one(k)};
    if (!plan_.down && known != 1 && p.least > 1) edges.full = less(end, p.least - 1);
    if (known == 1) return once(edges, b_.block(), now);
    const bool single = at_most_one(k);
    // A sum is taken over the lanes only where there is a block.
    if (!single && (p.lanes == 1 || !any_reductions())) return repeated(edges, b_, now);
    Op* op = b_.branch(more(b_, edges, now.at), ir::types_of(values(now)));
    ir::Builder some(module_, op->blocks[0], b_.loc), none(module_, op->blocks[1]);
    const Running then = single ? once(edges, op->blocks[0], now) : repeated(edges, some, now);
    ir::Builder after(module_, op->blocks[0]);
    after.yield(values(then));
    none.yield(values(now));
    return {op->results[0], {op->results.begin() + 1, op->results.end()}};
  }

  /// What a part's blocks are told by.
  struct Edges {
    const Part& part;
    Value* lo;
    Value* end;
    Value* full;        ///< up: a block begins below it
    bool several_idle;  ///< down, and the block that is not full is the first of several
  };

  /// Whether there is another block.
  Value* more(ir::Builder& b, const Edges& e, Value* at) const {
    return plan_.down ? b.lt({e.lo, at}) : b.lt({at, e.full});
  }

  /// v - n, or where that would wrap the smallest integer, below which nothing lies.
  Value* less(Value* v, std::int64_t n) {
    if (!cannot_overflow(v)) v = b_.imax({v, b_.integer(std::numeric_limits<std::int64_t>::min() + n)});
    return b_.sub({v, b_.integer(n)});
  }

  /// One block, written into `into`.
  Running once(const Edges& e, Block* into, const Running& now) {
    LaneBody lanes = body(e.part.lanes, into);
    ir::Builder& in = lanes.builder();
    in.loc = plan_.loop->loc;
    std::vector<Value*> start = now.state;
    for (std::size_t k = 0; k < carried_.size(); ++k)
      if (e.part.lanes > 1 && is_reduction(carried_[k])) start[k] = neutral(in, carried_[k], e.part.lanes, now.state[k]);
    Value *first = now.at, *after = e.end;
    if (plan_.down)
      first = after = e.part.idle() ? e.lo : in.sub({first, in.integer(e.part.lanes)});
    else if (!e.part.idle())
      after = in.add({first, in.integer(e.part.lanes)});
    Value* const active = e.part.idle() ? in.sub({e.end, first}) : nullptr;
    const std::vector<Value*> next = lanes.run(count_from(e), first, active, by_place(start));
    Running then{after, {}};
    for (std::size_t k = 0; k < carried_.size(); ++k) {
      Value* v = next[carried_[k]];
      if (e.part.lanes > 1 && is_sum(carried_[k])) {
        v = in.add({now.state[k], lanes.sum(v)});
      } else if (e.part.lanes > 1 && is_reduction(carried_[k])) {
        v = reduced(in, carried_[k], e.part.idle() ? lanes.kept(v, start[k]) : v, now.state[k]);
      }
      then.state.push_back(v);
    }
    return then;
  }

  /// A loop over blocks, written with `b`.
  Running repeated(const Edges& e, ir::Builder& b, const Running& now) {
    const int width = e.part.lanes;
    Value* start = now.at;
    if (e.several_idle) {
      // The end of the block that is not full.
      Value* const w = b.integer(width);
      Value* const left = b.sub({e.end, e.lo});
      Value* const blocks = b.div({b.add({left, b.integer(width - 1)}), w});
      start = b.add({e.lo, b.mul({blocks, w})});
    }
    std::vector<Value*> before{start};
    for (std::size_t k = 0; k < carried_.size(); ++k)
      before.push_back(width > 1 && is_reduction(carried_[k]) ? neutral(b, carried_[k], width, now.state[k])
                                                              : now.state[k]);
    const std::vector<ir::Type> types = ir::types_of(before);
    Op* op = b.op(Opcode::loop_, before, types);
    Block* const condition = new_block(op, types);
    ir::Builder test(module_, condition, b.loc);
    test.yield({more(test, e, condition->params[0])});
    Block* const block = new_block(op, types);
    for (std::size_t k = 0; k < carried_.size(); ++k) block->params[k + 1]->name = name(carried_[k]);
    LaneBody lanes = body(width, block);
    ir::Builder& in = lanes.builder();
    in.loc = plan_.loop->loc;
    Value* first = block->params[0];
    if (plan_.down) first = in.sub({first, in.integer(width)});
    Value* active = nullptr;
    if (e.part.idle()) active = in.imin({in.integer(width), in.sub({e.end, first})});
    const std::vector<Value*> next =
        lanes.run(count_from(e), first, active, by_place({block->params.begin() + 1, block->params.end()}));
    std::vector<Value*> yielded{plan_.down ? first : in.add({first, in.integer(width)})};
    for (std::size_t k = 0; k < carried_.size(); ++k) {
      Value* v = next[carried_[k]];
      // Idle lanes add nothing.
      if (e.part.idle() && is_reduction(carried_[k])) v = lanes.kept(v, block->params[k + 1]);
      yielded.push_back(v);
    }
    in.yield(yielded);
    Running then{op->results[0], {}};
    for (std::size_t k = 0; k < carried_.size(); ++k) {
      Value* v = op->results[k + 1];
      if (width > 1 && is_reduction(carried_[k])) v = reduced(b, carried_[k], v, now.state[k]);
      then.state.push_back(v);
    }
    return then;
  }

  LaneBody body(int lanes, Block* into) { return {module_, plan_, tapes_, lanes, outside_, into}; }
  /// What the numbers of iterations are counted from.
  Value* count_from(const Edges& e) const { return plan_.down ? nullptr : e.lo; }
  static std::vector<Value*> values(const Running& r) {
    std::vector<Value*> all{r.at};
    all.insert(all.end(), r.state.begin(), r.state.end());
    return all;
  }

  std::vector<Value*> initial() const {
    std::vector<Value*> state;
    for (const std::size_t i : carried_) state.push_back(plan_.loop->operands[i]);
    return state;
  }
  const Value* parameter(std::size_t i) const { return plan_.loop->blocks[1]->params[i]; }
  bool is_reduction(std::size_t i) const { return plan_.reductions.contains(parameter(i)); }
  bool is_sum(std::size_t i) const { return is_reduction(i) && plan_.reductions.at(parameter(i)) == Opcode::add_; }
  bool any_reductions() const {
    return std::ranges::any_of(carried_, [&](std::size_t i) { return is_reduction(i); });
  }
  const char* name(std::size_t i) const { return plan_.loop->blocks[1]->params[i]->name; }

  /// What the lanes of a reduction start from: -0 of a sum, to which the sum with any x is x; else what there is so far, which may be among the
  /// numbers as often as one likes.
  Value* neutral(ir::Builder& b, std::size_t i, int lanes, Value* so_far) const {
    Value* const start = is_sum(i) ? b.number(-0.0, plan_.loop->operands[i]->type) : so_far;
    return b.emit(Opcode::lane_splat_, {start}, lanes);
  }
  /// The reduction over the lanes, with what there was before.
  Value* reduced(ir::Builder& b, std::size_t i, Value* lanes, Value* before) const {
    if (is_sum(i)) return b.add({before, b.emit(Opcode::lane_sum_, {lanes})});
    const bool largest = plan_.reductions.at(parameter(i)) == Opcode::max_;
    return b.emit(largest ? Opcode::lane_max_ : Opcode::lane_min_, {lanes});
  }

  /// The carried state by place in the loop's state.
  std::vector<Value*> by_place(const std::vector<Value*>& values) const {
    std::vector<Value*> all(plan_.loop->operands.size(), nullptr);
    for (std::size_t k = 0; k < carried_.size(); ++k) all[carried_[k]] = values[k];
    return all;
  }

  Block* new_block(Op* op, const std::vector<ir::Type>& types) {
    Block* b = module_.new_block(op, b_.block()->function);
    for (const ir::Type& t : types) module_.add_param(b, t);
    op->blocks.push_back(b);
    return b;
  }

  ir::Module& module_;
  const LanePlan& plan_;
  LaneTapes& tapes_;
  const Resolve& outside_;
  ir::Builder b_;
  std::vector<std::size_t> carried_;  ///< state that does not just count
  std::vector<Part> parts_;           ///< from the most lanes to the fewest
  std::optional<std::int64_t> iterations_ = plan_.iterations;
};

/// Which loops of a function run in lanes: the outermost that can. Loops that share a tape do so together.
class LaneChoice {
 public:
  LaneChoice(const ir::Function& f, const TapeUses& tapes, int native, bool reassociate)
      : tapes_(tapes), native_(native), reassociate_(reassociate) {
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
  std::unique_ptr<LanePlan> lanes_of(Op* loop) const {
    return plan_lanes(loop, tapes_, native_, reassociate_);
  }

  void consider(const Block* block) {
    ir::walk(const_cast<Block*>(block), [&](Op* op) {
      if (!op->is(Opcode::loop_)) return true;
      if (const Decision& d = decide(op); d.in_lanes) {
        plans_[op] = d.plan;
        return false;
      }
      return true;
    });
  }

  /// Whether a loop runs in lanes, if none around it does.
  struct Decision {
    std::shared_ptr<LanePlan> plan;
    bool in_lanes = false;
  };
  const Decision& decide(Op* loop) const {
    const auto [it, added] = decisions_.try_emplace(loop);
    if (added) {
      std::shared_ptr<LanePlan> plan = lanes_of(loop);
      const bool in_lanes = plan && !prefer_inner_loop(*plan);
      Decision& d = decisions_[loop];  // others were added meanwhile
      d = {std::move(plan), in_lanes};
      return d;
    }
    return it->second;
  }

  /// True for a loop of a few iterations around one that runs in lanes, and where inner loops write rows, or read
  /// gathered ones, from end to end: to lanes of this one their elements are not adjacent.
  bool prefer_inner_loop(const LanePlan& plan) const {
    if (inner_vectorisation_profitable(plan)) return true;
    if (Op* row = has_unit_stride_inner_loop(plan.loop); row && lanes_of(row)) return true;
    if (!plan.iterations || *plan.iterations >= std::max(native_, 4)) return false;
    bool any = false;
    ir::walk(plan.loop->blocks[1], [&](Op* op) { any |= op->is(Opcode::loop_) && lanes_of(op); });
    return any;
  }

  /// The loop that is all that another one does, and does nothing but compute and store elements that follow
  /// each other in memory from iteration to iteration, those of whole rows of a matrix; what it reads besides stays the
  /// same. Lanes that are rows would fetch each element by itself.
  static Op* has_unit_stride_inner_loop(const Op* loop) {
    Op* inner = nullptr;
    for (Op* op : loop->blocks[1]->ops) {
      if (op->is(Opcode::loop_) && !inner)
        inner = op;
      else if (!op->is(Opcode::yield_) && (op->results.size() != 1 || !(op->result()->type == ir::I64)))
        return nullptr;
    }
    const auto range = inner ? iteration_range(inner) : std::nullopt;
    if (!range || constant_trip_count(inner)) return nullptr;
    const Value* column = inner->blocks[1]->params[range->index];
    for (const Value* p : inner->blocks[1]->params)
      if (p != column && p->type.rank() < 2) return nullptr;
    bool stores = false;
    for (const Op* op : inner->blocks[1]->ops) {
      if (!op->blocks.empty()) return nullptr;
      const bool get = op->is(Opcode::get_), store = is_write(*op);
      if (!get && !store) continue;
      const auto rank = static_cast<std::size_t>(op->operands[0]->type.rank());
      const auto first = op->operands.begin() + 1, last = first + static_cast<std::ptrdiff_t>(rank);
      if (get && std::none_of(first, last, [&](const Value* v) { return depends_on(v, column); })) continue;
      if (rank > 1 && offset(op->operands[rank]).base != column) return nullptr;
      stores |= store;
    }
    return stores ? inner : nullptr;
  }

  /// Of a value of a loop's body and an index of that loop.
  static bool depends_on(const Value* v, const Value* index) {
    if (v == index || v->block != index->block || !v->def) return v == index;
    return std::ranges::any_of(v->def->operands, [&](const Value* o) { return depends_on(o, index); });
  }

  /// What a strided access costs, beside one that takes each lane's element by itself.
  static double leap(const LanePlan& plan, const Op& access) {
    constexpr double of_whole_vectors = 0.5;
    return !plan.strided.contains(&access) ? 0 : plan.interleaved.contains(&access) ? of_whole_vectors : 1;
  }

  /// Profitability: whether to vectorise the inner loops that would run in lanes instead of this one. True where the
  /// strided accesses saved exceed the scalar work left; and where iterations have arrays of their own, which would be
  /// needed once for each lane, and work on little else. Sums over the lanes, packed rows and mathematical functions in
  /// the outer loop speak for the outer loop. Inner loops whose iterations fill less than half of a vector are no candidates.
  bool inner_vectorisation_profitable(const LanePlan& plan) const {
    constexpr double usual_trip_count = 8, little = 0.25;
    const auto inner = [&](Op* loop) -> const LanePlan* {
      const Decision& d = decide(loop);
      return d.in_lanes && (!d.plan->iterations || 2 * *d.plan->iterations > native_) ? d.plan.get() : nullptr;
    };
    const auto own_array = [&](const Value* v) {
      return plan.is_varying(v) && std::ranges::find(v->type.dims(), ir::dynamic) != v->type.dims().end();
    };
    double gained = 0, lost = 0, in_lanes = 0, own = 0, others = 0;
    ir::walk(plan.loop->blocks[1], [&](const Op* op) {
      const LanePlan* planned = nullptr;
      double times = 1;
      bool brief = false;  // in a loop of a few iterations
      for (const Block* b = op->parent; b->parent != plan.loop; b = b->parent->parent) {
        if (!b->parent->is(Opcode::loop_)) continue;
        times *= usual_trip_count;
        if (const LanePlan* p = inner(b->parent)) planned = p;  // the outermost
        brief |= most_iterations(b->parent).value_or(2 * native_) < 2 * native_;
      }
      if (is_access(*op)) {
        if (planned) gained += times * (leap(plan, *op) - leap(*planned, *op));
        (own_array(op->operands[0]) ? own : others) += times;
      } else if (times > 1 && !brief && ir::info(op->code).elementwise &&
                 op->result()->type.is_float_element()) {
        (planned ? in_lanes : lost) += times;
      }
    });
    if (own > 0 && others <= little * own && lost <= little * in_lanes) return true;
    return !plan.calls && plan.summed.empty() && plan.packed.empty() && gained > lost;
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

  /// Loops that share a tape are cut into the same blocks.
  void agree() {
    for (bool changed = true; changed;) {
      changed = false;
      for (auto& [loop, plan] : plans_)
        for (const std::int64_t tape : plan->outer_tapes)
          for (const Op* use : tapes_.at(tape)) {
            const LanePlan& other = *plans_.at(planned(use));
            if (!(other.blocks < plan->blocks)) continue;
            plan->blocks = other.blocks;
            plan->lanes = other.lanes;
            changed = true;
          }
    }
  }

  const TapeUses& tapes_;
  int native_;
  bool reassociate_;
  std::unordered_map<const Op*, std::shared_ptr<LanePlan>> plans_;
  mutable std::unordered_map<const Op*, Decision> decisions_;
};

class Vectoriser : public Rewriter {
 public:
  Vectoriser(ir::Function& f, const LaneChoice& choice, LaneTapes& tapes) : Rewriter(f), choice_(choice), tapes_(tapes) {}

 protected:
  Action enter(Op* op) override {
    const LanePlan* plan = op->is(Opcode::loop_) ? choice_.plan(op) : nullptr;
    if (!plan) return Action::keep;
    remark("vectorise", op->loc, "runs in " + std::to_string(plan->lanes) + " lanes");
    const std::vector<Value*> results =
        Blocked(module(), *plan, tapes_, [this](Value* v) { return now(v); }, here()).run();
    for (std::size_t i = 0; i < results.size(); ++i) replace(op->results[i], results[i]);
    return Action::drop;
  }

 private:
  const LaneChoice& choice_;
  LaneTapes& tapes_;
};

}  // namespace

void vectorise(ir::Module& module, int native, bool reassociate) {
  const TapeUses tapes = tape_uses(module);
  LaneTapes by_lanes;
  bool changed = false;
  for (ir::Function* f : module.functions()) {
    if (!is_direct(*f)) continue;
    const LaneChoice choice(*f, tapes, native, reassociate);
    if (!Vectoriser(*f, choice, by_lanes).run()) continue;
    changed = true;
    cse(*f);
  }
  if (changed) eliminate_dead(module);
}

}  // namespace lantern::passes
