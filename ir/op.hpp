// Operations of the IR and what is known about each: one row of ops.inc per operation.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "lantern/ir/opcode.hpp"
#include "lantern/ir/type.hpp"

namespace lantern::ir {

/// Type rule of a scalar operation (applied element by element to tensors).
enum class Rule : std::uint8_t { arith, real, integer, compare, logic, choice, special };

/// What an operation does besides computing its results.
enum class Effect : std::uint8_t {
  none,    ///< pure: may be folded, shared, moved, removed
  nested,  ///< whatever the blocks or the callee do
  cell,    ///< reads or writes an adjoint cell
  tape,    ///< pushes to or pops from a tape
  effect,  ///< may raise, or writes to standard output
};

/// How the tangent of a tensor operation follows from its operands' tangents.
enum class Linearity : std::uint8_t { none, each, joint };

/// What an operation says beside its operands, in Op::integer.
enum class Attribute : std::uint8_t {
  none,
  value,      ///< of a constant: what it is, printed as its operand
  dimension,  ///< dim[0]
  component,  ///< tree_value[1]
  lanes,      ///< lane_splat[4]
  kind,       ///< cast[f32]: of the result
  tape,       ///< push[3]; push[3, copy]: with the elements of tensors (checkpoint.hpp)
  operation,  ///< ref_acc[add_at]: by which the cell accumulates; finite[log]: what made the value
  sizes,      ///< check[2]: of the first of two shapes, among the operands (ops.inc)
  threads,    ///< external[threads], external[ordered]: how it may be called (external.hpp)
  bounds,     ///< einsum[inside]: no index of a window lies outside (notation.hpp)
  runs,       ///< call[checkpoint], call[fork 3 2]: checkpoint.hpp, team.hpp
  zeros,      ///< ref_new[minus]: a cell that begins as -0
  memory,     ///< loop[memory 65536], fun[checkpoints 10]: what its reverse may keep (checkpoint.hpp)
};

/// The attribute of a ref_new whose cell begins as -0 (passes/direct/flow.hpp).
inline constexpr std::int64_t as_minus_zero = 1;

struct OpInfo {
  std::string_view name;
  int arity;                     ///< -1: any number
  Rule rule;
  Effect effect;
  std::string_view expression;   ///< scalar operations: the value in terms of x, y, z and T; of composed ones a formula
  std::vector<std::string_view> formulas;  ///< partial derivatives (scalar) or vector-Jacobian products (tensor)
  bool elementwise = false;      ///< a SCALAR_OP or COMPOSED_OP
  Linearity linearity = Linearity::none;
  std::string_view notation = {};  ///< an INDEX_OP: what it computes (notation.hpp); "text": each has its own
  bool composed = false;  ///< a COMPOSED_OP
  Attribute attribute = Attribute::none;

  bool in_notation() const { return !notation.empty(); }
};

/// Sums of products without a name of their own: their notation is their text.
constexpr bool is_einsum(Opcode op) { return op == Opcode::einsum_ || op == Opcode::add_einsum_; }

/// True where an operation carries a text that it cannot do without: a message, a label, an index notation, a
/// prototype.
constexpr bool has_text(Opcode op) {
  return op == Opcode::check_ || op == Opcode::print_ || op == Opcode::print_adjoint_ || op == Opcode::external_ ||
         is_einsum(op);
}

/// True where an operation may carry a text: a notation, or whose result it is when it fails.
constexpr bool may_have_text(Opcode op) {
  return has_text(op) || op == Opcode::ref_acc_ || op == Opcode::argmax_;
}

/// The row of an operation.
const OpInfo& info(Opcode op);
/// The operation printed with this name; Opcode::count_ if there is none.
Opcode opcode_named(std::string_view name);

/// The formula for the derivative with respect to operand `i` of `n`; "-" where the operand carries none.
std::string_view derivative_formula(Opcode op, std::size_t i, std::size_t n);

/// Result type of a pure operation, or an Error naming operands and what was expected.
/// `attribute` is the integer attribute (dimension for dim, component for tree_value, kind for cast), `text` the
/// notation of einsum.
Type infer_type(Opcode op, std::span<const Type> operands, std::int64_t attribute,
                std::span<const std::int64_t> dims = {}, const char* text = nullptr);

}  // namespace lantern::ir
