// Rules of shapes, those of sums of products from their notation.
#include "lantern/ir/shape.hpp"

#include <algorithm>

#include "lantern/ir/notation.hpp"

namespace lantern::ir {

bool updates_first(const Op& op) {
  if (op.is(Opcode::set_, Opcode::add_at_, Opcode::lane_set_, Opcode::lane_add_at_, Opcode::add_take_, Opcode::add_slice_,
            Opcode::gemm_, Opcode::ref_acc_))
    return true;
  const Notation* n = notation_of(op.code, op.text);
  return n && n->accumulates;
}

bool is_pointwise(const Op& op) {
  if (op.results.size() != 1 || !op.result()->type.is_tensor()) return false;
  if (op.is(Opcode::select_)) return op.operands[0]->type.is_tensor();  // else it is one of two tensors, whole
  return info(op.code).elementwise || op.is(Opcode::cast_, Opcode::cast_like_);
}

std::optional<Notation> concrete_notation(const Op& op) {
  const bool cell = op.is(Opcode::ref_acc_);
  const Notation* n = notation_of(cell ? accumulated_by(op) : op.code, op.text);
  if (!n) return {};
  std::vector<Type> types;
  for (const Value* v : op.operands) types.push_back(v->type.is_ref() ? v->type.content() : v->type);
  return concrete(*n, types);
}

Value* shaped_like(const Op& op) {
  if (updates_first(op)) return op.is(Opcode::ref_acc_) ? nullptr : op.operands[0];
  if (op.is(Opcode::cast_, Opcode::cast_like_, Opcode::zeros_like_, Opcode::copy_, Opcode::stop_gradient_,
            Opcode::print_adjoint_))
    return op.operands[0];
  if (op.is(Opcode::reshape_)) return op.operands[1];
  if (info(op.code).elementwise) {
    const auto tensor = std::ranges::find_if(op.operands, [](const Value* v) { return v->type.is_tensor(); });
    return tensor == op.operands.end() ? nullptr : *tensor;
  }
  if (!info(op.code).in_notation()) return nullptr;
  const Notation n = *concrete_notation(op);
  for (std::size_t i = 0; i < n.operands.size(); ++i)
    if (n.operands[i].at == n.result && op.operands[i]->type.is_tensor()) return op.operands[i];
  return nullptr;
}

bool only_shape(const Op& op, std::size_t i) {
  if (op.is(Opcode::dim_, Opcode::zeros_like_, Opcode::ref_new_)) return true;
  if (op.is(Opcode::cast_like_, Opcode::reshape_)) return i == 1;
  const Notation* n = notation_of(op.code, op.text);
  return n && i < n->operands.size() && n->operands[i].shape;
}

std::optional<Size> size_source(const Op& op, std::size_t d) {
  if (Value* const like = shaped_like(op); like && like->type.is_tensor())
    return Size{like, static_cast<int>(d)};
  switch (op.code) {
    case Opcode::fill_:
      return Size{op.operands[1 + d], -1};
    case Opcode::take_:
      return Size{op.operands[0], static_cast<int>(d) + 1};
    case Opcode::slice_:
    case Opcode::concat_:
      if (d > 0) return Size{op.operands[0], static_cast<int>(d)};
      return {};
    default:
      break;
  }
  if (!info(op.code).in_notation()) return {};
  const auto from = result_size(*concrete_notation(op), d);
  if (!from) return {};
  return Size{op.operands[from->operand], from->dimension};
}

}  // namespace lantern::ir
