// Reachability in the call graph.
#include "lantern/compiler/driver/recursion.hpp"

#include <algorithm>
#include <vector>

namespace lantern::driver {

bool has_recursion(const ir::Module& module) {
  for (const ir::Function* f : module.functions()) {
    std::vector<const ir::Function*> todo{f}, seen;
    while (!todo.empty()) {
      const ir::Function* at = todo.back();
      todo.pop_back();
      bool found = false;
      ir::walk(at->body, [&](const ir::Op* op) {
        found |= op->is(ir::Opcode::closure_) || op->is(ir::Opcode::fun_) || op->callee == f;
        if (op->callee && std::find(seen.begin(), seen.end(), op->callee) == seen.end()) {
          seen.push_back(op->callee);
          todo.push_back(op->callee);
        }
      });
      if (found) return true;
    }
  }
  return false;
}

}  // namespace lantern::driver
