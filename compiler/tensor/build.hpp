// What the tensor functions are made of: operations, loops and comprehensions over values of any kind.
//
// A function of tensors that is no row of the table is a program over them, as a user would write it: loops
// over Reps of which nothing but the ranks is known while the C++ is compiled. So its derivatives, its code on
// every target and its vectors are those of such a program.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "lantern/compiler/staging/control_flow.hpp"
#include "lantern/compiler/staging/einsum.hpp"

namespace lantern::core::detail {

using Indices = std::vector<Datum>;

/// Operations at one place of the program.
struct Build {
  Location loc;

  static Datum integer(std::int64_t v) { return Datum::integer(v, ir::I64); }
  /// A number of the element type of `like`.
  static Datum number(double v, const Datum& like);

  Datum binary(Opcode op, const Datum& a, const Datum& b) const { return perform_broadcast({op, 0, loc}, a, b); }
  Datum unary(Opcode op, const Datum& a) const { return perform({op, 0, loc}, {a}); }
  Datum add(const Datum& a, const Datum& b) const { return binary(Opcode::add_, a, b); }
  Datum sub(const Datum& a, const Datum& b) const { return binary(Opcode::sub_, a, b); }
  Datum mul(const Datum& a, const Datum& b) const { return binary(Opcode::mul_, a, b); }
  Datum div(const Datum& a, const Datum& b) const { return binary(Opcode::div_, a, b); }
  Datum rem(const Datum& a, const Datum& b) const { return binary(Opcode::rem_, a, b); }
  Datum less(const Datum& a, const Datum& b) const { return binary(Opcode::lt_, a, b); }
  Datum select(const Datum& c, const Datum& a, const Datum& b) const {
    return perform({Opcode::select_, 0, loc}, {c, a, b});
  }
  Datum get(const Datum& t, const Indices& at) const;
  Datum set(const Datum& t, const Indices& at, const Datum& v) const;
  Datum add_at(const Datum& t, const Indices& at, const Datum& v) const;
  Datum size(const Datum& t, int d) const { return dimension_of(t, d, loc); }
  /// All sizes of a tensor.
  Indices sizes(const Datum& t) const;
  /// The value, through which no derivative passes; of what has none it is the value itself.
  Datum primal(const Datum& a) const;
  Datum cast(const Datum& a, ir::Kind to) const;

  /// A tensor of one value; sizes that are literals are part of its type.
  Datum fill(const Datum& v, const Indices& sizes) const;
  /// The elements in row-major order in another shape of as many.
  Datum reshape(const Datum& t, const Indices& sizes) const;
  /// An operation in index notation.
  Datum einsum(const std::string& notation, const Datums& operands, std::span<const std::int64_t> dims = {}) const;
  /// With a dimension of size 1 put in before each of these places (of the result, ascending), or taken out.
  Datum with_ones(const Datum& t, std::span<const int> places) const;
  Datum without(const Datum& t, std::span<const int> places) const;

  /// Runs body(i, state) for i from lo to below hi.
  Datums loop(const Datum& lo, const Datum& hi, Datums state,
              FunctionRef<Datums(const Datum& i, const Datums& state)> body) const;
  /// The state after body(indices, state) at every point of a box, the last index running fastest.
  Datums points(const Indices& sizes, Datums state,
                FunctionRef<Datums(const Indices& at, const Datums& state)> body) const;
  /// The tensor whose element at each point is body(indices).
  Datum tabulate(ir::Kind element, const Indices& sizes,
                 FunctionRef<Datum(const Indices& at)> body) const;
  /// Error unless the condition, a bool, holds: at once where it is known, else at run time.
  /// Numbers stand in the message in the places of {}.
  void require(const Datum& condition, const std::string& message, std::initializer_list<Datum> numbers = {}) const;
  /// Error unless two sizes are the same: at once where they are known, else at run time.
  void require_equal(const Datum& x, const Datum& y, const std::string& message) const;
};

/// The number that a literal is, or `ir::dynamic`.
std::int64_t known(const Datum& size);
/// The dimension that is meant, from 0 on.
inline int axis_of(const char* what, const Datum& t, int axis, const Location& loc) {
  return axes_of(what, t, {&axis, 1}, loc)[0];
}
/// Dimensions that are not among `axes`, ascending.
std::vector<int> others(int rank, std::span<const int> axes);

}  // namespace lantern::core::detail
