// What a call of an external function in the graph says of itself, in Op::integer.
#pragma once

#include <string_view>

#include "lantern/ir/graph.hpp"

namespace lantern::ir {

inline constexpr std::int64_t in_threads = 1;  ///< external[threads]: calls may run in several threads at once
inline constexpr std::int64_t in_order = 2;    ///< external[ordered]: each call is made, and calls keep their order

/// True for a call that may run in several threads at the same time.
inline bool may_run_in_threads(const Op& op) { return (op.integer & in_threads) != 0; }
/// True for a call that does more than compute its results: it is made even if no result is used, and stays in
/// order with other such calls and with prints.
inline bool is_ordered_call(const Op& op) { return op.is(Opcode::external_) && (op.integer & in_order) != 0; }

/// True for a call that gives the same in the whole program: the rank and the size of a communicator.
inline bool is_constant_call(const Op& op) {
  const std::string_view text = op.text ? op.text : "";
  return text.starts_with("int64_t distributed_rank(") || text.starts_with("int64_t distributed_size(");
}

/// True for the one of these that is never 0.
inline bool is_count_of_ranks(const Op& op) {
  return op.is(Opcode::external_) && op.text && std::string_view(op.text).starts_with("int64_t distributed_size(");
}

/// True for a call of an operation between processes (runtime/distributed/kernels.h).
inline bool communicates(const Op& op) {
  if (!is_ordered_call(op) || !op.text) return false;
  const std::string_view text = op.text;
  return text.starts_with("void distributed_") || text.starts_with("int64_t distributed_");
}
/// The operation of an exchange (runtime/distributed/kernels.h) whose operands are communicator, operation, reduction, a, b,
/// n, x, y; -1 for other calls, and where it is not known.
inline std::int64_t exchange_of(const Op& op) {
  if (!communicates(op) || !std::string_view(op.text).starts_with("void distributed_exchange_")) return -1;
  const Op* const operation = op.operands[1]->def;
  return operation && operation->is(Opcode::constant_) ? operation->integer : -1;
}
/// The last one in which all ranks take part, but for scans: all_to_all; and the one between two ranks.
inline constexpr std::int64_t last_exchange_of_all = 7, exchange_of_two = 12;

/// True for one that writes its last operand from end to end, and reads nothing of it.
inline bool writes_last(const Op& op) {
  if (!communicates(op) || op.operands.empty() || !op.operands.back()->type.is_tensor()) return false;
  const std::string_view text = op.text;
  return text.starts_with("void distributed_") && !text.starts_with("void distributed_dims");  // which completes dimensions
}

}  // namespace lantern::ir
