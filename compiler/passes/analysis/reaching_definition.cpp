// Every later write against the element that was read; every read against what was written.
#include "lantern/compiler/passes/analysis/reaching_definition.hpp"

#include <algorithm>
#include <ranges>
#include <vector>

#include "lantern/compiler/passes/analysis/def_chain.hpp"
#include "lantern/compiler/passes/analysis/loops.hpp"

namespace lantern::passes {

namespace {

/// A loop and a piece of its state.
struct Carrier {
  const Op* loop = nullptr;
  std::size_t index = 0;
};

/// The loops around a reading that have the tensor as a piece of their state, the innermost first.
std::vector<Carrier> carriers(const Op& get) {
  std::vector<Carrier> found;
  for (const Value* v = get.operands[0]; !loops_around(v->block).empty();) {
    const Op* const op = owner(v);
    if (!v->def) {
      if (!op->is(Opcode::loop_) || v->block != op->blocks[1]) break;
      found.push_back({op, v->index});
      v = op->operands[v->index];
    } else if (is_write(*op)) {
      v = op->operands[0];
    } else if (op->is(Opcode::loop_)) {
      v = op->operands[v->index];
    } else if (op->is(Opcode::branch_)) {
      v = op->blocks[0]->yields()[v->index];
    } else {
      break;
    }
  }
  return found;
}

}  // namespace

Value* reaching_definition(const Op& get) {
  if (!get.is(Opcode::get_) || !get.operands[0]->type.is_tensor()) return nullptr;
  for (const auto& [loop, state] : std::views::reverse(carriers(get))) {
    DefChain versions;
    if (!versions.collect_defs(loop, state) || !versions.values.contains(get.operands[0])) continue;
    const auto independent = [&](Iteration when) {
      return std::ranges::all_of(versions.writes,
                                 [&](const Op* w) { return is_independent_of(get, *w, loop, when); });
    };
    if (independent(Iteration::later)) return loop->results[state];
    return independent(Iteration::earlier) ? loop->operands[state] : nullptr;
  }
  return nullptr;
}

}  // namespace lantern::passes
