// Dense systems of linear equations, by LU factors with partial pivoting.
//
// Source: Golub & Van Loan, "Matrix Computations", 4th edition 2013, algorithms 3.4.1 and 3.1.1 to 3.1.3.
#pragma once

#include <array>
#include <tuple>

#include "lantern/compiler/staging/control_flow.hpp"
#include "lantern/compiler/staging/functions.hpp"
#include "lantern/compiler/staging/requirement.hpp"

namespace lantern::solvers {

using core::Rep;

namespace detail {

using core::Datum;
using core::Datums;
using core::FloatElement;
template <class E>
using Number = Rep<E>;
using Count = Rep<std::int64_t>;
using Truth = Rep<bool>;
/// A vector or, where it says so, a matrix: of a rank that is known while staging.
template <class E>
using Vector = Rep<core::Tensor<E>>;
template <class E>
using Matrix = Rep<core::Tensor<E>>;

inline Truth both(const Truth& a, const Truth& b) {
  return Truth(core::perform({core::Opcode::land_, 0, {}}, {a.datum(), b.datum()}));
}

}  // namespace detail

/// P A = L U: both triangles in one matrix, the diagonal of L, all ones, left out; row i of P A is row
/// rows[i] of A.
template <class E = double>
struct LU {
  Rep<core::Tensor<E>> factors;
  Rep<core::Array<std::int64_t>> rows;
};

/// The factors of an n-by-n matrix, each pivot the largest in size of what is left of its column. A singular
/// matrix has a pivot of 0. Differentiated, it is unrolled: `solve` has a rule. Error: it is not square.
template <core::FloatElement E, std::int64_t... M>
LU<E> lu(const Rep<core::Tensor<E, M...>>& matrix, std::source_location l = std::source_location::current()) {
  using namespace detail;
  const core::Location loc = core::here(l);
  const Matrix<E> a(matrix.datum());
  if (a.rank() != 2) core::raise_at(loc, "lu: expected a matrix, got " + matrix.datum().type().str());
  const Count n = a.dim(0), columns = a.dim(1);
  core::detail::require((n == columns).datum(), "lu: expected a square matrix, got {} rows and {} columns", loc,
                        std::array{n.datum(), columns.datum()});
  const auto in_order = FOR(0, n, fill(Count(0), n), [](Count i, auto rows) { return rows.set(i, i); });
  return FOR(0, n, LU<E>{a, in_order}, [n](Count k, LU<E> s) {
    const auto [pivot, largest] =
        FOR(k + 1, n, std::tuple(k, abs(s.factors(k, k))), [&](Count i, Count p, Number<E> best) {
          const Number<E> v = abs(s.factors(i, k));
          return std::tuple(select(v > best, i, p), select(v > best, v, best));
        });
    const Count p = pivot;
    const Matrix<E> swapped = FOR(0, n, s.factors, [&](Count j, Matrix<E> m) {
      const Number<E> upper = m(k, j), lower = m(p, j);
      return m.set(k, j, lower).set(p, j, upper);
    });
    const Matrix<E> reduced = FOR(k + 1, n, swapped, [&](Count i, Matrix<E> m) {
      const Number<E> factor = m(i, k) / m(k, k);
      return FOR(k + 1, n, m.set(i, k, factor),
                 [&](Count j, Matrix<E> r) { return r.set(i, j, r(i, j) - factor * r(k, j)); });
    });
    const Count upper = s.rows[k], lower = s.rows[p];
    return LU<E>{reduced, s.rows.set(k, lower).set(p, upper)};
  });
}

/// The x with A x = b, from the factors of A. Where A is singular, x is not finite.
template <core::FloatElement E>
Rep<core::Tensor<E>> solve(const LU<E>& a, const std::type_identity_t<Rep<core::Tensor<E>>>& b) {
  using namespace detail;
  const Count n = b.dim(0);
  const Vector<E> forward = FOR(0, n, b, [&](Count i, Vector<E> y) {
    return y.set(i,
                 FOR(0, i, b(a.rows[i]), [&](Count j, Number<E> v) { return v - a.factors(i, j) * y(j); }));
  });
  return FOR(0, n, forward, [&](Count back, Vector<E> x) {
    const Count i = n - 1 - back;
    const Number<E> known =
        FOR(i + 1, n, x(i), [&](Count j, Number<E> v) { return v - a.factors(i, j) * x(j); });
    return x.set(i, known / a.factors(i, i));
  });
}

namespace detail {

/// solve, over data.
Datum solve(const Datum& a, const Datum& b, const core::Location& loc);

}  // namespace detail

/// The x with A x = b, of an n-by-n matrix and a vector of n elements. Where A is singular, x is not finite.
/// Its derivative, of every order, is that of the solution: dx = A^-1 (db - dA x), and backward b' = A^-T x',
/// A' = -b' x^T (Giles, "Collected matrix derivative results for forward and reverse mode algorithmic
/// differentiation", 2008, 2.3.1). Error: sizes that do not fit.
template <core::FloatElement E, std::int64_t... M, class B>
requires(std::same_as<typename core::detail::Traits<B>::element, E>) Rep<B> solve(
    const Rep<core::Tensor<E, M...>>& a, const Rep<B>& b,
    std::source_location l = std::source_location::current()) {
  const core::Location loc = core::here(l);
  const ir::Type &matrix = a.datum().type(), &vector = b.datum().type();
  if (matrix.rank() != 2 || vector.rank() != 1)
    core::raise_at(loc,
                   "solve: expected a matrix and a vector, got " + matrix.str() + " and " + vector.str());
  const Rep<core::Tensor<E>> m(a.datum()), v(b.datum());
  const detail::Count rows = m.dim(0), columns = m.dim(1), size = v.dim(0);
  core::detail::require(detail::both(rows == columns, rows == size).datum(),
                        "solve: expected a square matrix and a vector of as many elements as it has rows, got {} rows, {} "
                        "columns and {} elements",
                        loc, std::array{rows.datum(), columns.datum(), size.datum()});
  return Rep<B>(detail::solve(a.datum(), b.datum(), loc));
}

}  // namespace lantern::solvers
