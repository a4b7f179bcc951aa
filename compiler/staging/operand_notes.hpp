// Where the values that an error is about come from.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lantern/compiler/staging/staging.hpp"
#include "lantern/ir/error.hpp"

namespace lantern::core {

/// For each operand a line of its own: "\nmodel.cpp:4:9: note: the left operand is f64[2,3], made by 'matmul'
/// here". The place of an argument is that of its function, the place of a literal that of the operation.
/// Nothing for operands that have no place.
std::string operand_notes(Staging& staging, const Operation& op, std::span<const Datum> operands);

/// The same for values of the graph, under names of the caller's.
using NamedValues = std::vector<std::pair<std::string, const ir::Value*>>;
std::string value_notes(Staging& staging, const NamedValues& values, const Location& otherwise);

/// What the function returns; the notes about the values are added to the Error that it raises.
template <class F>
auto with_notes(Staging& staging, const NamedValues& values, const Location& loc, const F& f) {
  try {
    return f();
  } catch (const Error& e) {
    throw Error(e.what() + value_notes(staging, values, loc));
  }
}

}  // namespace lantern::core
