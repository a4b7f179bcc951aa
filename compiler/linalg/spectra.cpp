// Eigenvectors of symmetric matrices and singular vectors, with derivatives where values are equal.
//
// What a rule knows is the cotangents of values and vectors, in one basis of each group of equal values. It
// takes what these determine, and gives NaN for the rest:
//
// - Between groups the vectors turn by the numerators over differences of values. Second derivatives need the
//   direction inside the whole group, not its diagonal alone: `blocks` has it, in place of the values.
// - Inside a group the vectors turn by any angle: where the cotangent of a turn is not 0, the function
// depends on
//   the choice of the basis, and has no derivative.
// - Inside a group the values' cotangents are the diagonal of a symmetric matrix in the basis that was taken.
// The
//   basis is no special one (`linalg_turn`), so that a diagonal of one number is a multiple of 1; any other
//   leaves the matrix open.
// - Second derivatives of symmetric functions of the values alone are p h + q inside a group, for the
// direction h
//   (Lewis & Sendov, "Twice differentiable spectral functions", 2001); p and q follow from the diagonal.
#include "lantern/compiler/linalg/functions.hpp"

namespace lantern::linalg::detail {

namespace {

Datum times(const Datum& a, const Datum& b, const Call& call) {
  return core::perform({Opcode::mul_, 0, call.loc}, {a, b});
}

/// The largest absolute value of each matrix.
Value size_of_untracked(const Value& x) {
  return run(&Kernels::size, x.call,
             {x.batch(), times(x.rows(), x.columns(), x.call), x.datum, filled(0, {x.batch()}, x).datum})[0];
}
/// The same; no derivative passes.
Value size_of(const Value& x) { return size_of_untracked(stop_gradient(x)); }

/// c, and 0 for those matrices for which x is not 0.
Value unless(const Value& x, const Value& c) {
  const auto primal = [](const Values& in) {
    const Call& call = in[0].call;
    return run(&Kernels::unless, call,
               {in[0].batch(), times(in[0].rows(), in[0].columns(), call),
                times(in[1].rows(), in[1].columns(), call), in[0].datum, in[1].datum});
  };
  return with_rule(
      {"unless", primal,
       [](const Values& in, const Values&, const Values& g) {
         return Values{zeros_like(in[0]), unless(in[0], g[0])};
       },
       [](const Values& in, const Values&, const Values& d) { return Values{unless(in[0], d[1])}; }},
      {x, c})[0];
}

/// x inside the groups of w, of those of several values alone where `several`, and 0 elsewhere.
Value inside_groups(const Value& w, const Value& x, bool several = false) {
  const auto primal = [several](const Values& in) {
    return run(&Kernels::groups, in[0].call,
               {in[1].batch(), in[1].rows(), truth(several), in[0].datum, in[1].datum});
  };
  return with_rule({"groups", primal,
                    [several](const Values& in, const Values&, const Values& g) {
                      return Values{zeros_like(in[0]), inside_groups(in[0], g[0], several)};
                    },
                    [several](const Values& in, const Values&, const Values& d) {
                      return Values{inside_groups(in[0], d[1], several)};
                    }},
                   {w, x})[0];
}

/// diag(w), where w is the diagonal of u^T a v. Its derivative is the symmetric part of u^T da v inside the groups, and
/// 0 outside them.
Value blocks(const Value& w, const Value& a, const Value& u, const Value& v) {
  const auto primal = [](const Values& in) { return Values{diagonal_matrix(in[0])}; };
  const auto backward = [](const Values& in, const Values&, const Values& g) -> Values {
    const Value inside = symmetric(inside_groups(in[0], g[0]));
    return {zeros_like(in[0]), product(product(in[2], inside), in[3], false, true), zeros_like(in[2]),
            zeros_like(in[3])};
  };
  const auto tangent = [](const Values& in, const Values&, const Values& d) -> Values {
    return {inside_groups(in[0], symmetric(product(product(in[2], d[1], true), in[3])))};
  };
  return with_rule({"blocks", primal, backward, tangent}, {w, a, u, v})[0];
}

/// What w is and lambda, the blocks that it is the diagonal of.
struct Spectrum {
  Value w, blocks;
};
enum class Kind { differences, sums, right };

/// The x with x l - l x, l x + x l or x l equal to y. See LINALG_QUOTIENT; the size there is that of
/// `made_of` and `size` together. The tangent of `made_of` is what that of y is made of.
Value quotient(Kind kind, bool strict, const Spectrum& l, const Value& y, const Value& made_of,
               const Value& size) {
  const auto primal = [=](const Values& in) {
    return run(&Kernels::quotient, in[0].call,
               {in[2].batch(), in[2].rows(), in[2].columns(), integer(static_cast<std::int64_t>(kind)),
                truth(strict), in[0].datum, (in[4] + size_of_untracked(in[3])).datum, in[2].datum});
  };
  const auto backward = [=](const Values& in, const Values& out, const Values& g) -> Values {
    const Value& x = out[0];
    const Value y_bar = quotient(kind, false, {in[0], in[1]}, g[0], g[0], zeros_like(in[4]));
    const Value right = product(x, y_bar, true);
    const Value of_blocks = kind == Kind::differences ? product(y_bar, x, false, true) - right
                            : kind == Kind::sums      ? -(product(y_bar, x, false, true) + right)
                                                      : -right;
    return {zeros_like(in[0]), of_blocks, y_bar, zeros_like(in[3]), zeros_like(in[4])};
  };
  const auto tangent = [=](const Values& in, const Values& out, const Values& d) -> Values {
    const Value& x = out[0];
    const Value right = product(x, d[1]);
    const Value turned = kind == Kind::differences ? right - product(d[1], x)
                         : kind == Kind::sums      ? right + product(d[1], x)
                                                   : right;
    return {quotient(kind, strict, {in[0], in[1]}, d[2] - turned, d[3], size_of(x) * size_of(d[1]))};
  };
  return with_rule({"quotient", primal, backward, tangent}, {l.w, l.blocks, y, made_of, size})[0];
}
Value quotient(Kind kind, bool strict, const Spectrum& l, const Value& y, const Value& made_of) {
  return quotient(kind, strict, l, y, made_of, filled(0, {y.batch()}, y));
}

/// Of which values, and what they are of.
struct Place {
  bool singular;
  Datum square;
};

/// NaN for those matrices for which x is not 0, else 0.
Value nan_if(const Value& x) {
  const Value zero = zeros_like(x), one = unless(x, filled(1, sizes_for(x, {x.rows(), x.columns()}), x));
  return {core::perform_broadcast({Opcode::div_, 0, x.call.loc}, zero.datum, one.datum), x.call};
}

/// The matrix whose diagonal the cotangents g of values are. `vectors`: the cotangents of vectors, where a
/// matrix has any; t: the direction in which g was taken, else 0. See LINALG_LEVEL. Third derivatives of
/// values inside a group of several are NaN.
Value level(const Place& place, const Spectrum& l, const Value& vectors, const Value& g, const Value& t,
            const Value& size) {
  const auto primal = [place](const Values& in) {
    return run(&Kernels::level, in[0].call,
               {in[4].batch(), in[4].rows(), truth(place.singular), place.square, in[0].datum, in[3].datum,
                in[5].datum, in[4].datum});
  };
  const auto backward = [](const Values& in, const Values&, const Values& c) -> Values {
    return {zeros_like(in[0]),
            zeros_like(in[1]),
            zeros_like(in[2]),
            diagonal(c[0] + nan_if(in[4])),
            unless(in[2], inside_groups(in[0], symmetric(c[0]), true)),
            zeros_like(in[5])};
  };
  const auto tangent = [place](const Values& in, const Values&, const Values& d) -> Values {
    const Value used = in[2] * in[2] + d[2] * d[2];
    return {level(place, {in[0], in[1]}, used, d[3], unless(used, inside_groups(in[0], d[1] + d[4], true)),
                  size_of(d[2])) +
            nan_if(in[4])};
  };
  return with_rule({"level", primal, backward, tangent}, {l.w, l.blocks, vectors, g, t, size})[0];
}

Value antisymmetric(const Value& a) { return 0.5 * (a - t(a)); }

/// The third result of both: 0, whose cotangent is the direction in which those of the values were taken.
Value none(const Value& w) { return zeros_like(diagonal_matrix(w)); }

Value in_basis(const Value& u, const Value& a, const Value& v) { return product(product(u, a, true), v); }

}  // namespace

namespace {

Values eigh_of(const Value& a, const std::function<Value(const Value& v)>& along) {
  const Datum n = a.rows();
  const Value w = filled(0, sizes_for(a, {n}), a);
  Values all = run(&Kernels::eigh, a.call, {a.batch(), n, w.datum, a.datum});
  if (along)
    all[1] = run(&Kernels::turn, a.call, {a.batch(), n, all[0].datum, along(all[1]).datum, all[1].datum})[0];
  all.push_back(none(all[0]));
  return all;
}

/// t: the direction along which the basis is that of the vectors, else 0.
Value eigh_adjoint(const Value& a, const Values& out, const Values& g, const Value& t) {
  const Value &w = out[0], &v = out[1];
  const Spectrum l{w, blocks(w, symmetric(a), v, v)};
  const Value m = product(v, g[1], true), size = size_of(m);
  const Value inside = quotient(Kind::differences, true, l, antisymmetric(m), m) +
                       level({false, truth(true)}, l, g[1], g[0], t + g[2], size);
  return symmetric(product(product(v, inside), v, false, true));
}
/// The derivative of the values of a in the direction h, the diagonal of v^T h v, as a function of a and h:
/// that of v is part of it.
Value eigh_values_tangent(const Value& a, const Value& values, const Value& vectors, const Value& along) {
  const auto primal = [](const Values& in) { return Values{diagonal(in_basis(in[2], in[3], in[2]))}; };
  const auto backward = [](const Values& in, const Values&, const Values& g) -> Values {
    const Value &w = in[1], &v = in[2];
    const Spectrum l{w, blocks(w, in[0], v, v)};
    const Value m = in_basis(v, in[3], v), zero = zeros_like(m);
    const Value of_a = quotient(Kind::differences, false, l, scale_columns(m, g[0]) - scale_rows(g[0], m), m);
    const Value of_h = level({false, truth(true)}, l, zero, g[0], zero, size_of(zero));
    return {product(product(v, of_a), v, false, true), zeros_like(w), zeros_like(v),
            product(product(v, of_h), v, false, true)};
  };
  const auto tangent = [](const Values& in, const Values&, const Values& d) -> Values {
    const Value &w = in[1], &v = in[2];
    const Spectrum l{w, blocks(w, in[0], v, v)};
    const Value da = in_basis(v, symmetric(d[0]), v);
    const Value k = quotient(Kind::differences, false, l, da, da);
    return {diagonal(2 * product(in_basis(v, in[3], v), k) + in_basis(v, d[3], v))};
  };
  return with_rule({"eigh_values_tangent", primal, backward, tangent}, {a, values, vectors, along})[0];
}
Values eigh_tangent(const Value& a, const Values& out, const Value& d, bool strict) {
  const Value &w = out[0], &v = out[1];
  const Spectrum l{w, blocks(w, symmetric(a), v, v)};
  const Value h = symmetric(d), m = in_basis(v, h, v);
  return {eigh_values_tangent(symmetric(a), w, v, h),
          product(v, quotient(Kind::differences, strict, l, m, m)), zeros_like(out[2])};
}

/// In a basis of each group that is no special one.
Values eigh_in_any_basis(const Value& a) {
  const auto primal = [](const Values& in) {
    return eigh_of(in[0], [](const Value& v) { return zeros_like(v); });
  };
  const auto backward = [](const Values& in, const Values& out, const Values& g) -> Values {
    return {eigh_adjoint(in[0], out, g, out[2])};
  };
  const auto tangent = [](const Values& in, const Values& out, const Values& d) {
    return eigh_tangent(in[0], out, d[0], false);
  };
  return with_rule({"eigh", primal, backward, tangent}, {a});
}
/// In the basis of each group that the vectors have along a + t h: that in which h is diagonal.
Values eigh_along(const Value& a, const Value& direction) {
  const auto primal = [](const Values& in) {
    return eigh_of(in[0], [&](const Value& v) { return in_basis(v, symmetric(in[1]), v); });
  };
  const auto backward = [](const Values& in, const Values& out, const Values& g) -> Values {
    const Value h = in_basis(out[1], symmetric(in[1]), out[1]);
    return {eigh_adjoint(in[0], out, g, unless(g[1], inside_groups(out[0], h, true))), zeros_like(in[1])};
  };
  const auto tangent = [](const Values& in, const Values& out, const Values& d) {
    return eigh_tangent(in[0], out, d[0], true);
  };
  return with_rule({"eigh", primal, backward, tangent}, {a, direction});
}

}  // namespace

/// Sources: Giles 2008, section 3.1; J. R. Magnus, "On differentiating eigenvalues and eigenvectors", 1985;
/// T. Kato, "Perturbation theory for linear operators", 1966, chapter II, for equal values.
Values eigh(const Value& a) {
  require_square("eigh", a);
  if (in_several(a)) {
    const Values all = eigh(as_one_batch(a));
    return in_batches_of(a, Values{all[0], all[1]});
  }
  const auto primal = [](const Values& in) { return eigh_of(in[0], nullptr); };
  const auto backward = [](const Values& in, const Values& out, const Values& g) -> Values {
    return {eigh_adjoint(in[0], out, g, out[2])};
  };
  const auto tangent = [](const Values& in, const Values& out, const Values& d) {
    return eigh_tangent(in[0], out, d[0], false);
  };
  const auto forward = [](const Values& in) { return eigh_in_any_basis(in[0]); };
  const auto along = [](const Values& in, const Values& d) { return eigh_along(in[0], d[0]); };
  return with_rule({"eigh", primal, backward, tangent, forward, along}, {a});
}

namespace {

Values svd_of(const Value& a, const std::function<Value(const Value& u, const Value& vt)>& along) {
  const Datum m = a.rows(), n = a.columns(), k = smaller(m, n, a.call);
  Values all = run(&Kernels::svd, a.call,
                   {a.batch(), m, n, a.datum, filled(0, sizes_for(a, {m, k}), a).datum,
                    filled(0, sizes_for(a, {k}), a).datum, filled(0, sizes_for(a, {k, n}), a).datum});
  if (along) {
    const Values turned =
        run(&Kernels::turn_both, a.call,
            {a.batch(), m, n, k, all[1].datum, along(all[0], all[2]).datum, all[0].datum, all[2].datum});
    all[0] = turned[0], all[2] = turned[1];
  }
  all.push_back(none(all[1]));
  return all;
}

Place of_singular(const Value& a) {
  return {true, core::perform({Opcode::eq_, 0, a.call.loc}, {a.rows(), a.columns()})};
}

/// With v^T da u in the basis of the vectors: its symmetric part turns u and v by the same angle over
/// differences of values, its antisymmetric part turns them against each other over sums.
Value svd_adjoint(const Value& a, const Values& out, const Values& g, const Value& direction) {
  const Value &u = out[0], &s = out[1], v = t(out[2]), of_v = t(g[2]);
  const Spectrum l{s, blocks(s, a, u, v)};
  const Value mu = product(u, g[0], true), mv = product(v, of_v, true);
  const Value vectors = above(g[0], of_v), made_of = above(vectors, above(mu, mv));
  const Value inside = quotient(Kind::differences, true, l, antisymmetric(mu + mv), made_of) +
                       quotient(Kind::sums, true, l, antisymmetric(mu - mv), made_of) +
                       level(of_singular(a), l, vectors, g[1], direction + g[3], size_of(vectors));
  const Value left = quotient(Kind::right, true, l, g[0] - product(u, mu), made_of);
  const Value right = quotient(Kind::right, true, l, of_v - product(v, mv), made_of);
  return product(product(u, inside) + left, v, false, true) + product(u, right, false, true);
}
/// How u and v turn in the direction d.
struct Turns {
  Value u, v;
};
Turns svd_turns(const Spectrum& l, const Value& u, const Value& v, const Value& d, bool strict) {
  const Value right = product(d, v), left = product(d, u, true), p = product(u, right, true);
  const Value made_of = above(above(right, left), p);
  const Value same = quotient(Kind::differences, strict, l, symmetric(p), made_of);
  const Value against = quotient(Kind::sums, true, l, antisymmetric(p), made_of);
  return {product(u, same + against) + quotient(Kind::right, true, l, right - product(u, p), made_of),
          product(v, same - against) +
              quotient(Kind::right, true, l, left - product(v, p, false, true), made_of)};
}

/// The derivative of the values of a in the direction h, the diagonal of u^T h v, as a function of a and h.
Value svd_values_tangent(const Value& a, const Value& left_ones, const Value& values, const Value& right_ones,
                         const Value& along) {
  const auto primal = [](const Values& in) { return Values{diagonal(in_basis(in[1], in[4], in[3]))}; };
  const auto backward = [](const Values& in, const Values&, const Values& g) -> Values {
    const Value &u = in[1], &s = in[2], &v = in[3], &h = in[4];
    const Spectrum l{s, blocks(s, in[0], u, v)};
    const Value right = product(h, v), left = product(h, u, true), p = product(u, right, true);
    const Value made_of = scale_columns(above(above(right, left), p), g[0]);
    const Value even = symmetric(p), odd = antisymmetric(p), zero = zeros_like(p);
    const Value inside =
        quotient(Kind::differences, false, l, scale_columns(even, g[0]) - scale_rows(g[0], even), made_of) +
        quotient(Kind::sums, true, l, scale_columns(odd, g[0]) + scale_rows(g[0], odd), made_of);
    const Value on_left = quotient(Kind::right, true, l, scale_columns(right - product(u, p), g[0]), made_of);
    const Value on_right =
        quotient(Kind::right, true, l, scale_columns(left - product(v, p, false, true), g[0]), made_of);
    const Value of_h = level(of_singular(in[0]), l, zero, g[0], zero, size_of(zero));
    return {product(product(u, inside) + on_left, v, false, true) + product(u, on_right, false, true),
            zeros_like(u), zeros_like(s), zeros_like(v), product(product(u, of_h), v, false, true)};
  };
  const auto tangent = [](const Values& in, const Values&, const Values& d) -> Values {
    const Value &u = in[1], &s = in[2], &v = in[3];
    const Turns turns = svd_turns({s, blocks(s, in[0], u, v)}, u, v, d[0], false);
    return {diagonal(in_basis(turns.u, in[4], v) + in_basis(u, in[4], turns.v) + in_basis(u, d[4], v))};
  };
  return with_rule({"svd_values_tangent", primal, backward, tangent},
                   {a, left_ones, values, right_ones, along})[0];
}
Values svd_tangent(const Value& a, const Values& out, const Value& d, bool strict) {
  const Value &u = out[0], &s = out[1], v = t(out[2]);
  const Turns turns = svd_turns({s, blocks(s, a, u, v)}, u, v, d, strict);
  return {turns.u, svd_values_tangent(a, u, s, v, d), t(turns.v), zeros_like(out[3])};
}

Values svd_in_any_basis(const Value& a) {
  const auto primal = [](const Values& in) {
    return svd_of(in[0], [](const Value&, const Value& vt) {
      return filled(0, sizes_for(vt, {vt.rows(), vt.rows()}), vt);
    });
  };
  const auto backward = [](const Values& in, const Values& out, const Values& g) -> Values {
    return {svd_adjoint(in[0], out, g, out[3])};
  };
  const auto tangent = [](const Values& in, const Values& out, const Values& d) {
    return svd_tangent(in[0], out, d[0], false);
  };
  return with_rule({"svd", primal, backward, tangent}, {a});
}
Values svd_along(const Value& a, const Value& step) {
  const auto primal = [](const Values& in) {
    return svd_of(in[0],
                  [&](const Value& u, const Value& vt) { return symmetric(in_basis(u, in[1], t(vt))); });
  };
  const auto backward = [](const Values& in, const Values& out, const Values& g) -> Values {
    const Value h = symmetric(in_basis(out[0], in[1], t(out[2])));
    const Value direction = unless(above(g[0], t(g[2])), inside_groups(out[1], h, true));
    return {svd_adjoint(in[0], out, g, direction), zeros_like(in[1])};
  };
  const auto tangent = [](const Values& in, const Values& out, const Values& d) {
    return svd_tangent(in[0], out, d[0], true);
  };
  return with_rule({"svd", primal, backward, tangent}, {a, step});
}

}  // namespace

/// Sources: J. Townsend, "Differentiating the singular value decomposition", 2016; Wan & Zhang, "Automatic
/// differentiation for complex valued SVD", 2019.
Values svd(const Value& a) {
  require_rank("svd", a, 2, most_dimensions);
  if (in_several(a)) {
    const Values all = svd(as_one_batch(a));
    return in_batches_of(a, Values{all[0], all[1], all[2]});
  }
  const auto primal = [](const Values& in) { return svd_of(in[0], nullptr); };
  const auto backward = [](const Values& in, const Values& out, const Values& g) -> Values {
    return {svd_adjoint(in[0], out, g, out[3])};
  };
  const auto tangent = [](const Values& in, const Values& out, const Values& d) {
    return svd_tangent(in[0], out, d[0], false);
  };
  const auto forward = [](const Values& in) { return svd_in_any_basis(in[0]); };
  const auto along = [](const Values& in, const Values& d) { return svd_along(in[0], d[0]); };
  return with_rule({"svd", primal, backward, tangent, forward, along}, {a});
}

}  // namespace lantern::linalg::detail
