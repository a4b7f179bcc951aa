// Factorisations: Cholesky, QR; the exponential.
#include "lantern/compiler/ad/program.hpp"
#include "lantern/compiler/linalg/functions.hpp"

namespace lantern::linalg::detail {

namespace {

/// The adjoint of a Cholesky factor, sym(l^-T phi(l^T l_bar) l^-1), where phi takes the lower triangle and
/// half of the diagonal. Source: Murray 2016, section 3.1.
Value adjoint_formula(const Value& l, const Value& l_bar) {
  const Value p = weighted(product(l, lower(l_bar), true), 1, 0.5, 0);
  const Triangle back{.transposed = true};
  return symmetric(t(solve_triangular(l, t(solve_triangular(l, p, back)), back)));
}
core::ad::Program adjoint_program(const Call& call) {
  return {"cholesky_adjoint",
          [call](const Datums& in) { return Datums{adjoint_formula({in[0], call}, {in[1], call}).datum}; }};
}

/// The same by blocks, in a third of the operations; its derivatives are those of the formula.
Value cholesky_adjoint(const Value& l, const Value& l_bar) {
  const Call call = l.call;
  const auto primal = [](const Values& in) {
    return run(&Kernels::cholesky_adjoint, in[0].call,
               {in[0].batch(), in[0].rows(), in[0].datum, in[1].datum});
  };
  const auto backward = [call](const Values& in, const Values&, const Values& g) -> Values {
    const Datums both = core::ad::vjp(adjoint_program(call), {in[0].datum, in[1].datum}, {true, true},
                                      {g[0].datum}, false, call.loc);
    return {{both[0], call}, {both[1], call}};
  };
  const auto tangent = [call](const Values& in, const Values&, const Values& d) -> Values {
    return {{core::ad::jvp(adjoint_program(call), {in[0].datum, in[1].datum}, {true, true},
                           {d[0].datum, d[1].datum}, call.loc)
                 .back(),
             call}};
  };
  return with_rule({"cholesky_adjoint", primal, backward, tangent}, {l, l_bar})[0];
}

/// Of a matrix with no more columns than rows.
Values qr_of_tall(const Value& a) {
  const auto primal = [](const Values& in) {
    const Datum m = in[0].rows(), n = in[0].columns();
    return run(&Kernels::qr, in[0].call,
               {in[0].batch(), m, n, in[0].datum, filled(0, sizes_for(in[0], {m, n}), in[0]).datum,
                filled(0, sizes_for(in[0], {n, n}), in[0]).datum});
  };
  const auto over_r = [](const Value& x, const Value& r, bool transposed) {  // x r^-1, or x r^-T
    return t(solve_triangular(r, t(x), {.lower = false, .transposed = !transposed}));
  };
  const auto backward = [=](const Values&, const Values& out, const Values& g) -> Values {
    const Value &q = out[0], &r = out[1];
    const Value m = product(r, upper(g[1]), false, true) - product(g[0], q, true);
    return {over_r(g[0] + product(q, lower(m) + t(strictly_lower(m))), r, true)};
  };
  const auto tangent = [=](const Values&, const Values& out, const Values& d) -> Values {
    const Value &q = out[0], &r = out[1];
    const Value k = over_r(product(q, d[0], true), r, false);
    const Value triangle = k - strictly_lower(k) + t(strictly_lower(k));
    return {over_r(d[0], r, false) - product(q, triangle), product(triangle, r)};
  };
  return with_rule({"qr", primal, backward, tangent}, {a});
}

}  // namespace

Datum smaller(const Datum& a, const Datum& b, const Call& call) {
  return core::perform({Opcode::imin_, 0, call.loc}, {a, b});
}

Value cholesky(const Value& a) {
  require_square("cholesky", a);
  if (in_several(a)) return in_batches_of(a, cholesky(as_one_batch(a)));
  const auto primal = [](const Values& in) {
    return run(&Kernels::cholesky, in[0].call, {in[0].batch(), in[0].rows(), in[0].datum});
  };
  const auto backward = [](const Values&, const Values& l, const Values& g) -> Values {
    return {cholesky_adjoint(l[0], g[0])};
  };
  const auto tangent = [](const Values&, const Values& l, const Values& d) -> Values {
    const Value half = solve_triangular(l[0], symmetric(d[0]), {});
    return {product(l[0], weighted(solve_triangular(l[0], t(half), {}), 1, 0.5, 0))};
  };
  return with_rule({"cholesky", primal, backward, tangent}, {a})[0];
}

/// Source: Walter & Lehmann 2010, section 3.4; Seeger et al. 2017, "Auto-differentiating linear algebra". Of
/// a wide matrix the columns that are too many are q times those of r.
Values qr(const Value& a) {
  require_rank("qr", a, 2, most_dimensions);
  if (in_several(a)) return in_batches_of(a, qr(as_one_batch(a)));
  const Datum m = a.rows(), n = a.columns(), k = smaller(m, n, a.call);
  if (n.is_literal() && k.is_literal() && n.i() == k.i()) return qr_of_tall(a);
  const Values square = qr_of_tall(column_range(a, integer(0), k));
  return {square[0], beside(square[1], product(square[0], column_range(a, k, n), true))};
}

/// Source: I. Najfeld, T. F. Havel, "Derivatives of the matrix exponential and their computation", 1995, and
/// R. Mathias, "A chain rule for matrix functions and applications", 1996: the derivative in the direction d
/// is a block of the exponential of (a d; 0 a); its transpose is that of the transposed matrix.
Value expm(const Value& a) {
  require_square("expm", a);
  if (in_several(a)) return in_batches_of(a, expm(as_one_batch(a)));
  const auto primal = [](const Values& in) {
    return run(&Kernels::expm, in[0].call, {in[0].batch(), in[0].rows(), in[0].datum});
  };
  const auto derivative = [](const Value& m, const Value& d) {
    const Datum n = m.rows();
    const Datum twice = core::perform({Opcode::add_, 0, m.call.loc}, {n, n});
    const Value both = expm(above(beside(m, d), beside(zeros_like(m), m)));
    return column_range(row_range(both, integer(0), n), n, twice);
  };
  const auto backward = [=](const Values& in, const Values&, const Values& g) -> Values {
    return {derivative(t(in[0]), g[0])};
  };
  const auto tangent = [=](const Values& in, const Values&, const Values& d) -> Values {
    return {derivative(in[0], d[0])};
  };
  return with_rule({"expm", primal, backward, tangent}, {a})[0];
}

}  // namespace lantern::linalg::detail
