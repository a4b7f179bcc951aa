// Loop distribution: scatters to neighbours get a loop of their own.
#include "lantern/compiler/passes/array/scatters.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <unordered_set>

#include "lantern/compiler/passes/analysis/iterations.hpp"
#include "lantern/compiler/passes/support/build_loop.hpp"
#include "lantern/ir/clone.hpp"

namespace lantern::passes {

namespace {

/// The price of an array for what is added: it is written, read, and takes memory.
constexpr std::size_t keeping = 24;

bool near(const Neighbours& adds) {
  return std::ranges::all_of(spread(adds), [](const Span& s) { return s.to - s.from <= widest; }) &&
         std::ranges::any_of(adds, [&](const Addition& a) { return a.by != adds.front().by; });
}

/// The value whose negative this one is, else the value. What flows between two cells is added to one and
/// subtracted from the other, so that one array serves both.
Value* without_sign(Value* v) { return v->def && v->def->is(Opcode::neg_) ? v->def->operands[0] : v; }

/// What additions add or subtract, each once.
std::vector<Value*> added(const std::vector<Neighbours>& all) {
  std::vector<Value*> values;
  for (const Neighbours& adds : all)
    for (const Addition& a : adds)
      if (Value* const v = without_sign(a.op->operands.back()); std::ranges::find(values, v) == values.end())
        values.push_back(v);
  return values;
}

std::vector<const Op*> updates_of(const Scatter& s) {
  std::vector<const Op*> all;
  for (const Neighbours& adds : s.neighbours)
    for (const Addition& a : adds) all.push_back(a.op);
  return all;
}

class Distribution {
 public:
  Distribution(ir::Module& module, Op* loop, const Uses& all)
      : module_(module), uses_(loop), all_(all), nest_(nest_of(loop, uses_)) {}

  bool run() {
    if (!nest_) return false;
    std::vector<Scatter> again, kept;
    for (std::size_t state = 0; state < nest_->outer()->operands.size(); ++state) {
      auto s = scatter_of(*nest_, uses_, state);
      // Loops in which neighbours lie side by side at the inner levels alone are better off with those.
      if (!s || std::ranges::all_of(s->neighbours, [](const Neighbours& n) {
            const Span outermost = spread(n).front();
            return n.front().by.size() > 1 && outermost.from == outermost.to;
          }))
        continue;
      if (!s->beside.empty()) {
        if (separates(*s)) kept.push_back(std::move(*s));
        continue;
      }
      const bool pure = available(*s, false);
      if (pure && !costly(*s)) {
        again.push_back(std::move(*s));
        continue;
      }
      const bool popped = pure || available(*s, true);
      leave_middle(*s);
      if (!pure && std::ranges::none_of(s->neighbours, &Neighbours::empty) && available(*s, false) && !costly(*s))
        again.push_back(std::move(*s));
      else if (popped && worth_keeping(*s))
        kept.push_back(std::move(*s));
    }
    if (again.empty() && kept.empty()) return false;
    std::vector<Zeros> zeros;
    for (const auto* some : {&again, &kept})
      for (const Scatter& s : *some)
        if (const auto z = s.beside.empty() ? zeros_beside(s) : std::nullopt) zeros.push_back(*z);
    ir::Builder before = ir::Builder::before(nest_->outer());
    for (const Scatter& s : again) {
      Value*& start = nest_->outer()->operands[s.state];
      start = loops(before, updates_of(s), start);
      start->name = nest_->outer()->results[s.state]->name;
    }
    ir::Builder after = ir::Builder::after(nest_->outer());
    for (const Scatter& s : kept) keep(before, after, s);
    for (const Zeros& z : zeros) {
      Value* const without = nest_->outer()->results[z.state];
      std::ranges::replace(z.sum->operands, without, loops(after, {z.set}, without));
      leave_out(z.set);
    }
    for (const auto* some : {&again, &kept})
      for (const Scatter& s : *some)
        for (const Op* add : updates_of(s)) leave_out(const_cast<Op*>(add));
    return true;
  }

 private:
  /// Elements of each iteration's own that become zero, and are only read before that.
  struct Zeros {
    std::size_t state = 0;
    Op* set = nullptr;
    Op* sum = nullptr;  ///< behind the nest
  };

  // ---- whether, and how

  /// The nest reads and sets elements of the tensor, too: every other one, for example. True where no neighbour is among
  /// these elements, and iterations of the innermost loop are independent without the sums in neighbours. The addition to
  /// the element in the middle stays. Not where adjacent iterations add to adjacent elements: vectors that overlap by whole ones are added in turn at
  /// less than an array for them takes, but processors do not forward a masked store to a load.
  bool separates(Scatter& s) const {
    const auto in_nest = updates_of(s);
    leave_middle(s);
    const auto moved = updates_of(s);
    const auto is_sum = [](const Op* add) { return add->loc.part == ir::Part::backward; };
    if (moved.empty() || !std::ranges::all_of(moved, is_sum) || !leaves_gaps(*moved.front()) || !worth_keeping(s))
      return false;
    for (const Op* op : s.beside)
      for (const Op* add : moved)
        if (!no_alias(*op, *add, nest_->outer(), Iteration::any)) return false;
    std::vector<const Op*> left = s.beside;
    left.insert(left.end(), s.others.begin(), s.others.end());
    for (const Op* add : in_nest)
      if (std::ranges::find(moved, add) == moved.end()) left.push_back(add);
    const Op* const loop = nest_->levels.back().loop;
    return no_loop_carried_dependence(left, loop) && other_states_are_independent(*nest_->handed_in(uses_, s.state));
  }
  bool leaves_gaps(const Op& add) const {
    const auto s = index_form(*(add.operands.end() - 2)).split(nest_->levels.back().counter());
    const auto step = s ? s->coefficient.number() : std::nullopt;
    return step && std::abs(*step) > 1;
  }
  bool other_states_are_independent(std::size_t state) const {
    const Op* const loop = nest_->levels.back().loop;
    for (std::size_t i = 0; i < loop->operands.size(); ++i) {
      if (i == state || step_of(loop, i)) continue;
      const Combination c = combination(uses_, loop, i);
      if (c.combine != ir::Combine::none) continue;
      if (!c.use || c.use->whole || !loop->operands[i]->type.is_tensor() ||
          !no_loop_carried_dependence(c.use->accesses(), loop))
        return false;
    }
    return true;
  }

  /// True where all that is added is to be had in any order of the iterations; `popped`: or from a tape.
  bool available(const Scatter& s, bool popped) const {
    std::vector<const Value*> values;
    for (const Value* v : added(s.neighbours)) values.push_back(v);
    return is_rematerialisable(
        std::move(values), [&](const Value* v) { return nest_->inside(v); },
        [&](const Value* v) { return nest_->counts(v); }, [&](const Op& get) { return unchanged(get); },
        popped);
  }
  /// An element of a state, read before the iteration changes it, which no other iteration does: as it was before the
  /// loops.
  bool unchanged(const Op& get) const {
    const Value* v = get.operands[0];
    if (v->def || v->block != nest_->innermost()) return false;
    const std::size_t inner = v->index;
    for (std::size_t k = nest_->depth() - 1; k > 0; --k) {
      v = nest_->levels[k].loop->operands[v->index];
      if (v->def || v->block != nest_->levels[k - 1].loop->blocks[1]) return false;
    }
    return nest_->handed_in(uses_, v->index) == inner && reads_loop_entry_value(uses_, get, inner, own(get));
  }
  /// True where no other iteration changes the element that is read, by what changes elements of that tensor.
  bool own(const Op& get) const {
    std::vector<const Op*> accesses{&get};
    for (const Value* v = get.operands[0]; v;) {
      const Value* next = nullptr;
      for (const auto& [op, operand] : uses_.of(v))
        if (is_write(*op)) {
          accesses.push_back(op);
          next = op->result();
        }
      v = next;
    }
    return std::ranges::all_of(nest_->levels,
                               [&](const Nest::Level& l) { return no_loop_carried_dependence(accesses, l.loop); });
  }

  /// The zeros that the nest makes, beside other things, in a tensor to which the sums are added behind it,
  /// and nothing uses either alone: whoever reads an element reads what was there before the nest, so the
  /// zeros may come behind it, and there they sink into the sums (scatter_to_gather).
  std::optional<Zeros> zeros_beside(const Scatter& s) const {
    const Op* const outer = nest_->outer();
    if (outer->results.size() <= 3) return {};  // it counts, adds to neighbours, and makes zeros
    const auto sum_of = [&](std::size_t state) -> Op* {
      const auto& uses = all_.of(outer->results[state]);
      return uses.size() == 1 && uses[0].op->is(Opcode::add_) ? uses[0].op : nullptr;
    };
    Op* const sum = sum_of(s.state);
    for (std::size_t state = 0; sum && state < outer->results.size(); ++state) {
      if (state == s.state || sum_of(state) != sum) continue;
      const auto inner = nest_->handed_in(uses_, state);
      if (!inner) return {};
      Op* set = nullptr;
      for (const auto& [op, operand] : uses_.of(nest_->innermost()->params[*inner])) {
        if (op->is(Opcode::get_) && unchanged(*op)) continue;
        if (set || !op->is(Opcode::set_) || operand != 0) return {};
        set = op;
      }
      if (!set || !sets_zero(*set) || uses_.count(set->result()) != 1 ||
          nest_->innermost()->yields()[*inner] != set->result() || !place_in(*nest_, *set))
        return {};
      return Zeros{state, set, sum};
    }
    return {};
  }

  /// True where iterations that compute what is added for their neighbours, too, take longer than to keep it. What
  /// the nest computes for nothing else is then computed there no more.
  bool costly(const Scatter& s) {
    std::size_t gathered = 0;
    for (const Neighbours& adds : s.neighbours) {
      Block* const block = module_.new_block(nest_->outer()->parent->parent, nest_->outer()->parent->function);
      IterationCloner gathering = iterations(block, counters());
      for (const Addition& a : adds) {
        IterationCloner::Shifts back;
        for (const std::int64_t by : a.by) back.push_back(-by);
        gathering.at(a.op->operands.back(), back);
      }
      gathered += price(*block);
    }
    return gathered > price_without(s) + keeping * s.neighbours.size();
  }
  /// What an iteration computes for these additions alone.
  std::size_t price_without(const Scatter& s) const {
    const std::vector<const Op*> adds = updates_of(s);
    std::unordered_set<const Op*> gone(adds.begin(), adds.end());
    std::size_t sum = 0;
    const auto& ops = nest_->innermost()->ops;
    for (auto op = ops.rbegin(); op != ops.rend(); ++op) {
      if ((*op)->results.empty() || gone.contains(*op) || !(*op)->blocks.empty()) continue;
      const bool alone = std::ranges::all_of((*op)->results, [&](const Value* v) {
        return std::ranges::all_of(uses_.of(v), [&](const auto& use) { return gone.contains(use.op); });
      });
      if (!alone) continue;
      gone.insert(*op);
      sum += price(**op);
    }
    return sum;
  }

  /// Leaves to the nest what iterations add to the element in the middle, most often their own.
  static void leave_middle(Scatter& s) {
    for (Neighbours& adds : s.neighbours) {
      const std::vector<Span> spans = spread(adds);
      const auto middle = [&](const Addition& a) {
        for (std::size_t k = 0; k < spans.size(); ++k)
          if (2 * a.by[k] != spans[k].from + spans[k].to) return false;
        return true;
      };
      std::erase_if(adds, middle);
    }
  }
  /// True where arrays for what is added are not too small and too many to pay.
  bool worth_keeping(const Scatter& s) const {
    constexpr std::int64_t few = 16;
    for (const Nest::Level& l : nest_->levels)
      if (const auto n = constant_trip_count(l.loop); n && *n < few) return false;
    return added(s.neighbours).size() <= 2 &&
           std::ranges::all_of(added(s.neighbours), [](const Value* v) { return v->type.is_scalar(); });
  }

  // ---- the loops

  std::vector<Value*> counters() const {
    std::vector<Value*> all;
    for (const Nest::Level& l : nest_->levels) all.push_back(l.loop->blocks[1]->params[l.range.index]);
    return all;
  }
  IterationCloner iterations(Block* into, const std::vector<Value*>& numbers) const {
    std::vector<IterationBase> bases;
    for (std::size_t k = 0; k < nest_->depth(); ++k)
      bases.push_back({nest_->levels[k].loop, nest_->levels[k].range, Offset{numbers[k], 0}});
    return {module_, std::move(bases), into};
  }

  /// A nest over the same iterations that does nothing but some of the updates, of values that are computed again
  /// or lie in arrays.
  Value* loops(ir::Builder& b, const std::vector<const Op*>& updates, Value* t,
               std::vector<Value*> numbers = {}) {
    const std::size_t k = numbers.size();
    if (k < nest_->depth()) {
      const IterationRange& range = nest_->levels[k].range;
      Value *const first = materialise(b, range.first), *const bound = materialise(b, range.last);
      return build_for(b, first, bound, t, [&](ir::Builder& in, Value* number, Value* array) {
        std::vector<Value*> all = numbers;
        all.push_back(number);
        return loops(in, updates, array, std::move(all));
      });
    }
    IterationCloner at = iterations(b.block(), numbers);
    const IterationCloner::Shifts none(nest_->depth(), 0);
    for (const Op* update : updates) {
      at.builder().loc = update->loc;
      std::vector<Value*> operands{t};
      for (std::size_t d = 1; d + 1 < update->operands.size(); ++d)
        operands.push_back(at.at(update->operands[d], none));
      Value* const v = update->operands.back();
      const auto array = arrays_.find(without_sign(v));
      if (array == arrays_.end()) {
        operands.push_back(at.at(v, none));
      } else {
        std::vector<Value*> place{array->second};
        for (std::size_t l = 0; l < nest_->depth(); ++l) place.push_back(slot(at.builder(), l, numbers[l]));
        Value* const kept = at.builder().emit(Opcode::get_, place);
        operands.push_back(array->first == v ? kept : at.builder().emit(Opcode::neg_, {kept}));
      }
      const char* const name = t->name;
      t = at.builder().op(update->code, operands, {t->type})->result();
      t->name = name;
    }
    return t;
  }

  /// Where an iteration's value lies in an array that has one for each.
  Value* slot(ir::Builder& b, std::size_t level, Value* number) const {
    const Offset& first = nest_->levels[level].range.first;
    if (!first.base && first.by == 0) return number;
    return b.sub({number, materialise(b, first)});
  }

  void keep(ir::Builder& before, ir::Builder& after, const Scatter& s) {
    for (Value* v : added(s.neighbours))
      if (auto& array = arrays_[v]; !array) array = array_of(before, v);
    Value* const without = nest_->outer()->results[s.state];
    const Uses all(without->block);
    const auto uses = all.of(without);
    Value* const sum = loops(after, updates_of(s), without);
    for (const auto& [op, operand] : uses) op->operands[operand] = sum;
  }

  /// An array in which each iteration of the nest leaves a value: one more piece of state of all its loops.
  Value* array_of(ir::Builder& before, Value* v) {
    const std::size_t depth = nest_->depth();
    const ir::Type type = ir::Type::tensor(v->type.kind(), std::vector<std::int64_t>(depth, ir::dynamic));
    std::vector<Value*> fill{before.undef(v->type)};
    for (const Nest::Level& l : nest_->levels)
      fill.push_back(
          before.imax({before.sub({materialise(before, l.range.last), materialise(before, l.range.first)}),
                       before.integer(0)}));
    Value* array = before.op(Opcode::fill_, std::move(fill), {type})->result();
    for (const Nest::Level& l : nest_->levels) {
      l.loop->operands.push_back(array);
      module_.add_param(l.loop->blocks[0], type);
      array = module_.add_param(l.loop->blocks[1], type);
    }
    ir::Builder last =
        ir::Builder::before(nest_->innermost()->ops.back(), v->def ? v->def->loc : nest_->outer()->loc);
    std::vector<Value*> set{array};
    for (std::size_t k = 0; k < depth; ++k) set.push_back(slot(last, k, nest_->levels[k].range.number));
    set.push_back(v);
    array = last.op(Opcode::set_, std::move(set), {type})->result();
    for (std::size_t k = depth; k-- > 0;) {
      nest_->levels[k].loop->blocks[1]->yields().push_back(array);
      array = module_.add_result(nest_->levels[k].loop, type);
    }
    return array;
  }

  void leave_out(Op* add) {
    ir::replace_uses(add->parent, add->result(), add->operands[0]);
    std::erase(add->parent->ops, add);
  }

  ir::Module& module_;
  Uses uses_;
  const Uses& all_;
  std::optional<Nest> nest_;
  std::map<const Value*, Value*> arrays_;  ///< in which iterations leave values
};

}  // namespace

namespace {

/// The one use of a tensor but for the elements that are read of it, which are added to `reads`.
std::optional<ir::Use> next_version(const Uses& uses, const Value* v, std::vector<const Op*>& reads) {
  std::optional<ir::Use> next;
  for (const ir::Use& use : uses.of(v)) {
    if (use.op->is(Opcode::get_) && use.operand == 0) {
      reads.push_back(use.op);
    } else if (next) {
      return {};
    } else {
      next = use;
    }
  }
  return next;
}

}  // namespace

std::optional<Scatter> scatter_of(const Nest& nest, const Uses& uses, std::size_t state) {
  if (!nest.outer()->operands[state]->type.is_tensor()) return {};
  const auto inner = nest.handed_in(uses, state);
  if (!inner) return {};
  std::vector<std::pair<std::vector<IndexForm>, Neighbours>> by_place;
  Scatter s;
  s.state = state;
  for (const Value* v = nest.innermost()->params[*inner];;) {
    const auto next = next_version(uses, v, s.beside);
    if (!next) return {};
    const auto [op, operand] = *next;
    if (op->is(Opcode::yield_)) {
      if (operand != *inner) return {};
      break;
    }
    if (operand != 0 || !op->is(Opcode::add_at_, Opcode::set_)) return {};
    if (op->is(Opcode::set_)) {
      s.beside.push_back(op);
    } else if (const auto place = place_in(nest, *op)) {
      auto same =
          std::ranges::find(by_place, place->at, &std::pair<std::vector<IndexForm>, Neighbours>::first);
      if (same == by_place.end()) same = by_place.insert(same, {place->at, {}});
      same->second.push_back({op, place->by});
    } else {
      s.others.push_back(op);
    }
    v = op->result();
  }
  for (auto& [place, adds] : by_place)
    if (near(adds))
      s.neighbours.push_back(std::move(adds));
    else
      for (const Addition& a : adds) s.others.push_back(a.op);
  if (s.neighbours.empty()) return {};
  return s;
}

bool sets_zero(const Op& update) {
  const Op* const x = constant(update.operands.back());
  return update.is(Opcode::set_) && x && x->number == 0 && !std::signbit(x->number) && x->integer == 0;
}

bool distribute_scatters(ir::Module& module, Op* loop, const Uses& all) {
  return Distribution(module, loop, all).run();
}

std::optional<ScatterNest> scatter_nest(Op* loop) {
  const Uses uses(loop);
  auto nest = nest_of(loop, uses);
  if (!nest) return {};
  for (const Nest::Level& l : nest->levels)
    if (l.range.index != 0 || l.loop->operands.size() != 2 || l.range.ahead != 0) return {};
  for (const Op* op : nest->innermost()->ops)
    if (op->is(Opcode::pop_)) return {};
  auto s = scatter_of(*nest, uses, 1);
  if (!s || !s->others.empty() || !s->beside.empty()) return {};
  return ScatterNest{std::move(*nest), std::move(s->neighbours)};
}

std::optional<std::vector<std::size_t>> ScatterNest::dimensions() const {
  if (neighbours.size() != 1) return {};
  return levels_of(nest, *place_in(nest, *neighbours.front().front().op));
}

}  // namespace lantern::passes
