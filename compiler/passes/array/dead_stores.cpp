// Which writes of a loop nothing reads, and what their readers take in place of them.
#include "lantern/compiler/passes/array/dead_stores.hpp"

#include <algorithm>

#include "lantern/compiler/passes/analysis/def_chain.hpp"
#include "lantern/compiler/passes/analysis/index_form.hpp"
#include "lantern/compiler/passes/analysis/loops.hpp"
#include "lantern/compiler/passes/canonical/simplify.hpp"

namespace lantern::passes {

namespace {

/// Between which indices an access reaches elements in a dimension, seen from the block that an operation
/// around it is in.
std::optional<IndexRange> range_from(const Op& access, std::size_t dimension, const Op* around) {
  if (around->is(Opcode::loop_)) return range_in(access, dimension, around);
  if (around != &access) return {};
  const IndexForm index = index_form(access.operands[1 + dimension]);
  return IndexRange{index, index};
}

/// Whether elements that a loop writes and those that what follows it reads certainly differ, by one of their
/// indices.
bool differ(const Op& write, const Op* loop, const Op& get, const Op* reader) {
  for (std::size_t d = 0; d < static_cast<std::size_t>(write.operands[0]->type.rank()); ++d) {
    const auto written = range_from(write, d, loop), read = range_from(get, d, reader);
    if (written && read &&
        (never_negative(written->first - read->last - IndexForm(1), *loop) ||
         never_negative(read->first - written->last - IndexForm(1), *loop)))
      return true;
  }
  return false;
}

/// Reads of elements of a loop's result; nothing where more is asked of it than elements and sizes.
std::optional<std::vector<const Op*>> reads_after(const Uses& uses, const Value* result) {
  constexpr std::size_t most_reads = 8;
  std::vector<const Op*> gets;
  for (const ir::Use& use : uses.of(result)) {
    if (use.op->is(Opcode::dim_)) continue;
    if (!use.op->is(Opcode::get_) || use.operand != 0 || gets.size() == most_reads) return {};
    gets.push_back(use.op);
  }
  return gets;
}

/// The writes to a piece of a loop's state of what no iteration reads afterwards, nor what follows the loop.
std::vector<Op*> unread_writes(const Op* loop, std::size_t state, const std::vector<const Op*>& after) {
  constexpr std::size_t most_pairs = 1000;
  DefChain versions;
  if (!versions.collect_defs(loop, state) || versions.writes.empty()) return {};
  const Reads reads = reads_of(versions, loop);
  if (reads.others || reads.gets.size() * versions.writes.size() > most_pairs) return {};
  // A write of an index outside is an error, which stays.
  std::erase_if(versions.writes, [&](const Op* w) {
    return (!after.empty() && !in_range(*w)) ||
           !std::ranges::all_of(reads.gets, [&](const Op* get) {
      return is_independent_of(*get, *w, loop, Iteration::earlier);
    }) || !std::ranges::all_of(after, [&](const Op* get) {
      const Op* const reader = ir::holder_in(loop->parent, get);
      return reader && differ(*w, loop, *get, reader);
    });
  });
  return versions.writes;
}

}  // namespace

void dead_stores(ir::Module& module) {
  const auto run = [](ir::Function& f) {
    const Uses uses(f);
    Renaming instead;
    for (const Op* loop : loops_in(f))
      for (std::size_t s = 0; s < loop->results.size(); ++s)
        if (loop->results[s]->type.is_tensor())
          if (const auto after = reads_after(uses, loop->results[s]))
            for (const Op* write : unread_writes(loop, s, *after))
              instead[write->result()] = write->operands[0];
    ir::replace_uses(f.body, instead);
    return !instead.empty();
  };
  if (in_direct_style(module, run)) simplify(module);
}

}  // namespace lantern::passes
