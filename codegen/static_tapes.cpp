// Which tapes have a bound. See static_tapes.hpp.
#include "lantern/codegen/static_tapes.hpp"

#include <algorithm>
#include <map>
#include <optional>

#include "lantern/codegen/c/prelude.hpp"
#include "lantern/compiler/passes/analysis/loops.hpp"

namespace lantern::codegen {

using ir::Block;

namespace {

constexpr std::int64_t tape_bytes = 4096, function_bytes = 16384;

std::int64_t bytes_of(const ir::Type& type) { return taped_bytes(type); }

/// The blocks around an operation, from the function's body to its own.
std::vector<const Block*> blocks_around(const Op* op) {
  std::vector<const Block*> all;
  for (const Block* at = op->parent; at; at = at->parent ? at->parent->parent : nullptr) all.push_back(at);
  std::ranges::reverse(all);
  return all;
}

/// How often an operation runs, at most, in one run of a block around it; nothing where that has no bound.
std::optional<std::int64_t> runs(const Op* op, const Block* in) {
  std::int64_t times = 1;
  for (const Block* at = op->parent; at != in; at = at->parent->parent) {
    const Op* const around = at->parent;
    if (around->is(Opcode::branch_)) continue;
    if (!around->is(Opcode::loop_) || at != around->blocks[1]) return {};
    const auto n = passes::known_trip_counts(around);
    if (!n || *n < 0 || *n > tape_bytes) return {};
    times *= *n;
    if (times > tape_bytes) return {};
  }
  return times;
}

/// A tape with all its uses, or nothing where it has no bound.
std::optional<std::pair<const Block*, StaticTape>> bounded(std::int64_t number, const std::vector<const Op*>& uses) {
  const ir::Type& type = taped_values(*uses.front()).front()->type;
  if (!type.is_scalar()) return {};
  std::vector<const Block*> common = blocks_around(uses.front());
  for (const Op* use : uses) {
    if (std::ranges::any_of(taped_values(*use), [&](const Value* v) { return v->type != type; })) return {};
    const std::vector<const Block*> blocks = blocks_around(use);
    const auto ends = std::ranges::mismatch(common, blocks);
    common.erase(ends.in1, common.end());
  }
  const Block* const block = common.back();
  std::int64_t pushed = 0, popped = 0;
  std::ptrdiff_t last_push = -1, first_pop = static_cast<std::ptrdiff_t>(block->ops.size());
  for (const Op* use : uses) {
    const auto times = runs(use, block);
    if (!times) return {};
    const std::int64_t values = *times * static_cast<std::int64_t>(taped_values(*use).size());
    const auto at = std::ranges::find(block->ops, ir::holder_in(block, use)) - block->ops.begin();
    if (use->is(Opcode::push_)) {
      pushed += values;
      last_push = std::max(last_push, at);
    } else {
      popped += values;
      first_pop = std::min(first_pop, at);
    }
  }
  // What a run of the block leaves for the next one is no business of one run.
  if (last_push >= first_pop || (pushed != popped && block->parent)) return {};
  if (pushed == 0 || pushed * bytes_of(type) > tape_bytes) return {};
  return std::pair{block, StaticTape{number, pushed, uses.front()}};
}

}  // namespace

std::unordered_map<const Block*, std::vector<StaticTape>> static_tapes(const ir::Function& function,
                                                                       const Escapes& escapes) {
  std::unordered_map<const Block*, std::vector<StaticTape>> found;
  std::map<std::int64_t, std::vector<const Op*>> uses;
  ir::walk(function.body, [&](const Op* op) {
    if (ir::is_on_tape(*op)) uses[op->integer].push_back(op);
  });
  if (uses.empty() || function.cps || ir::callees(function.body).contains(&function)) return found;
  std::int64_t total = 0;
  for (const auto& [number, all] : uses) {
    if (escapes.tape_uses(number) != static_cast<int>(all.size())) continue;
    const auto tape = bounded(number, all);
    if (!tape) continue;
    total += tape->second.values * bytes_of(taped_values(*all.front()).front()->type);
    if (total > function_bytes) break;
    found[tape->first].push_back(tape->second);
  }
  return found;
}

}  // namespace lantern::codegen
