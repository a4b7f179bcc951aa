// Sums of products of values, and what bounds of loops say about them.
#include "lantern/compiler/passes/analysis/index_form.hpp"

#include <algorithm>
#include <ranges>

#include "lantern/compiler/passes/analysis/loops.hpp"
#include "lantern/ir/shape.hpp"

namespace lantern::passes {

namespace {

constexpr std::size_t most_terms = 16;
constexpr int most_form_operations = 64;  ///< operations that are looked through for one form

/// x * y modulo 2^64.
std::int64_t times(std::int64_t x, std::int64_t y) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(x) * static_cast<std::uint64_t>(y));
}
std::int64_t plus(std::int64_t x, std::int64_t y) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(x) + static_cast<std::uint64_t>(y));
}

}  // namespace

// ---- sums of products

IndexForm::IndexForm(std::int64_t number) { add(Product(), number); }

IndexForm IndexForm::of(const Unknown& unknown) {
  IndexForm f;
  f.terms_[{unknown}] = 1;
  return f;
}

void IndexForm::add(const Product& p, std::int64_t factor) {
  const auto [it, added] = terms_.try_emplace(p, 0);
  it->second = plus(it->second, factor);
  if (it->second == 0) terms_.erase(it);
}

IndexForm& IndexForm::add(const IndexForm& o, std::int64_t factor) {
  for (const auto& [product, by] : o.terms_) add(product, times(by, factor));
  return *this;
}

IndexForm operator*(const IndexForm& a, const IndexForm& b) {
  IndexForm f;
  for (const auto& [p, x] : a.terms_)
    for (const auto& [q, y] : b.terms_) {
      IndexForm::Product both;
      std::ranges::merge(p, q, std::back_inserter(both));
      f.add(both, times(x, y));
    }
  return f;
}

std::optional<std::int64_t> IndexForm::number() const {
  if (terms_.empty()) return 0;
  if (terms_.size() > 1 || !terms_.begin()->first.empty()) return {};
  return terms_.begin()->second;
}

IndexForm IndexForm::divided(std::int64_t by) const {
  IndexForm f;
  for (const auto& [product, factor] : terms_)
    if (!product.empty() && factor % by == 0) f.add(product, factor / by);
  return f;
}

std::vector<Unknown> IndexForm::unknowns() const {
  std::vector<Unknown> all;
  for (const auto& [product, by] : terms_) all.insert(all.end(), product.begin(), product.end());
  std::ranges::sort(all);
  all.erase(std::ranges::unique(all).begin(), all.end());
  return all;
}

std::optional<IndexForm::Split> IndexForm::split(const Unknown& v) const {
  Split s;
  for (const auto& [product, by] : terms_) {
    const auto at = std::ranges::find(product, v);
    if (at == product.end()) {
      s.rest.add(product, by);
      continue;
    }
    Product others = product;
    others.erase(others.begin() + (at - product.begin()));
    if (std::ranges::find(others, v) != others.end()) return {};
    s.coefficient.add(others, by);
  }
  return s;
}

IndexForm IndexForm::with(const Unknown& v, const IndexForm& by) const {
  const auto s = split(v);
  return s ? s->coefficient * by + s->rest : *this;
}

// ---- forms of values

namespace {

/// True for a loop that is not being written at the moment.
bool is_finished(const Op& loop) {
  return loop.is(Opcode::loop_) && loop.blocks.size() == 2 && loop.blocks[0]->terminated() &&
         loop.blocks[1]->terminated();
}

/// The loop whose body has this parameter, or null.
const Op* loop_of(const Value* v) {
  const Op* loop = v->def ? nullptr : v->block->parent;
  return loop && is_finished(*loop) && v->block == loop->blocks[1] ? loop : nullptr;
}

IndexForm form(const Value* v, int& steps) {
  const IndexForm itself = IndexForm::of(v);
  if (!(v->type == ir::I64) || --steps < 0) return itself;
  IndexForm f;
  if (const Op* op = v->def) {
    switch (op->code) {
      case Opcode::constant_:
        return op->integer;
      case Opcode::add_:
        f = form(op->operands[0], steps) + form(op->operands[1], steps);
        break;
      case Opcode::sub_:
        f = form(op->operands[0], steps) - form(op->operands[1], steps);
        break;
      case Opcode::mul_:
        f = form(op->operands[0], steps) * form(op->operands[1], steps);
        break;
      case Opcode::neg_:
        f -= form(op->operands[0], steps);
        break;
      case Opcode::dim_:
        return size_form(op->operands[0], static_cast<std::size_t>(op->integer));
      case Opcode::imin_:
      case Opcode::imax_: {
        const IndexForm x = form(op->operands[0], steps), y = form(op->operands[1], steps);
        const auto gap = (x - y).number();  // n - 1 is less than n
        if (!gap) return itself;
        f = (*gap < 0) == op->is(Opcode::imin_) ? x : y;
        break;
      }
      default:
        return itself;
    }
  } else if (const Op* loop = loop_of(v)) {
    const auto step = step_of(loop, v->index);
    const auto counter = counter_of(loop);
    if (!step || !counter || counter->index == v) return itself;
    // After so many iterations: first + step * iterations.
    IndexForm iterations =
        IndexForm::of(counter->index) - (counter->step > 0 ? counter->first : counter->last);
    if (counter->step < 0) iterations = IndexForm() - iterations;
    f = form(loop->operands[v->index], steps) + IndexForm(*step) * iterations;
  } else {
    return itself;
  }
  return f.terms().size() > most_terms ? itself : f;
}

}  // namespace

IndexForm index_form(const Value* v) {
  int steps = most_form_operations;
  return form(v, steps);
}

namespace {

/// What a loop counts to: of max(x, y) that is x, where with y there would be no iteration.
IndexForm in_iterations(const IndexForm& last, const IndexForm& first) {
  for (const Unknown& u : last.unknowns()) {
    const Op* const larger = u.is_size() ? nullptr : u.value->def;
    const auto s = last.split(u);
    if (!larger || !larger->is(Opcode::imax_) || !s || s->coefficient.number() != 1) continue;
    for (const std::size_t i : {0u, 1u}) {
      const auto gap = (first - s->rest - index_form(larger->operands[i])).number();
      if (gap && *gap >= 1) return s->rest + index_form(larger->operands[1 - i]);
    }
  }
  return last;
}

}  // namespace

std::optional<Counter> counter_of(const Op* loop) {
  if (!is_finished(*loop)) return {};
  const auto count = counts(loop);
  if (!count) return {};
  const IndexForm first = count->down ? IndexForm(1) : index_form(count->first), bound = index_form(count->bound);
  return Counter{loop->blocks[1]->params[count->index], count->down ? -1 : 1, first,
                 in_iterations(count->down ? bound : bound - 1, first)};
}

std::vector<Comparison> comparisons(const Value* condition, bool holds) {
  const Op* const op = condition->def;
  if (!op) return {};
  if (op->is(Opcode::lnot_)) return comparisons(op->operands[0], !holds);
  const auto both = [&](const Value* x, bool x_holds, const Value* y) {
    std::vector<Comparison> all = comparisons(x, x_holds);
    std::ranges::move(comparisons(y, holds), std::back_inserter(all));
    return all;
  };
  if (op->is(holds ? Opcode::land_ : Opcode::lor_)) return both(op->operands[0], holds, op->operands[1]);
  if (op->is(Opcode::branch_)) {  // AND and OR: one side is a constant
    for (const bool side : {true, false}) {
      const Op* const decided = constant(op->blocks[side ? 1 : 0]->ops.back()->operands[condition->index]);
      if (decided && (decided->integer != 0) != holds)
        return both(op->operands[0], side, op->blocks[side ? 0 : 1]->ops.back()->operands[condition->index]);
    }
    return {};
  }
  if (op->operands.size() != 2 || !(op->operands[0]->type == ir::I64)) return {};
  const Value *const x = op->operands[0], *const y = op->operands[1];
  const std::int64_t less = op->is(Opcode::lt_);
  if (less || op->is(Opcode::le_)) return {holds ? Comparison{x, y, less} : Comparison{y, x, 1 - less}};
  if (op->is(holds ? Opcode::eq_ : Opcode::ne_)) return {{x, y}, {y, x}};
  if (op->is(holds ? Opcode::ne_ : Opcode::eq_)) return {{x, y, 0, true}};
  return {};
}

bool made_in(const Value* v, const Block* block) {
  const Block* b = v->block;
  while (b && b != block) b = b->parent ? b->parent->parent : nullptr;
  return b != nullptr;
}

bool made_outside(const IndexForm& f, const Block* block) {
  return std::ranges::none_of(f.unknowns(), [&](const Unknown& v) { return made_in(v.value, block); });
}

// ---- which iteration an element belongs to

namespace {

/// The same value in another iteration of the loop around it.
constexpr int in_another_iteration = -2;

/// A form in another iteration of a loop with this body; nothing where it asks for a size of what the body
/// makes.
std::optional<IndexForm> in_other_iteration(IndexForm f, const Block* body) {
  if (!body) return f;
  for (const Unknown& v : f.unknowns()) {
    if (!made_in(v.value, body)) continue;
    if (v.dimension != -1) return {};
    if (!f.split(v)) return {};  // multiplied by itself
    f = f.with(v, IndexForm::of({v.value, in_another_iteration}));
  }
  return f;
}

/// What an index is, and of how many it is one.
using Place = std::pair<IndexForm, IndexForm>;
Place place(const Op& access, std::size_t dimension) {
  return {index_form(access.operands[1 + dimension]), size_form(access.operands[0], dimension)};
}

/// What is known where an access is made: that each loop around it has an iteration, and which way branches
/// have gone.
class Bounds {
 public:
  /// Of the loops from one down to an access, or of all around it; those around are known in any case.
  Bounds(const Op& access, const Op* loop = nullptr) {
    bool inside = true;
    for (const Block* b = access.parent; b && b->parent; b = b->parent->parent) {
      const auto counter = b->parent->is(Opcode::loop_) ? counter_of(b->parent) : std::nullopt;
      if (counter) {
        note(counter->last - counter->first);
        note(IndexForm::of(counter->index) - counter->first);
        note(counter->last - IndexForm::of(counter->index));
        if (inside) counters_.push_back({counter->index, counter->first, counter->last});
      }
      if (b->parent->is(Opcode::branch_))
        for (const auto& [low, high, gap, differ] :
             comparisons(b->parent->operands[0], b == b->parent->blocks[0])) {
          const IndexForm distance = index_form(high) - index_form(low) - gap;
          if (differ)
            different_.push_back(distance);
          else
            note(distance);
        }
      inside &= b->parent != loop;
    }
  }

  /// What is known beside that of another access, which is in another iteration of a loop. False where that
  /// cannot be told.
  bool add(const Bounds& o, const Op* loop, Iteration when) {
    const Block* const body = when == Iteration::same ? nullptr : loop->blocks[1];
    const auto counter = counter_of(loop);
    std::vector<Span> all;  // the bounds of theirs may hold ours
    for (const Span& c : o.counters_) {
      if (when == Iteration::same && counter && c.index == counter->index) continue;
      const auto first = in_other_iteration(c.first, body), last = in_other_iteration(c.last, body);
      if (!first || !last) return false;
      all.push_back({other_iteration(c.index, body), *first, *last});
      if (!counter || c.index != counter->index || (when != Iteration::earlier && when != Iteration::later))
        continue;
      const bool upwards = (when == Iteration::later) == (counter->step > 0);
      (upwards ? all.back().first : all.back().last) =
          IndexForm::of(counter->index) + (upwards ? IndexForm(1) : IndexForm(-1));
    }
    counters_.insert(counters_.begin(), all.begin(), all.end());
    for (const auto& [v, least] : o.least_) {
      const auto [it, added] = least_.try_emplace(other_iteration(v, body), least);
      it->second = std::max(it->second, least);
    }
    for (const IndexForm& fact : o.facts_)
      if (const auto other = in_other_iteration(fact, body)) facts_.push_back(*other);
    for (const IndexForm& d : o.different_)
      if (const auto other = in_other_iteration(d, body)) different_.push_back(*other);
    return true;
  }

  /// The largest value that a form takes in the loops, or the smallest, in terms of what is made outside
  /// them. `choices`: of the smaller of two counters that it is not above the one whose turn it is.
  std::optional<IndexForm> extreme(IndexForm f, bool largest, bool choices = false) const {
    for (const Span& c : counters_) {  // the innermost first: its bounds may hold the others
      if (choices) f = without_choices(f, c.index, largest);
      const auto s = f.split(c.index);
      if (!s) return {};
      if (s->coefficient.number() == 0) continue;
      const bool rises = nonnegative(s->coefficient);
      if (!rises && !nonnegative(IndexForm() - s->coefficient)) return {};
      f = s->coefficient * (rises == largest ? c.last : c.first) + s->rest;
    }
    return f;
  }

  bool never_negative(const IndexForm& f) const {
    const auto least = extreme(f, false);
    return least && nonnegative(*least);
  }

  bool is_inside(const Place& p) const { return never_negative(p.first) && never_negative(p.second - p.first - 1); }

  bool never_zero(const IndexForm& f, int deepest = 3) const {
    if (std::ranges::any_of(different_, [&](const IndexForm& d) { return f == d || f == IndexForm() - d; }))
      return true;
    const auto bounded = [&](bool choices) {
      const auto least = extreme(f, false, choices), most = extreme(f, true, choices);
      return (least && nonnegative(*least - 1)) || (most && nonnegative(IndexForm(-1) - *most));
    };
    return bounded(false) || (counts_to_choices() && bounded(true)) ||
           (deepest > 0 && never_zero_by_parts(f, deepest - 1));
  }

  /// True where a form is a sum of what is not negative: by itself, or with something that is known not to
  /// be.
  bool nonnegative(const IndexForm& f, int deepest = 3) const {
    const IndexForm g = reaching_definition(f, deepest);
    const auto is_more_than = [&](const IndexForm& fact) { return is_sum(g - fact); };
    return is_sum(g) || std::ranges::any_of(facts_, is_more_than) ||
           std::ranges::any_of(g.unknowns(), [&](const Unknown& v) {
             return std::ranges::any_of(bounds_of_choice(v), is_more_than);
           });
  }

 private:
  /// From the first to the last value of what a loop counts by.
  struct Span {
    Unknown index;
    IndexForm first, last;
  };
  static Unknown other_iteration(const Unknown& v, const Block* body) {
    return body && v.dimension == -1 && made_in(v.value, body) ? Unknown(v.value, in_another_iteration) : v;
  }

  static bool is_choice(const Unknown& v) {
    return v.dimension == -1 && v.value->def && v.value->def->is(Opcode::imin_, Opcode::imax_);
  }
  bool counts_to_choices() const {
    return std::ranges::any_of(counters_, [](const Span& c) {
      return std::ranges::any_of(c.first.unknowns(), is_choice) || std::ranges::any_of(c.last.unknowns(), is_choice);
    });
  }

  /// A bound of a form that has a counter, and the smaller of that counter and another value, or the larger: with the
  /// counter in its place, which is on the right side of it. In for k < min(i, j) the distance j - k is never zero.
  IndexForm without_choices(IndexForm f, const Unknown& counter, bool largest) const {
    const auto has_counter = [&](const IndexForm& x) {
      const auto unknowns = x.unknowns();
      return std::ranges::find(unknowns, counter) != unknowns.end();
    };
    if (!has_counter(f)) return f;
    for (const Unknown& v : f.unknowns()) {
      const auto s = is_choice(v) ? f.split(v) : std::nullopt;
      if (!s) continue;
      const bool rises = nonnegative(s->coefficient);
      if (!rises && !nonnegative(IndexForm() - s->coefficient)) continue;
      const auto two = of_two(v, rises == largest ? Opcode::imin_ : Opcode::imax_);
      if (!two) continue;
      if (has_counter(two->first))
        f = s->coefficient * two->first + s->rest;
      else if (has_counter(two->second))
        f = s->coefficient * two->second + s->rest;
    }
    return f;
  }

  /// f = g q + r with r closer to zero than g is zero only where q and r are: of n (i - k) + (j' - j), the
  /// way between elements of rows i and k, whichever these are, nothing is zero where j and j' differ. (The
  /// test by the greatest common divisor, where that is a size, and what is left over has bounds.)
  bool never_zero_by_parts(const IndexForm& f, int deepest) const {
    const auto parts = [&](const IndexForm& g, const IndexForm& q, const IndexForm& r) {
      const auto least = extreme(r, false), most = extreme(r, true);
      return least && most && nonnegative(g - 1 - *most) && nonnegative(g - 1 + *least) &&
             (never_zero(r, deepest) || never_zero(q, deepest));
    };
    for (const Unknown& g : f.unknowns())
      if (const auto s = f.split(g);
          s && !s->coefficient.number() && parts(IndexForm::of(g), s->coefficient, s->rest))
        return true;
    return std::ranges::any_of(f.terms(), [&](const auto& term) {
      const std::int64_t g = term.first.empty() ? 1 : std::max(term.second, times(term.second, -1));
      if (g < 2) return false;
      const IndexForm q = f.divided(g);
      return parts(g, q, f - IndexForm(g) * q);
    });
  }

  /// That a form is not negative, of use where it bounds one value.
  void note(const IndexForm& f) {
    const auto unknowns = f.unknowns();
    if (unknowns.size() > 1) facts_.push_back(f);
    if (unknowns.size() != 1) return;
    const auto s = f.split(unknowns[0]);
    if (!s || s->coefficient.number() != 1 || !s->rest.number()) return;
    const std::int64_t least = times(*s->rest.number(), -1);
    const auto [it, added] = least_.try_emplace(unknowns[0], least);
    it->second = std::max(it->second, least);
    // What is larger than one of two values, as the larger of them, is the other.
    if (const auto two = of_two(unknowns[0], Opcode::imax_))
      for (const auto& [x, y] : {*two, std::pair(two->second, two->first)})
        if (x.number() && *x.number() < least) note(y - least);
    // Of q = a / b with q >= 1 and b > 0: b q <= a.
    const Op* const quotient = unknowns[0].dimension == -1 ? unknowns[0].value->def : nullptr;
    if (least < 1 || !quotient || !quotient->is(Opcode::div_)) return;
    const auto by = index_form(quotient->operands[1]).number();
    if (by && *by > 0) note(index_form(quotient->operands[0]) - IndexForm(*by) * IndexForm::of(unknowns[0]));
  }

  /// What the larger, or the smaller, of two values is made of.
  static std::optional<std::pair<IndexForm, IndexForm>> of_two(const Unknown& v, Opcode code) {
    const Op* const op = v.dimension == -1 ? v.value->def : nullptr;
    if (!op || !op->is(code)) return {};
    return std::pair(index_form(op->operands[0]), index_form(op->operands[1]));
  }

  /// Forms that are not negative: the smaller of two values is above neither, the larger one below neither.
  static std::vector<IndexForm> bounds_of_choice(const Unknown& v) {
    std::vector<IndexForm> all;
    if (const auto two = of_two(v, Opcode::imin_))
      all = {two->first - IndexForm::of(v), two->second - IndexForm::of(v)};
    if (const auto two = of_two(v, Opcode::imax_))
      all = {IndexForm::of(v) - two->first, IndexForm::of(v) - two->second};
    return all;
  }

  /// With the larger of two values, or the smaller, as the one that it is known to be.
  IndexForm reaching_definition(IndexForm f, int deepest) const {
    if (deepest == 0) return f;
    for (const Unknown& v : f.unknowns())
      for (const Opcode code : {Opcode::imin_, Opcode::imax_}) {
        const auto two = of_two(v, code);
        if (!two) continue;
        const auto& [x, y] = *two;
        const bool smaller = code == Opcode::imin_;
        if (nonnegative(x - y, deepest - 1))
          f = f.with(v, smaller ? y : x);
        else if (nonnegative(y - x, deepest - 1))
          f = f.with(v, smaller ? x : y);
      }
    return f;
  }

  /// At least so much is this value, as far as is known.
  std::optional<std::int64_t> least(const Unknown& v) const {
    std::optional<std::int64_t> all;
    if (v.is_size()) all = 0;
    const auto also = [&](std::int64_t n) { all = all ? std::max(*all, n) : n; };
    if (const auto known = least_.find(v); known != least_.end()) also(known->second);
    if (const auto two = of_two(v, Opcode::imax_))
      for (const IndexForm& one : {two->first, two->second})
        if (one.number()) also(*one.number());
    return all;
  }

  bool is_sum(IndexForm f) const {
    for (const Unknown& v : f.unknowns()) {
      const auto n = least(v);
      if (!n) return false;
      f = f.with(v, IndexForm::of(v) + *n);
    }
    return std::ranges::all_of(f.terms(), [](const auto& t) { return t.second >= 0; });
  }

  std::vector<Span> counters_;
  std::map<Unknown, std::int64_t> least_;
  std::vector<IndexForm> facts_;      ///< forms of several values that are not negative
  std::vector<IndexForm> different_;  ///< forms that are not 0
};

/// Which elements of one tensor an access reaches in an iteration of a loop, in one dimension: the
/// iteration's number times a stride, and numbers in between.
class AccessRange {
 public:
  AccessRange(const Op& access, const Op* loop, const Value* counter, std::size_t operand)
      : loop_(loop), index_(index_form(access.operands[operand])), known_(access, loop) {
    const auto s = index_.split(counter);
    if (!s || s->coefficient.number() == 0 || !outside(s->coefficient)) return;
    const auto smallest = known_.extreme(s->rest, false), largest = known_.extreme(s->rest, true);
    if (!smallest || !largest || !outside(*smallest) || !outside(*largest)) return;
    stride_ = s->coefficient;
    smallest_ = *smallest;
    largest_ = *largest;
  }

  /// True where two iterations never reach one element.
  bool disjoint(const AccessRange& o) const { return by_stride(o) || by_range(o); }

  /// From iteration to iteration the accesses move by the stride or more, less the width of what they cover.
  bool by_stride(const AccessRange& o) const {
    return stride_ && o.stride_ == stride_ && lies_between(o) && o.lies_between(*this);
  }

 private:
  bool outside(const IndexForm& f) const { return made_outside(f, loop_->blocks[1]); }

  bool lies_between(const AccessRange& low) const {
    IndexForm gap = *stride_;
    if (const auto number = gap.number(); number && *number < 0) gap = IndexForm() - gap;
    gap -= largest_ - low.smallest_ + 1;
    return known_.nonnegative(gap) || low.known_.nonnegative(gap);
  }

  /// All that one of them ever reaches lies below what the other does, or does so in the iterations before
  /// and in those after.
  bool by_range(const AccessRange& o) const {
    const auto other = in_other_iteration(o.index_, loop_->blocks[1]);
    const auto in = [&](Iteration when) {
      Bounds both = known_;
      return both.add(o.known_, loop_, when) && both.never_zero(*other - index_);
    };
    return other && (in(Iteration::any) || (in(Iteration::earlier) && in(Iteration::later)));
  }

  const Op* loop_;
  IndexForm index_;
  Bounds known_;
  std::optional<IndexForm> stride_;
  IndexForm smallest_, largest_;  ///< of what is in between
};

}  // namespace

// ---- shapes

namespace {

constexpr int longest_way = 64;  ///< of operations that keep a shape

const Value* shape_source(const Value* t, const Value* until, int& steps);

/// True for state that each iteration hands on in the shape it had.
bool keeps_shape(const Op& loop, std::size_t state, int& steps) {
  const Block* body = loop.blocks[1];
  return shape_source(body->ops.back()->operands[state], body->params[state], steps) == body->params[state];
}

/// What a tensor has its shape from, one operation further up; null where that is not known.
const Value* shaped_by(const Value* t, const Value* until, int& steps) {
  const Op* const op = t->def;
  const Op* const loop = op ? op : t->block->parent;
  if (loop && is_finished(*loop))
    return keeps_shape(*loop, t->index, steps) ? loop->operands[t->index] : nullptr;
  if (!op || !op->is(Opcode::branch_)) return op ? ir::shaped_like(*op) : nullptr;
  // What each side starts with.
  const Value* starts[2] = {};
  for (const std::size_t k : {0u, 1u}) {
    const Value* v = op->blocks[k]->ops.back()->operands[t->index];
    while (v && v != until && v->block == op->blocks[k] && --steps > 0) v = shaped_by(v, until, steps);
    starts[k] = v;
  }
  return starts[0] && starts[0] == starts[1] && ir::visible_from(starts[0], op->parent) ? starts[0] : nullptr;
}

/// The value that a tensor has its shape from: `until`, or the first one there is. `steps`: how far to look.
const Value* shape_source(const Value* t, const Value* until, int& steps) {
  while (t != until && --steps > 0) {
    const Value* const from = shaped_by(t, until, steps);
    if (!from) break;
    t = from;
  }
  return t;
}

}  // namespace

const Value* shape_source(const Value* tensor) {
  int steps = longest_way;
  return shape_source(tensor, nullptr, steps);
}

IndexForm size_form(const Value* tensor, std::size_t dimension) {
  const Value* const source = shape_source(tensor);
  for (const Value* t : {tensor, source})
    if (const std::int64_t known = t->type.dims()[dimension]; known != ir::dynamic) return known;
  if (const Op* fill = source->def; fill && fill->is(Opcode::fill_))
    return index_form(fill->operands[1 + dimension]);
  return IndexForm::of({source, static_cast<int>(dimension)});
}

IndexForm element_count(const Value* tensor) {
  IndexForm n = 1;
  for (std::size_t d = 0; d < tensor->type.dims().size(); ++d) n = n * size_form(tensor, d);
  return n;
}

bool same_place(const Op& a, const Op& b) {
  for (std::size_t d = 1; d <= a.operands[0]->type.dims().size(); ++d)
    if (a.operands[d] != b.operands[d] && !(index_form(a.operands[d]) == index_form(b.operands[d]))) return false;
  return true;
}

bool no_loop_carried_dependence(const std::vector<const Op*>& accesses, const Op* loop) {
  constexpr std::size_t most_pairs = 4000;
  const auto counter = counter_of(loop);
  if (accesses.empty() || !counter) return false;
  const auto n = static_cast<std::ptrdiff_t>(accesses.size());
  const auto is_update = [&](std::ptrdiff_t i) { return !accesses[i]->is(Opcode::get_); };
  if (std::ranges::count_if(std::views::iota(std::ptrdiff_t{0}, n), is_update) * n > most_pairs) return false;
  const auto rank = static_cast<std::size_t>(accesses.front()->operands[0]->type.rank());
  std::vector<std::vector<AccessRange>> reaches;  // by dimension
  for (std::size_t d = 1; d <= rank; ++d) {
    auto& all = reaches.emplace_back();
    for (const Op* op : accesses) all.emplace_back(*op, loop, counter->index, d);
  }
  const auto different = [&](std::ptrdiff_t i, std::ptrdiff_t k) {
    return std::ranges::any_of(reaches, [&](const auto& d) { return d[i].disjoint(d[k]); });
  };
  for (std::ptrdiff_t i = 0; i < n; ++i)
    for (std::ptrdiff_t k = 0; k < n; ++k)
      if (is_update(i) && (!is_update(k) || i <= k) && !different(i, k)) return false;
  return true;
}

// ---- accesses that cannot fail

namespace {

/// Of the accesses that are made whenever `from` is reached, before it or after, as far as the next loop around and not
/// too far: true where one is to this place, or where two are to places of the same size between which it lies.
///
/// Indices may wrap. Between two elements that exist there are less than 2^63 others. Where their forms differ by a number,
/// or by one unknown less a number, that is the distance, and whatever lies between the forms lies between the elements.
bool lies_between_accesses(const Place& p, const Op& from, const Bounds& known) {
  constexpr int far = 400;
  int looked = 0;
  const auto is_distance = [](const IndexForm& f) {
    const auto unknowns = f.unknowns();
    if (unknowns.size() != 1) return f.number().has_value();
    const auto s = f.split(unknowns[0]);
    return s && s->coefficient.number() == 1 && s->rest.number().value_or(1) <= 0;
  };
  std::vector<IndexForm> below, above;
  const auto enclosed = [&] {
    return std::ranges::any_of(below, [&](const IndexForm& low) {
      return std::ranges::any_of(above, [&](const IndexForm& high) { return is_distance(high - low); });
    });
  };
  for (const Block* b = from.parent; b; b = b->parent ? b->parent->parent : nullptr) {
    for (const Op* op : b->ops) {
      if (++looked > far) return false;
      if (!is_access(*op)) continue;
      for (std::size_t d = 0; d < static_cast<std::size_t>(op->operands[0]->type.rank()); ++d) {
        const Place other = place(*op, d);
        if (other == p) return true;
        if (other.second != p.second) continue;
        if (known.never_negative(p.first - other.first)) below.push_back(other.first);
        if (known.never_negative(other.first - p.first)) above.push_back(other.first);
      }
    }
    if (b->parent && b->parent->is(Opcode::loop_)) break;
  }
  return enclosed();
}

}  // namespace

bool never_negative(const IndexForm& f, const Op& at) { return Bounds(at).never_negative(f); }

bool in_range(const Op& access, std::size_t dimension) { return Bounds(access).is_inside(place(access, dimension)); }

bool in_range(const Op& access) {
  const Bounds known(access);
  return std::ranges::all_of(std::views::iota(std::size_t{0}, access.operands[0]->type.dims().size()),
                             [&](std::size_t d) { return known.is_inside(place(access, d)); });
}

std::optional<IndexRange> range_in(const Op& access, std::size_t dimension, const Op* loop) {
  const IndexForm index = index_form(access.operands[1 + dimension]);
  const Bounds known(access, loop);
  const auto first = known.extreme(index, false), last = known.extreme(index, true);
  const Block* const body = loop->blocks[1];
  if (!first || !last || !made_outside(*first, body) || !made_outside(*last, body)) return {};
  return IndexRange{*first, *last};
}

Value* materialise(ir::Builder& b, const IndexForm& f) {
  Value* sum = nullptr;
  for (const auto& [product, factor] : f.terms()) {
    Value* term = product.empty() || factor != 1 ? b.integer(factor) : nullptr;
    for (const Unknown& u : product) {
      auto* v = const_cast<Value*>(u.value);
      if (u.is_size()) v = b.emit(Opcode::dim_, {v}, u.dimension);
      term = term ? b.mul({term, v}) : v;
    }
    sum = sum ? b.add({sum, term}) : term;
  }
  return sum ? sum : b.integer(0);
}

bool no_alias(const Op& a, const Op& b) {
  const Bounds known(a);
  for (std::size_t d = 1; d <= static_cast<std::size_t>(a.operands[0]->type.rank()); ++d)
    if (known.never_zero(index_form(b.operands[d]) - index_form(a.operands[d]))) return true;
  return false;
}

bool no_alias(const Op& a, const Op& b, const Op* loop, Iteration when) {
  Bounds known(a, loop);
  if (!known.add(Bounds(b, loop), loop, when)) return false;
  const Block* const body = when == Iteration::same ? nullptr : loop->blocks[1];
  for (std::size_t d = 1; d <= static_cast<std::size_t>(a.operands[0]->type.rank()); ++d) {
    const auto other = in_other_iteration(index_form(b.operands[d]), body);
    if (other && known.never_zero(*other - index_form(a.operands[d]))) return true;
  }
  return false;
}

bool in_range_at(const Op& access, const Op& from) {
  const Bounds known(from);
  for (std::size_t d = 0; d < static_cast<std::size_t>(access.operands[0]->type.rank()); ++d) {
    const Place p = place(access, d);
    if (!known.is_inside(p) && !lies_between_accesses(p, from, known)) return false;
  }
  return true;
}

bool has_elements_at(const Value* tensor, const Op& from) {
  constexpr int far = 400;
  std::vector<IndexForm> sizes;
  const auto rank = static_cast<std::size_t>(tensor->type.rank());
  for (std::size_t d = 0; d < rank; ++d) sizes.push_back(size_form(tensor, d));
  const Bounds known(from);
  if (std::ranges::all_of(sizes, [&](const IndexForm& n) { return known.nonnegative(n - 1); })) return true;
  const auto has_its_shape = [&](const Op* access) {
    if (!is_access(*access) || access->operands[0]->type.rank() != tensor->type.rank()) return false;
    for (std::size_t d = 0; d < rank; ++d)
      if (size_form(access->operands[0], d) != sizes[d]) return false;
    return true;
  };
  if (from.is(Opcode::branch_) && std::ranges::all_of(from.blocks, [&](const Block* side) {
        return side->ops.size() < far && std::ranges::any_of(side->ops, has_its_shape);
      }))
    return true;
  int looked = 0;
  const Op* end = &from;
  for (const Block* b = from.parent; b; end = b->parent, b = end ? end->parent : nullptr)
    for (const Op* op : b->ops) {
      if (op == end || ++looked > far) break;
      if (has_its_shape(op)) return true;
    }
  return false;
}

}  // namespace lantern::passes
