// The first of a vector of indices, and its step.
#include "lantern/compiler/passes/analysis/index_steps.hpp"

#include <cstdlib>

namespace lantern::passes {

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

}  // namespace lantern::passes
