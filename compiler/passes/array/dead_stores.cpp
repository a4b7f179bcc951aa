// Which writes of a loop nothing reads, and what their readers take in place of them.
#include "lantern/compiler/passes/array/dead_stores.hpp"

#include <algorithm>

#include "lantern/compiler/passes/analysis/loops.hpp"
#include "lantern/compiler/passes/analysis/def_chain.hpp"
#include "lantern/compiler/passes/canonical/simplify.hpp"

namespace lantern::passes {

namespace {

/// The writes to a piece of a loop's state, which nothing uses after the loop, of what no iteration reads
/// afterwards.
std::vector<Op*> unread_writes(const Op* loop, std::size_t state) {
  constexpr std::size_t most_pairs = 1000;
  DefChain versions;
  if (!versions.collect_defs(loop, state) || versions.writes.empty()) return {};
  const Reads reads = reads_of(versions, loop);
  if (reads.others || reads.gets.size() * versions.writes.size() > most_pairs) return {};
  std::erase_if(versions.writes, [&](const Op* w) {
    return !std::ranges::all_of(reads.gets,
                                [&](const Op* get) { return is_independent_of(*get, *w, loop, Iteration::earlier); });
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
        if (loop->results[s]->type.is_tensor() && uses.count(loop->results[s]) == 0)
          for (const Op* write : unread_writes(loop, s)) instead[write->result()] = write->operands[0];
    ir::replace_uses(f.body, instead);
    return !instead.empty();
  };
  if (in_direct_style(module, run)) simplify(module);
}

}  // namespace lantern::passes
