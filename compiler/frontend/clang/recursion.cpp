// Whether a function that calls itself may end without.
#include "lantern/compiler/frontend/clang/recursion.hpp"

#include <algorithm>

namespace lantern::frontend {

namespace {

/// Ways through a statement on which none of the calls is made.
struct Ways {
  bool on = false;    ///< to what follows
  bool away = false;  ///< out of the function or loop
};

class CallFree {
 public:
  explicit CallFree(const std::vector<std::uint32_t>& calls) : calls_(calls) {}

  Ways through(const Node* n) const {
    if (n == nullptr) return {true, false};
    switch (n->kind) {
      case NodeKind::block: {
        Ways ways{true, false};
        for (const Node* child : n->children) {
          if (!ways.on) break;
          const Ways more = through(child);
          ways = {more.on, ways.away || more.away};
        }
        return ways;
      }
      case NodeKind::branch: {
        if (!computed_without(n->condition)) return {};
        const Ways a = through(n->body), b = through(n->otherwise);
        return {a.on || b.on, a.away || b.away};
      }
      case NodeKind::break_exit:
      case NodeKind::continue_exit:
        return {false, true};
      case NodeKind::return_exit:
        return {false, computed_without(n->condition)};
      case NodeKind::expression:
        return {computed_without(n), false};
      case NodeKind::obstacle:
        return {true, true};
      default:  // loops and switches, whose bodies may not run
        return computed_without(n->condition) ? Ways{true, true} : Ways{};
    }
  }

 private:
  /// Whether an expression may be computed without a call: there is none, or it is in a part that may not
  /// run.
  bool computed_without(const Node* n) const {
    if (n == nullptr) return true;
    const auto inside = [&](const Node* part) {
      return std::any_of(calls_.begin(), calls_.end(),
                         [&](std::uint32_t at) { return part->range.contains(at); });
    };
    if (!inside(n)) return true;
    for (const Node* child : n->children)
      if (inside(child)) return child->kind == NodeKind::lambda || computed_without(child->condition);
    return false;
  }
  const std::vector<std::uint32_t>& calls_;
};

}  // namespace

void find_recursion(Unit& unit) {
  for (const auto& f : unit.functions) {
    if (f->is_lambda || !f->staged) f->recursive = false;
    if (!f->recursive) continue;
    std::vector<std::uint32_t> own;
    for (const auto& [callee, at] : f->calls)
      if (callee == f->id) own.push_back(at);
    const Ways ways = CallFree(own).through(f->body);
    if (!own.empty() && !ways.on && !ways.away)
      unit.complaints.push_back(
          {own.front(),
           static_cast<std::uint32_t>(f->name.size()),
           "'" + f->name + "' calls itself on every path: neither staging nor running it would end",
           {}});
  }
}

}  // namespace lantern::frontend
