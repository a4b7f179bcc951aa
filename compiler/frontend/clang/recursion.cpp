// Reachability over the calls of one file; files are small, so each function is searched from.
#include "lantern/compiler/frontend/clang/recursion.hpp"

#include <algorithm>

namespace lantern::frontend {

namespace {

/// Whether every way through a statement makes one of the calls.
bool always_calls(const Node* n, const std::vector<std::uint32_t>& calls) {
  if (n == nullptr) return false;
  const auto inside = [&](const Node* part) {
    return part != nullptr && std::any_of(calls.begin(), calls.end(),
                                          [&](std::uint32_t at) { return part->range.contains(at); });
  };
  switch (n->kind) {
    case NodeKind::block:
      for (const Node* child : n->children) {
        if (always_calls(child, calls)) return true;
        // A way out before the call.
        if (child->kind != NodeKind::expression) return false;
      }
      return false;
    case NodeKind::branch:
      return always_calls(n->condition, calls) ||
             (always_calls(n->body, calls) && always_calls(n->otherwise, calls));
    case NodeKind::return_exit:
      return always_calls(n->condition, calls);
    case NodeKind::expression: {
      if (!inside(n)) return false;
      for (const Node* child : n->children)
        if (inside(child)) return child->kind != NodeKind::lambda && always_calls(child->condition, calls);
      return true;
    }
    default:
      return always_calls(n->condition, calls);
  }
}

}  // namespace

void find_recursion(Unit& unit) {
  std::map<std::uint64_t, std::set<std::uint64_t>> calls;
  for (const auto& f : unit.functions)
    for (const auto& [callee, at] : f->calls) calls[f->id].insert(callee);
  for (const auto& [caller, callee] : unit.other_calls) calls[caller].insert(callee);
  for (const auto& f : unit.functions) {
    if (f->is_lambda || !f->staged) continue;
    std::set<std::uint64_t> reached;
    std::vector<std::uint64_t> open{f->id};
    while (!open.empty()) {
      const std::uint64_t at = open.back();
      open.pop_back();
      for (const std::uint64_t callee : calls[at])
        if (reached.insert(callee).second) open.push_back(callee);
    }
    f->recursive = reached.count(f->id) != 0;
    if (!f->recursive) continue;
    std::vector<std::uint32_t> own;
    for (const auto& [callee, at] : f->calls)
      if (callee == f->id) own.push_back(at);
    if (always_calls(f->body, own))
      unit.complaints.push_back(
          {own.front(),
           static_cast<std::uint32_t>(f->name.size()),
           "'" + f->name + "' calls itself on every path: neither staging nor running it would end",
           {}});
  }
}

}  // namespace lantern::frontend
