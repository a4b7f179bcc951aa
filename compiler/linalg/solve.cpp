// Linear systems: triangular, by a Cholesky factor, by LU; inverses and determinants.
#include "lantern/compiler/ad/program.hpp"
#include "lantern/compiler/linalg/functions.hpp"
#include "lantern/compiler/staging/rep.hpp"

namespace lantern::linalg::detail {

Value columns_for(const char* function, const Value& a, const Value& b) {
  require_rank(function, b, a.rank() - 1, a.rank());
  const Value columns = b.rank() == a.rank() ? b : as_columns(b);
  require_equal(function, a.rows(), columns.rows(), "as many rows on the right as the matrix has", a.call);
  if (a.batched()) require_equal(function, a.dim(0), columns.dim(0), "batches of one size", a.call);
  return columns;
}

Value right_in_one_batch(const char* function, const Value& a, const Value& b) {
  require_rank(function, b, a.rank() - 1, a.rank());
  const int leading = a.rank() - 2;
  for (int k = 0; k < leading; ++k)
    require_equal(function, a.dim(k), b.dim(k), "batches of the same sizes", a.call);
  return as_one_batch(b, leading);
}

namespace {

Value shaped_as(const Value& b, const Value& x) { return x.rank() == b.rank() ? x : in_shape_of(x, b); }

/// op(t) x = b. Source: Giles 2008, section 2.3.1, of which the triangle that is read counts.
Value triangular(const Value& t, const Value& b, const Triangle& which) {
  const auto read = [which](const Value& v) {
    return weighted(v, which.lower, which.unit ? 0 : 1, which.lower ? 0 : 1);
  };
  const auto primal = [which](const Values& in) {
    const Value &m = in[0], &r = in[1];
    return run(&Kernels::triangular, m.call,
               {m.batch(), m.rows(), r.columns(), truth(which.lower), truth(which.transposed),
                truth(which.unit), m.datum, r.datum});
  };
  const auto backward = [=](const Values& in, const Values& out, const Values& g) -> Values {
    const Value w = triangular(in[0], g[0], {which.lower, !which.transposed, which.unit});
    return {-read(which.transposed ? product(out[0], w, false, true) : product(w, out[0], false, true)), w};
  };
  const auto tangent = [=](const Values& in, const Values& out, const Values& d) -> Values {
    return {triangular(in[0], d[1] - product(read(d[0]), out[0], which.transposed), which)};
  };
  return with_rule({"solve_triangular", primal, backward, tangent}, {t, b})[0];
}

/// How many rows all matrices have together.
Datum all_rows(const Value& a) {
  return a.batched() ? core::perform({Opcode::mul_, 0, a.call.loc}, {a.batch(), a.rows()}) : a.rows();
}

Values factored(const Value& a) {
  const Datum p = core::perform({Opcode::fill_, 0, a.call.loc}, {integer(0), all_rows(a)});
  return run(&Kernels::lu, a.call, {a.batch(), a.rows(), a.datum, p});
}

/// op(a) x = b by the factors of a, which are no variables of their own: a is what is differentiated. Source:
/// Giles 2008, section 2.3.1.
Value solve_factored(const Value& a, const Value& factors, const Value& p, const Value& b, bool transposed) {
  const auto primal = [transposed](const Values& in) {
    return run(&Kernels::lu_solve, in[0].call,
               {in[0].batch(), in[0].rows(), in[3].columns(), truth(transposed), in[1].datum, in[2].datum,
                in[3].datum});
  };
  const auto backward = [transposed](const Values& in, const Values& out, const Values& g) -> Values {
    const Value w = solve_factored(in[0], in[1], in[2], g[0], !transposed);
    return {-(transposed ? product(out[0], w, false, true) : product(w, out[0], false, true)),
            zeros_like(in[1]), w};
  };
  const auto tangent = [transposed](const Values& in, const Values& out, const Values& d) -> Values {
    return {solve_factored(in[0], in[1], in[2], d[2] - product(d[0], out[0], transposed), transposed)};
  };
  return with_rule({"solve", primal, backward, tangent}, {a, factors, p, b})[0];
}

/// One number for each matrix; as `inner` gives them.
Value as_inner(const Value& a, const Value& numbers) { return a.batched() ? numbers : only(numbers); }
Value as_vector(const Value& a, const Value& numbers) {
  if (a.batched()) return numbers;
  return {core::perform({Opcode::fill_, 0, a.call.loc}, {numbers.datum, integer(1)}), a.call};
}

/// The sign, the logarithm of the size, and the determinant.
Values determinants(const Value& a) {
  const Value none = filled(0, {a.batch()}, a);
  return run(&Kernels::determinant, a.call,
             {a.batch(), a.rows(), a.datum, none.datum, none.datum, none.datum});
}

Value cofactors(const Value& a);

/// The derivative of the cofactors c in the direction h, <x, h> c - c h^T x for x = a^-T.
Value cofactors_formula(const Value& a, const Value& h) {
  const Value x = t(inverse(a)), c = cofactors(a);
  return scaled(inner(x, h), c) - product(product(c, h, false, true), x);
}
core::ad::Program cofactors_program(const Call& call) {
  return {"cofactors_tangent",
          [call](const Datums& in) { return Datums{cofactors_formula({in[0], call}, {in[1], call}).datum}; }};
}

/// The same where a is singular too: the second derivative of the determinant, which is symmetric. Its own
/// derivative is that of the formula.
Value cofactors_tangent(const Value& a, const Value& h) {
  const auto primal = [](const Values& in) {
    return run(&Kernels::cofactors_tangent, in[0].call,
               {in[0].batch(), in[0].rows(), in[0].datum, in[1].datum});
  };
  const auto backward = [](const Values& in, const Values&, const Values& g) -> Values {
    const Call& call = in[0].call;
    return {{core::ad::vjp(cofactors_program(call), {in[0].datum, in[1].datum}, {true, false}, {g[0].datum}, false,
                           call.loc)[0],
             call},
            cofactors_tangent(in[0], g[0])};
  };
  const auto tangent = [](const Values& in, const Values&, const Values& d) -> Values {
    const Call& call = in[0].call;
    const Value of_a{core::ad::jvp(cofactors_program(call), {in[0].datum, in[1].datum}, {true, false},
                                   {d[0].datum}, call.loc)
                         .back(),
                     call};
    return {of_a + cofactors_tangent(in[0], d[1])};
  };
  return with_rule({"cofactors_tangent", primal, backward, tangent}, {a, h})[0];
}

/// The gradient of the determinant, det(a) a^-T.
Value cofactors(const Value& a) {
  const auto primal = [](const Values& in) {
    return run(&Kernels::cofactors, in[0].call, {in[0].batch(), in[0].rows(), in[0].datum});
  };
  const auto backward = [](const Values& in, const Values&, const Values& g) -> Values {
    return {cofactors_tangent(in[0], g[0])};
  };
  const auto tangent = [](const Values& in, const Values&, const Values& d) -> Values {
    return {cofactors_tangent(in[0], d[0])};
  };
  return with_rule({"cofactors", primal, backward, tangent}, {a})[0];
}

/// A linear map.
Value rows(const Value& b, const Value& p, bool inverse) {
  const auto primal = [inverse](const Values& in) {
    return run(&Kernels::rows, in[0].call,
               {in[0].batch(), in[0].rows(), in[0].columns(), truth(inverse), in[1].datum, in[0].datum});
  };
  return with_rule(
      {"rows", primal,
       [=](const Values& in, const Values&, const Values& g) { return Values{rows(g[0], in[1], !inverse)}; },
       [=](const Values& in, const Values&, const Values& d) { return Values{rows(d[0], in[1], inverse)}; }},
      {b, p})[0];
}

}  // namespace

Value matrix_product(const Value& a, const Value& b) {
  require_rank("product", a, 2, most_dimensions);
  require_rank("product", b, a.rank(), a.rank());
  if (in_several(a))
    return in_batches_of(a, matrix_product(as_one_batch(a), right_in_one_batch("product", a, b)));
  require_equal("product", a.columns(), b.rows(), "as many columns on the left as rows on the right", a.call);
  if (a.batched()) require_equal("product", a.dim(0), b.dim(0), "batches of one size", a.call);
  return product(a, b);
}

Value solve_triangular(const Value& m, const Value& b, const Triangle& which) {
  require_square("solve_triangular", m);
  if (in_several(m))
    return in_batches_of(m, solve_triangular(as_one_batch(m), right_in_one_batch("solve_triangular", m, b), which));
  return shaped_as(b, triangular(m, columns_for("solve_triangular", m, b), which));
}

Value cholesky_solve(const Value& l, const Value& b) {
  require_square("cholesky_solve", l);
  if (in_several(l))
    return in_batches_of(l, cholesky_solve(as_one_batch(l), right_in_one_batch("cholesky_solve", l, b)));
  const Value y = triangular(l, columns_for("cholesky_solve", l, b), {});
  return shaped_as(b, triangular(l, y, {.transposed = true}));
}

Value solve(const Value& a, const Value& b) {
  require_square("solve", a);
  if (in_several(a))
    return in_batches_of(a, solve(as_one_batch(a), right_in_one_batch("solve", a, b)));
  const Value columns = columns_for("solve", a, b);
  const Values f = factored(stop_gradient(a));
  return shaped_as(b, solve_factored(a, f[0], f[1], columns, false));
}

/// Source: Giles 2008, section 2.2.3.
Value inverse(const Value& a) {
  require_square("inverse", a);
  if (in_several(a)) return in_batches_of(a, inverse(as_one_batch(a)));
  const auto primal = [](const Values& in) {
    return run(&Kernels::inverse, in[0].call, {in[0].batch(), in[0].rows(), in[0].datum});
  };
  const auto backward = [](const Values&, const Values& x, const Values& g) -> Values {
    return {-product(product(x[0], g[0], true), x[0], false, true)};
  };
  const auto tangent = [](const Values&, const Values& x, const Values& d) -> Values {
    return {-product(product(x[0], d[0]), x[0])};
  };
  return with_rule({"inverse", primal, backward, tangent}, {a})[0];
}

Value only(const Value& numbers) {
  return {core::perform({Opcode::get_, 0, numbers.call.loc}, {numbers.datum, integer(0)}), numbers.call};
}

/// Source: Giles 2008, section 2.2.4, with cofactors, which a singular matrix has too.
Value det(const Value& a) {
  require_square("det", a);
  if (in_several(a)) return in_batches_of(a, det(as_one_batch(a)));
  const auto primal = [](const Values& in) { return Values{determinants(in[0])[2]}; };
  const auto backward = [](const Values& in, const Values&, const Values& g) -> Values {
    return {scaled(as_inner(in[0], g[0]), cofactors(in[0]))};
  };
  const auto tangent = [](const Values& in, const Values&, const Values& d) -> Values {
    return {as_vector(in[0], inner(cofactors(in[0]), d[0]))};
  };
  return with_rule({"det", primal, backward, tangent}, {a})[0];
}

/// Source: Giles 2008, section 2.2.4.
Values slogdet(const Value& a) {
  require_square("slogdet", a);
  if (in_several(a)) return in_batches_of(a, slogdet(as_one_batch(a)));
  const auto primal = [](const Values& in) {
    const Values all = determinants(in[0]);
    return Values{all[0], all[1]};
  };
  const auto backward = [](const Values& in, const Values&, const Values& g) -> Values {
    return {scaled(as_inner(in[0], g[1]), t(inverse(in[0])))};
  };
  const auto tangent = [](const Values& in, const Values& out, const Values& d) -> Values {
    return {zeros_like(out[0]), as_vector(in[0], inner(t(inverse(in[0])), d[0]))};
  };
  return with_rule({"slogdet", primal, backward, tangent}, {a});
}

/// NaN where the sign is not 1, by a division by zero.
Value logdet(const Value& a) {
  const Values all = slogdet(a);
  const Location& loc = a.call.loc;
  const Datum positive =
      core::perform_broadcast({Opcode::lt_, 0, loc}, number(0, a), core::strip(all[0].datum));
  const auto kind = static_cast<std::int64_t>(a.datum.type().element());
  const Value one{core::perform({Opcode::cast_, kind, loc}, {positive}), a.call};
  return {core::perform_broadcast({Opcode::div_, 0, loc}, (all[1] * one).datum, one.datum), a.call};
}

/// Source: S. F. Walter, L. Lehmann, "Algorithmic differentiation of linear algebra functions with
/// application in optimum experimental design", 2010, for QR; here f = l^-1 da u^-1 splits into both
/// triangles.
Values lu(const Value& a) {
  require_square("lu", a);
  if (in_several(a)) {
    const Values all = lu(as_one_batch(a));
    return {in_batches_of(a, all[0]), all[1]};
  }
  const auto primal = [](const Values& in) { return factored(in[0]); };
  const auto backward = [](const Values&, const Values& out, const Values& g) -> Values {
    const Value &f = out[0], &p = out[1];
    const Value l_bar = strictly_lower(g[0]), u_bar = upper(g[0]);
    const Value of_l = product(strictly_lower(f), l_bar, true) + l_bar;
    const Value f_bar = strictly_lower(of_l) + upper(product(u_bar, upper(f), false, true));
    const Value y = triangular(f, f_bar, {.transposed = true, .unit = true});
    return {rows(t(triangular(f, t(y), {.lower = false})), p, true)};
  };
  const auto tangent = [](const Values&, const Values& out, const Values& d) -> Values {
    const Value &f = out[0], &p = out[1];
    const Value left = triangular(f, rows(d[0], p, false), {.unit = true});
    const Value both = t(triangular(f, t(left), {.lower = false, .transposed = true}));
    const Value low = strictly_lower(both);
    return {product(strictly_lower(f), low) + low + product(upper(both), upper(f))};
  };
  return with_rule({"lu", primal, backward, tangent}, {a});
}

Value lu_solve(const Value& factors, const Value& permutation, const Value& b) {
  require_square("lu_solve", factors);
  if (in_several(factors))
    return in_batches_of(factors, lu_solve(as_one_batch(factors), permutation,
                                           right_in_one_batch("lu_solve", factors, b)));
  const Value columns = columns_for("lu_solve", factors, b);
  require_rank("lu_solve", permutation, 1, 1);
  require_equal("lu_solve", all_rows(factors), permutation.dim(0), "a permutation of all rows", factors.call);
  const Value y = triangular(factors, rows(columns, permutation, false), {.unit = true});
  return shaped_as(b, triangular(factors, y, {.lower = false}));
}

}  // namespace lantern::linalg::detail
