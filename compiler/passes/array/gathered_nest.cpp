// Loops over elements, in place of loops over what is added to them.
#include "lantern/compiler/passes/array/gathered_nest.hpp"

#include <algorithm>

#include "lantern/compiler/passes/support/build_loop.hpp"

namespace lantern::passes {

namespace {

/// Both conditions, of which there may be none.
Value* both(ir::Builder& b, Value* x, Value* y) { return x && y ? b.land({x, y}) : x ? x : y; }

/// What one side makes of a tensor where a condition holds, or there is none; else the other.
template <class One, class Other>
Value* either(ir::Builder& b, Value* condition, Value* t, const One& one, const Other& other) {
  if (!condition) return one(b, t);
  Value* const made = build_branch(
      b, condition, t->type, [&](ir::Builder& yes) { return one(yes, t); }, [&](ir::Builder& no) { return other(no, t); });
  made->name = t->name;
  return made;
}
template <class Some>
Value* if_so(ir::Builder& b, Value* condition, Value* t, const Some& some) {
  return either(b, condition, t, some, [](ir::Builder&, Value* array) { return array; });
}

}  // namespace

std::vector<Span> spread(const std::vector<Addition>& adds) {
  std::vector<Span> all;
  for (const std::int64_t by : adds.front().by) all.push_back({by, by});
  for (const Addition& add : adds)
    for (std::size_t k = 0; k < all.size(); ++k)
      all[k] = {std::min(all[k].from, add.by[k]), std::max(all[k].to, add.by[k])};
  return all;
}

Value* GatheredNest::run(ir::Builder& b, Value* t, const std::optional<Start>& start) {
  start_ = start;
  const auto iterations = [&](std::size_t k, std::int64_t least) {
    const IterationRange& range = level(k).range;
    Value *const first = materialise(b, range.first), *const end = materialise(b, range.last);
    Value* const one = b.lt({first, end});
    if (least <= 1) return one;
    return both(b, one, b.le({materialise(b, moved(range.first, least)), end}));
  };
  const std::int64_t ends = spread_[last()].to - spread_[last()].from;
  if (ends > 0 || start_) wide_ = iterations(last(), ends);
  for (std::size_t k = 0; whole() && k < nest_.depth(); ++k) some_ = both(b, some_, iterations(k, 1));
  if (direct_)
    for (std::size_t k = 0; k < last(); ++k) wide_ = both(b, wide_, iterations(k, 1));
  return rows(b, t, {});
}

/// The elements of a level that are written: those that are added to, and the zeros.
Span GatheredNest::written_elements(std::size_t level) const {
  Span s = spread_[level];
  if (start_ && !start_->zeros.empty())
    s = {std::min(s.from, start_->zeros[level].from), std::max(s.to, start_->zeros[level].to)};
  return s;
}

Value* GatheredNest::size(ir::Builder& b, Value* t, std::size_t level) const {
  const auto place = place_in(nest_, *adds_.front().op);
  for (std::size_t d = 0; d < place->at.size(); ++d)
    if (place->at[d] == IndexForm::of(nest_.levels[level].counter()))
      return b.emit(Opcode::dim_, {t}, static_cast<std::int64_t>(d));
  return nullptr;
}

/// Whether an element's number is in a span of iterations.
Value* GatheredNest::reaches(ir::Builder& b, std::size_t k, Value* number, const Span& span) const {
  const IterationRange& range = level(k).range;
  Value* const from = b.le({materialise(b, moved(range.first, span.from)), number});
  return both(b, from, b.lt({number, materialise(b, moved(range.last, span.to))}));
}

/// Whether the iterations at a distance from a row are there.
Value* GatheredNest::reaches(ir::Builder& b, const Numbers& row, const std::vector<std::int64_t>& by) const {
  Value* all = nullptr;
  for (std::size_t k = 0; k < last(); ++k) all = both(b, all, reaches(b, k, row[k], {by[k], by[k]}));
  return all;
}

Value* GatheredNest::rows(ir::Builder& b, Value* t, const Here& here) {
  const std::size_t k = here.numbers.size();
  if (k == last()) return row(b, t, here);
  const IterationRange& range = level(k).range;
  const Span reached = written_elements(k), adds = spread_[k];
  Value* from = materialise(b, moved(range.first, reached.from));
  Value* to = materialise(b, moved(range.last, reached.to));
  if (whole()) {
    // An index outside raises, if there is an iteration.
    Value *const zero = b.integer(0), *const end = size(b, t, k);
    from = b.select({some_, b.imin({zero, from}), zero});
    to = b.select({some_, b.imax({end, to}), end});
  }
  const bool exact = !whole() && reached.from == adds.from && reached.to == adds.to;
  return build_for(b, from, to, t, [&](ir::Builder& in, Value* number, Value* array) {
    Here inner = here;
    inner.numbers.push_back(number);
    if (!exact || adds.from < adds.to)
      inner.all = both(in, here.all, reaches(in, k, number, {adds.to, adds.from}));
    if (start_ && !start_->zeros.empty())
      inner.zero = both(in, here.zero, reaches(in, k, number, start_->zeros[k]));
    return rows(in, array, inner);
  });
}

Value* GatheredNest::row(ir::Builder& b, Value* t, const Here& here) {
  Adds all;
  for (const Addition& add : adds_) all.push_back(&add);
  const auto whole_row = [&](ir::Builder& in, Value* array) {
    return line(in, array, here.numbers, all, start_.has_value());
  };
  const auto part_of_row = [&](ir::Builder& in, Value* array) { return masked(in, array, here); };
  const auto by_neighbours = [&](ir::Builder& in, Value* array) { return one_by_one(in, array, here); };
  if (!direct_ || !here.all) return either(b, both(b, here.all, wide_), t, whole_row, by_neighbours);
  return either(
      b, wide_, t,
      [&](ir::Builder& in, Value* array) { return either(in, here.all, array, whole_row, part_of_row); },
      by_neighbours);
}

/// A row that not all rows around it add to: of those that do not, the sum takes nothing. What they would add
/// is computed for an iteration that there is, the nearest one.
Value* GatheredNest::masked(ir::Builder& b, Value* t, const Here& here) {
  if (start_) t = initialised(b, t, here);
  std::vector<Group> groups;
  Adds all;
  for (const Addition& add : adds_) {
    const std::vector<std::int64_t> by(add.by.begin(), add.by.end() - 1);
    auto group = std::ranges::find(groups, by, &Group::by);
    if (group == groups.end()) group = groups.insert(group, {by, {}, nullptr, {}});
    group->adds.push_back(&add);
    all.push_back(&add);
  }
  for (Group& group : groups) {
    group.condition = reaches(b, here.numbers, group.by);
    for (std::size_t k = 0; k < last(); ++k) {
      const IterationRange& range = level(k).range;
      Value* const number = b.sub({here.numbers[k], b.integer(group.by[k])});
      Value* const most = materialise(b, moved(range.last, -1));
      group.numbers.push_back(b.imax({b.imin({number, most}), materialise(b, range.first)}));
    }
  }
  return line(b, t, here.numbers, all, false, &groups);
}

/// A row that not all rows around it add to, or with too few iterations for its ends: what each neighbour adds, by
/// itself.
Value* GatheredNest::one_by_one(ir::Builder& b, Value* t, const Here& here) {
  if (start_) t = initialised(b, t, here);
  for (const Addition& add : adds_) {
    t = if_so(b, reaches(b, here.numbers, add.by), t,
              [&](ir::Builder& in, Value* array) { return line(in, array, here.numbers, {&add}, false); });
  }
  return t;
}

/// A row before anything is added to it.
Value* GatheredNest::initialised(ir::Builder& b, Value* t, const Here& here) {
  if (whole()) t = copy_outside_range(b, t, here.numbers, b.integer(0), size(b, t, last()));
  if (!start_->old) return t;
  const IterationRange& range = level(last()).range;
  const Span zeros = start_->zeros[last()];
  return if_so(b, here.zero, t, [&](ir::Builder& in, Value* array) {
    Value* const from = materialise(in, moved(range.first, zeros.from));
    Value* const to = materialise(in, moved(range.last, zeros.to));
    return build_for(in, from, to, array, [&](ir::Builder& body, Value* number, Value* elements) {
      IterationCloner at = iterations(body, here.numbers, {number, 0});
      return store(at, elements, adds_.front(), 0, zero_of(at.builder(), t), true);
    });
  });
}

/// Elements that nothing is added to yet: as in the other tensor, or zero.
Value* GatheredNest::copy_outside_range(ir::Builder& b, Value* t, const Numbers& numbers, Value* from, Value* to) {
  if (const auto none = (index_form(from) - index_form(to)).number(); none && *none >= 0) return t;
  return build_for(b, from, to, t, [&](ir::Builder& in, Value* number, Value* array) {
    IterationCloner at = iterations(in, numbers, {number, 0});
    Value* const v = start_->old ? at.builder().emit(Opcode::get_, place(at, start_->old, adds_.front(), 0))
                                 : zero_of(at.builder(), t);
    return store(at, array, adds_.front(), 0, v, true);
  });
}

/// A row that additions reach: the elements at both ends, to which some of the iterations add, and those between.
Value* GatheredNest::line(ir::Builder& b, Value* t, const Numbers& numbers, const Adds& adds, bool set,
                          const std::vector<Group>* groups) {
  const IterationRange& range = level(last()).range;
  std::vector<Addition> some;
  for (const Addition* add : adds) some.push_back(*add);
  const Span reached = spread(some).back();
  Span written_to = reached;
  if (set) written_to = written_elements(last());
  if (set && whole()) {
    t = copy_outside_range(b, t, numbers, b.integer(0), materialise(b, moved(range.first, written_to.from)));
    t = copy_outside_range(b, t, numbers, materialise(b, moved(range.last, written_to.to)), size(b, t, last()));
  }
  const auto element = [&](IterationCloner& at, const Offset& base, Value* array, std::int64_t k,
                           const Adds& from, bool zero) {
    const Addition& one = from.empty() ? *adds.front() : *from.front();
    Value* total = nullptr;
    if (set && !zero && whole()) total = at.builder().emit(Opcode::get_, place(at, start_->old, one, k));
    const bool add_to = !set || (!zero && !whole());
    total = groups ? sum(at.builder(), base, from, k, *groups) : sum(at, from, k, total);
    if (!total && add_to) return array;
    if (!total) total = zero_of(at.builder(), t);
    return store(at, array, one, k, total, !add_to);
  };
  for (const bool front : {true, false}) {
    const Offset& base = front ? range.first : range.last;
    IterationCloner at = iterations(b, numbers, base);
    const std::int64_t from = front ? written_to.from : reached.from, to = front ? reached.to : written_to.to;
    for (std::int64_t k = from; k < to; ++k) {
      Adds there;  // iterations from first on add to first + k, iterations before last to last + k
      for (const Addition* add : adds)
        if (front ? add->by.back() <= k : add->by.back() > k) there.push_back(add);
      bool zero = set;
      if (set && !start_->zeros.empty()) {
        const Span zeros = start_->zeros.back();
        zero = front ? k >= zeros.from : k < zeros.to;
      }
      t = element(at, base, t, k, there, zero);
    }
  }
  Value* end = materialise(b, moved(range.last, reached.from));
  const bool few = adds.size() == 1 && adds_.size() > 1 && wide_ && (direct_ || last() == 0);
  if (few) {  // loops that know it stay as they are
    const std::int64_t ends = spread_[last()].to - spread_[last()].from;
    end = b.imin({end, materialise(b, moved(range.first, reached.to + ends))});
  }
  Value* const start = materialise(b, moved(range.first, reached.to));
  return build_for(b, start, end, t, [&](ir::Builder& in, Value* number, Value* array) {
    IterationCloner at = iterations(in, numbers, {number, 0});
    return element(at, {number, 0}, array, 0, adds, true);
  });
}

IterationCloner GatheredNest::iterations(ir::Builder& b, const Numbers& numbers, const Offset& in_row) const {
  std::vector<IterationBase> bases;
  for (std::size_t k = 0; k < nest_.depth(); ++k)
    bases.push_back({level(k).loop, level(k).range, k < last() ? Offset{numbers[k], 0} : in_row});
  return {module_, std::move(bases), b.block()};
}

/// From an element of the row, `k` behind the base, to the iteration that adds to it.
IterationCloner::Shifts GatheredNest::shifts(const Addition& add, std::int64_t k) const {
  IterationCloner::Shifts s;
  for (const std::int64_t by : add.by) s.push_back(-by);
  s.back() += k;
  return s;
}

/// A tensor, and the indices of an element of it.
std::vector<Value*> GatheredNest::place(IterationCloner& iterations, Value* t, const Addition& at,
                                        std::int64_t k) const {
  std::vector<Value*> operands{t};
  for (std::size_t d = 1; d + 1 < at.op->operands.size(); ++d)
    operands.push_back(iterations.at(at.op->operands[d], shifts(at, k)));
  return operands;
}

Value* GatheredNest::store(IterationCloner& iterations, Value* t, const Addition& at, std::int64_t k, Value* v,
                           bool set) const {
  iterations.builder().loc = at.op->loc;
  std::vector<Value*> operands = place(iterations, t, at, k);
  operands.push_back(v);
  Value* const stored =
      iterations.builder().op(set ? Opcode::set_ : Opcode::add_at_, operands, {t->type})->result();
  stored->name = t->name;
  return stored;
}

Value* GatheredNest::sum(IterationCloner& iterations, const Adds& adds, std::int64_t k, Value* sum) const {
  for (const Addition* add : adds) {
    iterations.builder().loc = add->op->loc;
    Value* const x = iterations.at(add->op->operands.back(), shifts(*add, k));
    sum = sum ? iterations.builder().add({sum, x}) : x;
  }
  return sum;
}

/// The same where some rows may not add.
Value* GatheredNest::sum(ir::Builder& b, const Offset& base, const Adds& adds, std::int64_t k,
                         const std::vector<Group>& groups) const {
  Value* total = nullptr;
  for (const Group& group : groups) {
    IterationCloner at = iterations(b, group.numbers, base);
    Value* part = nullptr;
    for (const Addition* add : group.adds) {
      if (std::ranges::find(adds, add) == adds.end()) continue;
      at.builder().loc = add->op->loc;
      IterationCloner::Shifts back(nest_.depth(), 0);
      back.back() = k - add->by.back();
      Value* const x = at.at(add->op->operands.back(), back);
      part = part ? at.builder().add({part, x}) : x;
    }
    if (!part) continue;
    ir::Builder& in = at.builder();
    if (group.condition) part = in.select({group.condition, part, in.number(-0.0, part->type)});
    total = total ? in.add({total, part}) : part;
  }
  return total;
}

}  // namespace lantern::passes
