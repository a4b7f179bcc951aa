// Which reads find what was there before the loop, and whether the loop writes most of a tensor.
#include "lantern/compiler/passes/array/node_splitting.hpp"

#include <algorithm>

#include "lantern/compiler/passes/analysis/index_form.hpp"
#include "lantern/compiler/passes/analysis/loops.hpp"
#include "lantern/compiler/passes/analysis/def_chain.hpp"
#include "lantern/compiler/passes/analysis/instance_count.hpp"

namespace lantern::passes {

namespace {

/// True where a write reaches a good part of a tensor's elements.
bool writes_most(const Value* tensor, const Op& write, const Op* loop) {
  return footprint_covers(write, loop, element_count(tensor));
}

void split(Op* loop, std::size_t state) {
  constexpr std::size_t most_pairs = 400;
  Value* const start = loop->operands[state];
  if (!start->type.is_tensor()) return;
  DefChain versions;
  if (!versions.collect_defs(loop, state) || versions.writes.empty()) return;
  const Reads reads = reads_of(versions, loop);
  if (reads.others || reads.gets.empty() || reads.gets.size() * versions.writes.size() > most_pairs) return;

  std::vector<const Op*> all(versions.writes.begin(), versions.writes.end());
  std::vector<const Op*> own = all, before;
  all.insert(all.end(), reads.gets.begin(), reads.gets.end());
  if (no_loop_carried_dependence(all, loop)) return;  // iterations read nothing that another one writes
  for (const Op* get : reads.gets) {
    const bool unwritten = std::ranges::all_of(
        versions.writes, [&](const Op* w) { return is_independent_of(*get, *w, loop, Iteration::earlier); });
    (unwritten ? before : own).push_back(get);
  }
  if (!no_loop_carried_dependence(own, loop) ||
      std::ranges::none_of(versions.writes, [&](const Op* w) { return writes_most(start, *w, loop); }))
    return;
  for (const Op* get : before) const_cast<Op*>(get)->operands[0] = start;
}

}  // namespace

void node_splitting(Op* loop) {
  std::vector<Op*> loops = loops_in(loop->blocks[1]);
  loops.insert(loops.begin(), loop);
  for (Op* l : loops)  // outer ones first: a copy for all iterations of the loops inside
    for (std::size_t i = 0; i < l->operands.size(); ++i)
      if (l->integer == 0 && counter_of(l)) split(l, i);
}

}  // namespace lantern::passes
