// Which reads find what was there before the loop, and whether the loop writes most of a tensor.
#include "lantern/compiler/passes/array/node_splitting.hpp"

#include <algorithm>

#include "lantern/compiler/passes/analysis/index_form.hpp"
#include "lantern/compiler/passes/analysis/loops.hpp"
#include "lantern/compiler/passes/analysis/versions.hpp"

namespace lantern::passes {

namespace {

/// How many elements a write reaches in all trips of a loop, those of the loops around it taken as they are
/// on average: times 2 for each of the loops in question, so that no half is lost.
struct Volume {
  IndexForm doubled = 1;
  std::int64_t factor = 1;

  /// Whether all loops count.
  bool of(const Op& write, const Op* outermost) {
    for (const Op* loop = write.parent->parent;; loop = loop->parent->parent) {
      if (loop->is(Opcode::loop_)) {
        const auto counter = counter_of(loop);
        if (!counter) return false;
        const bool up = counter->step > 0;
        const IndexForm trips =
            (up ? counter->last - counter->first : counter->first - counter->last) + IndexForm(1);
        const auto inner = doubled.split(counter->index);
        if (!inner) return false;
        doubled =
            (inner->coefficient * (counter->first + counter->last) + IndexForm(2) * inner->rest) * trips;
        factor *= 2;
      }
      if (loop == outermost) return true;
    }
  }
};

/// What a form grows with: its terms of the highest degree, without those of what loops around count.
std::map<IndexForm::Product, std::int64_t> leading(const IndexForm& f) {
  std::map<IndexForm::Product, std::int64_t> terms;
  std::size_t most = 0;
  for (const auto& [product, n] : f.terms()) {
    if (std::ranges::any_of(product, [](const Unknown& u) {
          return !u.is_size() && !u.value->def && u.value->block->parent;
        }))
      continue;
    if (product.size() > most) terms.clear();
    most = std::max(most, product.size());
    if (product.size() == most) terms.emplace(product, n);
  }
  return terms;
}

/// True where a write reaches at least an eighth of a tensor's elements, as the sizes grow.
bool writes_most(const Value* tensor, const Op& write, const Op* loop) {
  constexpr std::int64_t part = 8;
  Volume written;
  if (!written.of(write, loop)) return false;
  IndexForm size = 1;
  for (std::size_t d = 0; d < static_cast<std::size_t>(tensor->type.rank()); ++d)
    size = size * size_form(tensor, d);
  const auto some = leading(written.doubled), all = leading(size);
  return !all.empty() && std::ranges::all_of(all, [&](const auto& term) {
    const auto same = some.find(term.first);
    return same != some.end() && same->second >= 0 && same->second / written.factor >= term.second / part;
  });
}

void split(Op* loop, std::size_t state) {
  constexpr std::size_t most_pairs = 400;
  Value* const start = loop->operands[state];
  if (!start->type.is_tensor() || Uses(loop->blocks[0]).count(loop->blocks[0]->params[state]) > 0) return;
  Versions versions;
  if (!versions.carried(loop, state) || versions.writes.empty()) return;
  const Reads reads = reads_of(versions, loop);
  if (reads.others || reads.gets.empty() || reads.gets.size() * versions.writes.size() > most_pairs) return;

  std::vector<const Op*> all(versions.writes.begin(), versions.writes.end());
  std::vector<const Op*> own = all, before;
  all.insert(all.end(), reads.gets.begin(), reads.gets.end());
  if (apart_by_trip(all, loop)) return;  // trips read nothing that another one writes
  for (const Op* get : reads.gets) {
    const bool unwritten = std::ranges::all_of(
        versions.writes, [&](const Op* w) { return misses(*get, *w, loop, Trip::earlier); });
    (unwritten ? before : own).push_back(get);
  }
  if (!apart_by_trip(own, loop) ||
      std::ranges::none_of(versions.writes, [&](const Op* w) { return writes_most(start, *w, loop); }))
    return;
  for (const Op* get : before) const_cast<Op*>(get)->operands[0] = start;
}

}  // namespace

void node_splitting(Op* loop) {
  std::vector<Op*> loops{loop};
  ir::walk(loop->blocks[1], [&](Op* op) {
    if (op->is(Opcode::loop_)) loops.push_back(op);
  });
  for (Op* l : loops)  // outer ones first: a copy for all trips of the loops inside
    for (std::size_t i = 0; i < l->operands.size(); ++i)
      if (l->integer == 0 && counter_of(l)) split(l, i);
}

}  // namespace lantern::passes
