// What operations on single numbers give, by the expressions of the table (ir/ops.inc): for eager evaluation,
// and for operations on constants.
#pragma once

#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <type_traits>

#include "lantern/ir/error.hpp"
#include "lantern/ir/formula.hpp"
#include "lantern/ir/graph.hpp"
#include "lantern/ir/integers.hpp"
#include "lantern/ir/op.hpp"
#include "lantern/ir/special_functions.hpp"

namespace lantern::ir {

// What the table's expressions call by the names that generated code has for it.
inline double lt_polygamma(double n, double x) { return polygamma(n, x); }
template <class T>
T lt_min(T x, T y) {
  return x != x ? y : y < x ? y : x;
}
template <class T>
T lt_max(T x, T y) {
  return x != x ? y : y > x ? y : x;
}

/// Scalar operations with a result of the operand type; the expressions are those of the table.
template <class T>
T scalar_value(Opcode op, T first, T second, T third) {
#define MATH_1(name, ...) using std::name;
#define MATH_2(name, ...) using std::name;
#include "lantern/ir/ops.inc"
  using std::fabs, std::fma;
  const WrappingOr<T> x(first), y(second), z(third);
  constexpr bool is_float = std::is_floating_point_v<T>;
  constexpr bool is_bool = std::is_same_v<T, bool>;
  const auto allowed = [](Rule rule) {
    switch (rule) {
      case Rule::arith:
        return !is_bool;
      case Rule::real:
        return is_float;
      case Rule::integer:
        return !is_float && !is_bool;
      case Rule::logic:
        return is_bool;
      default:
        return false;
    }
  };
  switch (op) {
#define SCALAR_OP(name, arity, rule, expression, ...)                     \
  case Opcode::name##_:                                                   \
    if constexpr (allowed(Rule::rule)) return static_cast<T>(expression); \
    break;
#include "lantern/ir/ops.inc"
    default:
      break;
  }
  throw InternalError("eager evaluation of " + std::string(info(op).name));
}

template <class T>
bool scalar_compare(Opcode op, T x, T y) {
  switch (op) {
    case Opcode::lt_:
      return x < y;
    case Opcode::le_:
      return x <= y;
    case Opcode::eq_:
      return x == y;
    default:
      return x != y;
  }
}

/// An operation of a formula by numbers; truth values are 1 and 0.
template <class T>
T number_value(Opcode op, T x, T y, T z);

template <class T>
T formula_value(const Formula& f, const std::array<T, 3>& operands) {
  if (f.kind == Formula::Kind::number) return static_cast<T>(f.number);
  if (f.kind == Formula::Kind::variable) return operands[static_cast<std::size_t>(f.variable - 'x')];
  std::array<T, 3> v{};
  for (std::size_t i = 0; i < f.arguments.size(); ++i) v[i] = formula_value(f.arguments[i], operands);
  return number_value(f.op, v[0], v[1], v[2]);
}

template <class T>
T number_value(Opcode op, T x, T y, T z) {
  switch (op) {
    case Opcode::select_:
      return x != 0 ? y : z;
    case Opcode::lt_:
    case Opcode::le_:
    case Opcode::eq_:
    case Opcode::ne_:
      return scalar_compare(op, x, y) ? 1 : 0;
    case Opcode::land_:
      return x != 0 && y != 0 ? 1 : 0;
    case Opcode::lor_:
      return x != 0 || y != 0 ? 1 : 0;
    case Opcode::lnot_:
      return x == 0 ? 1 : 0;
    default:
      return info(op).composed ? formula_value<T>(composed_value(op), {x, y, z}) : scalar_value(op, x, y, z);
  }
}

/// The value of an operation where it is defined: a divisor among integers is not 0.
template <class T>
T defined_value(Opcode op, T x, T y, T z) {
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>)
    if ((op == Opcode::div_ || op == Opcode::rem_) && y == -1)
      return op == Opcode::rem_ ? T(0) : scalar_value<T>(Opcode::neg_, x, y, z);
  if constexpr (std::is_floating_point_v<T>)
    if (info(op).composed) return number_value<T>(op, x, y, z);
  return scalar_value<T>(op, x, y, z);
}

/// Calls `f` with a number of the C++ type that represents a kind.
template <class F>
decltype(auto) with_kind(Kind k, F&& f) {
  switch (k) {
    case Kind::boolean:
      return f(bool{});
    case Kind::i32:
      return f(std::int32_t{});
    case Kind::i64:
      return f(std::int64_t{});
    case Kind::f32:
      return f(float{});
    default:
      return f(double{});
  }
}

/// A number as a constant holds it: in `number` if it is a floating one, else in `integer`.
struct ConstantValue {
  double number = 0;
  std::int64_t integer = 0;
};

/// What an element-wise operation on scalars, or a cast of one, gives whose operands are constants. Nothing
/// where that is not defined: integers divided by 0.
std::optional<ConstantValue> constant_value(const Op& op);

}  // namespace lantern::ir
