// One loop at a time, or one and the loop that takes from its tapes.
#include "lantern/compiler/passes/array/coincidence_splitting.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <unordered_set>

#include "lantern/compiler/passes/analysis/index_form.hpp"
#include "lantern/compiler/passes/analysis/iterations.hpp"
#include "lantern/compiler/passes/array/loop_parts.hpp"
#include "lantern/compiler/passes/support/build_loop.hpp"
#include "lantern/compiler/passes/support/remarks.hpp"
#include "lantern/ir/clone.hpp"

namespace lantern::passes {

namespace {

constexpr std::size_t most_copied = 100;  ///< operations of a body: splitting makes three copies of them

bool is_splittable(const Op* loop) {
  if (loop->integer != 0 || !ends_by_comparison(loop) || !counter_of(loop)) return false;
  std::size_t size = 0;
  bool simple = true;
  ir::walk(loop->blocks[1], [&](const Op* op) {
    ++size;
    simple &= op->is(Opcode::branch_, Opcode::yield_) || (is_on_tape(*op) && op->parent == loop->blocks[1]) ||
              is_pure(*op);
  });
  return simple && size <= most_copied;
}

bool has_branch(const Op* loop) {
  return std::ranges::any_of(loop->blocks[1]->ops, [](const Op* op) { return op->is(Opcode::branch_); });
}

/// An iteration, by the loop's counter, and what asks for it: true, or false, there and nowhere else.
struct Point {
  IndexForm at;
  const Op* comparison = nullptr;
};

bool is_met(const Op* loop, const Counter& counter, const IndexForm& point) {
  return never_negative(point - counter.first, *loop) && never_negative(counter.last - point, *loop);
}

/// A comparison by which one iteration is not as the others are: if (j != i).
std::optional<Point> compared(const Op* loop) {
  const Counter counter = *counter_of(loop);
  const Block* const body = loop->blocks[1];
  const Uses uses(loop);
  for (const Op* op : body->ops) {
    if ((!op->is(Opcode::eq_, Opcode::ne_)) || !(op->operands[0]->type == ir::I64)) continue;
    if (std::ranges::none_of(uses.of(op->result()),
                             [](const ir::Use& use) { return use.op->is(Opcode::branch_); }))
      continue;
    const auto s = (index_form(op->operands[0]) - index_form(op->operands[1])).split(counter.index);
    const auto factor = s ? s->coefficient.number() : std::nullopt;
    if (!factor || (*factor != 1 && *factor != -1) || !made_outside(s->rest, body)) continue;
    const IndexForm at = *factor == 1 ? IndexForm() - s->rest : s->rest;
    if (is_met(loop, counter, at)) return Point{at, op};
  }
  return {};
}

/// In which iteration, by the loop's counter, an element that all iterations access is one that an iteration
/// accesses by its number, where that is all that keeps them from being independent.
class Coincidence {
 public:
  explicit Coincidence(const Op* loop)
      : loop_(loop), body_(loop->blocks[1]), counter_(*counter_of(loop)), uses_(loop) {}

  std::optional<IndexForm> find() {
    for (std::size_t s = 0; s < loop_->operands.size(); ++s) {
      if (body_->params[s] == counter_.index || step_of(loop_, s)) continue;
      const Combination c = combination(uses_, loop_, s);
      if (c.combine != ir::Combine::none) continue;
      if (!c.use || c.use->whole || !loop_->operands[s]->type.is_tensor() || !look(c.use->accesses()))
        return {};
    }
    return at_;
  }

 private:
  bool look(const std::vector<const Op*>& accesses) {
    std::vector<const Op*> fixed, moving;
    for (const Op* op : accesses) (is_fixed(*op) ? fixed : moving).push_back(op);
    if (fixed.empty() || moving.empty() || !no_loop_carried_dependence(moving, loop_)) return false;
    for (const Op* op : fixed) {
      const bool sums = op->is(Opcode::add_at_) && op->loc.part == ir::Part::backward;
      if (!sums && !op->is(Opcode::get_)) return false;
      for (const Op* other : fixed)
        if (other != op && may_conflict(*op, *other) && !are_same_or_disjoint(*op, *other)) return false;
      for (const Op* other : moving)
        if (const auto point = meeting(*op, *other); point && may_conflict(*op, *other)) {
          if (at_ && !(*at_ == *point)) return false;
          at_ = point;
        }
    }
    if (!at_) return false;
    for (const Op* op : fixed)
      for (const Op* other : moving)
        if (may_conflict(*op, *other) && !meeting(*op, *other) && !meets_at_most_there(*op, *other) &&
            !no_alias(*op, *other, loop_, Iteration::any))
          return false;
    return true;
  }

  static bool may_conflict(const Op& a, const Op& b) { return !a.is(Opcode::get_) || !b.is(Opcode::get_); }
  std::size_t rank(const Op& op) const { return static_cast<std::size_t>(op.operands[0]->type.rank()); }
  bool is_fixed(const Op& op) const {
    for (std::size_t d = 1; d <= rank(op); ++d)
      if (!made_outside(index_form(op.operands[d]), body_)) return false;
    return true;
  }
  bool are_same_or_disjoint(const Op& a, const Op& b) const {
    return same_place(a, b) ? a.is(Opcode::add_at_) && b.is(Opcode::add_at_) : no_alias(a, b);
  }

  /// In which iteration the index that moves is the fixed one, where that certainly is one of the loop's.
  std::optional<IndexForm> meeting(const Op& fixed, const Op& moving) const {
    for (std::size_t d = 1; d <= rank(fixed); ++d) {
      const IndexForm gap = index_form(fixed.operands[d]) - index_form(moving.operands[d]);
      const auto s = gap.split(counter_.index);
      if (s && s->coefficient.number() == -1 && made_outside(s->rest, body_) &&
          is_met(loop_, counter_, s->rest))
        return s->rest;
    }
    return {};
  }

  /// With distance n q + (counter - at), where n is no less than the number of iterations: zero in iteration
  /// `at` alone.
  bool meets_at_most_there(const Op& fixed, const Op& moving) const {
    for (std::size_t d = 1; d <= rank(fixed); ++d) {
      const IndexForm gap = index_form(moving.operands[d]) - index_form(fixed.operands[d]) -
                            (IndexForm::of(counter_.index) - *at_);
      for (const Unknown& n : gap.unknowns()) {
        const auto s = gap.split(n);
        if (!s || !(s->rest == IndexForm()) || !made_outside(gap, body_)) continue;
        if (never_negative(IndexForm::of(n) - 1 - (counter_.last - counter_.first), *loop_)) return true;
      }
    }
    return false;
  }

  const Op* loop_;
  const Block* body_;
  Counter counter_;
  Uses uses_;
  std::optional<IndexForm> at_;
};

/// A loop in three: before an iteration, that one, and after it.
class Split {
 public:
  Split(ir::Module& module, Op* loop, const Point& point)
      : module_(module), loop_(loop), counter_(*counter_of(loop)), point_(point) {}

  /// `tapes`: of each tape one for each part, the iterations in rising order, whichever way the loop counts.
  void run(const std::map<std::int64_t, std::array<std::int64_t, 3>>& tapes) {
    ir::Builder b = ir::Builder::before(loop_);
    index_ = counter_.index->index;
    const bool up = counter_.step > 0;
    Value* const at = materialise(b, point_.at);
    Value* const next = b.add({at, b.integer(1)});
    std::vector<Value*> state = loop_->operands;
    state = up ? part(b, state, at, nullptr, tapes, 0) : part(b, state, nullptr, at, tapes, 2);
    state[index_] = at;
    state = iteration(b, state, tapes, 1);
    Value* const before = b.sub({at, b.integer(1)});
    state[index_] = up ? next : before;
    state = up ? part(b, state, nullptr, nullptr, tapes, 2) : part(b, state, nullptr, nullptr, tapes, 0);
    replace_loop(loop_, state);
  }

 private:
  using Tapes = std::map<std::int64_t, std::array<std::int64_t, 3>>;

  /// Up to below `end`, or to the loop's own; of a loop that counts down to `above`, or to its own end.
  std::vector<Value*> part(ir::Builder& b, std::vector<Value*> state, Value* end, Value* above,
                           const Tapes& tapes, std::size_t which) {
    if (above) state[index_] = b.sub({state[index_], above});
    return build_while(
        b, state,
        [&](ir::Builder& head, const std::vector<Value*>& now) {
          if (end) return head.lt({now[index_], end});
          Renaming names = ir::pairs(loop_->blocks[0]->params, now);
          return ir::clone(head, *loop_->blocks[0], names)[0];
        },
        [&](ir::Builder& body, std::vector<Value*> now) {
          Value* const counts = now[index_];
          if (above) now[index_] = body.add({counts, above});
          std::vector<Value*> next = iteration(body, now, tapes, which);
          if (above) next[index_] = body.sub({counts, body.integer(1)});
          return next;
        },
        loop_);
  }

  std::vector<Value*> iteration(ir::Builder& b, const std::vector<Value*>& state, const Tapes& tapes,
                                std::size_t which) {
    const bool answer = point_.comparison && point_.comparison->is(Opcode::eq_) == (which == 1);
    const std::unordered_set<const Op*> before(b.block()->ops.begin(), b.block()->ops.end());
    std::vector<Value*> next = clone_iteration(b, *loop_, state, point_.comparison, answer);
    for (Op* op : b.block()->ops)
      if (is_on_tape(*op) && !before.contains(op))
        if (const auto tape = tapes.find(op->integer); tape != tapes.end()) op->integer = tape->second[which];
    return next;
  }

  ir::Module& module_;
  Op* loop_;
  Counter counter_;
  Point point_;
  std::size_t index_ = 0;
};

class Splitting {
 public:
  explicit Splitting(ir::Function& f) : module_(*f.module), function_(f) {
    for (Op* loop : loops_in(f)) splittable_.insert(loop);
    std::erase_if(splittable_, [](const Op* loop) { return !is_splittable(loop); });
    ir::walk(f.body, [&](Op* op) {
      if (is_on_tape(*op)) tape_uses_[op->integer].push_back(op);
    });
  }

  bool run() {
    bool any = false;
    for (Op* loop : loops_in(function_)) {
      if (!splittable_.contains(loop)) continue;
      if (!has_branch(loop)) {
        if (const auto at = Coincidence(loop).find()) any |= split(loop, {*at});
      } else if (!tapes_in(loop).empty()) {  // others are split where their tensors are gathered
        if (const auto point = compared(loop)) any |= split(loop, *point);
      }
    }
    return any;
  }

 private:
  bool split(Op* loop, const Point& point) {
    const std::set<std::int64_t> tapes = tapes_in(loop);
    std::vector<std::pair<Op*, Point>> both{{loop, point}};
    if (!tapes.empty()) {
      Op* const other = partner(loop, tapes);
      const auto there = other ? translated(point.at, loop, other) : std::nullopt;
      if (!there) return false;
      const auto asked = compared(other);
      if (asked && !(asked->at == *there)) return false;
      both.push_back({other, {*there, asked ? asked->comparison : nullptr}});
    }
    std::map<std::int64_t, std::array<std::int64_t, 3>> parts;
    for (const std::int64_t tape : tapes) parts[tape] = {tape, module_.new_tape(), module_.new_tape()};
    for (const auto& [one, where] : both) {
      remark("index_set_splitting", one->loc, "is split at the iteration that is not as the others are");
      Split(module_, one, where).run(parts);
      splittable_.erase(one);
    }
    return true;
  }

  static std::set<std::int64_t> tapes_in(const Op* loop) {
    std::set<std::int64_t> all;
    for (const Op* op : loop->blocks[1]->ops)
      if (is_on_tape(*op)) all.insert(op->integer);
    return all;
  }

  /// The one loop beside this one that uses its tapes, each of them as this one does.
  Op* partner(const Op* loop, const std::set<std::int64_t>& tapes) const {
    Op* other = nullptr;
    for (const std::int64_t tape : tapes) {
      const auto& uses = tape_uses_.at(tape);
      if (uses.size() != 2) return nullptr;
      for (const Op* use : uses) {
        Op* const around = use->parent->parent;
        if (around == loop) continue;
        if (!around || !splittable_.contains(around) || use->parent != around->blocks[1] ||
            (other && other != around))
          return nullptr;
        other = around;
      }
    }
    return other && tapes_in(other) == tapes && counter_of(loop)->step != counter_of(other)->step ? other
                                                                                                  : nullptr;
  }

  /// The iteration of the other loop that takes what this iteration puts on tapes. Of both nests, loops at
  /// the same depth are the same loop, forward and backward: one counts up from `first`, the other down, in
  /// whose body its parameter is one more than what numbers the iterations from 0.
  static std::optional<IndexForm> translated(const IndexForm& at, const Op* loop, const Op* other) {
    auto here = loops_around(loop->parent), there = loops_around(other->parent);
    if (here.size() != there.size()) return {};
    here.push_back(loop), there.push_back(other);
    const bool pushes =
        std::ranges::any_of(loop->blocks[1]->ops, [](const Op* op) { return op->is(Opcode::push_); });
    IndexForm f = at;
    for (std::size_t k = 0; k < here.size(); ++k) {
      if (here[k] == there[k]) continue;
      const auto from = counter_of(here[k]), to = counter_of(there[k]);
      if (!from || !to || from->step != (pushes ? 1 : -1) || to->step != -from->step) return {};
      if (here[k] == loop) {
        f = f - from->first + to->first;
      } else {
        if (!f.split(Unknown(from->index))) return {};
        f = f.with(Unknown(from->index), IndexForm::of(to->index) - to->first + from->first);
      }
    }
    const Counter counter = *counter_of(other);
    for (const Unknown& u : f.unknowns())
      if (!ir::visible_from(u.value, other->parent)) return {};
    if (!is_met(other, counter, f)) return {};
    return f;
  }

  ir::Module& module_;
  ir::Function& function_;
  std::set<Op*> splittable_;
  std::map<std::int64_t, std::vector<Op*>> tape_uses_;
};

}  // namespace

bool split_at_coincidences(ir::Module& module) {
  return in_direct_style(module, [](ir::Function& f) { return Splitting(f).run(); });
}

}  // namespace lantern::passes
