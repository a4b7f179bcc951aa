// What flow asks of single operations and answers: see flow.hpp.
#pragma once

#include <algorithm>
#include <optional>
#include <span>

#include "lantern/compiler/passes/support/rewrite.hpp"
#include "lantern/ir/notation.hpp"
#include "lantern/ir/shape.hpp"

namespace lantern::passes::flow {

using ir::Block;
using ir::Op;
using ir::Opcode;
using ir::Value;

/// Whether something is added to a cell. open: not known yet; entered: unless a loop ends before.
enum class Flow : std::uint8_t { open, never, always, entered, sometimes };

/// What holds of a cell where both facts are true.
inline Flow joined(Flow a, Flow b) {
  if (a == Flow::open || a == b) return b;
  if (b == Flow::open) return a;
  return (a == Flow::always && b == Flow::entered) || (a == Flow::entered && b == Flow::always) ? Flow::entered
                                                                                          : Flow::sometimes;
}
/// Of a part that runs unless a loop ends before.
inline Flow unless_ended(Flow iteration) { return iteration == Flow::always ? Flow::entered : iteration; }
inline bool conditional(Flow f) { return f == Flow::entered || f == Flow::sometimes; }

inline bool is_cell(const Value* v) { return v->type.is_ref(); }
inline bool adds(const Op& op) { return op.is(Opcode::ref_add_, Opcode::ref_acc_); }

/// What an operation does to an adjoint.
enum class Kind : std::uint8_t { keeps_zeros, product, moves, sums, other };
/// The operand whose elements an operation in index notation moves or sums, and adds to nothing else; none of others.
inline std::optional<std::size_t> only_factor(const Op& op, const ir::Notation& n) {
  if (n.factors() != 1 || (n.accumulates && !is_zero(op.operands[0]))) return {};
  std::size_t i = 0;
  while (!n.is_factor(i)) ++i;
  return i;
}
inline Kind kind_of(const Op& op) {
  switch (op.code) {
    case Opcode::broadcast_:
      if (op.operands[0]->type.rank() == op.result()->type.rank()) return Kind::keeps_zeros;
      return op.operands[0]->type.is_tensor() ? Kind::moves : Kind::other;
    case Opcode::reduce_to_:
      return op.operands[0]->type.rank() == op.result()->type.rank() ? Kind::keeps_zeros : Kind::sums;
    case Opcode::reshape_:
    case Opcode::transpose_:
    case Opcode::get_:
    case Opcode::take_:
    case Opcode::slice_:
      return Kind::moves;
    case Opcode::neg_:
    case Opcode::add_:
    case Opcode::sub_:
    case Opcode::select_:
    case Opcode::cast_:
    case Opcode::cast_like_:
    case Opcode::ref_get_:
      return Kind::keeps_zeros;
    default: {
      if (ir::info(op.code).elementwise) return Kind::product;
      const std::optional<ir::Notation> n = ir::concrete_notation(op);
      if (!n || op.is(Opcode::ref_acc_) || !only_factor(op, *n)) return Kind::other;
      return ir::moves_elements(*n) ? Kind::moves : Kind::sums;
    }
  }
}

/// The operation that runs the rest of the program: what follows it in its block is the backward part. The number of
/// operations where there is none.
inline std::size_t end_of(const Block& block) {
  const auto ends = [](const Op* op) {
    if (op->is(Opcode::jump_, Opcode::halt_)) return true;
    if (op->is(Opcode::call_)) return op->callee->cps;
    return op->is(Opcode::branch_) && op->results.empty() && end_of(*op->blocks[0]) < op->blocks[0]->ops.size();
  };
  return static_cast<std::size_t>(std::ranges::find_if(block.ops, ends) - block.ops.begin());
}

/// The operands that an operation computes with: of others it asks the shape or the type.
inline std::span<Value* const> data_of(const Op& op) {
  const std::span<Value* const> all(op.operands);
  if (op.is(Opcode::broadcast_, Opcode::reduce_to_, Opcode::reshape_, Opcode::cast_like_))
    return all.first(1);
  if (op.is(Opcode::zeros_like_, Opcode::dim_)) return {};
  if (!ir::is_einsum(op.code)) return all;
  const auto only = only_factor(op, *ir::concrete_notation(op));
  return only ? all.subspan(*only, 1) : all;
}

}  // namespace lantern::passes::flow
