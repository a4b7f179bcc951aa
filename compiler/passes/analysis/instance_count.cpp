// Instance counts: products of numbers of iterations; triangular nests count their average.
#include "lantern/compiler/passes/analysis/instance_count.hpp"

#include <algorithm>

namespace lantern::passes {

namespace {

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

std::optional<InstanceCount> instance_count(const Op& access, const Block* block,
                                            ir::FunctionRef<bool(const Op& branch)> taken) {
  InstanceCount count;
  for (const Block* around = access.parent; around != block; around = around->parent->parent) {
    const Op* const op = around->parent;
    if (!op->is(Opcode::loop_)) {
      if (!taken(*op)) return {};
      continue;
    }
    const auto counter = counter_of(op);
    if (!counter) return {};
    const IndexForm iterations = counter->last - counter->first + IndexForm(1);
    const auto inner = count.doubled.split(counter->index);
    if (!inner) return {};
    count.doubled =
        (inner->coefficient * (counter->first + counter->last) + IndexForm(2) * inner->rest) * iterations;
    count.factor *= 2;
  }
  return count;
}

bool footprint_covers(const Op& access, const Op* outermost, const IndexForm& size) {
  constexpr std::int64_t part = 8;
  const auto made = instance_count(access, outermost->parent, [](const Op&) { return true; });
  if (!made) return false;
  const auto some = leading(made->doubled), all = leading(size);
  // More often than there are elements, where the number of accesses has further factors: n * n of a row of
  // n.
  const auto covers = [&](const auto& made_term, const auto& term) {
    if (made_term.first.size() > term.first.size() && !term.first.empty())
      return made_term.second > 0 && std::ranges::includes(made_term.first, term.first);
    return made_term.first == term.first && made_term.second >= 0 &&
           made_term.second / made->factor >= term.second / part;
  };
  return !all.empty() && std::ranges::all_of(all, [&](const auto& term) {
    return std::ranges::any_of(some, [&](const auto& made_term) { return covers(made_term, term); });
  });
}

}  // namespace lantern::passes
