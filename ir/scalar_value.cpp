// Operations on constants.
#include "lantern/ir/scalar_value.hpp"

#include <cstddef>

namespace lantern::ir {

namespace {

const Op& constant(const Op& op, std::size_t i) { return *op.operands[i]->def; }

template <class T>
T operand(const Op& op, std::size_t i) {
  if (i >= op.operands.size()) return T{};
  if constexpr (std::is_floating_point_v<T>)
    return static_cast<T>(constant(op, i).number);
  else
    return static_cast<T>(constant(op, i).integer);
}

template <class T>
ConstantValue as_constant(T v) {
  if constexpr (std::is_floating_point_v<T>)
    return {static_cast<double>(v), 0};
  else
    return {0, static_cast<std::int64_t>(v)};
}

}  // namespace

std::optional<ConstantValue> constant_value(const Op& op) {
  const Rule rule = info(op.code).rule;
  if (rule == Rule::choice) {
    const Op& chosen = constant(op, operand<bool>(op, 0) ? 1 : 2);
    return ConstantValue{chosen.number, chosen.integer};
  }
  return with_kind(op.operands[0]->type.kind(), [&]<class T>(T) -> std::optional<ConstantValue> {
    const T x = operand<T>(op, 0), y = operand<T>(op, 1), z = operand<T>(op, 2);
    if (op.is(Opcode::cast_))
      return with_kind(op.result()->type.kind(), [&]<class To>(To) { return as_constant(converted<To>(x)); });
    if (rule == Rule::compare) return as_constant(scalar_compare<T>(op.code, x, y));
    if (std::is_integral_v<T> && op.is(Opcode::div_, Opcode::rem_) && y == T{}) return {};
    return as_constant(defined_value<T>(op.code, x, y, z));
  });
}

}  // namespace lantern::ir
