// How the iterations of a parallel loop, which may run in any order and at once, come together.
//
// These are the results of an array operation over an index space: `element` is an element of a new array or of a
// window of one there is, `sum` of a tensor is accumulation at any place (Paszke et al., Getting to the point, ICFP
// 2021, has it as an effect), and the others are reductions.
#pragma once

#include <cstdint>
#include <string_view>

#include "lantern/ir/opcode.hpp"
#include "lantern/ir/type.hpp"

namespace lantern::ir {

/// What a piece of the loop's state is to the iterations.
enum class Combine : std::uint8_t {
  none,     ///< the loop is not parallel: iterations run in order
  index,    ///< what the loop counts by, by ones
  counter,  ///< an integer that counts with it
  element,  ///< a tensor of which each iteration reads and writes elements that no other does, or all only read
  sum,      ///< a number, or a tensor, that is only added to
  max,      ///< the largest number so far
  min,      ///< the smallest
  all,      ///< whether all truths hold so far
  any,      ///< whether one does
};

/// True for state that iterations come to by an operation, one with another: a sum, the largest, and such.
constexpr bool is_reduction(Combine c) { return c >= Combine::sum; }
/// True for state that tells which iteration it is.
constexpr bool counts(Combine c) { return c == Combine::index || c == Combine::counter; }
/// The operation by which two values of this type become one in a reduction.
Opcode reduction(Combine c, const Type& type);
/// "sum": as it is printed; empty for none.
std::string_view name(Combine c);
/// The one that is printed so; none for any other word.
Combine combine_named(std::string_view word);

}  // namespace lantern::ir
