// What a call of an external function in the graph says of itself, in Op::integer.
#pragma once

#include "lantern/ir/graph.hpp"

namespace lantern::ir {

inline constexpr std::int64_t in_threads = 1;  ///< external[threads]: calls may run in several threads at once
inline constexpr std::int64_t in_order = 2;    ///< external[ordered]: each call is made, and calls keep their order

/// True for a call that may run in several threads at the same time.
inline bool may_run_in_threads(const Op& op) { return (op.integer & in_threads) != 0; }
/// True for a call that does more than compute its results: it is made even if no result is used, and stays in
/// order with other such calls and with prints.
inline bool is_ordered_call(const Op& op) { return op.is(Opcode::external_) && (op.integer & in_order) != 0; }

}  // namespace lantern::ir
