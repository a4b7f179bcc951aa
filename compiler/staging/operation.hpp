// The effect interface of numbers: performing an operation, and the modes that give it meaning.
#pragma once

#include <initializer_list>
#include <source_location>
#include <span>
#include <string>
#include <string_view>

#include "lantern/compiler/staging/mode.hpp"
#include "lantern/ir/location.hpp"
#include "lantern/ir/opcode.hpp"

namespace lantern::core {

using ir::Location;
using ir::Opcode;

inline Location here(const std::source_location& l) { return {l.file_name(), l.line(), l.column()}; }

/// An operation to perform: its row in the table, attribute and place.
struct Operation {
  Opcode code = Opcode::count_;
  std::int64_t attribute = 0;
  Location loc;
  std::span<const std::int64_t> dims{};  ///< static sizes for fill
  const char* text = nullptr;            ///< label of print_adjoint, notation of einsum; lives as long as the program
};

/// Performs an operation: dispatches to the mode in charge, else emits a node when an operand is
/// staged, else computes at once. Raises Error with the place when operand types do not fit.
Datum perform(const Operation& op, std::span<const Datum> operands);
inline Datum perform(const Operation& op, std::initializer_list<Datum> operands) {
  return perform(op, std::span<const Datum>(operands.begin(), operands.size()));
}

/// A binary element-wise operation with broadcasting: a scalar or lower-rank operand is repeated along the
/// leading dimensions of the other.
Datum perform_broadcast(const Operation& op, const Datum& a, const Datum& b);
/// The same of an operator that cannot note its place: that of an operand which the program computes.
Datum compare_broadcast(Opcode code, const Datum& a, const Datum& b);

/// `a` repeated along dimensions in which it has the size 1 and `like` another, and along leading dimensions that it
/// has not: into the shape of `like`, where it has no dimensions that are larger.
Datum broadcast_like(const Datum& a, const Datum& like, const Location& loc);

namespace detail {
/// A shift of integers, element by element. Of `b` the lowest bits count: those that say less than the number of
/// bits of `a`.
Datum shifted(Opcode code, const Datum& a, const Datum& b, const Location& loc);
}  // namespace detail

/// The eager bottom level: computes at once. Operands may be consumed (moved from) to work in place.
Datum evaluate(const Operation& op, std::span<Datum> operands);

/// Prints "label = value": at once, or whenever the graph under construction runs. Of a value under modes
/// the innermost primal. The label outlives the program. Error: an empty value, a tree.
void print(const Datum& d, const char* label, const Location& loc);

/// A copy of the text that lives as long as the program.
const char* label_of(std::string_view text);
/// The same for literals of one scalar kind, for which the operation is known to be defined.
Datum evaluate_literals(const Operation& op, std::span<const Datum> operands);
/// The value of a scalar operation whose operands and result are numbers.
double evaluate_number(Opcode code, double x, double y, double z);

/// The size of dimension k of a tensor, known without running the program where the type says it.
Datum dimension_of(const Datum& t, std::int64_t k, const Location& loc);

/// A zero of the shape of `like`, one level below every tag.
Datum zeros_like(const Datum& like, const Location& loc);

/// Prefixes a message with the place, if known: "model.cpp:12: message".
[[noreturn]] void raise_at(const Location& loc, const std::string& message);

}  // namespace lantern::core
