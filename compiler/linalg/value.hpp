// What rules of linear algebra are written in: matrices, batches of them, and the operations that have
// derivatives.
//
// A matrix has rank 2, a batch of matrices rank 3 with the batch first; all operations here take both. Where more
// dimensions count matrices, functions make one of them first.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "lantern/compiler/linalg/kernels.hpp"
#include "lantern/compiler/staging/operation.hpp"

namespace lantern::linalg::detail {

using core::Datum;
using core::Datums;
using core::Location;
using core::Opcode;

/// Where a function was called, and for which element type.
struct Call {
  const Kernels* kernels;
  Location loc;
};

/// A tensor or number and the call that it is part of.
struct Value {
  Datum datum;
  Call call;

  int rank() const { return datum.type().rank(); }
  bool batched() const { return rank() == 3; }
  Datum dim(int k) const { return core::dimension_of(datum, k, call.loc); }
  Datum rows() const { return dim(rank() - 2); }
  Datum columns() const { return dim(rank() - 1); }
  Datum batch() const { return batched() ? dim(0) : Datum::integer(1, ir::I64); }
};
using Values = std::vector<Value>;

Datum integer(std::int64_t n);
Datum truth(bool b);
/// A number of the element type of `like`.
Datum number(double x, const Value& like);

Value operator+(const Value& a, const Value& b);
Value operator-(const Value& a, const Value& b);
Value operator*(const Value& a, const Value& b);
Value operator*(double a, const Value& b);
Value operator-(const Value& a);
Value zeros_like(const Value& a);
Value stop_gradient(const Value& a);
/// A new tensor of one number; its elements are of the type of `like`.
Value filled(double x, const Datums& sizes, const Value& like);

/// Each matrix transposed.
Value t(const Value& a);
/// The mean of a matrix and its transpose.
Value symmetric(const Value& a);
/// The sum of elements of a b, of each matrix: a number, or one for each matrix of the batch.
Value inner(const Value& a, const Value& b);
/// A matrix times such a number.
Value scaled(const Value& numbers, const Value& a);
/// The diagonal of each matrix; diagonal matrices.
Value diagonal(const Value& a);
Value diagonal_matrix(const Value& v);
/// Column j times v[j]; row i times v[i].
Value scale_columns(const Value& a, const Value& v);
Value scale_rows(const Value& v, const Value& a);
/// The sizes of a tensor that has one of these for each matrix of `like`.
Datums sizes_for(const Value& like, Datums sizes);
/// Of each matrix: rows lo .. hi-1; columns; one under, or beside, the other.
Value row_range(const Value& a, const Datum& lo, const Datum& hi);
Value column_range(const Value& a, const Datum& lo, const Datum& hi);
Value above(const Value& a, const Value& b);
Value beside(const Value& a, const Value& b);
/// Whether several dimensions count the matrices; those, the first `leading` ones, made one; and back: what there is
/// for each matrix, in the batches of `like`.
inline bool in_several(const Value& a) { return a.rank() > 3; }
Value as_one_batch(const Value& a, int leading);
inline Value as_one_batch(const Value& a) { return as_one_batch(a, a.rank() - 2); }
Value in_batches_of(const Value& like, const Value& a);
Values in_batches_of(const Value& like, const Values& all);
/// A vector as a matrix of one column, vectors of a batch likewise; and back, in the shape of `like`.
Value as_columns(const Value& v);
Value in_shape_of(const Value& a, const Value& like);

/// op(a) op(b); op transposes where the flag says so.
Value product(const Value& a, const Value& b, bool a_transposed = false, bool b_transposed = false);
/// What is below, on and above the diagonal times its weight.
Value weighted(const Value& a, double below, double diagonal, double above);
inline Value lower(const Value& a) { return weighted(a, 1, 1, 0); }
inline Value strictly_lower(const Value& a) { return weighted(a, 1, 0, 0); }
inline Value upper(const Value& a) { return weighted(a, 0, 1, 1); }

/// A function with derivatives of its own: the values, the cotangents of its floating arguments, the tangents
/// of its floating results. Derivatives of higher order meet the function again.
struct Ruled {
  std::string name;
  std::function<Values(const Values& in)> primal;
  std::function<Values(const Values& in, const Values& out, const Values& cotangents)> backward;
  std::function<Values(const Values& in, const Values& out, const Values& tangents)> tangent;
  /// Where there is more than one choice of results: what reverse mode computes, and forward mode for these tangents,
  /// in place of the function itself.
  std::function<Values(const Values& in)> forward = nullptr;
  std::function<Values(const Values& in, const Values& tangents)> along = nullptr;
};
Values with_rule(const Ruled& rule, const Values& in);

/// Calls a C function: sizes and flags, then what it takes and changes; gives what it changes.
Values run(Kernel Kernels::* kernel, const Call& call, const Datums& operands);

/// Errors that name the function: not of these ranks; not square; sizes that differ, which are compared when
/// the program runs where they are not known before.
inline constexpr int most_dimensions = 8;
void require_rank(const char* function, const Value& a, int least, int most);
void require_square(const char* function, const Value& a);
void require_equal(const char* function, const Datum& size, const Datum& other, const char* what,
                   const Call& call);

}  // namespace lantern::linalg::detail
