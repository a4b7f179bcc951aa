// Quantised numbers: integers q that stand for (q - zero point) scale, and products of them.
#include <limits>

#include "lantern/compiler/onnx/rules.hpp"
#include "lantern/compiler/onnx/window.hpp"

namespace lantern::onnx::rules {

namespace {

std::pair<double, double> range_of(const Call& c, Element e) {
  switch (e) {
    case Element::uint8:
      return {0, 255};
    case Element::int8:
      return {-128, 127};
    case Element::uint16:
      return {0, 65535};
    case Element::int16:
      return {-32768, 32767};
    default:
      c.fail(std::string("expected a zero point of 8 or 16 bits, got ") + name(e));
  }
}

/// A number, or a vector along an axis, beside a tensor.
Datum along(const Call& c, const Datum& v, int axis, int rank) {
  if (!v.type().is_tensor()) return v;
  if (known(c.b.size(v, 0)) == 1 && v.type().rank() == 1) return c.b.get(v, {c.integer(0)});
  if (v.type().rank() != 1) return v;
  std::vector<int> ones;
  for (int d = axis + 1; d < rank; ++d) ones.push_back(d - axis);
  return c.b.with_ones(v, ones);
}

/// The nearest integers, halves to the even one, plus a zero point, within what the type holds.
Datum quantised(const Call& c, const Datum& x, const Datum& scale, const Datum& zero, Element to) {
  const auto [lo, hi] = range_of(c, to);
  Call round = c;
  round.in = {Term::tensor(c.b.div(x, scale),
                           x.type().element() == ir::Kind::f64 ? Element::float64 : Element::float32)};
  Datum q = rules::round(round)[0].datum;
  if (!zero.empty()) q = c.b.add(q, c.cast(zero, q.type().element()));
  q = c.op(Opcode::min_, c.op(Opcode::max_, q, c.number(lo, q)), c.number(hi, q));
  return c.cast(q, to);
}

/// Operand i less its zero point, as i32.
Datum centred(const Call& c, std::size_t i, std::size_t zero, int axis) {
  const Datum x = c.cast(c[i], ir::Kind::i32);
  if (!c.has(zero)) return x;
  return c.b.sub(x, along(c, c.cast(c[zero], ir::Kind::i32), axis, c.rank(i)));
}

}  // namespace

Terms quantize_linear(const Call& c) {
  c.require_operands(2, 3);
  const int rank = c.rank(), axis = rank == 0        ? 0
                                    : c.rank(1) == 0 ? 0
                                                     : c.axis(c.attribute("axis", std::int64_t{1}), rank);
  const bool said = c.attribute("output_dtype", std::int64_t{0}) != 0;
  const Element to = c.has(2) ? c.element(2)
                     : said   ? c.element_attribute("output_dtype", Element::uint8)
                              : Element::uint8;
  if (c.attribute("block_size", std::int64_t{0}) != 0) c.unsupported("attribute 'block_size'");
  const Datum x = c.cast(c[0], c.element(1));
  return {c.result(
      quantised(c, x, along(c, c[1], axis, rank), c.has(2) ? along(c, c[2], axis, rank) : Datum(), to), to)};
}

Terms dequantize_linear(const Call& c) {
  c.require_operands(2, 3);
  const int rank = c.rank(), axis = rank == 0        ? 0
                                    : c.rank(1) == 0 ? 0
                                                     : c.axis(c.attribute("axis", std::int64_t{1}), rank);
  if (c.attribute("block_size", std::int64_t{0}) != 0) c.unsupported("attribute 'block_size'");
  const Datum x = centred(c, 0, 2, axis);
  return {c.result(c.b.mul(c.cast(x, c.element(1)), along(c, c[1], axis, rank)), c.element(1))};
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
