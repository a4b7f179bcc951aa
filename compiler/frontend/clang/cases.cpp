// Falling through is resolved here: a statement may belong to several cases.
#include "lantern/compiler/frontend/clang/cases.hpp"

namespace lantern::frontend {

Statements case_statements(const Node* selection, std::size_t first) {
  Statements all;
  bool ended = false;
  for (std::size_t g = first; g < selection->groups.size() && !ended; ++g)
    for (const Node* n : selection->groups[g].statements) {
      ended = n->kind == NodeKind::break_exit || !falls(n);
      if (n->kind != NodeKind::break_exit) all.push_back(n);
      if (ended) break;
    }
  // `case 1: { ...; break; }`: the block's own last break ends the case.
  if (all.size() == 1 && all[0]->kind == NodeKind::block) {
    all = statements(all[0]);
    if (!all.empty() && all.back()->kind == NodeKind::break_exit) all.pop_back();
  }
  return all;
}

}  // namespace lantern::frontend
