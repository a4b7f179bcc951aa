// Cycles of the call graph: its strongly connected components (Tarjan, SIAM J. Comput. 1, 1972).
#include "lantern/ir/recursion.hpp"

#include <algorithm>
#include <unordered_map>
#include <vector>

namespace lantern::ir {

namespace {

class Components {
 public:
  explicit Components(const Module& module) {
    for (const Function* f : module.functions())
      if (!at_.contains(f)) from(f);
  }
  std::unordered_set<const Function*> recursive;

 private:
  struct Visit {
    const Function* function;
    std::vector<const Function*> callees;
    std::size_t next = 0;
  };
  struct Node {
    std::size_t number, lowest;
    bool open = true;
  };

  void from(const Function* root) {
    enter(root);
    while (!visits_.empty()) {
      Visit& top = visits_.back();
      if (top.next == top.callees.size()) {
        leave();
        continue;
      }
      const Function* const callee = top.callees[top.next++];
      const auto found = at_.find(callee);
      if (callee == top.function) recursive.insert(callee);
      if (found == at_.end())
        enter(callee);
      else if (found->second.open)
        lower(top.function, found->second.number);
    }
  }
  void enter(const Function* f) {
    at_.emplace(f, Node{at_.size(), at_.size()});
    open_.push_back(f);
    visits_.push_back({f, {}});
    walk(f->body, [&](const Op* op) {
      if (op->callee) visits_.back().callees.push_back(op->callee);
    });
  }
  void leave() {
    const Function* const f = visits_.back().function;
    visits_.pop_back();
    const Node node = at_.at(f);
    if (!visits_.empty()) lower(visits_.back().function, node.lowest);
    if (node.lowest != node.number) return;
    const bool cycle = open_.back() != f;
    for (bool more = true; more;) {
      const Function* const member = open_.back();
      open_.pop_back();
      at_.at(member).open = false;
      if (cycle) recursive.insert(member);
      more = member != f;
    }
  }
  void lower(const Function* f, std::size_t to) {
    Node& node = at_.at(f);
    node.lowest = std::min(node.lowest, to);
  }

  std::unordered_map<const Function*, Node> at_;
  std::vector<const Function*> open_;
  std::vector<Visit> visits_;
};

}  // namespace

std::unordered_set<const Function*> recursive_functions(const Module& module) {
  return Components(module).recursive;
}

bool has_recursion(const Module& module) {
  for (const Function* f : module.functions()) {
    bool nests = false;
    walk(f->body, [&](const Op* op) { nests |= op->is(Opcode::closure_, Opcode::fun_); });
    if (nests) return true;
  }
  return !recursive_functions(module).empty();
}

std::string too_deep(const std::string& function) {
  return "the recursion of '" + function +
         "' does not end, or needs more stack than it may have: 4 GB, half of the memory, or the system's "
         "limit";
}

}  // namespace lantern::ir
