#include "lantern/compiler/passes/analysis/recurrence.hpp"

#include <algorithm>
#include <unordered_set>
#include <vector>

#include "lantern/compiler/passes/analysis/index_form.hpp"

namespace lantern::passes {

namespace {

/// True for an element that lies at the same distance, which is not zero, from another in every iteration.
bool is_at_constant_distance(const Op& read, const Op& write) {
  const auto rank = static_cast<std::size_t>(write.operands[0]->type.rank());
  if (!(read.operands[0]->type == write.operands[0]->type)) return false;
  bool elsewhere = false;
  for (std::size_t d = 1; d <= rank; ++d) {
    const auto distance = (index_form(write.operands[d]) - index_form(read.operands[d])).number();
    if (!distance) return false;
    elsewhere |= *distance != 0;
  }
  return elsewhere;
}

}  // namespace

bool is_recurrence(const Op& op) {
  const Block* const body = op.parent;
  const Op* const loop = body->parent;
  if (!loop || !loop->is(Opcode::loop_) || body != loop->blocks[1]) return false;

  // Where the result goes in the same iteration.
  std::unordered_set<const Value*> reached{op.result()};
  std::unordered_set<const Value*> carried;
  std::vector<const Op*> writes;
  const auto start = std::ranges::find(body->ops, &op);
  for (auto at = start + 1; at != body->ops.end(); ++at) {
    const Op& next = **at;
    const auto is_reached = [&](const Value* v) { return reached.contains(v); };
    if (next.is(Opcode::yield_)) {
      for (std::size_t i = 0; i < next.operands.size(); ++i)
        if (is_reached(next.operands[i])) carried.insert(body->params[i]);
    } else if (next.is(Opcode::set_)) {
      if (is_reached(next.operands.back())) writes.push_back(&next);
    } else if (next.blocks.empty() && std::ranges::any_of(next.operands, is_reached)) {
      reached.insert(next.results.begin(), next.results.end());
    }
  }
  if (carried.empty() && writes.empty()) return false;

  // What it is made of.
  std::unordered_set<const Value*> seen;
  std::vector<const Value*> work(op.operands.begin(), op.operands.end());
  while (!work.empty()) {
    const Value* const v = work.back();
    work.pop_back();
    if (!seen.insert(v).second || v->block != body) continue;
    if (!v->def) {
      if (carried.contains(v)) return true;
    } else if (v->def->is(Opcode::get_)) {
      for (const Op* write : writes)
        if (is_at_constant_distance(*v->def, *write)) return true;
    } else if (v->def->blocks.empty()) {
      work.insert(work.end(), v->def->operands.begin(), v->def->operands.end());
    }
  }
  return false;
}

}  // namespace lantern::passes
