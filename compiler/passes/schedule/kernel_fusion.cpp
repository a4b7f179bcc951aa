// Pairs of loops, the later one first asked for its nearest.
#include "lantern/compiler/passes/schedule/kernel_fusion.hpp"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "lantern/compiler/passes/analysis/index_form.hpp"
#include "lantern/compiler/passes/analysis/iterations.hpp"
#include "lantern/compiler/passes/analysis/index_ranges.hpp"
#include "lantern/compiler/passes/analysis/lanes.hpp"
#include "lantern/compiler/passes/analysis/live_uses.hpp"
#include "lantern/compiler/passes/analysis/loops.hpp"
#include "lantern/compiler/passes/array/array_contraction.hpp"
#include "lantern/compiler/passes/array/dead_fills.hpp"
#include "lantern/compiler/passes/canonical/simplify.hpp"
#include "lantern/compiler/passes/schedule/equal_numbers.hpp"
#include "lantern/compiler/passes/schedule/loop_order.hpp"
#include "lantern/compiler/passes/schedule/views.hpp"
#include "lantern/compiler/passes/support/rewrite.hpp"

namespace lantern::passes {

namespace {

using ir::Builder;
using ir::Combine;

/// The operations of a joined body, which are more than registers hold long before.
constexpr std::int64_t longest_body = 400;
/// Values that a kernel is given: their bytes are bounded (codegen/kernels.cpp).
constexpr std::size_t most_captured = 56;
/// What a thread alone does of a row while the others of its block wait.
constexpr std::int64_t heaviest_alone = 200;

/// What of its dimensions is more than one element, for certain or perhaps.
std::vector<std::size_t> wide(const ir::Type& t) {
  std::vector<std::size_t> all;
  for (std::size_t d = 0; d < t.dims().size(); ++d)
    if (d == 0 || t.dims()[d] != 1) all.push_back(d);
  return all;
}

/// How parallel loops become kernels by themselves.
enum class Shape { numbers, nest, rows };

Shape shape_of(const Op* loop) {
  bool inner = false;
  ir::walk(loop->blocks[1], [&](const Op* op) { inner |= op->is(Opcode::loop_) && ir::is_parallel(*op); });
  if (!inner) return Shape::numbers;
  for (const Op* at = loop;; at = only_loop(at->blocks[1])) {
    if (!at || !ir::is_parallel(*at)) return Shape::rows;
    for (const Value* p : at->blocks[1]->params)
      if (ir::is_reduction(p->combine)) return Shape::rows;
    const auto shares = [](const Op* op) { return op->is(Opcode::loop_) && ir::is_parallel(*op); };
    if (std::ranges::none_of(at->blocks[1]->ops, shares)) return Shape::nest;
  }
}

/// The loops of a perfect nest, the outermost first.
std::vector<const Op*> nest_of(const Op* loop) {
  std::vector<const Op*> all;
  for (; loop; loop = only_loop(loop->blocks[1])) all.push_back(loop);
  return all;
}

/// The indices of a nest's loops, the outermost first; nothing where one does not count up.
std::optional<std::vector<const Value*>> indices_of(const std::vector<const Op*>& nest) {
  std::vector<const Value*> all;
  for (const Op* loop : nest) {
    const auto count = counted(loop);
    if (!count) return {};
    all.push_back(count->number);
  }
  return all;
}

/// Which loop of a nest each index of an access is of, if each is of another.
std::optional<std::vector<std::size_t>> levels_of(const Op& access, const std::vector<const Value*>& indices) {
  std::vector<std::size_t> levels;
  for (std::size_t d = 1; d <= static_cast<std::size_t>(access.operands[0]->type.rank()); ++d) {
    const auto at = std::ranges::find(indices, access.operands[d]);
    if (at == indices.end()) return {};
    levels.push_back(static_cast<std::size_t>(at - indices.begin()));
  }
  if (levels.size() != indices.size()) return {};
  return levels;
}

/// True for two nests over the same iterations where each iteration of the second reads at most the first's elements of that
/// iteration. They become one nest, not only one outermost loop.
bool pointwise(const Op* a, const Op* b, const EqualNumbers& equal) {
  const auto nest_a = nest_of(a), nest_b = nest_of(b);
  const auto in_a = indices_of(nest_a), in_b = indices_of(nest_b);
  if (!in_a || !in_b || nest_a.size() != nest_b.size()) return false;
  for (std::size_t l = 0; l < nest_a.size(); ++l) {
    const auto x = counted(nest_a[l]), y = counted(nest_b[l]);
    if (!equal(x->first, y->first) || !equal(x->bound, y->bound)) return false;
  }
  const Uses inside_a(const_cast<Op*>(a)), inside_b(const_cast<Op*>(b));
  for (std::size_t i = 0; i < a->results.size(); ++i) {
    const Value* const r = a->results[i];
    if (!r->type.is_tensor()) continue;
    const auto handed_on = std::ranges::find(b->operands, r);
    const auto& reads = inside_b.of(r);
    if (handed_on == b->operands.end() && reads.empty()) continue;
    const auto made = state_use(inside_a, a, i);
    if (!made || made->updates.empty()) return false;
    const auto levels = levels_of(*made->updates.front(), *in_a);
    const auto own = [&](const Op* op, const std::vector<const Value*>& indices) { return levels_of(*op, indices) == levels; };
    if (!levels || !std::ranges::all_of(made->updates, [&](const Op* op) { return own(op, *in_a); })) return false;
    for (const ir::Use& use : reads)
      if (!use.op->is(Opcode::get_) || use.operand != 0 || !own(use.op, *in_b)) return false;
    if (handed_on == b->operands.end()) continue;
    const auto goes_on = state_use(inside_b, b, static_cast<std::size_t>(handed_on - b->operands.begin()));
    if (!goes_on) return false;
    for (const Op* op : made->reads)
      if (!own(op, *in_a)) return false;
    for (const Op* op : goes_on->accesses())
      if (!own(op, *in_b)) return false;
  }
  return true;
}

/// Whether two loops make a better kernel than two.
bool worth_joining(const Op* a, const Op* b, const EqualNumbers& equal) {
  const Shape first = shape_of(a), second = shape_of(b);
  if (first == Shape::rows || second == Shape::rows) {
    for (const auto& [shape, loop] : {std::pair(first, a), std::pair(second, b)})
      if (shape == Shape::numbers && weight(loop->blocks[1]) > heaviest_alone) return false;
    return true;
  }
  return first == second && (first == Shape::numbers || pointwise(a, b, equal));
}

/// Every iteration has elements of its own, and adds to nothing that others add to.
bool only_elements(const Op* loop) {
  return std::ranges::none_of(loop->blocks[1]->params, [](const Value* p) { return ir::is_reduction(p->combine); });
}

/// Iterations add to tensors that others add to: blocks have tensors of their own then.
bool sums_into_tensors(const Op* loop) {
  return std::ranges::any_of(loop->blocks[1]->params,
                             [](const Value* p) { return ir::is_reduction(p->combine) && p->type.is_tensor(); });
}

/// What joins: a loop and one that needs it, or any two.
enum class Joined { flow, any };
/// Operations between them that are looked through.
constexpr std::size_t farthest(Joined joined) { return joined == Joined::flow ? 2000 : 200; }

/// Two loops of one block, the first of which is to join the second.
class Pair {
 public:
  Pair(ir::Module& module, Op* first, Op* second, const EqualNumbers& equal, const IndexRanges& ranges,
       BlockDoings& doings, BlockUsers& users, Joined joined)
      : module_(module),
        a_(first),
        b_(second),
        equal_(equal),
        ranges_(ranges),
        doings_(doings),
        users_(users),
        joined_(joined),
        in_a_(first),
        in_b_(second) {}

  bool run() {
    index_a_ = counted(a_)->index, index_b_ = counted(b_)->index;
    if (!short_enough()) return false;
    auto found = between({a_}, b_, static_cast<std::ptrdiff_t>(farthest(joined_)), doings_,
                         [](Op* op) { return std::vector<Op*>{op}; });
    if (!found) return false;
    between_ = std::move(*found);
    if (!flows() || !in_order()) return false;
    if (captured_by({a_, b_}).size() > most_captured) return false;
    join();
    return true;
  }

  /// Once they are one: a check that was between them is behind them now.
  bool passed_checks() const {
    return std::ranges::any_of(between_.later, [](const Op* op) { return op->is(Opcode::check_); });
  }

 private:
  /// Of nests that become one nest, the operations of a thread count; of others also how often they run.
  bool short_enough() const {
    if (joined_ == Joined::flow && shape_of(a_) == Shape::nest && shape_of(b_) == Shape::nest) {
      std::int64_t operations = 0;
      for (const Op* loop : {nest_of(a_).back(), nest_of(b_).back()})
        ir::walk(loop->blocks[1], [&](const Op*) { ++operations; });
      return operations <= 2 * longest_body;
    }
    return weight(a_->blocks[1]) + weight(b_->blocks[1]) <= (joined_ == Joined::flow ? 8 : 1) * longest_body;
  }

  /// What reaches the second loop of the first.
  struct Flow {
    std::size_t state;                ///< of the first
    const Value* as;                  ///< what the second calls it: the result, or a view
    std::optional<std::size_t> into;  ///< the state of the second that begins with it
  };

  /// Which of the first loop's results a value is, by views that keep its rows.
  std::optional<std::size_t> result_behind(const Value* v) const {
    const Value* to = v;
    while (v->def && v->def != a_) {
      if (!v->def->is(Opcode::reshape_)) return {};
      v = v->def->operands[0];
    }
    if (v->def != a_) return {};
    const std::size_t state = v->index;
    if (to == v) return state;
    const std::vector<std::size_t> x = wide(v->type), y = wide(to->type);
    if (x.size() != y.size()) return {};
    for (std::size_t d = 0; d < x.size(); ++d) {
      if (!equal_(size_form(a_->operands[state], x[d]), size_form(to, y[d]))) return {};
    }
    return state;
  }

  static bool own(const Op* access, const Value* index, std::size_t dimension) {
    return access->operands[1 + dimension] == index;
  }

  /// All updates of a state are of the iteration's index in a dimension, its row for the first one, and so are reads where
  /// asked for.
  bool own_rows(const Uses& uses, const Op* loop, std::size_t state, const Value* index, std::size_t dimension,
                bool reads) const {
    const auto use = state_use(uses, loop, state);
    if (!use || use->whole || use->extreme || use->sum) return false;
    const auto of_row = [&](const Op* op) { return own(op, index, dimension); };
    return std::ranges::all_of(use->updates, of_row) && (!reads || std::ranges::all_of(use->reads, of_row));
  }

  /// Finds what the second loop needs of the first; false where that is more than rows.
  bool flows() {
    const Value* const index_a = a_->blocks[1]->params[index_a_];
    const Value* const index_b = b_->blocks[1]->params[index_b_];
    std::unordered_set<const Value*> seen;
    bool good = true;
    const auto look = [&](const Value* v) {
      if (!between_.made.contains(v) || !seen.insert(v).second) return;
      const auto state = v->type.is_tensor() ? result_behind(v) : std::nullopt;
      if (state && sum_goes_on(v, *state)) {
        flows_.push_back({*state, v, static_cast<std::size_t>(std::ranges::find(b_->operands, v) - b_->operands.begin())});
        return;
      }
      if (!state || ir::combine(*a_, *state) != Combine::element) {
        good = false;
        return;
      }
      Flow flow{*state, v, {}};
      const auto at = std::ranges::find(b_->operands, v);
      const bool handed_on = at != b_->operands.end();
      // Of a view that has other dimensions rows are known to be the same.
      const std::size_t dimensions = v == a_->result(*state) ? static_cast<std::size_t>(v->type.rank()) : 1;
      const auto in_dimension = [&](std::size_t d) {
        if (handed_on)
          return own_rows(in_a_, a_, *state, index_a, d, true) && own_rows(in_b_, b_, *flow.into, index_b, d, true);
        return own_rows(in_a_, a_, *state, index_a, d, false) && std::ranges::all_of(in_b_.of(v), [&](const ir::Use& use) {
          return use.op->is(Opcode::get_) && use.operand == 0 && own(use.op, index_b, d);
        });
      };
      if (handed_on) {
        flow.into = static_cast<std::size_t>(at - b_->operands.begin());
        good &= std::ranges::count(b_->operands, v) == 1 && in_b_.of(v).empty() &&
                ir::combine(*b_, *flow.into) == Combine::element && in_b_.of(b_->blocks[0]->params[*flow.into]).empty() &&
                nothing_else_asks(*state, v) && (v->type == a_->result(*state)->type || can_be_retyped(*flow.into));
      }
      bool together = false;
      for (std::size_t d = 0; d < dimensions && !together; ++d) together = in_dimension(d);
      good &= together;
      flows_.push_back(flow);
    };
    for (const Value* v : b_->operands) look(v);
    for (Block* b : b_->blocks)
      ir::walk(b, [&](const Op* op) {
        for (const Value* v : op->operands) look(v);
      });
    // A state that is handed on has no other way into the second loop.
    for (const Flow& f : flows_)
      for (const Flow& g : flows_) good &= &f == &g || !f.into || f.state != g.state;
    return good && (!flows_.empty() || (joined_ == Joined::any && alike()));
  }

  /// Kernels of one kind, by who adds to what.
  bool alike() const {
    return (only_elements(a_) && only_elements(b_)) || (sums_into_tensors(a_) && sums_into_tensors(b_));
  }

  /// A tensor that the first loop adds to and hands on to the second, which adds to it, too.
  bool sum_goes_on(const Value* v, std::size_t state) {
    const auto at = std::ranges::find(b_->operands, v);
    if (v != a_->result(state) || at == b_->operands.end() || std::ranges::count(b_->operands, v) != 1) return false;
    const auto into = static_cast<std::size_t>(at - b_->operands.begin());
    return ir::combine(*a_, state) == Combine::sum && ir::combine(*b_, into) == Combine::sum && in_b_.of(v).empty() &&
           in_b_.of(b_->blocks[0]->params[into]).empty() && nothing_else_asks(state, v);
  }

  /// Of a result that the second loop updates nothing but views on the way there knows.
  bool nothing_else_asks(std::size_t state, const Value* as) {
    const Op* user = b_;
    for (const Value* v = as;; user = v->def, v = v->def->operands[0]) {
      if (std::ranges::count(user->operands, v) != 1) return false;
      if (users_.others_use(v, user)) return false;
      if (v == a_->result(state)) return true;
    }
  }

  /// The tensors that a state of the second loop becomes, in the order of its operations; nothing where it goes other
  /// ways than through updates and loops.
  std::optional<std::vector<Value*>> becomes(std::size_t state) const {
    std::vector<Value*> all{b_->blocks[0]->params[state], b_->blocks[1]->params[state], b_->results[state]};
    for (std::size_t k = 1; k < all.size(); ++k) {
      if (all[k] == b_->results[state]) continue;
      for (const auto& [op, operand] : in_b_.of(all[k])) {
        if (op->is(Opcode::get_) && operand == 0) continue;
        if (op->is(Opcode::yield_)) continue;
        if (is_write(*op) && operand == 0) {
          all.push_back(op->result());
        } else if (op->is(Opcode::loop_)) {
          for (Value* v : {op->blocks[0]->params[operand], op->blocks[1]->params[operand], op->results[operand]})
            all.push_back(v);
        } else {
          return {};
        }
      }
    }
    return all;
  }
  bool can_be_retyped(std::size_t state) const { return becomes(state).has_value(); }

  /// The first loop can run as late as the second, and the second before what needs the first.
  bool in_order() {
    Reordering how{.first_fails = may_fail(a_, equal_, &ranges_), .last_fails = may_fail(b_, equal_), .handed_on = {}};
    for (const Flow& f : flows_)
      if (f.into) how.handed_on.insert(b_->operands[*f.into]);
    return undisturbed({a_}, b_, between_, how, doings_);
  }

  /// The indices of an element in the loop's own tensor, where a view has them.
  static std::vector<Value*> through(const std::vector<Value*>& operands, const ir::Type& view, const ir::Type& base,
                                     Value* zero) {
    const std::vector<std::size_t> from = wide(view), to = wide(base);
    std::vector<Value*> at(base.dims().size(), zero);
    for (std::size_t d = 0; d < to.size(); ++d) at[to[d]] = operands[1 + from[d]];
    return at;
  }

  void turn(Op* access, const ir::Type& view, const ir::Type& base, Value* zero) const {
    std::vector<Value*> operands{access->operands[0]};
    for (Value* v : through(access->operands, view, base, zero)) operands.push_back(v);
    if (!access->is(Opcode::get_)) operands.push_back(access->operands.back());
    access->operands = std::move(operands);
  }

  void join() {
    Block *const from = a_->blocks[1], *const to = b_->blocks[1];
    Block* const around = a_->parent;
    Op* const first_yield = from->ops.back();
    Op* const second_yield = to->ops.back();
    Renaming in_first, in_second, outside;
    Value* zero = nullptr;
    for (const Flow& f : flows_)
      if (f.as->type != a_->result(f.state)->type && !zero) zero = Builder::before(a_).integer(0);
    // What stays behind the joined loop for a state that was a view.
    std::unordered_set<const Op*> gone;
    std::vector<std::pair<std::size_t, const Value*>> views;
    for (const Flow& f : flows_) {
      const ir::Type base = a_->result(f.state)->type, view = f.as->type;
      if (f.into) {
        for (const Value* v = f.as; v->def != a_; v = v->def->operands[0]) gone.insert(v->def);
        if (view == base) continue;
        const std::vector<Value*> values = *becomes(*f.into);
        for (Value* v : values)
          for (const auto& [op, operand] : in_b_.of(v))
            if (operand == 0 && is_access(*op)) turn(op, view, base, zero);
        for (Value* v : values) v->type = base;
        views.emplace_back(*f.into, f.as->def->operands[1]);
      } else if (view != base) {
        for (const auto& [op, operand] : in_b_.of(f.as)) turn(op, view, base, zero);
      }
    }
    in_first[from->params[index_a_]] = to->params[index_b_];
    outside[a_->result(index_a_)] = b_->result(index_b_);
    for (std::size_t i = 0; i < a_->results.size(); ++i) {
      if (i == index_a_) continue;
      const auto handed = std::ranges::find_if(flows_, [&](const Flow& f) { return f.state == i && f.into; });
      if (handed != flows_.end()) {
        const std::size_t j = *handed->into;
        in_first[from->params[i]] = to->params[j];
        in_second[to->params[j]] = first_yield->operands[i];
        b_->operands[j] = a_->operands[i];
        continue;
      }
      b_->operands.push_back(a_->operands[i]);
      module_.add_param(b_->blocks[0], from->params[i]->type);
      Value* const param = module_.add_param(to, from->params[i]->type, from->params[i]->name);
      param->combine = from->params[i]->combine;
      in_first[from->params[i]] = param;
      second_yield->operands.push_back(first_yield->operands[i]);
      outside[a_->result(i)] = module_.add_result(b_, a_->result(i)->type, a_->result(i)->name);
      for (const Flow& f : flows_)
        if (f.state == i) in_second[f.as] = first_yield->operands[i];
    }
    for (auto& [v, by] : in_second) by = ir::renamed(in_first, by);
    const std::size_t own = second_yield->operands.size();
    ir::rename(to, in_second);
    ir::rename(from, in_first);
    for (std::size_t k = 0; k < own; ++k) second_yield->operands[k] = ir::renamed(in_first, second_yield->operands[k]);
    from->ops.pop_back();
    Builder::before(to->ops.front()).take(std::exchange(from->ops, {}));
    // In order: what does not need the first loop, the joined one, what needs it.
    auto& ops = around->ops;
    const auto at = std::ranges::find(ops, a_) - ops.begin(), last = std::ranges::find(ops, b_) - ops.begin();
    std::vector<Op*> order(ops.begin(), ops.begin() + at);
    order.insert(order.end(), between_.earlier.begin(), between_.earlier.end());
    order.push_back(b_);
    for (Op* op : between_.later)
      if (!gone.contains(op)) order.push_back(op);
    order.insert(order.end(), ops.begin() + last + 1, ops.end());
    ops = std::move(order);
    users_.forget(a_);
    for (const Op* op : gone) users_.forget(op);
    users_.replace(outside);
    for (const auto& [state, shape] : views) {
      Value* const result = b_->result(state);
      Builder b = Builder::after(b_);
      Value* const view = b.emit(Opcode::reshape_, {result, const_cast<Value*>(shape)});
      users_.replace({{result, view}});
      users_.note(view->def);
    }
    doings_.forget(b_);
    users_.note(b_);
  }

  ir::Module& module_;
  Op *a_, *b_;
  const EqualNumbers& equal_;
  const IndexRanges& ranges_;  ///< before loops were joined
  BlockDoings& doings_;
  BlockUsers& users_;
  Joined joined_;
  Uses in_a_, in_b_;
  std::size_t index_a_ = 0, index_b_ = 0;
  Between between_;
  std::vector<Flow> flows_;
};

/// Loops over as many iterations.
bool counts_alike(const Op* a, const Op* b, const EqualNumbers& equal) {
  const auto x = counted(a), y = counted(b);
  return x && y && a->integer == 0 && b->integer == 0 && equal(a->operands[x->index], b->operands[y->index]) &&
         equal(x->bound, y->bound);
}

/// The loops that a loop needs a result of, or a view of one.
ir::PointerSet<const Op> needed_loops(const Op* loop, BlockDoings& doings) {
  ir::PointerSet<const Op> all;
  for (const Value* v : doings.of(loop).operands)
    if (const Op* def = viewed(v)->def; def && def->is(Opcode::loop_)) all.insert(def);
  return all;
}

/// The loops of one block, joined in one walk.
class BlockFusion {
 public:
  /// `inside`: of a kernel, where all that can join does.
  BlockFusion(ir::Module& module, const TapeUses& tapes, const IndexRanges& ranges, Block* block, bool inside,
              Joined joined)
      : module_(module),
        tapes_(tapes),
        ranges_(ranges),
        block_(block),
        inside_(inside),
        joined_(joined),
        users_(block, doings_) {}

  /// True where loops have joined. A loop that took in another is looked at again, and so are those that it
  /// has passed.
  bool run() {
    bool any = false;
    start();
    for (std::size_t place = 0; place < block_->ops.size();) {
      Op* const op = block_->ops[place];
      equal_.note(*op);
      if (!op->is(Opcode::loop_) || !ir::is_parallel(*op)) {
        ++place;
      } else if (joins(op, place)) {
        any = true;
        place = static_cast<std::size_t>(std::ranges::find(block_->ops, op) - block_->ops.begin());
        find_before(place);
      } else {
        before_.push_back({op, place++});
      }
    }
    return any;
  }

 private:
  struct Earlier {
    Op* loop;
    std::size_t place;
  };

  /// With what checks before the block have said.
  void start() {
    equal_ = EqualNumbers();
    std::vector<const Op*> around;
    for (const Op* op = block_->parent; op; op = op->parent->parent) around.push_back(op);
    for (auto holder = around.rbegin(); holder != around.rend(); ++holder)
      for (const Op* op : (*holder)->parent->ops) {
        if (op == *holder) break;
        equal_.note(*op);
      }
    equal_.note_saved(tapes_, block_);
  }

  /// True where the loop has taken in one before it, the nearest first.
  bool joins(Op* op, std::size_t place) {
    const ir::PointerSet<const Op> needed = needed_loops(op, doings_);
    if (joined_ == Joined::flow && needed.size() == 0) return false;
    for (auto it = before_.rbegin(); it != before_.rend() && place - it->place <= farthest(joined_); ++it) {
      Op* const first = it->loop;
      if ((joined_ == Joined::flow && !needed.contains(first)) || !counts_alike(first, op, equal_) ||
          !(inside_ || worth_joining(first, op, equal_)))
        continue;
      Pair pair(module_, first, op, equal_, ranges_, doings_, users_, joined_);
      if (!pair.run()) continue;
      if (pair.passed_checks()) {
        start();
        for (const Op* known : block_->ops) {
          if (known == op) break;
          equal_.note(*known);
        }
      }
      return true;
    }
    return false;
  }

  void find_before(std::size_t end) {
    before_.clear();
    for (std::size_t place = 0; place < end; ++place)
      if (Op* const op = block_->ops[place]; op->is(Opcode::loop_) && ir::is_parallel(*op))
        before_.push_back({op, place});
  }

  ir::Module& module_;
  const TapeUses& tapes_;
  const IndexRanges& ranges_;
  Block* block_;
  bool inside_;
  Joined joined_;
  BlockDoings doings_;
  BlockUsers users_;
  EqualNumbers equal_;
  std::vector<Earlier> before_;  ///< the parallel loops before the one that is looked at
};

/// Joins loops of a block until none can; true if there were any.
bool fuse_in(ir::Module& module, const TapeUses& tapes, const IndexRanges& ranges, Block* block, bool inside,
             Joined joined) {
  const auto shares = [](const Op* op) { return op->is(Opcode::loop_) && ir::is_parallel(*op); };
  if (std::ranges::count_if(block->ops, shares) < 2) return false;
  bool any = false;
  while (BlockFusion(module, tapes, ranges, block, inside, joined).run()) any = true;
  return any;
}

/// Blocks outside of parallel loops, then those inside.
bool fuse_in(ir::Module& module, ir::Function& f, Joined joined) {
  bool any = false;
  const TapeUses tapes = tape_uses(module);
  const LiveUses live(f);
  const IndexRanges ranges(f, live);
  for (const bool inside : {false, true}) {
    std::vector<Block*> blocks;
    if (!inside) blocks.push_back(f.body);
    std::unordered_set<const Block*> within;
    ir::walk(f.body, [&](const Op* op) {
      const bool in = within.contains(op->parent) || (op->is(Opcode::loop_) && ir::is_parallel(*op));
      for (Block* b : op->blocks) {
        if (in) within.insert(b);
        if (in == inside) blocks.push_back(b);
      }
    });
    // Loops that need each other first: what joins by chance must not be in their way.
    for (Block* b : blocks) any |= fuse_in(module, tapes, ranges, b, inside, Joined::flow);
    for (Block* b : blocks)
      if (joined == Joined::any) any |= fuse_in(module, tapes, ranges, b, inside, joined);
  }
  return any;
}

}  // namespace

void kernel_fusion(ir::Module& module, bool strangers) {
  const Joined joined = strangers ? Joined::any : Joined::flow;
  if (!in_direct_style(module, [&](ir::Function& f) { return fuse_in(module, f, joined); })) return;
  simplify(module);  // views that nothing asks for any more
  dead_fills(module);  // of what several loops filled together
  array_contraction(module);
}

}  // namespace lantern::passes
