// The linear systems of interior_point: the Hessian of the Lagrangian by unknowns and multipliers, plus a
// diagonal; dense, or by colours and within a band.
#pragma once

#include "lantern/compiler/solvers/band_order.hpp"
#include "lantern/compiler/solvers/constrained.hpp"
#include "lantern/lantern.hpp"

namespace lantern::solvers {

namespace detail {

using KktPattern = KktSparsityOf<Count, Rep<core::Array<std::int64_t>>>;
inline constexpr std::size_t kkt_pattern_size = 13;  ///< values of one

/// As data of a program: nothing where the problem has none.
inline Datums pattern_data(const Absent&) { return {}; }
inline Datums pattern_data(const KktPattern& s) { return core::detail::flatten(s); }
inline Datums pattern_data(const KktSparsity& s) {
  const auto table = [](const std::vector<std::int64_t>& v) { return core::constant_table(v); };
  const auto& h = s.hessian;
  return pattern_data(KktPattern{
      {h.rows, h.columns, h.forward, h.reverse, table(h.row_start), table(h.column), table(h.column_colour),
       table(h.row_colour), table(h.pass_start), table(h.entry), table(h.element)},
      table(s.place),
      s.band});
}

/// The Hessian of L at a point, dense.
template <FloatElement E>
class DenseKkt {
 public:
  DenseKkt(const Conditions<E>& conditions, const Vector<E>& v, const Datums& in)
      : matrix_(conditions.hessian(v, in)) {}

  /// The solution of (matrix + diagonal) d = right; not finite where that is singular.
  Vector<E> solve(const Vector<E>& diagonal, const Vector<E>& right) const {
    const Matrix<E> shifted = FOR(0, right.dim(0), matrix_, [&](const Count& i, const Matrix<E>& m) {
      return m.set(i, i, m(i, i) + diagonal(i));
    });
    return solvers::solve(lu(shifted), right);
  }
  Vector<E> times(const Vector<E>& d) const { return matmul(matrix_, d); }

 private:
  Matrix<E> matrix_;
};

/// The same by the entries of a pattern. Gauss's elimination with partial pivoting, within a band that pivots
/// make twice as wide above the diagonal: Golub & Van Loan, "Matrix Computations", 4th edition 2013, 4.3.
template <FloatElement E>
class BandKkt {
 public:
  BandKkt(const Conditions<E>& conditions, const Vector<E>& v, const Datums& in, KktPattern pattern)
      : s_(std::move(pattern)) {
    const auto gradient = [&](Rep<core::Array<E>> at) -> Rep<core::Array<E>> {
      return as_array(conditions.gradient(Vector<E>(at.datum()), in));
    };
    entries_ = core::sparse_jacobian(gradient)(Rep<core::Array<E>>(v.datum()), s_.hessian);
  }

  /// The solution of (matrix + diagonal) d = right. `rows`, `columns`: what the matrix's rows and columns are multiplied
  /// by first; null: 1.
  Vector<E> solve(const Vector<E>& diagonal, const Vector<E>& right, const Vector<E>* rows = nullptr,
                  const Vector<E>* columns = nullptr) const {
    struct System {
      Matrix<E> a;  // element (i, j) is in row i, column j - i + band
      Vector<E> b;
    };
    const Count n = right.dim(0), band = s_.band, stored = 3 * band + 1;
    const System empty{Matrix<E>(fill(Number<E>(0.0), n, stored).datum()), zeros_like(right)};
    const System full = FOR(0, n, empty, [&](const Count& i, const System& s) {
      const Count row = s_.place[i];
      const Matrix<E> filled = FOR(s_.hessian.row_start[i], s_.hessian.row_start[i + 1], s.a,
                                   [&](const Count& e, const Matrix<E>& a) {
                                     const Count by = s_.hessian.column[e];
                                     Number<E> entry = entries_[e];
                                     if (rows) entry = (*rows)(i) * entry;
                                     if (columns) entry = entry * (*columns)(by);
                                     return a.set(row, s_.place[by] - row + band, entry);
                                   });
      return System{filled.set(row, band, filled(row, band) + diagonal(i)), s.b.set(row, right(i))};
    });
    const System reduced = FOR(0, n, full, [&](const Count& k, const System& s) {
      const Count below = min(n, k + band + 1), right_of = min(n, k + 2 * band + 1);
      const auto [p, largest] = FOR(k + 1, below, std::tuple(k, abs(s.a(k, band))),
                                    [&](const Count& i, const Count& best, const Number<E>& size) {
                                      const Number<E> v = abs(s.a(i, k - i + band));
                                      return std::tuple(select(v > size, i, best), select(v > size, v, size));
                                    });
      const Count pivot = p;
      const Matrix<E> swapped = FOR(k, right_of, s.a, [&](const Count& j, const Matrix<E>& a) {
        const Number<E> upper = a(k, j - k + band), lower = a(pivot, j - pivot + band);
        return a.set(k, j - k + band, lower).set(pivot, j - pivot + band, upper);
      });
      const Number<E> first = s.b(k), other = s.b(pivot);
      return FOR(k + 1, below, System{swapped, s.b.set(k, other).set(pivot, first)},
                 [&](const Count& i, const System& t) {
                   const Number<E> factor = t.a(i, k - i + band) / t.a(k, band);
                   const Matrix<E> a = FOR(k, right_of, t.a, [&](const Count& j, const Matrix<E>& m) {
                     return m.set(i, j - i + band, m(i, j - i + band) - factor * m(k, j - k + band));
                   });
                   return System{a, t.b.set(i, t.b(i) - factor * t.b(k))};
                 });
    });
    const Vector<E> x = FOR(0, n, reduced.b, [&](const Count& back, const Vector<E>& b) {
      const Count k = n - 1 - back;
      const Number<E> rest =
          FOR(k + 1, min(n, k + 2 * band + 1), b(k),
              [&](const Count& j, const Number<E>& v) { return v - reduced.a(k, j - k + band) * b(j); });
      return b.set(k, rest / reduced.a(k, band));
    });
    return FOR(0, n, zeros_like(right),
               [&](const Count& i, const Vector<E>& d) { return d.set(i, x(s_.place[i])); });
  }
  Vector<E> times(const Vector<E>& d) const {
    return FOR(0, d.dim(0), zeros_like(d), [&](const Count& i, const Vector<E>& image) {
      return image.set(i, FOR(s_.hessian.row_start[i], s_.hessian.row_start[i + 1], Number<E>(0.0),
                              [&](const Count& e, const Number<E>& sum) {
                                return sum + entries_[e] * d(s_.hessian.column[e]);
                              }));
    });
  }

 private:
  KktPattern s_;
  Rep<core::Array<E>> entries_;
};

/// The conditions' Jacobian by all of z, or its transpose, solved within the band. Multipliers of limits are eliminated: their
/// equations have one element on the diagonal. Those of inequalities, -w dg dx + g dw, are rows of the Hessian of L, which are
/// multiplied by w; transposed, columns.
template <FloatElement E>
Vector<E> solve_conditions(const Conditions<E>& f, const Vector<E>& b, const Datums& at, bool transposed) {
  const Datums in = core::ad::slice(at, 1, at.size());
  const bool limits = f.has_limits();
  const Kkt<E> z = f.parts(Vector<E>(at[0]), in, limits), r = f.parts(b, in, limits);
  const Count n(in[0]), m(in[1]), p(in[2]);
  const KktPattern prototype;
  const BandKkt<E> matrix(
      f, Conditions<E>::v_of(z), in,
      core::detail::rebuild(prototype, core::ad::slice(in, Conditions<E>::own, Conditions<E>::own + kkt_pattern_size)));
  const auto joined = [](const Vector<E>& x, const Vector<E>& y, const Vector<E>& w) {
    return Conditions<E>::joined(Conditions<E>::joined(x, y), w);
  };
  Vector<E> bent = zeros_like(z.x), right = r.x, above = bent, below = bent, by_lower = bent, by_upper = bent;
  if (limits) {
    above = f.above(z.x, in), below = f.below(z.x, in);
    by_lower = Conditions<E>::is_limit(Vector<E>(in[3])) * z.lower;
    by_upper = Conditions<E>::is_limit(Vector<E>(in[4])) * z.upper;
    bent = by_lower / above + by_upper / below;
    right = transposed ? r.x - by_lower * r.lower / above + by_upper * r.upper / below : r.x + r.lower / above - r.upper / below;
  }
  const Vector<E> scale = joined(zeros_like(z.x) + E(1), zeros_like(z.y) + E(1), z.w);
  const Vector<E> d = matrix.solve(joined(bent, zeros_like(z.y), -f.inequalities(z.x, in)),
                                   joined(right, r.y, transposed ? r.w : -r.w), transposed ? nullptr : &scale,
                                   transposed ? &scale : nullptr);
  const Vector<E> x = d.slice(0, n), w = d.slice(n + m, n + m + p);
  const Vector<E> v = joined(x, d.slice(n, n + m), transposed ? -w : w);
  if (!limits) return v;
  const Vector<E> lower = transposed ? (r.lower + x) / above : (r.lower - by_lower * x) / above;
  const Vector<E> upper = transposed ? (r.upper - x) / below : (r.upper + by_upper * x) / below;
  return joined(v, lower, upper);
}

template <class P, class Params = typename core::detail::FunctionTraits<decltype(P::f)>::Params>
class SparsityOfProblem;
template <class P, class X, class... A>
class SparsityOfProblem<P, std::tuple<X, A...>> {
  using E = element_of<X>;
  using Numbers = Rep<core::Array<E>>;

 public:
  SparsityOfProblem(P problem, std::source_location l) : problem_(std::move(problem)), place_(l) {}

  KktSparsity operator()(const core::detail::host_in<X>& x0, const core::detail::host_in<A>&... a) const {
    const auto sizes = core::eager([self = *this](X x, A... p) {
      return std::tuple(
          as_vector<E>(x.datum()).dim(0),
          self.conditions_of(x, p...).equations(as_vector<E>(x.datum()), self.data({}, {}, {}, p...)).dim(0),
          self.conditions_of(x, p...)
              .inequalities(as_vector<E>(x.datum()), self.data({}, {}, {}, p...))
              .dim(0));
    })(x0, a...);
    const auto [n, m, p] = sizes;
    const auto start = core::eager([m = m, p = p](X x, A...) {
      return as_array(
          Conditions<E>::joined(as_vector<E>(x.datum()), Vector<E>(fill(Number<E>(1.0), m + p).datum())));
    })(x0, a...);
    const auto gradient = [self = *this, n = n, m = m, p = p](Numbers v, A... q) -> Numbers {
      const Vector<E> x(v.slice(0, n).datum());
      return as_array(self.conditions_of(from_vector<X, E>(x), q...)
                          .gradient(Vector<E>(v.datum()), self.data(n, m, p, q...)));
    };
    return in_band_order(core::detail::SparsityOfProgram<true, 0, decltype(gradient)>(
        gradient, core::here(place_))(start, a...));
  }

 private:
  Conditions<E> conditions_of(const X& x, const A&... a) const {
    return problem_conditions<E>("kkt_sparsity", problem_, 0, core::here(place_), x, a...);
  }
  /// What Conditions takes before the arguments; the pattern does not depend on limits.
  Datums data(const Count& n, const Count& m, const Count& p, const A&... a) const {
    const Datum none = fill(Number<E>(0.0), 0).datum();
    return core::ad::joined(Datums{n.datum(), m.datum(), p.datum(), none, none},
                            core::detail::flatten(std::tie(a...)));
  }

  P problem_;
  std::source_location place_;
};

}  // namespace detail

/// The sparsity of a problem's optimality conditions, with an order in which they are a band:
/// kkt_sparsity(problem)(x0, a...), with the arguments of eager(f). The functions are run once on sets of
/// element numbers (hessian_sparsity), so a program that branches differently elsewhere has another. Hand it
/// to Problem::sparse, as it is or as an argument of the compiled function. The objective is a function with
/// a signature: no generic lambda.
template <class P>
requires(detail::IsProblem<P>::value) auto kkt_sparsity(
    P problem, std::source_location l = std::source_location::current()) {
  return detail::SparsityOfProblem<P>(std::move(problem), l);
}

}  // namespace lantern::solvers
