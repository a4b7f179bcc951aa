// Loops in parts, at the numbers of iterations that conditions ask about.
#include "lantern/compiler/passes/array/index_set_splitting.hpp"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "lantern/compiler/passes/analysis/def_chain.hpp"
#include "lantern/compiler/passes/analysis/index_form.hpp"
#include "lantern/compiler/passes/array/coincidence_splitting.hpp"
#include "lantern/compiler/passes/array/iteration_cloner.hpp"
#include "lantern/compiler/passes/array/loop_parts.hpp"
#include "lantern/compiler/passes/array/register_promotion.hpp"
#include "lantern/compiler/passes/canonical/simplify.hpp"
#include "lantern/compiler/passes/support/build_loop.hpp"

namespace lantern::passes {

namespace {

constexpr std::size_t most_split = 150;  ///< operations of a body
constexpr int most_rounds = 6;        ///< each cuts every loop once at most
constexpr std::size_t longest_parts = 1000;  ///< operations of all parts, before the last round, where derivatives follow

/// What a comparison with the iteration's number says: whether iterations below `at` satisfy it, and those from there
/// on, or, where `point`, that one iteration alone does (`inside`) or does not.
struct Threshold {
  Op* comparison = nullptr;
  Offset at;
  bool plus_one =
      false;           ///< the threshold is one more than a number of the program, which may be the largest
  bool moved = false;  ///< other constants were added
  bool below = false;
  bool point = false, inside = false;
};

class LoopSplitter {
 public:
  LoopSplitter(ir::Module& module, Op* loop) : module_(module), loop_(loop) {}

  bool run() {
    const auto range = iteration_range(loop_);
    if (!range || range->ahead != 0 || !plain()) return false;
    range_ = *range;
    if (innermost()) ask_by_comparisons();
    const auto threshold = find();
    if (!threshold) return false;
    rewrite(*threshold);
    return true;
  }

 private:
  /// True for integers that are chosen in an innermost loop, or become so: indices of neighbours.
  bool chooses_index(const Op& op) const {
    if (op.results.size() != 1 || !(op.result()->type == ir::I64) || op.parent != loop_->blocks[1])
      return false;
    const bool choice = op.is(Opcode::select_, Opcode::imin_, Opcode::imax_, Opcode::rem_);
    return choice && innermost();
  }
  bool innermost() const {
    return std::ranges::none_of(loop_->blocks[1]->ops, [](const Op* op) { return op->is(Opcode::loop_); });
  }

  /// Indices that wrap around or stop at an end, as choices by the iteration's number:
  ///
  ///   (i + 1) % n      i < n - 1 ? i + 1 : i + 1 - n
  ///   max(i - 1, 0)    i - 1 < 0 ? 0 : i - 1
  void ask_by_comparisons() {
    Block* const body = loop_->blocks[1];
    // What is asked for, while the loop is whole.
    std::unordered_map<const Op*, std::optional<IndexForm>> choices;
    for (const Op* op : body->ops) {
      if (op->is(Opcode::imin_, Opcode::imax_) && asked(*op)) choices[op] = {};
      if (op->is(Opcode::rem_))
        if (auto bound = once_around(*op)) choices[op] = std::move(bound);
    }
    if (choices.empty()) return;
    const std::vector<Op*> ops = std::exchange(body->ops, {});
    for (Op* op : ops) {
      if (const auto choice = choices.find(op); choice != choices.end()) {
        ir::Builder b(module_, body, op->loc);
        Value *x = op->operands[0], *y = op->operands[1];
        if (choice->second) {
          op->operands = {b.lt({body->params[range_.index], before_loop(*choice->second)}), x, b.sub({x, y})};
        } else {
          if (asked(*op) == 1) std::swap(x, y);
          // Where both are the same it is the iteration's number.
          Value* const beyond = op->is(Opcode::imin_) ? b.lt({y, x}) : b.lt({x, y});
          op->operands = {beyond, y, x};
        }
        op->code = Opcode::select_;
      }
      body->ops.push_back(op);
    }
  }

  /// Which operand is the iteration's number, with a constant added, where the other one does not change.
  std::optional<std::size_t> asked(const Op& op) const {
    for (const std::size_t side : {0u, 1u}) {
      const Value* const other = offset(op.operands[1 - side]).base;
      if (op.result()->type == ir::I64 &&
          offset(op.operands[side]).base == loop_->blocks[1]->params[range_.index] &&
          (!other || ir::visible_from(other, loop_->parent)))
        return side;
    }
    return {};
  }

  /// For x % n, where x is from 0 to below 2 n and grows with the iterations: from which iteration on it is not below
  /// n.
  std::optional<IndexForm> once_around(const Op& rem) const {
    if (!(rem.result()->type == ir::I64)) return {};
    const IndexForm x = index_form(rem.operands[0]), n = index_form(rem.operands[1]);
    const auto s = (x - n).split(loop_->blocks[1]->params[range_.index]);
    if (!s || s->coefficient.number() != 1) return {};
    for (const IndexForm* f : {&s->rest, &n})
      for (const Unknown& u : f->unknowns())
        if (!ir::visible_from(u.value, loop_->parent)) return {};
    if (!never_negative(x, rem) || !never_negative(n + n - x - 1, rem)) return {};
    return IndexForm() - s->rest;
  }

  Value* before_loop(const IndexForm& f) {
    ir::Builder b = ir::Builder::before(loop_);
    return materialise(b, f);
  }

  /// Short, computes and updates alone, and has a branch that is more than a choice between numbers.
  bool plain() const {
    std::size_t size = 0;
    bool simple = true, branches = false;
    for (const Block* b : loop_->blocks)
      ir::walk(const_cast<Block*>(b), [&](const Op* op) {
        ++size;
        const bool nested = op->is(Opcode::branch_, Opcode::loop_);
        simple &= nested || op->is(Opcode::yield_) || ir::info(op->code).effect == ir::Effect::none;
        simple &= !op->is(Opcode::loop_) || op->integer == 0;
        branches |= chooses_index(*op);
        if (op->is(Opcode::branch_))
          for (Block* side : op->blocks)
            ir::walk(side, [&](const Op* o) {
              branches |= is_access(*o);
            });
      });
    if (!simple || !branches || size > most_split) return false;
    const Uses uses(loop_);
    const auto index = counted(loop_)->index;
    return std::ranges::all_of(loop_->blocks[0]->params,
                               [&](const Value* p) { return p->index == index || uses.of(p).empty(); });
  }

  /// A comparison of the iteration's number with what does not change, by which something is decided.
  std::optional<Threshold> find() const {
    std::optional<Threshold> found;
    const Uses uses(loop_);
    const auto decides = [&](const Op* op) {
      return std::ranges::any_of(uses.of(op->result()), [](const ir::Use& use) {
        if (use.op->is(Opcode::branch_, Opcode::yield_, Opcode::land_, Opcode::lor_, Opcode::lnot_))
          return true;
        if (use.op->is(Opcode::select_)) return use.operand == 0 && use.op->result()->type == ir::I64;
        return false;
      });
    };
    ir::walk(loop_->blocks[1], [&](Op* op) {
      if (found || op->operands.size() != 2 || !(op->operands[0]->type == ir::I64)) return;
      const bool lt = op->is(Opcode::lt_), le = op->is(Opcode::le_);
      const bool point = op->is(Opcode::eq_, Opcode::ne_);
      if (!(lt || le || point) || !decides(op)) return;
      for (const std::size_t side : {0u, 1u}) {
        const Offset mine = offset(op->operands[side]), other = offset(op->operands[1 - side]);
        if (mine.base != loop_->blocks[1]->params[range_.index]) continue;
        if (other.base && !ir::visible_from(other.base, loop_->parent)) continue;
        Threshold t;
        t.comparison = op;
        // i + c < y: i < y - c;  x < i + c: not i < x - c + 1;  likewise with <=.
        t.plus_one = !point && (side == 0 ? le : lt);
        // i + c = y where i = y - c, whatever wraps around.
        t.moved = !point && (mine.by != 0 || (other.by != 0 && other.base));
        t.at = {other.base, other.by - mine.by + (t.plus_one ? 1u : 0u)};
        t.below = side == 0;
        t.point = point;
        t.inside = op->is(Opcode::eq_);
        if (!t.moved || order(t.at)) found = t;
        return;
      }
    });
    return found;
  }

  /// How a threshold lies to the first or the last iteration, where that shows.
  struct Order {
    std::optional<std::int64_t> after_first, before_last;
    bool size = false;  ///< neither wraps; else they may where there is no iteration
    explicit operator bool() const {
      return (after_first && *after_first >= 0) || (before_last && *before_last >= 0);
    }
  };
  Order order(const Offset& at) const {
    Order o;
    if (!at.base && !range_.first.base) o.after_first = static_cast<std::int64_t>(at.by - range_.first.by);
    // Sizes are far from where integers wrap, and so is what a loop counts to from a small number, if it has
    // an iteration.
    const auto small = [](std::uint64_t by) { return by + (1u << 20) <= (1u << 21); };
    const bool size = at.base && at.base->def && at.base->def->is(Opcode::dim_);
    o.size = size;
    const bool far =
        size || (!range_.first.base && small(range_.first.by) && small(at.by) && small(range_.last.by));
    if (far && at.base && range_.last.base && index_form(at.base) == index_form(range_.last.base))
      o.before_last = static_cast<std::int64_t>(range_.last.by - at.by);
    return o;
  }

  void rewrite(const Threshold& t) {
    ir::Builder b = ir::Builder::before(loop_);
    replace_loop(loop_, parts(b, t));
  }

  std::vector<Value*> parts(ir::Builder& b, const Threshold& t) {
    const Order o = order(t.at);
    Value* const first = materialise(b, range_.first);
    Value* const last = materialise(b, range_.last);
    const bool above = o.after_first && *o.after_first >= 0;  // the first iteration is not beyond the threshold
    const bool under = o.before_last && *o.before_last >= 0;  // nor the threshold beyond the last
    // A number that may be the largest there is does not grow: beyond the last iteration all are the same.
    const Offset number{t.at.base, t.at.by - (t.plus_one ? 1u : 0u)};
    Value* at = nullptr;
    if (t.plus_one && !above && !under)
      at = b.add({b.imin({materialise(b, number), last}), b.integer(1)});
    else
      at = materialise(b, t.at);
    Value* const end = under && o.size ? at : b.imin({at, last});
    Value* const start = above ? at : b.imax({at, first});

    std::vector<Value*> state = loop_->operands;
    if (!(above && *o.after_first == 0)) {
      const bool one = !t.point && above && *o.after_first == 1;
      state = part(b, t, state, first, one ? last : end, one, t.point ? !t.inside : t.below);
    }
    if (t.point) {
      Value* const some = b.land({b.le({first, at}), b.lt({at, last})});
      state = iteration(b, t, state, at, some, t.inside);
      Value* const behind = b.add({end, b.integer(1)});
      state = part(b, t, state, above ? behind : b.imax({behind, first}), last, false, !t.inside);
    } else {
      state = part(b, t, state, start, last, under && *o.before_last == 1, !t.below);
    }
    state[range_.index] = b.imax({first, last});
    return state;
  }

  /// The iterations from one to below another, of which the answer is known; `one`: there is one at most.
  std::vector<Value*> part(ir::Builder& b, const Threshold& t, std::vector<Value*> state, Value* from,
                           Value* to, bool one, bool answer) {
    if (one) return iteration(b, t, state, from, b.lt({from, to}), answer);
    state[range_.index] = from;
    return build_while(
        b, state,
        [&](ir::Builder& head, const std::vector<Value*>& now) {
          return head.lt({now[range_.index], to});
        },
        [&](ir::Builder& body, const std::vector<Value*>& now) {
          return clone_iteration(body, *loop_, now, t.comparison, answer);
        },
        loop_);
  }
  /// One iteration, if a condition holds.
  std::vector<Value*> iteration(ir::Builder& b, const Threshold& t, std::vector<Value*> state, Value* number,
                           Value* condition, bool answer) {
    const LoopValues before = state;
    state[range_.index] = number;
    return build_branch(
        b, condition, ir::types_of(loop_->results),
        [&](ir::Builder& yes) { return clone_iteration(yes, *loop_, state, t.comparison, answer); },
        [&](ir::Builder&) { return before; });
  }

  ir::Module& module_;
  Op* loop_;
  IterationRange range_;
};

/// Whether this is an innermost loop that both reads and writes elements of one tensor.
bool is_recurrence(const Op* loop) {
  bool innermost = true;
  ir::walk(loop->blocks[1], [&](const Op* op) { innermost &= !op->is(Opcode::loop_); });
  if (!innermost) return false;
  for (std::size_t i = 0; i < loop->operands.size(); ++i) {
    DefChain versions;
    if (loop->operands[i]->type.is_tensor() && versions.collect_defs(loop, i) && !versions.writes.empty() &&
        !reads_of(versions, loop).gets.empty())
      return true;
  }
  return false;
}

}  // namespace

void index_set_splitting(ir::Module& module, Op* around) {
  bool any = true;
  for (int round = 0; any && round < most_rounds; ++round) {
    std::vector<Op*> loops;
    std::size_t length = 0;
    ir::walk(around->blocks[1], [&](Op* op) {
      ++length;
      if (op->is(Opcode::loop_) && is_recurrence(op)) loops.push_back(op);
    });
    if (length > longest_parts) return;
    any = false;
    for (Op* loop : loops) any |= LoopSplitter(module, loop).run();
  }
}

void index_set_splitting(ir::Module& module) {
  if (split_at_coincidences(module)) {
    simplify(module);
    register_promotion(module);
  }
  for (int round = 0; round < most_rounds; ++round) {
    bool any = false;
    for (ir::Function* f : module.functions()) {
      if (!is_direct(*f)) continue;
      std::unordered_set<const Op*> gone;
      for (Op* loop : loops_in(*f)) {
        // What was in a loop that is cut is in its parts now.
        bool inside = false;
        for (const Op* around = loop; around && !inside; around = around->parent->parent)
          inside = gone.contains(around);
        if (inside || !LoopSplitter(module, loop).run()) continue;
        gone.insert(loop);
        any = true;
      }
    }
    if (!any) return;
    simplify(module);
  }
}

}  // namespace lantern::passes
