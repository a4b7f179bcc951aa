// Views of tensors, and the operations that update what they are views of.
#pragma once

#include "lantern/ir/graph.hpp"

namespace lantern::passes {

/// The tensor whose memory a view has: that of the view, or the tensor itself.
inline const ir::Value* viewed(const ir::Value* v) {
  while (v->def && v->def->is(ir::Opcode::reshape_)) v = v->def->operands[0];
  return v;
}

/// True for operations that may change elements of a tensor among their operands; calls are not known.
inline bool updates(const ir::Op& op) {
  return ir::is_write(op) ||
         op.is(ir::Opcode::loop_, ir::Opcode::add_einsum_, ir::Opcode::add_matmul_, ir::Opcode::gemm_);
}

}  // namespace lantern::passes
