// Functions of whole matrices, whose derivatives do not depend on a basis: of symmetric ones by their
// eigenvalues, the square root, the polar factors, the pseudoinverse and least squares.
#include <algorithm>
#include <array>
#include <numeric>

#include "lantern/compiler/ad/program.hpp"
#include "lantern/compiler/linalg/functions.hpp"
#include "lantern/compiler/staging/requirement.hpp"
#include "lantern/compiler/tensor/build.hpp"

namespace lantern::linalg::detail {

namespace {

using core::detail::Build;

/// Nodes in 0 .. 1 and weights of the rule with 7 points, and the weights of the rule with 3 of them. Source:
/// A. S. Kronrod, "Nodes and weights of quadrature formulas", 1965; the values: QUADPACK, 1983, and Gauss for
/// 3 points.
constexpr std::array<std::array<double, 3>, 7> quadrature{{
    {0.01975436564598987, 0.05232811301323363, 0},
    {0.1127016653792583, 0.13424404493416672, 5.0 / 18},
    {0.28287812532659873, 0.20069870738798112, 0},
    {0.5, 0.22545826932923707, 8.0 / 18},
    {0.7171218746734013, 0.20069870738798112, 0},
    {0.8872983346207417, 0.13424404493416672, 5.0 / 18},
    {0.9802456343540101, 0.05232811301323363, 0},
}};

/// Divided differences of a function, f[x0, ..., xn].
class Divided {
 public:
  Divided(Scalar f, const Value& like) : f_(std::move(f)), like_(like), make_{like.call.loc} {
    rule_ = make_.fill(number(0, like), {integer(7), integer(3)});
    for (std::size_t i = 0; i < 7; ++i)
      for (std::size_t j = 0; j < 3; ++j)
        rule_ =
            make_.set(rule_, {integer(static_cast<std::int64_t>(i)), integer(static_cast<std::int64_t>(j))},
                      number(quadrature[i][j], like));
  }

  /// With h(y) = f[x0, ..., y] of one point less: the mean of h' from a to b, the last two points, by
  /// quadrature, and where that does not converge, since a and b are far from each other, (h(b) - h(a)) / (b
  /// - a). Source: the integral form of divided differences, Higham 2008, "Functions of Matrices", appendix
  /// B.16.
  Datum operator()(const Datums& x) const {
    if (x.size() == 1) return f_(x[0]);
    const Datum a = x[x.size() - 2], b = x.back();
    const Datums front(x.begin(), x.end() - 2);
    const Datum gap = make_.sub(b, a), zero = number(0, like_);
    const Datums means =
        make_.loop(integer(0), integer(7), {zero, zero}, [&](const Datum& i, const Datums& sums) -> Datums {
          const auto entry = [&](std::int64_t k) { return make_.get(rule_, {i, integer(k)}); };
          const Datum slope = slope_at(front, make_.add(a, make_.mul(gap, entry(0))));
          return {make_.add(sums[0], make_.mul(entry(1), slope)),
                  make_.add(sums[1], make_.mul(entry(2), slope))};
        });
    const auto size = [&](const Datum& d) { return make_.unary(Opcode::abs_, d); };
    const bool wide = like_.datum.type().element() == ir::Kind::f64;
    const auto no_more = [&](const Datum& c, double times, const Datum& d) {
      return make_.binary(Opcode::le_, c, make_.mul(number(times, like_), d));
    };
    const Datum converged = no_more(size(make_.sub(means[0], means[1])), wide ? 1e-8 : 1e-4, size(means[0]));
    const Datum equal = no_more(size(gap), wide ? 1e-14 : 1e-5, size(a));
    return core::detail::branch(
        make_.binary(Opcode::lor_, converged, equal), [&] { return Datums{means[0]}; },
        [&] { return Datums{make_.div(make_.sub(at(front, b), at(front, a)), gap)}; }, make_.loc)[0];
  }

 private:
  Datum at(Datums front, const Datum& y) const {
    front.push_back(y);
    return (*this)(front);
  }
  Datum slope_at(Datums front, const Datum& y) const {
    front.push_back(y);
    core::ad::Active active(front.size(), false);
    active.back() = true;
    return core::ad::jvp({"divided_difference", [*this](const Datums& x) { return Datums{(*this)(x)}; }},
                         front, active, {number(1, like_)}, make_.loc)
        .back();
  }

  Scalar f_;
  Value like_;
  Build make_;
  Datum rule_;
};

/// The derivative of a spectral function of order in.size() - 1 in the directions in[1], ...: in the basis of
/// eigenvectors the sum, over all orders of the directions h, k, ..., of f[i, j, ..., l] h_ij k_j. ...
/// Symmetric in the directions and in what it is multiplied by. Sources: Ju. L. Daleckii, S. G. Krein, 1965;
/// Higham 2008, "Functions of Matrices", theorem 3.11; R. Bhatia, "Matrix Analysis", 1997, section V.3.
Value spectral_derivative(const Scalar& f, const Values& in) {
  const std::size_t order = in.size() - 1;
  const auto primal = [f, order](const Values& operands) -> Values {
    const Value& a = operands[0];
    const Datum n = a.rows();
    const Build make{a.call.loc};
    const Values both =
        run(&Kernels::eigh, a.call, {a.batch(), n, filled(0, sizes_for(a, {n}), a).datum, a.datum});
    const Value &w = both[0], &v = both[1];
    const Divided divided(f, a);
    const Datum table =
        make.tabulate(a.datum.type().element(), sizes_for(a, Datums(order + 1, n)), [&](const Datums& at) {
          Datums x;
          for (std::size_t k = a.batched() ? 1 : 0; k < at.size(); ++k)
            x.push_back(make.get(w.datum, a.batched() ? Datums{at[0], at[k]} : Datums{at[k]}));
          return divided(x);
        });
    if (order == 0) return {product(scale_columns(v, {table, a.call}), v, false, true)};
    Values directions;
    for (std::size_t k = 1; k <= order; ++k)
      directions.push_back(product(product(v, symmetric(operands[k]), true), v));
    const std::string batch = a.batched() ? "z" : "";
    const auto letter = [](std::size_t k) { return std::string(1, static_cast<char>('a' + k)); };
    std::string notation = batch;
    for (std::size_t k = 0; k <= order; ++k) notation += letter(k);
    for (std::size_t k = 0; k < order; ++k) notation += "," + batch + letter(k) + letter(k + 1);
    notation += "->" + batch + letter(0) + letter(order);
    std::vector<std::size_t> numbers(order);
    std::iota(numbers.begin(), numbers.end(), std::size_t{0});
    Value sum = zeros_like(v);
    do {
      Datums factors{table};
      for (const std::size_t k : numbers) factors.push_back(directions[k].datum);
      sum = sum + Value{make.einsum(notation, factors), a.call};
    } while (std::ranges::next_permutation(numbers).found);
    return {product(product(v, sum), v, false, true)};
  };
  const auto with = [f](Values operands, std::size_t k, const Value& direction) {
    if (k == 0)
      operands.push_back(direction);
    else
      operands[k] = direction;
    return spectral_derivative(f, operands);
  };
  const auto backward = [with](const Values& operands, const Values&, const Values& g) {
    Values adjoints;
    for (std::size_t k = 0; k < operands.size(); ++k) adjoints.push_back(with(operands, k, g[0]));
    return adjoints;
  };
  const auto tangent = [with](const Values& operands, const Values&, const Values& d) -> Values {
    Value sum = with(operands, 0, d[0]);
    for (std::size_t k = 1; k < operands.size(); ++k) sum = sum + with(operands, k, d[k]);
    return {sum};
  };
  return with_rule({"spectral", primal, backward, tangent}, in)[0];
}

/// x with p x + x p = c for symmetric p, whose eigenvalues are not below 0.
Value lyapunov(const Value& p, const Value& c) {
  const auto primal = [](const Values& in) {
    return run(&Kernels::lyapunov, in[0].call, {in[0].batch(), in[0].rows(), in[0].datum, in[1].datum});
  };
  const auto backward = [](const Values& in, const Values& x, const Values& g) -> Values {
    const Value c_bar = lyapunov(in[0], g[0]);
    return {-symmetric(product(c_bar, x[0], false, true) + product(x[0], c_bar, true)), c_bar};
  };
  const auto tangent = [](const Values& in, const Values& x, const Values& d) -> Values {
    const Value dp = symmetric(d[0]);
    return {lyapunov(in[0], d[1] - product(dp, x[0]) - product(x[0], dp))};
  };
  return with_rule({"lyapunov", primal, backward, tangent}, {p, c})[0];
}

/// q p^-1 for symmetric p.
Value over(const Value& q, const Value& p) { return t(solve(p, t(q))); }

}  // namespace

Value spectral(const Value& a, const Scalar& f) {
  require_square("spectral", a);
  if (in_several(a)) return in_batches_of(a, spectral(as_one_batch(a), f));
  return spectral_derivative(f, {a});
}

/// Source: Higham 2008, "Functions of Matrices", section 6.1: x dx + dx x = da.
Value sqrtm(const Value& a) {
  require_square("sqrtm", a);
  if (in_several(a)) return in_batches_of(a, sqrtm(as_one_batch(a)));
  const auto primal = [](const Values& in) {
    return run(&Kernels::sqrtm, in[0].call, {in[0].batch(), in[0].rows(), in[0].datum});
  };
  const auto backward = [](const Values&, const Values& x, const Values& g) -> Values {
    return {symmetric(lyapunov(x[0], g[0]))};
  };
  const auto tangent = [](const Values&, const Values& x, const Values& d) -> Values {
    return {lyapunov(x[0], symmetric(d[0]))};
  };
  return with_rule({"sqrtm", primal, backward, tangent}, {a})[0];
}

/// With m = u^T da and w the antisymmetric solution of p w + w p = m - m^T: du = u w + (da - u m) p^-1 and
/// dp = m - w p. Source: C. Kenney, A. J. Laub, "Polar decomposition and matrix sign function condition
/// estimates", 1991, for square matrices.
Values polar(const Value& a) {
  require_rank("polar", a, 2, most_dimensions);
  if (in_several(a)) return in_batches_of(a, polar(as_one_batch(a)));
  core::detail::require(
      core::perform({Opcode::le_, 0, a.call.loc}, {a.columns(), a.rows()}),
      "polar: expected no more columns than rows, got {} columns and {} rows; take the factors of "
      "the transposed matrix",
      a.call.loc, std::array{a.columns(), a.rows()});
  const auto primal = [](const Values& in) {
    const Value& x = in[0];
    const Datum m = x.rows(), n = x.columns();
    return run(&Kernels::polar, x.call,
               {x.batch(), m, n, x.datum, filled(0, sizes_for(x, {m, n}), x).datum,
                filled(0, sizes_for(x, {n, n}), x).datum});
  };
  const auto backward = [](const Values&, const Values& out, const Values& g) -> Values {
    const Value &u = out[0], &p = out[1], of_p = symmetric(g[1]);
    const Value y = lyapunov(p, product(u, g[0], true) - product(of_p, p)), q = over(g[0], p);
    return {product(u, y - t(y) + of_p - product(u, q, true)) + q};
  };
  const auto tangent = [](const Values&, const Values& out, const Values& d) -> Values {
    const Value &u = out[0], &p = out[1], m = product(u, d[0], true);
    const Value w = lyapunov(p, m - t(m));
    return {product(u, w) + over(d[0] - product(u, m), p), m - product(w, p)};
  };
  return with_rule({"polar", primal, backward, tangent}, {a});
}

/// For directions that keep the rank. Source: G. H. Golub, V. Pereyra, "The differentiation of
/// pseudo-inverses and nonlinear least squares problems whose variables separate", 1973, theorem 4.3.
Value pinv(const Value& a) {
  require_rank("pinv", a, 2, most_dimensions);
  if (in_several(a)) return in_batches_of(a, pinv(as_one_batch(a)));
  const auto primal = [](const Values& in) {
    const Value& m = in[0];
    const Datum rows = m.rows(), columns = m.columns();
    return run(&Kernels::pinv, m.call,
               {m.batch(), rows, columns, m.datum, filled(0, sizes_for(m, {columns, rows}), m).datum});
  };
  const auto backward = [](const Values& in, const Values& out, const Values& g) -> Values {
    const Value &m = in[0], &x = out[0];
    const Value first = product(x, product(g[0], x, false, true), true);   // x^T g x^T
    const Value second = product(g[0], product(x, x, false, true), true);  // g^T x x^T
    const Value third = product(x, product(x, g[0], false, true), true);   // x^T x g^T
    return {second - product(m, product(x, second)) + third - product(third, product(x, m)) - first};
  };
  const auto tangent = [](const Values& in, const Values& out, const Values& d) -> Values {
    const Value &m = in[0], &x = out[0], &dm = d[0];
    const Value first = product(product(x, dm), x);
    const Value second = product(product(x, x, false, true), dm, false, true);  // x x^T dm^T
    const Value third = product(product(dm, x, true, true), x);                 // dm^T x^T x
    return {second - product(product(second, m), x) + third - product(product(x, m), third) - first};
  };
  return with_rule({"pinv", primal, backward, tangent}, {a})[0];
}

Value lstsq(const Value& a, const Value& b) {
  require_rank("lstsq", a, 2, most_dimensions);
  if (in_several(a)) return in_batches_of(a, lstsq(as_one_batch(a), right_in_one_batch("lstsq", a, b)));
  const Value x = product(pinv(a), columns_for("lstsq", a, b));
  if (b.rank() == a.rank()) return x;
  return in_shape_of(x, filled(0, sizes_for(a, {a.columns()}), a));
}

}  // namespace lantern::linalg::detail
