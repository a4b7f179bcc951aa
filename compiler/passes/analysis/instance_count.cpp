// Instance counts: products of numbers of iterations; triangular nests count their average.
#include "lantern/compiler/passes/analysis/instance_count.hpp"

#include <algorithm>

namespace lantern::passes {

namespace {

/// How often an access is made in all iterations of a loop, those of the loops around it taken as they are on
/// average: times 2 for each of the loops in question, so that no half is lost.
struct InstanceCount {
  IndexForm doubled = 1;
  std::int64_t factor = 1;

  /// Whether all loops count.
  bool of(const Op& access, const Op* outermost) {
    for (const Op* loop = access.parent->parent;; loop = loop->parent->parent) {
      if (loop->is(Opcode::loop_)) {
        const auto counter = counter_of(loop);
        if (!counter) return false;
        const IndexForm iterations = counter->last - counter->first + IndexForm(1);
        const auto inner = doubled.split(counter->index);
        if (!inner) return false;
        doubled =
            (inner->coefficient * (counter->first + counter->last) + IndexForm(2) * inner->rest) * iterations;
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

}  // namespace

bool footprint_covers(const Op& access, const Op* outermost, const IndexForm& size) {
  constexpr std::int64_t part = 8;
  InstanceCount made;
  if (!made.of(access, outermost)) return false;
  const auto some = leading(made.doubled), all = leading(size);
  return !all.empty() && std::ranges::all_of(all, [&](const auto& term) {
    const auto same = some.find(term.first);
    return same != some.end() && same->second >= 0 && same->second / made.factor >= term.second / part;
  });
}

}  // namespace lantern::passes
