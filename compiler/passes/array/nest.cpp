// Which loops are nests, and which iteration an element belongs to.
#include "lantern/compiler/passes/array/nest.hpp"

#include <algorithm>
#include <cstdlib>
#include <numeric>

namespace lantern::passes {

bool Nest::inside(const Value* v) const {
  return std::ranges::any_of(levels, [&](const Level& l) { return v->block == l.loop->blocks[1]; });
}
bool Nest::counts(const Value* v) const {
  return std::ranges::any_of(levels, [&](const Level& l) { return v == l.counter(); });
}

std::optional<std::size_t> Nest::handed_in(const Uses& uses, std::size_t state) const {
  for (std::size_t k = 1; k < levels.size(); ++k) {
    const Op* const inner = levels[k].loop;
    const auto& in = uses.of(levels[k - 1].loop->blocks[1]->params[state]);
    if (in.size() != 1 || in[0].op != inner) return {};
    const auto& out = uses.of(inner->results[in[0].operand]);
    if (out.size() != 1 || !out[0].op->is(Opcode::yield_) || out[0].operand != state) return {};
    state = in[0].operand;
  }
  return state;
}

namespace {

/// True for operations that change nothing; of those with blocks, for branches between numbers.
bool only_computes(const Op& op) {
  if (!op.is(Opcode::branch_)) return op.is(Opcode::yield_) || ir::info(op.code).effect == ir::Effect::none;
  return std::ranges::all_of(op.results, [](const Value* v) { return v->type.is_scalar(); }) &&
         std::ranges::all_of(op.blocks, [](const Block* b) {
           return std::ranges::all_of(b->ops, [](const Op* inner) { return only_computes(*inner); });
         });
}

}  // namespace

std::optional<Nest> nest_of(Op* loop, const Uses& uses) {
  Nest nest;
  for (Op* const outer = loop; loop;) {
    const auto range = iteration_range(loop);
    if (!range) return {};
    if (loop != outer)
      for (const Offset& o : {range->first, range->last})
        if (o.base && !ir::visible_from(o.base, outer->parent)) return {};
    for (const Value* p : loop->blocks[0]->params)
      if (p->index != range->index && !uses.of(p).empty()) return {};
    nest.levels.push_back({loop, *range});
    Op* inner = nullptr;
    for (Op* op : loop->blocks[1]->ops) {
      if (op->is(Opcode::loop_) && !inner)
        inner = op;
      else if (!op->is(Opcode::pop_) && !only_computes(*op))
        return {};
    }
    loop = inner;
  }
  return nest;
}

namespace {

/// How many multiples of a step are nearest to a distance: i * n + j - 1 is no row, and one element before.
std::int64_t nearest(const IndexForm& distance, const IndexForm& step) {
  if (step.terms().size() != 1) return 0;
  const auto& [product, factor] = *step.terms().begin();
  const auto found = distance.terms().find(product);
  const std::int64_t here = found == distance.terms().end() ? 0 : found->second;
  constexpr std::int64_t far = std::int64_t{1} << 40;
  if (here < -far || here > far || factor < -far || factor > far) return 0;
  const std::int64_t size = std::abs(factor), shifted = here + size / 2;
  const std::int64_t n = shifted / size - (shifted % size < 0 ? 1 : 0);
  return factor < 0 ? -n : n;
}

}  // namespace

std::optional<Place> place_in(const Nest& nest, const Op& access) {
  const std::size_t depth = nest.depth();
  const auto rank = static_cast<std::size_t>(access.operands[0]->type.rank());
  Place place{std::vector<std::int64_t>(depth, 0), {}};
  // By dimension: what one iteration of the level adds to the index.
  std::vector<std::vector<IndexForm>> steps(depth);
  for (std::size_t d = 0; d < rank; ++d) {
    const Value* const index = access.operands[1 + d];
    if (!(index->type == ir::I64)) return {};
    IndexForm& form = place.at.emplace_back(index_form(index));
    for (const Nest::Level& l : nest.levels)
      if (l.range.ahead != 0) form = form.with(l.counter(), IndexForm::of(l.counter()) + l.range.ahead);
    for (const Unknown& u : form.unknowns())
      if (!nest.counts(u.value) && !ir::visible_from(u.value, nest.outer()->parent)) return {};
    for (std::size_t k = 0; k < depth; ++k) {
      const auto s = form.split(nest.levels[k].counter());
      if (!s) return {};
      for (const Unknown& u : s->coefficient.unknowns())
        if (nest.counts(u.value)) return {};
      steps[k].push_back(s->coefficient);
    }
  }
  // Rows before columns: of the larger steps first.
  std::vector<std::size_t> order(depth);
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto size = [&](std::size_t k) {
    std::int64_t most = 0;
    for (const IndexForm& s : steps[k]) {
      const auto n = s.number();
      most = std::max(most, n ? std::abs(*n) : std::int64_t{1} << 50);
    }
    return most;
  };
  std::ranges::stable_sort(order, std::greater<>(), size);
  for (const std::size_t k : order) {
    const auto first = std::ranges::find_if(steps[k], [](const IndexForm& s) { return !s.terms().empty(); });
    if (first == steps[k].end()) return {};
    const auto d = static_cast<std::size_t>(first - steps[k].begin());
    IndexForm rest = place.at[d];
    for (const Nest::Level& l : nest.levels) rest = rest.with(l.counter(), 0);
    place.by[k] = nearest(rest, *first);
    for (std::size_t i = 0; i < rank; ++i) place.at[i] -= steps[k][i] * IndexForm(place.by[k]);
  }
  return place;
}

std::optional<std::vector<std::size_t>> levels_of(const Nest& nest, const Place& place) {
  std::vector<std::size_t> all;
  for (const IndexForm& f : place.at) {
    const auto level = std::ranges::find_if(
        nest.levels, [&](const Nest::Level& l) { return f == IndexForm::of(l.counter()); });
    if (level == nest.levels.end()) return {};
    all.push_back(static_cast<std::size_t>(level - nest.levels.begin()));
    if (std::ranges::count(all, all.back()) > 1) return {};
  }
  if (all.size() != nest.depth()) return {};
  return all;
}

bool is_invariant(const IndexForm& f, const Block* body, const Nest* nest, bool sizes) {
  return std::ranges::all_of(f.unknowns(), [&](const Unknown& u) {
    if (sizes && u.is_size()) return ir::visible_from(u.value, body);
    return (nest && nest->counts(u.value)) || !made_in(u.value, body);
  });
}

Op* only_write(const Nest& nest, const Uses& uses, std::size_t state, bool read) {
  const auto inner = nest.handed_in(uses, state);
  if (!inner) return nullptr;
  const auto& all = uses.of(nest.innermost()->params[*inner]);
  const auto write = std::ranges::find_if(all, [](const ir::Use& use) { return !use.op->is(Opcode::get_); });
  if (write == all.end() || write->operand != 0 || !is_access(*write->op) ||
      write->op->parent != nest.innermost())
    return nullptr;
  for (const ir::Use& use : all)
    if (use.op != write->op && (!read || !use.op->is(Opcode::get_) || !same_element(*use.op, *write->op)))
      return nullptr;
  const auto& onward = uses.of(write->op->result());
  const bool handed_on =
      onward.size() == 1 && onward[0].op == nest.innermost()->ops.back() && onward[0].operand == *inner;
  return handed_on ? write->op : nullptr;
}

IndexForm form_of(const Offset& o) {
  const IndexForm by(static_cast<std::int64_t>(o.by));
  return o.base ? index_form(o.base) + by : by;
}

}  // namespace lantern::passes
