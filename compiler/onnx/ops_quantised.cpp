// Quantised numbers: integers q that represent (q - zero point) scale, and products of them.
#include "lantern/compiler/onnx/quantised.hpp"
#include "lantern/compiler/onnx/rules.hpp"
#include "lantern/compiler/onnx/window.hpp"

namespace lantern::onnx::rules {

namespace {

/// The least and the largest integer of a type of up to 16 bits.
std::pair<double, double> range_of(const Call& c, Element e) {
  const std::size_t bits = bits_in_file(e);
  if (!is_integer(e) || bits > 16)
    c.fail(std::string("expected a zero point or output_dtype of 16 bits or fewer, got ") + name(e));
  const auto values = static_cast<double>(std::int64_t{1} << bits);
  if (is_unsigned(e)) return {0, values - 1};
  return {-values / 2, values / 2 - 1};
}

/// Numbers of a half-precision type; those of others are as exact as the arithmetic.
Datum rounded_half(const Call& c, const Datum& x, Element e) {
  return e == Element::float16 || e == Element::bfloat16 ? converted(c, x, Element::float32, e) : x;
}

/// The axis that scales go along; 0 of what has no more than one.
int scale_axis(const Call& c) {
  const int rank = c.rank();
  if (rank <= 1 || c.rank(1) == 0 || (c.rank(1) == 1 && c.term(1).dims()[0] == 1)) return 0;
  return c.axis(c.attribute("axis", std::int64_t{1}), rank);
}

}  // namespace

Datum along(const Call& c, const Datum& v, int axis, int rank, const Datum& x) {
  if (!v.type().is_tensor()) return v;
  const int own = v.type().rank();
  if (own == 1 && known(c.b.size(v, 0)) == 1) return c.b.get(v, {c.integer(0)});
  const std::int64_t block = x.empty() ? 0 : c.attribute("block_size", std::int64_t{0});
  if (block < 0) c.fail("attribute 'block_size': expected 0 or more, got " + std::to_string(block));
  if (own == rank && block > 0) {
    const auto d = static_cast<std::size_t>(axis);
    const Indices sizes = c.sizes(x);
    const Datum each = c.integer(block), blocks = c.b.size(v, axis);
    c.b.require(c.op(Opcode::land_, c.op(Opcode::le_, sizes[d], c.b.mul(blocks, each)),
                     c.b.less(c.b.mul(c.b.sub(blocks, c.integer(1)), each), sizes[d])),
                "attribute 'block_size': expected as many scales as there are blocks, got {} for {} elements",
                {blocks, sizes[d]});
    Indices tabulated = c.sizes(v);
    tabulated[d] = sizes[d];
    return c.b.tabulate(v.type().element(), tabulated, [&](Indices at) {
      at[d] = c.b.div(at[d], each);
      return c.b.get(v, at);
    });
  }
  if (own != 1) return v;
  std::vector<int> ones;
  for (int d = axis + 1; d < rank; ++d) ones.push_back(d - axis);
  return c.b.with_ones(v, ones);
}

Datum quantised(const Call& c, const Datum& x, const Datum& scale, const Datum& zero, Element to,
                Element precision) {
  const Datum quotient = rounded_half(c, c.b.div(x, scale), precision);
  if (is_float(to)) {
    const Datum shifted =
        zero.empty() ? quotient : c.b.add(quotient, c.cast(zero, quotient.type().element()));
    return converted(c, shifted, Element::float32, to, {c.attribute("saturate", std::int64_t{1}) != 0});
  }
  const auto [lo, hi] = range_of(c, to);
  Call round = c;
  round.in = {
      Term::tensor(quotient, x.type().element() == ir::Kind::f64 ? Element::float64 : Element::float32)};
  Datum q = rules::round(round)[0].datum;
  if (!zero.empty()) q = c.b.add(q, c.cast(zero, q.type().element()));
  q = c.op(Opcode::min_, c.op(Opcode::max_, q, c.number(lo, q)), c.number(hi, q));
  return c.cast(q, to);
}

Datum centred(const Call& c, std::size_t i, std::size_t zero, int axis) {
  const Datum x = c.cast(c[i], ir::Kind::i32);
  if (!c.has(zero)) return x;
  return c.b.sub(x, along(c, c.cast(c[zero], ir::Kind::i32), axis, c.rank(i)));
}

Terms quantize_linear(const Call& c) {
  c.require_operands(2, 3);
  const int rank = c.rank(), axis = scale_axis(c);
  const bool said = c.attribute("output_dtype", std::int64_t{0}) != 0;
  const Element to = c.has(2) ? c.element(2)
                     : said   ? c.element_attribute("output_dtype", Element::uint8)
                              : Element::uint8;
  const Element precision = c.attribute("precision", std::int64_t{0}) != 0
                                ? c.element_attribute("precision", Element::float32)
                            : is_float(c.element(1)) ? c.element(1)
                                                     : Element::float32;
  const Datum x = converted(c, c[0], c.element(0), precision);
  const Datum scale = along(c, converted(c, c[1], c.element(1), precision), axis, rank, x);
  const Datum zero = c.has(2) ? along(c, c[2], axis, rank, x) : Datum();
  return {c.result(quantised(c, x, scale, zero, to, precision), to)};
}

Terms dequantize_linear(const Call& c) {
  c.require_operands(2, 3);
  const int rank = c.rank(), axis = scale_axis(c);
  const Element to = c.attribute("output_dtype", std::int64_t{0}) != 0
                         ? c.element_attribute("output_dtype", Element::float32)
                         : c.element(1);
  const ir::Kind k = is_float(c.element(0)) ? kind_of(c.element(0)) : ir::Kind::i32;
  Datum x = c.cast(c[0], k);
  if (c.has(2)) x = c.b.sub(x, along(c, c.cast(c[2], k), axis, rank, c[0]));
  const Datum scale = along(c, c.cast(c[1], to), axis, rank, c[0]);
  return {c.result(rounded_half(c, c.b.mul(c.cast(x, to), scale), to), to)};
}

Terms dynamic_quantize_linear(const Call& c) {
  c.require_float(0);
  const Datum x = c[0], none = c.number(0, x), most = c.number(255, x);
  const Datum lo = c.op(Opcode::min_, core::detail::extremum_along(x, {{}, false}, false, c.b.loc), none);
  const Datum hi = c.op(Opcode::max_, core::detail::extremum_along(x, {{}, false}, true, c.b.loc), none);
  const Datum scale = c.b.div(c.b.sub(hi, lo), most);
  const Datum zero = quantised(c, c.op(Opcode::neg_, lo), scale, {}, Element::uint8);
  return {c.result(quantised(c, x, scale, zero, Element::uint8), Element::uint8),
          c.result(scale, Element::float32), c.result(zero, Element::uint8)};
}

Terms matmul_integer(const Call& c) {
  c.require_operands(2, 4);
  return {c.result(
      matrix_product(c, centred(c, 0, 2, std::max(0, c.rank(0) - 2)), centred(c, 1, 3, c.rank(1) - 1)),
      Element::int32)};
}

Terms conv_integer(const Call& c) {
  c.require_operands(2, 4);
  return {c.result(convolved(c, centred(c, 0, 2, 0), centred(c, 1, 3, 0)), Element::int32)};
}

// Operands: a, its scale, its zero point, b, its scale, its zero point, the result's scale and zero point.
Terms qlinear_matmul(const Call& c) {
  c.require_operands(8, 8);
  const Datum sums =
      c.cast(matrix_product(c, centred(c, 0, 2, std::max(0, c.rank(0) - 2)), centred(c, 3, 5, c.rank(3) - 1)),
             ir::Kind::f32);
  const int rank = sums.type().is_tensor() ? sums.type().rank() : 0;
  const auto scale = [&](std::size_t i, int axis) { return along(c, c[i], axis, rank); };
  const Datum real = c.b.mul(c.b.mul(sums, scale(1, std::max(0, rank - 2))), scale(4, rank - 1));
  return {c.result(quantised(c, real, scale(6, rank - 1), along(c, c[7], rank - 1, rank), c.element(7)),
                   c.element(7))};
}

Terms qlinear_conv(const Call& c) {
  c.require_operands(8, 9);
  Datum sums = convolved(c, centred(c, 0, 2, 0), centred(c, 3, 5, 0));
  if (c.has(8)) sums = core::detail::with_bias(sums, c[8], c.b.loc);
  const int rank = sums.type().rank();
  const Datum real =
      c.b.mul(c.b.mul(c.cast(sums, ir::Kind::f32), along(c, c[1], 1, rank)), along(c, c[4], 1, rank));
  return {c.result(quantised(c, real, along(c, c[6], 1, rank), along(c, c[7], 1, rank), c.element(7)),
                   c.element(7))};
}

}  // namespace lantern::onnx::rules
