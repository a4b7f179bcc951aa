// Operations that rules of linear algebra are written in.
#include "lantern/compiler/linalg/value.hpp"

#include <algorithm>
#include <array>
#include <memory>

#include "lantern/compiler/ad/custom_rule.hpp"
#include "lantern/compiler/staging/check.hpp"
#include "lantern/compiler/staging/einsum.hpp"
#include "lantern/compiler/staging/requirement.hpp"

namespace lantern::linalg::detail {

using core::perform;
using core::perform_broadcast;

namespace {

Value with(const Value& a, Datum d) { return {std::move(d), a.call}; }
Value binary(Opcode code, const Value& a, const Value& b) {
  return with(a, perform_broadcast({code, 0, a.call.loc}, a.datum, b.datum));
}
/// Of matrices by the first notation, of batches by the second.
Value indexed(const char* matrix, const char* batch, const Value& first, const Datums& operands) {
  return with(first, core::detail::einsum(first.batched() ? batch : matrix, operands, first.call.loc));
}

}  // namespace

Datum integer(std::int64_t n) { return Datum::integer(n, ir::I64); }
Datum truth(bool b) { return Datum::integer(b, ir::Bool); }
Datum number(double x, const Value& like) { return Datum::number(x, ir::Type(like.datum.type().element())); }

Value operator+(const Value& a, const Value& b) { return binary(Opcode::add_, a, b); }
Value operator-(const Value& a, const Value& b) { return binary(Opcode::sub_, a, b); }
Value operator*(const Value& a, const Value& b) { return binary(Opcode::mul_, a, b); }
Value operator*(double a, const Value& b) { return with(b, number(a, b)) * b; }
Value operator-(const Value& a) { return with(a, perform({Opcode::neg_, 0, a.call.loc}, {a.datum})); }

Value zeros_like(const Value& a) { return with(a, core::zeros_like(a.datum, a.call.loc)); }
Value stop_gradient(const Value& a) {
  return with(a, perform({Opcode::stop_gradient_, 0, a.call.loc}, {a.datum}));
}
Value filled(double x, const Datums& sizes, const Value& like) {
  Datums operands{number(x, like)};
  operands.insert(operands.end(), sizes.begin(), sizes.end());
  return with(like, perform({Opcode::fill_, 0, like.call.loc}, operands));
}

Value t(const Value& a) { return indexed("ij->ji", "bij->bji", a, {a.datum}); }
Value symmetric(const Value& a) { return 0.5 * (a + t(a)); }
Value inner(const Value& a, const Value& b) {
  return indexed("ij,ij->", "bij,bij->b", a, {a.datum, b.datum});
}
Value scaled(const Value& numbers, const Value& a) {
  return a.batched() ? with(a, core::detail::einsum("b,bij->bij", {numbers.datum, a.datum}, a.call.loc))
                     : numbers * a;
}
Value diagonal(const Value& a) { return indexed("ii->i", "bii->bi", a, {a.datum}); }
Datums sizes_for(const Value& like, Datums sizes) {
  if (like.batched()) sizes.insert(sizes.begin(), like.dim(0));
  return sizes;
}
Value diagonal_matrix(const Value& v) {
  const Datum n = v.columns();
  const Value ones = filled(1, v.rank() == 2 ? Datums{v.dim(0), n, n} : Datums{n, n}, v);
  return scale_columns(weighted(ones, 0, 1, 0), v);
}
Value scale_columns(const Value& a, const Value& v) {
  return indexed("ij,j->ij", "bij,bj->bij", a, {a.datum, v.datum});
}
Value scale_rows(const Value& v, const Value& a) {
  return indexed("ij,i->ij", "bij,bi->bij", a, {a.datum, v.datum});
}

namespace {
/// Rows are what slices and joins go through: those of a batch come first, and go back.
Value rows_first(const Value& a) {
  return a.batched() ? with(a, core::detail::einsum("bij->ibj", {a.datum}, a.call.loc)) : a;
}
}  // namespace
Value row_range(const Value& a, const Datum& lo, const Datum& hi) {
  return rows_first(with(a, perform({Opcode::slice_, 0, a.call.loc}, {rows_first(a).datum, lo, hi})));
}
Value column_range(const Value& a, const Datum& lo, const Datum& hi) { return t(row_range(t(a), lo, hi)); }
Value above(const Value& a, const Value& b) {
  return rows_first(
      with(a, perform({Opcode::concat_, 0, a.call.loc}, {rows_first(a).datum, rows_first(b).datum})));
}
Value beside(const Value& a, const Value& b) { return t(above(t(a), t(b))); }

Value as_one_batch(const Value& a, int leading) {
  Datums sizes{integer(1)};
  for (int k = 0; k < leading; ++k) sizes[0] = perform({Opcode::mul_, 0, a.call.loc}, {sizes[0], a.dim(k)});
  for (int k = leading; k < a.rank(); ++k) sizes.push_back(a.dim(k));
  return in_shape_of(a, filled(0, sizes, a));
}
Value in_batches_of(const Value& like, const Value& a) {
  Datums sizes;
  for (int k = 0; k < like.rank() - 2; ++k) sizes.push_back(like.dim(k));
  for (int k = 1; k < a.rank(); ++k) sizes.push_back(a.dim(k));
  return in_shape_of(a, filled(0, sizes, a));
}
Values in_batches_of(const Value& like, const Values& all) {
  Values results;
  for (const Value& a : all) results.push_back(in_batches_of(like, a));
  return results;
}

Value as_columns(const Value& v) {
  Datums sizes;
  for (int k = 0; k < v.rank(); ++k) sizes.push_back(v.dim(k));
  sizes.push_back(integer(1));
  return in_shape_of(v, filled(0, sizes, v));
}
Value in_shape_of(const Value& a, const Value& like) {
  return with(a, perform({Opcode::reshape_, 0, a.call.loc}, {a.datum, core::strip(like.datum)}));
}

Value product(const Value& a, const Value& b, bool a_transposed, bool b_transposed) {
  const auto primal = [=](const Values& in) {
    const Datum m = a_transposed ? in[0].columns() : in[0].rows();
    const Datum k = a_transposed ? in[0].rows() : in[0].columns();
    const Datum n = b_transposed ? in[1].rows() : in[1].columns();
    const Value c = filled(0, sizes_for(in[0], {m, n}), in[0]);
    return run(&Kernels::product, in[0].call,
               {in[0].batch(), m, n, k, truth(a_transposed), truth(b_transposed), in[0].datum, in[1].datum,
                c.datum});
  };
  const auto backward = [=](const Values& in, const Values&, const Values& g) -> Values {
    return {
        a_transposed ? product(in[1], g[0], b_transposed, true) : product(g[0], in[1], false, !b_transposed),
        b_transposed ? product(g[0], in[0], true, a_transposed) : product(in[0], g[0], !a_transposed, false)};
  };
  const auto tangent = [=](const Values& in, const Values&, const Values& d) -> Values {
    return {product(d[0], in[1], a_transposed, b_transposed) +
            product(in[0], d[1], a_transposed, b_transposed)};
  };
  return with_rule({"product", primal, backward, tangent}, {a, b})[0];
}

Value weighted(const Value& a, double below, double diagonal, double above) {
  const auto again = [=](const Value& v) { return weighted(v, below, diagonal, above); };
  const auto primal = [=](const Values& in) {
    const Value& v = in[0];
    return run(&Kernels::weighted, v.call,
               {v.batch(), v.rows(), number(below, v), number(diagonal, v), number(above, v), v.datum});
  };
  return with_rule(
      {"weighted", primal, [=](const Values&, const Values&, const Values& g) { return Values{again(g[0])}; },
       [=](const Values&, const Values&, const Values& d) { return Values{again(d[0])}; }},
      {a})[0];
}

Values with_rule(const Ruled& ruled, const Values& in) {
  const Call call = in.front().call;
  const auto values = [call](const Datums& data) {
    Values all;
    for (const Datum& d : data) all.push_back({d, call});
    return all;
  };
  const auto data = [](const Values& all) {
    Datums out;
    for (const Value& v : all) out.push_back(v.datum);
    return out;
  };
  const std::size_t arguments = in.size();
  const auto rule = std::make_shared<core::ad::Rule>();
  rule->name = ruled.name;
  rule->what = "linalg::" + ruled.name;
  rule->primal = [=](const Datums& d) { return data(ruled.primal(values(d))); };
  if (ruled.forward)
    rule->forward = [=](const Datums& d) -> core::ad::Rule::Split {
      const Datums out = data(ruled.forward(values(d)));
      return {out, core::ad::joined(d, out)};
    };
  rule->backward = [=](const Datums& residuals, const Datums& cotangents) {
    return data(ruled.backward(values(core::ad::slice(residuals, 0, arguments)),
                               values(core::ad::slice(residuals, arguments, residuals.size())),
                               values(cotangents)));
  };
  rule->tangent = [=](const Datums& d, const Datums& tangents) -> core::ad::Rule::Split {
    const Values out = ruled.along ? ruled.along(values(d), values(tangents)) : with_rule(ruled, values(d));
    return {data(out), data(ruled.tangent(values(d), out, values(tangents)))};
  };
  return values(core::ad::call_with_rule(rule, data(in), call.loc));
}

Values run(Kernel Kernels::* kernel, const Call& call, const Datums& operands) {
  Values results;
  for (const Datum& d :
       core::detail::call_external(*(call.kernels->*kernel), {.threads = true}, operands, call.loc))
    results.push_back({d, call});
  return results;
}

void require_rank(const char* function, const Value& a, int least, int most) {
  if (a.rank() >= least && a.rank() <= most) return;
  const std::string ranks =
      least == most ? std::to_string(least) : std::to_string(least) + " to " + std::to_string(most);
  core::raise_at(a.call.loc, std::string(function) + ": expected an operand of rank " + ranks + ", got " +
                                 a.datum.type().str());
}
void require_square(const char* function, const Value& a) {
  require_rank(function, a, 2, most_dimensions);
  require_equal(function, a.rows(), a.columns(), "a square matrix", a.call);
}
void require_equal(const char* function, const Datum& size, const Datum& other, const char* what,
                   const Call& call) {
  core::detail::require(perform({Opcode::eq_, 0, call.loc}, {size, other}),
                        std::string(function) + ": expected " + what + ", got {} and {}", call.loc,
                        std::array{size, other});
}

}  // namespace lantern::linalg::detail
