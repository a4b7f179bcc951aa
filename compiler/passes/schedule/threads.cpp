// Cuts a loop's body out into a function of a range of iterations, and calls it once for each thread.
#include "lantern/compiler/passes/schedule/threads.hpp"

#include <algorithm>
#include <functional>
#include <numeric>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "lantern/compiler/passes/analysis/lanes.hpp"
#include "lantern/compiler/passes/analysis/loop_state.hpp"
#include "lantern/compiler/passes/analysis/iterations.hpp"
#include "lantern/compiler/passes/canonical/simplify.hpp"
#include "lantern/compiler/passes/support/memory.hpp"
#include "lantern/compiler/passes/support/remarks.hpp"
#include "lantern/compiler/passes/support/rewrite.hpp"
#include "lantern/ir/clone.hpp"
#include "lantern/ir/recursion.hpp"
#include "lantern/ir/team.hpp"

namespace lantern::passes {

namespace {

using ir::Builder;
using ir::Combine;
using ir::Function;

// In additions. To wake a thread and wait for it takes some 50 microseconds; a loop that is shared out should
// take several times as long, in lanes too.
constexpr std::int64_t least_work = 1 << 22;
/// What ranges add to zeros of their own costs this much for each of the zeros: it is written, added to, read
/// and added, by way of memory.
constexpr std::int64_t for_a_zero = 16;
// Many ranges, of which none waits long for another, are worth it where their zeros are this small a part of
// the work.
constexpr double part_for_zeros = 0.125;
// Ranges start where a vector does in a tensor that begins with one.
constexpr std::int64_t aligned = 8;
// Below so many iterations for each thread, ranges are one for each, and equal.
constexpr std::int64_t few_iterations = 16;

/// How the iterations are cut: as many ranges as threads of the first size, then as many of the next, and so on.
/// Processors are not equally fast, nor free: whoever is done first goes on with what is left. Of small
/// ranges at the end little is left to wait for.
std::vector<std::int64_t> sizes_of_ranges(int threads, bool adds_to_tensors) {
  // Tensors that are added to cost zeros for each range, and a range is a few lines of code.
  const std::int64_t rounds = std::min<std::int64_t>(adds_to_tensors ? 3 : 4, ir::largest_team / threads);
  if (rounds <= 1) return {1};
  if (rounds == 2) return {13, 3};
  if (rounds == 3) return {12, 3, 1};
  return {11, 3, 1, 1};
}

/// Where sums of many ranges would take too much memory, or too much of the time: so many ranges at most, one
/// for each thread. What is added to is held already, so that the others' sums are within the bound.
constexpr int fewest_threads = 1 + static_cast<int>(memory_factor);

/// A loop that is shared out.
struct Plan {
  CountedLoop count;
  std::int64_t weight = 0;          ///< of an iteration
  std::vector<bool> private_start;  ///< by state: a tensor that was made for this loop alone
  std::int64_t lanes = 1;           ///< of the vectors that its iterations will run in
};

/// How often a function's values are asked for.
using Counts = std::unordered_map<const Value*, int>;

/// True for a tensor in memory of its own, which nothing but the loop asks for.
bool made_for(const Value* v, const Counts& counts) {
  if (!v->def || counts.at(v) != 1) return false;
  if (v->def->is(Opcode::fill_, Opcode::zeros_like_, Opcode::loop_, Opcode::set_, Opcode::add_at_,
                 Opcode::copy_))
    return true;
  return ir::info(v->def->code).elementwise && !v->def->is(Opcode::select_);
}

/// A tensor's type, which from now on has the dimensions that it was made with, where they are constants: a
/// function that takes it does not see where it was made.
const ir::Type& learned_type(Value* v) {
  if (!v->def || !v->type.is_tensor()) return v->type;
  if (v->def->is(Opcode::zeros_like_, Opcode::copy_)) {
    const ir::Type& like = learned_type(v->def->operands[0]);
    return refines(like, v->type) ? v->type = like : v->type;
  }
  if (!v->def->is(Opcode::fill_)) return v->type;
  std::vector<std::int64_t> dims = v->type.dims();
  for (std::size_t d = 0; d < dims.size(); ++d)
    if (const Op* size = constant(v->def->operands[d + 1]); size && size->integer >= 0)
      dims[d] = size->integer;
  return v->type = ir::Type::tensor(v->type.element(), std::move(dims));
}

/// Work, an addition being 1: a number known by now, and what is known before the loop.
struct Workload {
  double fixed = 0;
  Value* more = nullptr;
};

/// Computes, before a loop, how much work one of its iterations is.
class IterationWork {
 public:
  IterationWork(Builder& b, const Op* loop, const std::function<Value*(Value*)>& now)
      : b_(b), loop_(loop), now_(now) {}

  /// An iteration of the loop itself.
  Workload one() { return inside(loop_, span(loop_)); }
  Value* value(const Workload& a) {
    Value* const fixed = b_.number(a.fixed);
    return a.more ? b_.add({fixed, a.more}) : fixed;
  }
  Value* as_number(Value* v) { return b_.emit(Opcode::cast_, {v}, static_cast<std::int64_t>(ir::Kind::f64)); }

 private:
  Workload of(const Block* block) {
    Workload all;
    for (const Op* op : block->ops) {
      if (op->is(Opcode::loop_)) {
        const std::optional<Span> s = span(op);
        const Workload n = iterations(op, s);
        add(all, times(n, inside(op, s)));
      } else if (op->is(Opcode::branch_)) {
        const Workload yes = of(op->blocks[0]), no = of(op->blocks[1]);
        all.fixed += 1 + std::max(yes.fixed, no.fixed);
        Value* const more = yes.more && no.more ? b_.emit(Opcode::max_, {yes.more, no.more})
                            : yes.more          ? yes.more
                                                : no.more;
        add(all, {0, more});
      } else {
        all.fixed += static_cast<double>(weight(*op));
      }
    }
    return all;
  }

  void add(Workload& to, const Workload& a) {
    to.fixed += a.fixed;
    if (a.more) to.more = to.more ? b_.add({to.more, a.more}) : a.more;
  }
  Workload times(const Workload& n, const Workload& each) {
    if (n.more) return {0, b_.mul({value(n), value(each)})};
    return {n.fixed * each.fixed, each.more ? b_.mul({b_.number(n.fixed), each.more}) : nullptr};
  }

  /// What a loop counts by in its body, from its first value up to the end, on average.
  struct Span {
    const Value* index;
    Workload first, end;
  };
  std::optional<Span> span(const Op* loop) {
    const auto count = counts(loop);
    if (!count) return {};
    const auto from = count->down ? Workload() : average(count->first), to = average(count->bound);
    return from && to ? std::optional(Span{count->number, *from, *to}) : std::nullopt;
  }

  /// An iteration. Loops inside may go from or up to its index, which is halfway on average.
  Workload inside(const Op* loop, const std::optional<Span>& s) {
    if (s) averages_[s->index] = times({0.5, nullptr}, sum(s->first, s->end));
    Workload work = of(loop->blocks[1]);
    work.fixed += 1;
    return work;
  }

  Workload iterations(const Op* loop, const std::optional<Span>& s) {
    constexpr double usual = 4;
    if (const auto n = constant_trip_count(loop)) return {static_cast<double>(*n), nullptr};
    if (!s) return {usual, nullptr};
    const Workload n = sum(s->end, times({-1, nullptr}, s->first));
    if (n.more) return {0, b_.emit(Opcode::max_, {value(n), b_.number(0)})};
    return {std::max(0.0, n.fixed), nullptr};
  }

  /// What an integer is on average over the iterations: what is known before them, indices, and what is made of these by
  /// a few operations.
  std::optional<Workload> average(Value* v, int deepest = 4) {
    if (const Op* c = constant(v)) return Workload{static_cast<double>(c->integer), nullptr};
    if (const auto it = averages_.find(v); it != averages_.end()) return it->second;
    if (ir::visible_from(v, loop_->parent)) return Workload{0, as_number(now_(v))};
    if (!v->def || v->def->operands.size() != 2 || deepest == 0) return {};
    const auto x = average(v->def->operands[0], deepest - 1), y = average(v->def->operands[1], deepest - 1);
    if (!x || !y) return {};
    switch (v->def->code) {
      case Opcode::add_:
        return sum(*x, *y);
      case Opcode::sub_:
        return sum(*x, times({-1, nullptr}, *y));
      case Opcode::mul_:
        return times(*x, *y);
      case Opcode::imin_:
        return Workload{0, b_.emit(Opcode::min_, {value(*x), value(*y)})};
      case Opcode::imax_:
        return Workload{0, b_.emit(Opcode::max_, {value(*x), value(*y)})};
      default:
        return {};
    }
  }
  Workload sum(Workload x, const Workload& y) {
    add(x, y);
    return x;
  }

  Builder& b_;
  const Op* loop_;
  const std::function<Value*(Value*)>& now_;
  std::unordered_map<const Value*, Workload> averages_;  ///< of the indices of loops
};

/// One loop, cut out.
class Part {
 public:
  /// `now`: what represents a value of the code around the loop by now.
  Part(Op* loop, const Plan& plan, Function& around, int threads, std::function<Value*(Value*)> now)
      : loop_(loop), plan_(plan), module_(*around.module), threads_(threads), now_(std::move(now)) {
    part_ = module_.add_function(around.name + "_part", {}, {});
    part_->loc = loop->loc;
    bool adds_to_tensors = false;
    start_ = loop->operands;
    for (std::size_t i = 0; i < start_.size(); ++i) adds_to_tensors |= adds_to_tensor(i);
    sizes_ = sizes_of_ranges(threads, adds_to_tensors);
  }

  /// Puts the calls at the end of `into`, and gives what represents the loop's results.
  std::vector<Value*> parallelise(Block* into) {
    Builder b(module_, into, loop_->loc);
    const std::size_t index = plan_.count.index;
    first_ = loop_->operands[index];
    const Op* fixed = constant(plan_.count.bound);
    bound_ = fixed ? b.integer(fixed->integer) : now_(plan_.count.bound);
    iterations_ = b.imax({iterations_between(b, first_, bound_), b.integer(0)});
    IterationWork work(b, loop_, now_);
    const Workload each = work.one();
    Value* const in_all = each.more ? b.mul({work.as_number(iterations_), work.value(each)})
                                    : b.mul({iterations_, b.integer(plan_.weight)});
    for (std::size_t i = 0; i < start_.size(); ++i) {
      if (carried(i)) know_size(i);
      steps_.push_back(combine(i) == Combine::counter ? *step_of(loop_, i) : 0);
    }
    // Ranges work in memory of the loop's own: of a tensor that others see as well they get a copy.
    for (std::size_t i = 0; i < start_.size(); ++i)
      if (start_[i]->type.is_tensor() && !plan_.private_start[i])
        loop_->operands[i] = start_[i] = b.emit(Opcode::copy_, {start_[i]});
    Op* const whole = std::exchange(loop_, copied());
    cut();

    Value* const threshold = each.more ? work.as_number(least(b)) : least(b);
    Value* enough = b.lt({threshold, in_all});
    if (plan_.lanes > 1) enough = b.land({enough, b.lt({b.integer(plan_.lanes), iterations_})});
    Value* const room = room_for_sums(b, each.more ? in_all : work.as_number(in_all));
    Op* const choice = b.branch(enough, part_->result_types);
    if (room) {
      Builder shared(module_, choice->blocks[0], loop_->loc);
      Op* const many = shared.branch(room, part_->result_types);
      shared.yield(many->results);
      at_once(many->blocks[0]);
      threads_ = std::min(threads_, fewest_threads);
      sizes_ = {1};
      at_once(many->blocks[1]);
    } else {
      at_once(choice->blocks[0]);
    }
    alone(whole, choice->blocks[1]);
    std::vector<Value*> shared;
    std::size_t k = 0;
    for (std::size_t i = 0; i < start_.size(); ++i) {
      if (carried(i))
        shared.push_back(choice->results[k++]);
      else
        shared.push_back(moved(b, i, iterations_));
    }
    return shared;
  }

 private:
  Combine combine(std::size_t i) const { return ir::combine(*loop_, i); }
  /// True for state that does not just count.
  bool carried(std::size_t i) const { return !ir::counts(combine(i)); }
  /// True for a tensor of which each range has zeros of its own.
  bool adds_to_tensor(std::size_t i) const {
    return combine(i) == Combine::sum && start_[i]->type.is_tensor();
  }

  /// A copy of the loop, for the function, which keeps what it keeps on tapes of its own.
  Op* copied() {
    Builder b(module_, part_->body);
    ir::Renaming names;
    Op* const copy = ir::clone(b, *loop_, names);
    part_->body->ops.clear();
    std::unordered_map<std::int64_t, std::int64_t> tapes;
    ir::walk(copy->blocks[1], [&](Op* op) {
      if (!op->is(Opcode::push_, Opcode::pop_)) return;
      const auto [it, added] = tapes.try_emplace(op->integer);
      if (added) it->second = module_.new_tape();
      op->integer = it->second;
    });
    return copy;
  }

  /// The copy moves into the function. Its parameters: the first iteration and the one after the last; the state
  /// in order, less the index; what the loop takes from around.
  void cut() {
    Block* const body = part_->body;
    Value* const first = module_.add_param(body, ir::I64, "first");
    Value* const last = module_.add_param(body, ir::I64, "last");
    for (std::size_t i = 0; i < start_.size(); ++i) {
      const Value* p = loop_->blocks[1]->params[i];
      loop_->operands[i] = combine(i) == Combine::index ? first : module_.add_param(body, p->type, p->name);
    }
    loop_->blocks[0]->ops.back()->operands[0]->def->operands[1] = last;
    take_in({first, last});

    body->ops.push_back(loop_);
    std::vector<Value*> yielded;
    for (std::size_t i = 0; i < start_.size(); ++i) {
      if (!carried(i)) continue;
      yielded.push_back(loop_->results[i]);
      part_->result_types.push_back(loop_->results[i]->type);
    }
    Builder b(module_, body, loop_->loc);
    b.yield(yielded);
  }

  /// Updates keep the size that the loop starts with.
  void know_size(std::size_t i) {
    const ir::Type known = learned_type(start_[i]);
    if (loop_->blocks[1]->params[i]->type == known || !refines(known, loop_->blocks[1]->params[i]->type))
      return;
    auto use = state_use(Uses(loop_), loop_, i);
    if (!use) return;
    use->values.insert(use->values.end(), {loop_->results[i], loop_->blocks[0]->params[i]});
    for (Value* v : use->values) v->type = known;
  }

  /// What the body asks for becomes a parameter, or is made again where it is a constant.
  void take_in(std::unordered_set<const Value*> own) {
    for (Block* block : loop_->blocks) {
      own.insert(block->params.begin(), block->params.end());
      ir::walk(block, [&](const Op* op) {
        own.insert(op->results.begin(), op->results.end());
        for (const Block* n : op->blocks) own.insert(n->params.begin(), n->params.end());
      });
    }
    std::unordered_map<const Value*, Value*> inside;
    for (Block* block : loop_->blocks) {
      block->function = part_;
      ir::walk(block, [&](Op* op) {
        for (Block* n : op->blocks) n->function = part_;
        for (Value*& v : op->operands) {
          if (own.contains(v)) continue;
          Value* const outer = now_(v);
          const auto [it, added] = inside.try_emplace(outer, nullptr);
          if (added) it->second = taken_in(outer);
          v = it->second;
        }
      });
    }
  }

  Value* taken_in(Value* v) {
    if (const Op* c = constant(v)) return Builder(module_, part_->body).again(*c);
    captured_.push_back(v);
    return module_.add_param(part_->body, learned_type(v), v->name);
  }

  /// The work from which on it pays to share out.
  Value* least(Builder& b) const {
    Value* sum = b.integer(least_work);
    for (std::size_t i = 0; i < start_.size(); ++i) {
      if (!adds_to_tensor(i)) continue;
      Value* n = b.integer(for_a_zero * (threads_ - 1));
      for (int d = 0; d < start_[i]->type.rank(); ++d) n = b.mul({n, b.emit(Opcode::dim_, {start_[i]}, d)});
      sum = b.add({sum, n});
    }
    return sum;
  }

  /// Whether there is memory for what each of many ranges adds to, and work enough; null where that is little
  /// in any case.
  Value* room_for_sums(Builder& b, Value* work) const {
    Value* all = nullptr;
    double known = 0;
    for (std::size_t i = 0; i < start_.size(); ++i) {
      if (!adds_to_tensor(i)) continue;
      double n = 1;
      const ir::Type type = learned_type(start_[i]);
      for (const std::int64_t dim : type.dims()) n *= dim >= 0 ? static_cast<double>(dim) : least_memory + 1;
      known += n;
      Value* const elements = elements_of(b, start_[i]);
      all = all ? b.add({all, elements}) : elements;
    }
    const auto others = static_cast<double>(range_count() - 1);
    const double zeros = for_a_zero * others / part_for_zeros;
    if (!all || (known * others <= least_memory && known * zeros <= least_work)) return nullptr;
    Value* const taken = b.mul({all, b.number(others)});
    Value* const most =
        b.emit(Opcode::max_, {b.number(least_memory), b.mul({held(b), b.number(memory_factor)})});
    Value* const small = b.le({b.mul({all, b.number(zeros)}), work});
    return b.land({b.le({taken, most}), small});
  }

  /// How many numbers are in the tensors that the loop works on.
  Value* held(Builder& b) const {
    Value* all = nullptr;
    for (const auto* list : {&start_, &captured_})
      for (Value* v : *list) {
        if (!v->type.is_tensor()) continue;
        Value* const n = elements_of(b, v);
        all = all ? b.add({all, n}) : n;
      }
    return all;
  }

  /// How many ranges there are.
  std::int64_t range_count() const { return threads_ * static_cast<std::int64_t>(sizes_.size()); }

  /// How many iterations come before range number `k`.
  Value* iterations_before(Builder& b, std::int64_t k) const {
    const std::int64_t all = threads_ * std::accumulate(sizes_.begin(), sizes_.end(), std::int64_t{0});
    std::int64_t part = 0;
    for (std::int64_t i = 0; i < k; ++i) part += sizes_[static_cast<std::size_t>(i / threads_)];
    const auto cut = [&](std::int64_t of, std::int64_t from) {
      return b.div({b.mul({iterations_, b.integer(of)}), b.integer(from)});
    };
    const std::int64_t unit = std::max(aligned, plan_.lanes);
    Value* const falling = b.mul({cut(part, all * unit), b.integer(unit)});
    if (!few_) return falling;
    return b.select({few_, k < threads_ ? cut(k, threads_) : iterations_, falling});
  }

  /// The index or a counter after so many iterations.
  Value* moved(Builder& b, std::size_t i, Value* iterations) const {
    const std::int64_t step = combine(i) == Combine::index ? 1 : steps_[i];
    Value* const by = step == 1 ? iterations : b.mul({iterations, b.integer(step)});
    return b.add({start_[i], by});
  }

  /// The arguments of call number `t`, for the iterations from `first` on, before which there are so many.
  std::vector<Value*> range(Builder& b, std::int64_t t, Value* before, Value* first, Value* last) const {
    std::vector<Value*> list{first, last};
    for (std::size_t i = 0; i < start_.size(); ++i) {
      if (combine(i) == Combine::index) continue;
      if (combine(i) == Combine::counter && t > 0)
        list.push_back(moved(b, i, before));
      else if (combine(i) == Combine::sum && t > 0)
        list.push_back(zeros(b, i, t));
      else
        list.push_back(start_[i]);
    }
    list.insert(list.end(), captured_.begin(), captured_.end());
    return list;
  }

  /// What call number `t` adds to. Equal zeros would become one tensor: from the third call on they are
  /// copies.
  Value* zeros(Builder& b, std::size_t i, std::int64_t t) const {
    Value* const zero = b.zero_like(start_[i]);
    return zero->type.is_tensor() && t > 1 ? b.emit(Opcode::copy_, {zero}) : zero;
  }

  void at_once(Block* block) {
    Builder b(module_, block, loop_->loc);
    // All arguments come before the calls, which follow each other.
    std::vector<std::vector<Value*>> ranges;
    Value *before = nullptr, *first = first_;
    few_ = nullptr;
    if (plan_.lanes == 1) few_ = b.lt({iterations_, b.integer(few_iterations * threads_)});
    for (std::int64_t t = 1; t < range_count(); ++t) {
      Value* const after = iterations_before(b, t);
      Value* const next = moved(b, plan_.count.index, after);
      ranges.push_back(range(b, t - 1, before, first, next));
      before = after;
      first = next;
    }
    ranges.push_back(range(b, range_count() - 1, before, first, bound_));
    std::vector<const Op*> calls;
    for (std::vector<Value*>& list : ranges) {
      // Tensors with elements of each iteration's own go from range to range, in one memory.
      std::size_t argument = 2, k = 0;
      for (std::size_t i = 0; i < start_.size(); ++i) {
        if (combine(i) == Combine::index) continue;
        if (combine(i) == Combine::element && !calls.empty()) list[argument] = calls.back()->results[k];
        k += carried(i);
        ++argument;
      }
      Op* const call = b.call(part_, list);
      if (calls.empty()) ir::lead_team(*call, range_count(), threads_);
      calls.push_back(call);
    }
    std::vector<Value*> totals;
    std::size_t k = 0;
    for (std::size_t i = 0; i < start_.size(); ++i) {
      if (!carried(i)) continue;
      Value* total = combine(i) == Combine::element ? calls.back()->results[k] : calls.front()->results[k];
      if (ir::is_reduction(combine(i)))
        for (std::size_t t = 1; t < calls.size(); ++t)
          total = b.emit(ir::reduction(combine(i), total->type), {total, calls[t]->results[k]});
      totals.push_back(total);
      ++k;
    }
    b.yield(totals);
  }

  /// The loop as it is, where there is too little to do: there a call would cost too.
  void alone(Op* whole, Block* block) {
    Builder b(module_, block, whole->loc);
    b.take(whole);
    for (Block* inner : whole->blocks)
      ir::walk(inner, [&](Op* op) {
        for (Value*& v : op->operands) v = now_(v);
      });
    std::vector<Value*> results;
    for (std::size_t i = 0; i < start_.size(); ++i)
      if (carried(i)) results.push_back(whole->results[i]);
    b.yield(results);
  }

  Op* loop_;
  const Plan& plan_;
  ir::Module& module_;
  int threads_;
  std::vector<std::int64_t> sizes_;  ///< of ranges, in proportion, for as many of each as there are threads
  std::function<Value*(Value*)> now_;
  Function* part_ = nullptr;
  Value *first_ = nullptr, *bound_ = nullptr, *iterations_ = nullptr;
  Value* few_ = nullptr;             ///< whether there are few iterations, which do not run in lanes
  std::vector<Value*> start_;        ///< the loop's initial state
  std::vector<std::int64_t> steps_;  ///< of counters
  std::vector<Value*> captured_;
};

/// Which loops of a function are shared out: the outermost that can be.
class ThreadChoice {
 public:
  ThreadChoice(Function& f, const TapeUses& tapes, int threads, int vector_lanes, bool reassociate)
      : tapes_(tapes), threads_(threads), vector_lanes_(vector_lanes), reassociate_(reassociate) {
    ir::walk(f.body, [&](const Op* op) {
      for (const Value* v : op->operands) ++counts_[v];
    });
    ir::walk(f.body, [&](Op* op) { return !op->is(Opcode::loop_) || (!take(op) && lanes_of(op) == 1); });
  }

  const std::unordered_map<const Op*, Plan>& plans() const { return plans_; }

 private:
  bool take(Op* loop) {
    Plan plan;
    std::string why;
    const auto refused = [&] {
      remark("threads", loop->loc, "does not fork: " + why);
      return false;
    };
    if (!ir::is_parallel(*loop)) {
      why = "it is not parallel";
      return refused();
    }
    plan.count = *counted(loop);
    plan.weight = weight(loop->blocks[1]);
    plan.lanes = lanes_of(loop);
    const std::int64_t least_iterations =
        std::max(least_work / std::max<std::int64_t>(plan.weight, 1), plan.lanes > 1 ? plan.lanes : 0) + 1;
    if (const auto iterations = most_iterations(loop); iterations && *iterations < least_iterations) {
      why = "its " + std::to_string(*iterations) + " iterations are too little work";
      return refused();
    }
    if (std::ranges::all_of(loop->blocks[1]->params, ir::counts, &Value::combine)) {
      why = "it computes nothing";
      return refused();
    }
    for (const Value* v : loop->operands)
      plan.private_start.push_back(v->type.is_tensor() && made_for(v, counts_));
    remark("threads", loop->loc,
           "forks into " + std::to_string(threads_) + " threads from about " + std::to_string(least_iterations) +
               " iterations on");
    plans_.emplace(loop, std::move(plan));
    return true;
  }

  /// In how many lanes a loop's iterations will run. What is in several does not fork: lanes are the better half
  /// of it, and need no other threads.
  int lanes_of(Op* loop) const {
    const Remarks unheard;
    const auto plan = vector_lanes_ > 0 ? plan_lanes(loop, tapes_, vector_lanes_, reassociate_) : nullptr;
    return plan ? plan->lanes : 1;
  }

  const TapeUses& tapes_;
  int threads_, vector_lanes_;
  bool reassociate_;
  Counts counts_;
  std::unordered_map<const Op*, Plan> plans_;
};

class Forker : public Rewriter {
 public:
  Forker(Function& f, const ThreadChoice& choice, int threads) : Rewriter(f), choice_(choice), threads_(threads) {}

 protected:
  Action enter(Op* op) override {
    const auto plan = choice_.plans().find(op);
    if (plan == choice_.plans().end()) return Action::keep;
    const std::vector<Value*> before = op->results;
    const std::vector<Value*> after =
        Part(op, plan->second, function(), threads_, [this](Value* v) { return now(v); }).parallelise(here());
    for (std::size_t i = 0; i < before.size(); ++i) replace(before[i], after[i]);
    return Action::drop;
  }

 private:
  const ThreadChoice& choice_;
  int threads_;
};

/// Callers before the functions that they call.
std::vector<Function*> callers_first(const ir::Module& module) {
  std::vector<Function*> order = module.functions();
  std::unordered_map<const Function*, std::size_t> called;
  for (const Function* f : order) called[f] = ir::callees(f->body).size();
  // Whoever calls f calls all that f calls, and f.
  std::ranges::stable_sort(order,
                           [&](const Function* a, const Function* b) { return called[a] > called[b]; });
  return order;
}

}  // namespace

void parallelise(ir::Module& module, int threads, int vector_lanes, bool reassociate) {
  const std::unordered_set<const Function*> recursive = ir::recursive_functions(module);
  const TapeUses tapes = tape_uses(module);
  std::unordered_set<const Function*> in_ranges;  // they run in a thread already
  bool changed = false;
  for (Function* f : callers_first(module)) {
    if (in_ranges.contains(f) || !is_direct(*f)) continue;
    if (recursive.contains(f)) {
      ir::walk(f->body, [&](const Op* op) {
        if (op->is(Opcode::loop_))
          remark("threads", op->loc, "does not fork: it is in '" + f->name + "', which calls itself");
      });
      continue;
    }
    const ThreadChoice choice(*f, tapes, threads, vector_lanes, reassociate);
    for (const auto& [loop, plan] : choice.plans()) in_ranges.merge(ir::callees(loop->blocks[1]));
    changed |= Forker(*f, choice, threads).run();
  }
  if (changed) eliminate_dead(module);
}

}  // namespace lantern::passes
