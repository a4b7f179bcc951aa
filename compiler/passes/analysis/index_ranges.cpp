// Linear inequalities between integers, followed through the structure of a function.
#include "lantern/compiler/passes/analysis/index_ranges.hpp"

#include <algorithm>
#include <cstdlib>
#include <initializer_list>
#include <optional>
#include <utility>

#include "lantern/ir/op.hpp"

namespace lantern::passes {

namespace {

constexpr std::size_t longest_sum = 8;
constexpr std::size_t most_facts = 12;  ///< that are tried for one unknown
constexpr int deepest_proof = 6, most_proof_steps = 200;
// No memory holds a tensor of more elements, and no loop makes more iterations: they would take weeks.
constexpr std::int64_t largest_size = std::int64_t{1} << 50, largest_trip_count = std::int64_t{1} << 50;
constexpr std::int64_t largest_step = 1024;
/// Sums stay below half of what an integer holds, so that one less, one more and a size more are still exact.
constexpr std::int64_t largest_sum = std::int64_t{1} << 62;

bool is_integer(const Value* v) { return v->type.is_scalar() && v->type.kind() == ir::Kind::i64; }

bool is_lane_access(const Op& op) {
  return op.is(Opcode::lane_get_, Opcode::lane_set_, Opcode::lane_add_at_);
}

/// The first of a vector of indices, and how far it is from one to the next.
struct IndexSteps {
  IndexForm first;
  std::int64_t step = 1;
};
/// The largest step, up or down.
constexpr std::int64_t largest_multiple = 1 << 20;

/// Of a vector of indices in equal steps; of one index itself.
std::optional<IndexSteps> index_steps(const Value* index) {
  if (!index->type.is_vector()) return IndexSteps{index_form(index)};
  const Op* op = index->def;
  if (!op) return {};
  if (op->is(Opcode::lane_index_)) return IndexSteps{};
  if (!op->is(Opcode::add_, Opcode::sub_, Opcode::mul_)) return {};
  for (const std::size_t i : {0u, 1u}) {
    const Op* splat = op->operands[1 - i]->def;
    if (!splat || !splat->is(Opcode::lane_splat_)) continue;
    const auto run = index_steps(op->operands[i]);
    if (!run) return {};
    const IndexForm by = index_form(splat->operands[0]);
    if (op->is(Opcode::sub_) && i == 1) return IndexSteps{by - run->first, -run->step};
    if (!op->is(Opcode::mul_))
      return IndexSteps{op->is(Opcode::add_) ? run->first + by : run->first - by, run->step};
    const auto factor = by.number();
    if (!factor || *factor < 1 || *factor > largest_multiple / std::abs(run->step)) return {};
    return IndexSteps{run->first * by, run->step * *factor};
  }
  return {};
}

}  // namespace

IndexRanges::IndexRanges(const ir::Function& function, const LiveUses& uses) : uses_(uses), shapes_(function) {
  block(function.body);
}

KnownRange IndexRanges::of(const Op& access, std::size_t operand) const {
  const auto it = known_.find(&access);
  return it == known_.end() || operand >= it->second.size() ? KnownRange{} : it->second[operand];
}

const std::vector<LoopCheck>& IndexRanges::before(const Op& loop) const {
  static const std::vector<LoopCheck> none;
  const auto it = checks_.find(&loop);
  return it == checks_.end() ? none : it->second;
}

// ---- sums

void IndexRanges::add(Sum& to, const Sum& x, std::int64_t factor) {
  if (factor == 0) return;
  std::int64_t c = 0;
  to.known &= x.known && !__builtin_mul_overflow(x.constant, factor, &c) &&
              !__builtin_add_overflow(to.constant, c, &to.constant);
  for (const auto& [u, f] : x.terms) {
    std::int64_t by = 0;
    to.known &= !__builtin_mul_overflow(f, factor, &by);
    const auto at = std::ranges::find_if(to.terms, [&](const auto& t) { return t.first <= u; });
    if (at == to.terms.end() || at->first != u) {
      to.terms.insert(at, {u, by});
    } else {
      to.known &= !__builtin_add_overflow(at->second, by, &at->second);
      if (at->second == 0) to.terms.erase(at);
    }
  }
  to.known &= to.terms.size() <= longest_sum;
}

/// x - y + constant.
IndexRanges::Sum IndexRanges::difference(const Sum& x, const Sum& y, std::int64_t constant) {
  Sum s = x;
  add(s, y, -1);
  add(s, {constant, {}}, 1);
  return s;
}

std::int64_t IndexRanges::most(const Sum& s) const {
  if (!s.known || s.constant < -largest_sum || s.constant > largest_sum) return unbounded;
  std::int64_t all = s.constant < 0 ? -s.constant : s.constant;
  for (const auto& [u, factor] : s.terms) {
    const std::int64_t of = unknowns_[static_cast<std::size_t>(u)].most;
    std::int64_t part = 0;
    if (of == unbounded || __builtin_mul_overflow(factor, of, &part) ||
        part == std::numeric_limits<std::int64_t>::min() ||
        __builtin_add_overflow(all, part < 0 ? -part : part, &all) || all > largest_sum)
      return unbounded;
  }
  return all;
}

void IndexRanges::set_most(const Value* v, std::int64_t most) {
  const Sum s = sum_of(v);
  if (most > largest_sum || s.terms.size() != 1) return;
  Unknown& u = unknowns_[static_cast<std::size_t>(s.terms[0].first)];
  if (u.value == v && u.dimension < 0) u.most = std::min(u.most, most);
}

void IndexRanges::set_sum(const Value* v, Sum s) {
  if (small(s)) sums_[v] = std::move(s);
}

IndexRanges::Sum IndexRanges::unknown(const Value* v, int dimension) {
  auto& numbers = numbers_[v];
  auto at = std::ranges::find_if(numbers, [&](const auto& n) { return n.first == dimension; });
  if (at == numbers.end()) {
    at = numbers.insert(at, {dimension, static_cast<int>(unknowns_.size())});
    unknowns_.push_back({v, dimension, dimension >= 0, dimension >= 0 ? largest_size : unbounded, {}});
  }
  return {0, {{at->second, 1}}, true};
}

IndexRanges::Sum IndexRanges::sum_of(const Value* v) {
  if (const Op* c = constant(v)) return {c->integer, {}, true};
  if (const Sum* s = sums_.find(v)) return *s;
  return unknown(v, -1);
}

IndexRanges::Sum IndexRanges::size_of(const Value* t, std::size_t dimension) {
  const Value* from = shapes_.of(t);
  for (const Value* v : {t, from}) {
    const ir::Type& type = v->type.is_ref() ? v->type.content() : v->type;
    if (type.dims()[dimension] != ir::dynamic) return {type.dims()[dimension], {}, true};
  }
  if (const Op* op = from->def) {
    if (op->is(Opcode::fill_) && op->operands[0]->type.is_scalar() &&
        op->operands.size() == from->type.dims().size() + 1)
      return sum_of(op->operands[1 + dimension]);
    if (op->is(Opcode::take_)) return size_of(op->operands[0], dimension + 1);
    if (op->is(Opcode::slice_))
      return dimension > 0 ? size_of(op->operands[0], dimension)
                           : difference(sum_of(op->operands[2]), sum_of(op->operands[1]));
  }
  return unknown(from, static_cast<int>(dimension));
}

// ---- what is known

void IndexRanges::assume(Sum s) {
  if (!s.known || s.terms.empty()) return;
  for (const auto& [u, f] : s.terms)
    unknowns_[static_cast<std::size_t>(u)].facts.push_back(static_cast<int>(facts_.size()));
  facts_.push_back(std::move(s));
}

/// Forgets all but the first facts.
void IndexRanges::forget(std::size_t facts) {
  for (; facts_.size() > facts; facts_.pop_back())
    for (const auto& [u, f] : facts_.back().terms) unknowns_[static_cast<std::size_t>(u)].facts.pop_back();
}

/// What a condition says of integers: sums that are not negative.
std::vector<IndexRanges::Sum> IndexRanges::facts_of(const Value* condition, bool holds) {
  std::vector<Sum> facts;
  for (const Comparison& c : comparisons(condition, holds))
    if (!c.differ) facts.push_back(difference(sum_of(c.high), sum_of(c.low), -c.gap));
  return facts;
}

void IndexRanges::assume(const Value* condition, bool holds) {
  for (Sum& s : facts_of(condition, holds)) assume(std::move(s));
}

bool IndexRanges::proved(const Sum& s) {
  int steps = most_proof_steps;
  return s.known && proved(s, deepest_proof, steps);
}

/// True where s is not negative: takes facts away until only sizes and a number are left.
bool IndexRanges::proved(const Sum& s, int depth, int& steps) {
  const auto free = [&](const auto& t) {
    return t.second > 0 && unknowns_[static_cast<std::size_t>(t.first)].size;
  };
  auto pivot = std::ranges::find_if_not(s.terms, free);
  if (pivot == s.terms.end()) {
    if (s.constant >= 0) return true;
    if (s.terms.empty()) return false;
    pivot = s.terms.begin();  // a size may be known to be larger than nothing
  }
  if (depth == 0) return false;
  const auto [u, factor] = *pivot;
  const auto& facts = unknowns_[static_cast<std::size_t>(u)].facts;
  std::size_t tried = 0;
  for (std::size_t i = facts.size(); i-- > 0 && tried < most_facts;) {
    const Sum& fact = facts_[static_cast<std::size_t>(facts[i])];
    const auto in = std::ranges::find_if(fact.terms, [&](const auto& t) { return t.first == u; });
    if ((in->second > 0) != (factor > 0) || factor % in->second != 0) continue;
    if (--steps < 0) return false;
    ++tried;
    Sum rest = s;
    add(rest, fact, -(factor / in->second));
    if (rest.known && proved(rest, depth - 1, steps)) return true;
  }
  return false;
}

// ---- the walk

void IndexRanges::block(const Block* b) {
  const std::size_t before = facts_.size();
  for (const Op* op : b->ops) operation(*op);
  forget(before);
}

void IndexRanges::operation(const Op& op) {
  shapes_.note(&op);
  switch (op.code) {
    case Opcode::branch_:
      return branch(op);
    case Opcode::loop_:
      return loop(op);
    case Opcode::get_:
    case Opcode::set_:
    case Opcode::add_at_:
    case Opcode::lane_get_:
    case Opcode::lane_set_:
    case Opcode::lane_add_at_:
    case Opcode::take_:
    case Opcode::add_take_:
      return access(op);
    case Opcode::check_:
      return assume(op.operands[0], true);
    case Opcode::fill_:
      for (std::size_t i = 1; i < op.operands.size(); ++i)
        if (!proved(sum_of(op.operands[i]))) return;
      sized_.insert(&op);
      return;
    default:
      if (!op.results.empty() && is_integer(op.result())) integer(op);
      for (const Block* b : op.blocks) block(b);
  }
}

/// A result is at least, or at most, what one side gives where that holds of the other side.
void IndexRanges::branch(const Op& op) {
  std::vector<Sum> behind;
  std::vector<std::int64_t> most_of_both(op.results.size(), 0);
  for (const bool holds : {true, false}) {
    const std::size_t before = facts_.size();
    assume(op.operands[0], holds);
    for (const Op* o : op.blocks[holds ? 0 : 1]->ops) operation(*o);
    for (std::size_t i = 0; i < op.results.size(); ++i) {
      if (!is_integer(op.results[i])) continue;
      const Sum here = sum_of(op.blocks[holds ? 0 : 1]->ops.back()->operands[i]);
      const Sum there = sum_of(op.blocks[holds ? 1 : 0]->ops.back()->operands[i]);
      most_of_both[i] = std::max(most_of_both[i], most(here));
      if (!visible(there, op.parent)) continue;
      if (proved(difference(here, there))) behind.push_back(difference(sum_of(op.results[i]), there));
      if (proved(difference(there, here))) behind.push_back(difference(there, sum_of(op.results[i])));
    }
    forget(before);
  }
  for (std::size_t i = 0; i < op.results.size(); ++i)
    if (is_integer(op.results[i])) set_most(op.results[i], most_of_both[i]);
  for (Sum& s : behind) assume(std::move(s));
}

/// What the condition compares a counter with, if an iteration only begins while the counter is below (or,
/// where it falls, above) that.
std::optional<IndexRanges::Limit> IndexRanges::limit(const Op& loop, std::size_t counter, bool up) {
  const Block* head = loop.blocks[0];
  std::vector<const Value*> conditions{head->ops.back()->operands[0]};
  while (!conditions.empty()) {
    const Op* op = conditions.back()->def;
    const std::uint32_t index = conditions.back()->index;
    conditions.pop_back();
    if (!op || op->parent != head) continue;
    if (op->is(Opcode::land_)) conditions.insert(conditions.end(), op->operands.begin(), op->operands.end());
    if (op->is(Opcode::branch_)) {  // AND: false where the first side is
      const Op* otherwise = constant(op->blocks[1]->ops.back()->operands[index]);
      if (otherwise && otherwise->integer == 0) conditions.push_back(op->operands[0]);
    }
    if (!op->is(Opcode::lt_, Opcode::le_)) continue;
    const Value *number = op->operands[up ? 0 : 1], *bound = op->operands[up ? 1 : 0];
    if (number != head->params[counter]) continue;
    if (bound->block == head && !constant(bound)) continue;
    return Limit{most(sum_of(bound)), op->is(Opcode::lt_)};
  }
  return {};
}

/// In a loop the state is the same in the condition and in the iteration that follows. Counters go one way,
/// where they do not wrap: they start from a small number, or are compared with one, or go by ones up to one.
void IndexRanges::loop(const Op& op) {
  const Block *head = op.blocks[0], *body = op.blocks[1];
  const Value* condition = head->ops.back()->operands[0];
  std::vector<Sum> begin;  // what counters never leave, of the state and of the results
  for (std::size_t i = 0; i < op.operands.size(); ++i) {
    if (!is_integer(op.operands[i])) continue;
    const Sum state = sum_of(head->params[i]), first = sum_of(op.operands[i]);
    sums_[body->params[i]] = state;
    const Op* next = body->ops.back()->operands[i]->def;
    if (!next || !next->is(Opcode::add_, Opcode::sub_) || next->operands[0] != body->params[i]) continue;
    const Op* by = constant(next->operands[1]);
    if (!by || by->integer == 0 || by->integer < -largest_step || by->integer > largest_step) continue;
    const bool up = next->is(Opcode::add_) == (by->integer > 0);
    const std::int64_t step = by->integer < 0 ? -by->integer : by->integer, from = most(first);
    const std::optional<Limit> last = limit(op, i, up);
    const bool bounded = last && last->most != unbounded;
    const bool reaches_end = bounded || (last && step == 1 && last->strict);
    if (from == unbounded && !reaches_end) continue;
    exact_.insert(next);
    const auto goes_one_way = [&](const Value* v) {
      begin.push_back(up ? difference(sum_of(v), first) : difference(first, sum_of(v)));
    };
    const std::int64_t furthest = from == unbounded ? unbounded
                                  : bounded         ? std::max(from, last->most + step)
                                                    : from + step * largest_trip_count;
    set_most(head->params[i], furthest);
    goes_one_way(head->params[i]);
    // Where a loop ends compilers may compute without an iteration, however many it would take.
    if (!reaches_end) continue;
    if (bounded) set_most(op.results[i], furthest);
    goes_one_way(op.results[i]);
  }
  for (Sum& s : begin) assume(std::move(s));
  const std::size_t before = facts_.size();
  for (const Op* o : head->ops) operation(*o);
  std::vector<Sum> end = facts_of(condition, false);
  const std::vector<Sum> go_on = facts_of(condition, true);
  for (const Sum& s : go_on) assume(s);
  assume_multiples(op);
  const auto outer = std::exchange(counting_, counting(op, go_on));
  block(body);
  counting_ = outer;
  forget(before);

  // Behind the loop its results do not fulfil the condition.
  for (Sum& s : end) {
    Sum behind{s.constant, {}, s.known};
    for (const auto& [u, factor] : s.terms) {
      const Value* v = unknowns_[static_cast<std::size_t>(u)].value;
      const bool state = v->block == head && !v->def && is_integer(v);
      behind.known &= state || ir::visible_from(v, op.parent);
      add(behind, state ? sum_of(op.results[v->index]) : Sum{0, {{u, 1}}, true}, factor);
    }
    assume(std::move(behind));
  }
}

// ---- checks before loops

/// A loop's state goes by the parameter of its condition; in its iterations it is that of the body.
const Value* IndexRanges::in_body(const Value* v) {
  const Op* loop = v->def ? nullptr : v->block->parent;
  return loop && loop->is(Opcode::loop_) && v->block == loop->blocks[0] ? loop->blocks[1]->params[v->index]
                                                                        : v;
}

bool IndexRanges::visible(const Sum& s, const Block* from) const {
  return s.known && std::ranges::all_of(s.terms, [&](const auto& t) {
           return ir::visible_from(in_body(unknowns_[static_cast<std::size_t>(t.first)].value), from);
         });
}

IndexForm IndexRanges::form(const Sum& s) const {
  IndexForm f = s.constant;
  for (const auto& [u, factor] : s.terms) {
    const Unknown& x = unknowns_[static_cast<std::size_t>(u)];
    f += IndexForm::of({in_body(x.value), x.dimension}) * factor;
  }
  return f;
}

/// How a loop counts that does nothing but compute in its iterations, and ends by one comparison of its
/// counter.
std::optional<IndexRanges::Counting> IndexRanges::counting(const Op& loop,
                                                           const std::vector<Sum>& condition) {
  const Block *head = loop.blocks[0], *body = loop.blocks[1];
  const Op* test = head->ops.back()->operands[0]->def;
  if (condition.size() != 1 || !test || !test->is(Opcode::lt_, Opcode::le_)) return {};
  bool pure = true;
  for (Block* b : loop.blocks)
    ir::walk(b, [&](const Op* op) {
      pure &= !op->is(Opcode::check_, Opcode::print_, Opcode::call_, Opcode::fun_, Opcode::jump_,
                      Opcode::closure_, Opcode::halt_);
    });
  if (!pure) return {};
  for (const auto& [u, factor] : condition[0].terms) {
    const Value* v = unknowns_[static_cast<std::size_t>(u)].value;
    if (v->block != head || v->def || (factor != 1 && factor != -1)) continue;
    const Value* next = body->ops.back()->operands[v->index];
    const Op* by = next->def && next->def->operands.size() == 2 ? constant(next->def->operands[1]) : nullptr;
    if (!by || next->def->operands[0] != body->params[v->index]) return {};
    const Sum begin = sum_of(loop.operands[v->index]);
    Counting c{&loop, u, {}, {}, by->integer};
    Sum rest = condition[0];
    add(rest, {0, {{u, 1}}, true}, -factor);
    if (factor == -1 && next->def->is(Opcode::add_) && by->integer > 0) {  // counter <= rest
      c.first = begin;
      c.end = difference(rest, {-1, {}, true});
    } else if (factor == 1 && next->def->is(Opcode::sub_) && by->integer == 1) {  // counter >= -rest
      c.step = -1;
      add(c.first, rest, -1);
      c.end = difference(begin, {-1, {}, true});
    } else {
      return {};
    }
    if (!visible(c.first, loop.parent) || !visible(c.end, loop.parent)) return {};
    return c;
  }
  return {};
}

/// The number of the check that covers an access in all iterations; -1 where there is none.
int IndexRanges::check_before(const Counting& loop, const Op& access, const Sum& index, std::int64_t count,
                              const Sum& size) {
  const Block* outside = loop.loop->parent;
  Sum rest = index;
  const auto at = std::ranges::find_if(index.terms, [&](const auto& t) { return t.first == loop.counter; });
  const std::int64_t factor = at == index.terms.end() ? 0 : at->second;
  add(rest, {0, {{loop.counter, 1}}, true}, -factor);
  if (!visible(rest, outside) || !visible(size, outside)) return -1;
  LoopCheck check;
  Sum first = rest, end = rest;
  if (factor == 0) {
    add(end, {1, {}, true}, 1);
    check.iterations = form(difference(loop.end, loop.first));
    if (!small(loop.first) || !small(loop.end)) return -1;
  } else if (factor == 1) {
    add(first, loop.first, 1);
    add(end, loop.end, 1);
    check.step = loop.step;
  } else if (factor == -1 && (loop.step == 1 || loop.step == -1)) {
    check.step = -loop.step;
    add(first, {1, {}, true}, 1);
    add(first, loop.end, -1);
    add(end, {1, {}, true}, 1);
    add(end, loop.first, -1);
  } else {
    return -1;
  }
  for (const Sum* s : std::initializer_list<const Sum*>{&first, &end, &size})
    if (!printable(*s)) return -1;
  check.first = form(first);
  check.end = form(end);
  check.size = form(size);
  check.count = count;
  check.access = &access;
  return add_check(loop, std::move(check));
}

/// True for sums that the machine computes as they are: nothing wraps that is not a number of the program as
/// it is.
bool IndexRanges::printable(const Sum& s) const {
  return small(s) || (s.known && s.terms.size() == 1 && s.terms[0].second == 1 && s.constant == 0);
}

int IndexRanges::add_check(const Counting& loop, LoopCheck check) {
  auto& checks = checks_[loop.loop];
  const auto known = std::ranges::find_if(checks, [&](const LoopCheck& c) {
    return c.first == check.first && c.end == check.end && c.count == check.count && c.size == check.size &&
           c.iterations == check.iterations && c.start == check.start && c.times == check.times;
  });
  if (known != checks.end()) return static_cast<int>(known - checks.begin());
  checks.push_back(std::move(check));
  return static_cast<int>(checks.size() - 1);
}

/// The same for indices of which nothing is known but that they are the loop's counter, or a multiple of it,
/// and something from outside, as in a[i * n + j] for numbers n of the program: whatever wraps, they follow
/// each other.
int IndexRanges::wrapping_check_before(const Counting& loop, const Op& access, const Value* index,
                                       std::int64_t count, const Sum& size) {
  const Value* const head = unknowns_[static_cast<std::size_t>(loop.counter)].value;
  const Value* const counter = loop.loop->blocks[1]->params[head->index];
  const auto steps = index_steps(index);
  const auto s = steps ? steps->first.split(counter) : std::nullopt;
  if (!s || !visible(size, loop.loop->parent) || !printable(size)) return -1;
  const auto times = s->coefficient.number();
  if (!times || *times == 0 || std::abs(*times) > largest_multiple ||
      (index->type.is_vector() && *times != steps->step))
    return -1;
  for (const passes::Unknown& u : s->rest.unknowns())
    if (!ir::visible_from(u.value, loop.loop->parent)) return -1;
  // The loop compares the counter, or where it falls the number before.
  Sum low = loop.first, end = loop.end;
  if (loop.step < 0) {
    add(low, {-1, {}, true}, 1);
    add(end, {-1, {}, true}, 1);
  }
  if (!printable(low) || !printable(end)) return -1;
  LoopCheck check;
  check.start = s->rest + (loop.step < 0 ? *times : 0);
  check.times = *times;
  check.first = form(low);
  check.end = form(end);
  check.size = form(size);
  check.step = loop.step;
  check.count = count;
  check.access = &access;
  return add_check(loop, std::move(check));
}

/// What counts down from a multiple of its step, and is positive, is at least the step.
void IndexRanges::assume_multiples(const Op& loop) {
  for (std::size_t i = 0; i < loop.operands.size(); ++i) {
    const Op* next = loop.blocks[1]->ops.back()->operands[i]->def;
    if (!next || !next->is(Opcode::sub_) || !is_integer(next->result()) ||
        next->operands[0] != loop.blocks[1]->params[i])
      continue;
    const Op* by = constant(next->operands[1]);
    const Sum first = sum_of(loop.operands[i]), state = sum_of(loop.blocks[0]->params[i]);
    if (!by || by->integer < 2 || !small(first) || first.constant % by->integer != 0) continue;
    if (std::ranges::any_of(first.terms, [&](const auto& t) { return t.second % by->integer != 0; }))
      continue;
    if (proved(difference(state, {1, {}, true}))) assume(difference(state, {by->integer, {}, true}));
  }
}

void IndexRanges::integer(const Op& op) {
  const Value* v = op.result();
  const auto larger = [](std::int64_t x, std::int64_t y) { return std::max(x, y); };
  const auto operand = [&](std::size_t i) { return sum_of(op.operands[i]); };
  switch (op.code) {
    case Opcode::dim_:
      sums_[v] = size_of(op.operands[0], static_cast<std::size_t>(op.integer));
      return;
    case Opcode::add_:
    case Opcode::sub_:
    case Opcode::neg_: {
      Sum s;
      for (std::size_t i = 0; i < op.operands.size(); ++i) {
        if (!small(operand(i))) return;
        add(s, operand(i), op.is(Opcode::neg_) || (op.is(Opcode::sub_) && i == 1) ? -1 : 1);
      }
      if (small(s)) exact_.insert(&op);
      return set_sum(v, std::move(s));
    }
    case Opcode::cast_:
      if (op.operands[0]->type.kind() == ir::Kind::i32) set_most(v, std::int64_t{1} << 31);
      return;
    case Opcode::mul_:
      for (const std::size_t i : {0u, 1u}) {
        const Op* c = constant(op.operands[i]);
        if (!c || !small(operand(1 - i))) continue;
        Sum s;
        add(s, operand(1 - i), c->integer);
        if (small(s)) exact_.insert(&op);
        return set_sum(v, std::move(s));
      }
      if (std::int64_t product = 0; small(operand(0)) && small(operand(1)) &&
                                    !__builtin_mul_overflow(most(operand(0)), most(operand(1)), &product) &&
                                    product <= largest_sum) {
        exact_.insert(&op);
        set_most(v, product);
      }
      return;
    case Opcode::imax_:
    case Opcode::imin_:
      set_most(v, larger(most(operand(0)), most(operand(1))));
      for (const std::size_t i : {0u, 1u})
        if (const Op* c = constant(op.operands[1 - i]);
            c && small(operand(i)) && op.is(Opcode::imax_) && c->integer <= -most(operand(i)))
          return set_sum(v, operand(i));  // of a number that nothing smaller is compared with
      for (const std::size_t i : {0u, 1u})
        if (proved(difference(operand(i), operand(1 - i))))
          return set_sum(v, operand(op.is(Opcode::imax_) ? i : 1 - i));
      for (const std::size_t i : {0u, 1u})
        assume(op.is(Opcode::imax_) ? difference(sum_of(v), operand(i)) : difference(operand(i), sum_of(v)));
      return;
    case Opcode::select_: {
      // Not negative where both are not, and at most the larger one.
      const Sum x = operand(1), y = operand(2);
      set_most(v, larger(most(x), most(y)));
      if (proved(x) && proved(y)) assume(sum_of(v));
      for (const auto& [a, b] : {std::pair(x, y), std::pair(y, x)})
        if (proved(difference(a, b))) assume(difference(a, sum_of(v)));
      return;
    }
    case Opcode::rem_: {
      const Sum x = operand(0), y = operand(1), r = sum_of(v);
      set_most(v, most(x));
      if (!proved(x)) return;
      assume(r);
      assume(difference(x, r));
      if (proved(y)) assume(difference(y, r, -1));  // not zero: that would have been an error
      return;
    }
    case Opcode::div_: {
      const Op* c = constant(op.operands[1]);
      const Sum x = operand(0), q = sum_of(v);
      if (!c || c->integer <= 0) return;
      set_most(v, most(x));
      if (!proved(x)) return;
      Sum rest = x, over{c->integer - 1, {}, true};
      add(rest, q, -c->integer);
      add(over, rest, -1);
      for (const Sum& s : {q, rest, over}) assume(s);
      return;
    }
    default:
      return;
  }
}

/// A vector of indices in equal steps.
std::optional<IndexRanges::Lanes> IndexRanges::lanes(const Value* index) {
  const Op* op = index->def;
  if (!op) return {};
  if (op->is(Opcode::lane_index_)) return Lanes{{}, 1};
  if (op->operands.size() != 2) return {};
  for (const std::size_t i : {0u, 1u}) {
    const Op* splat = op->operands[1 - i]->def;
    if (!splat || !splat->is(Opcode::lane_splat_)) continue;
    std::optional<Lanes> x = lanes(op->operands[i]);
    const Sum by = sum_of(splat->operands[0]);
    if (!x) continue;
    const bool nothing = x->first.terms.empty() && x->first.constant == 0;
    if (op->is(Opcode::add_) && nothing) return Lanes{by, x->step};
    if (!small(x->first) || !small(by)) return {};
    Lanes r{{}, x->step};
    std::int64_t factor = 1;
    if (op->is(Opcode::mul_) && by.terms.empty()) {
      factor = by.constant;
    } else if (op->is(Opcode::sub_) && i == 1) {
      factor = -1;
      r.first = by;
    } else if (op->is(Opcode::add_, Opcode::sub_)) {
      add(r.first, by, op->is(Opcode::add_) ? 1 : -1);
    } else {
      return {};
    }
    add(r.first, x->first, factor);
    r.step *= factor;
    if (!small(r.first) || r.step > largest_step || r.step < -largest_step) return {};
    return r;
  }
  return {};
}

void IndexRanges::access(const Op& op) {
  const Value* t = op.operands[0];
  const bool rows = op.is(Opcode::take_, Opcode::add_take_);
  const std::size_t indices = rows ? 1 : t->type.dims().size();
  std::vector<KnownRange> known(1 + indices);
  for (std::size_t i = 0; i < indices; ++i) {
    const Value* index = op.operands[1 + i];
    const Sum size = size_of(t, i), one{1, {}, true};
    Sum low = sum_of(index), high = low;  // the smallest, and the largest index
    std::optional<Lanes> vector;
    Sum count = one;
    if (index->type.is_vector()) {
      vector = lanes(index);
      if (!vector && uses_.live(&op) && counting_ && op.parent == counting_->loop->blocks[1] &&
          !is_lane_access(op))
        known[1 + i].check = wrapping_check_before(*counting_, op, index, index->type.lanes(), size);
      if (vector) {
        count = is_lane_access(op) ? sum_of(op.operands.back()) : Sum{index->type.lanes(), {}, true};
        low = high = vector->first;
        add(vector->step < 0 ? low : high, difference(count, one), vector->step);
      }
    }
    const Sum room = difference(difference(size, high), one);
    known[1 + i].low = proved(low);
    known[1 + i].high = proved(room);
    if (!uses_.live(&op) || (known[1 + i].low && known[1 + i].high)) continue;
    // Any indices: what holds of all is known of each. Accesses by some of the lanes tell nothing of the
    // others.
    const bool any = index->type.is_vector() && !vector;
    if (any && (known[1 + i].check >= 0 || is_lane_access(op))) continue;
    const bool before = !any && counting_ && op.parent == counting_->loop->blocks[1] && count.terms.empty();
    if (before && (!vector || vector->step == 1))
      known[1 + i].check = check_before(*counting_, op, low, count.constant, size);
    if (before && known[1 + i].check < 0)
      known[1 + i].check = wrapping_check_before(*counting_, op, index, count.constant, size);
    if (vector && vector->step != 1 && !count.terms.empty()) continue;  // there may be none
    if (!known[1 + i].low) assume(low);
    if (!known[1 + i].high) assume(room);
  }
  if (std::ranges::any_of(known, [](const KnownRange& k) { return k.low || k.high || k.check >= 0; }))
    known_[&op] = std::move(known);
}

}  // namespace lantern::passes
