// C++ differs from C in spelling only; the target says how.
#include "lantern/codegen/cpp/print_cpp.hpp"

#include <algorithm>
#include <unordered_map>

#include "lantern/codegen/target.hpp"
#include "lantern/codegen/unit.hpp"

namespace lantern::codegen {

int continuation_depth(const ir::Function& function) {
  std::unordered_map<const ir::Block*, int> depth{{function.body, 0}};
  int deepest = 0;
  ir::walk(function.body, [&](const ir::Op* op) {
    if (op->blocks.empty()) return;
    const int inside = depth.at(op->parent) + (op->is(ir::Opcode::fun_) ? 1 : 0);
    for (const ir::Block* b : op->blocks) depth.emplace(b, inside);
    deepest = std::max(deepest, inside);
  });
  return deepest;
}

std::string print_cpp(const ir::Module& module, const PrintOptions& options) {
  const CppTarget target;
  return Unit(module, options, target).print();
}

}  // namespace lantern::codegen
