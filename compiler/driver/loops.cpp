// Whether calls work through loops.
#include "lantern/compiler/driver/loops.hpp"

#include <algorithm>

#include "lantern/ir/recursion.hpp"

namespace lantern::core::driver {

namespace {

bool computes_with_tensors(const ir::Op& op) {
  const auto tensor = [](const ir::Value* v) { return v->type.is_tensor(); };
  switch (op.code) {
    case ir::Opcode::add_slice_:
    case ir::Opcode::add_take_:
      return true;
    default:
      return ir::info(op.code).in_notation() ||
             (ir::info(op.code).elementwise && std::ranges::any_of(op.operands, tensor));
  }
}

}  // namespace

bool has_loops(const ir::Module& module) {
  bool found = ir::has_recursion(module);
  for (const ir::Function* f : module.functions())
    ir::walk(f->body, [&](const ir::Op* op) { found |= op->is(ir::Opcode::loop_) || computes_with_tensors(*op); });
  return found;
}

}  // namespace lantern::core::driver
