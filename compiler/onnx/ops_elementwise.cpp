// Operators that act element by element: arithmetic, comparison, logic, functions, activations, conversions.
#include <cmath>
#include <limits>

#include "lantern/compiler/onnx/rules.hpp"
#include "lantern/compiler/staging/functions.hpp"

namespace lantern::onnx::rules {

namespace {

/// Both operands' element type, which must be one.
Element joint(const Call& c) {
  c.require_operands(2, 2);
  if (c.element(0) != c.element(1))
    c.fail(std::string("expected two operands of one element type, got ") + name(c.element(0)) + " and " +
           name(c.element(1)) + "; Cast brings one to the other");
  return c.element(0);
}

/// Operands of versions before 7: the second is put at dimension `axis` of the first.
Datum second(const Call& c) {
  const Datum y = c[1];
  if (c.opset >= 7 || !c.has_attribute("axis") || !y.type().is_tensor()) return y;
  const int axis = c.axis(c.attribute("axis"), c.rank(0));
  std::vector<int> ones;
  for (int d = axis + y.type().rank(); d < c.rank(0); ++d) ones.push_back(d - axis);
  return c.b.with_ones(y, ones);
}

Terms arithmetic(const Call& c, Opcode code) {
  const Element e = joint(c);
  if (e == Element::boolean) c.fail("expected numbers, got bool");
  return {c.result(c.wrapped(c.op(code, c[0], second(c)), e))};
}

/// Truth values compare as numbers.
Datum comparable(const Call& c, const Datum& x) {
  return x.type().element() == ir::Kind::boolean ? c.cast(x, ir::Kind::i32) : x;
}
Terms comparison(const Call& c, Opcode code, bool turned) {
  joint(c);
  const Datum x = comparable(c, c[0]), y = comparable(c, second(c));
  return {c.result(turned ? c.op(code, y, x) : c.op(code, x, y), Element::boolean)};
}
Terms logic(const Call& c, Opcode code) {
  if (joint(c) != Element::boolean) c.fail(std::string("expected bool operands, got ") + name(c.element(0)));
  return {c.result(c.op(code, c[0], second(c)))};
}

Terms function(const Call& c, Opcode code) {
  c.require_operands(1, 1);
  c.require_float(0);
  return {c.result(c.op(code, c[0]))};
}

Datum zero(const Call& c, const Datum& x) { return c.number(0, x); }
Datum one(const Call& c, const Datum& x) { return c.number(1, x); }

Datum relu(const Call& c, const Datum& x) { return core::detail::relu(x, c.b.loc); }
Datum clamp(const Call& c, const Datum& x, double lo, double hi) {
  return c.op(Opcode::min_, c.op(Opcode::max_, x, c.number(lo, x)), c.number(hi, x));
}
Datum hard_sigmoid(const Call& c, const Datum& x, double alpha, double beta) {
  return clamp(c, c.b.add(c.b.mul(x, c.number(alpha, x)), c.number(beta, x)), 0, 1);
}
/// x where it is positive, else alpha (exp(x) - 1): exp of what is not positive.
Datum elu(const Call& c, const Datum& x, double alpha) {
  const Datum below = c.op(Opcode::min_, x, zero(c, x));
  return c.where(c.b.less(zero(c, x), x), x, c.b.mul(c.op(Opcode::expm1_, below), c.number(alpha, x)));
}

Datum swish(const Call& c, const Datum& x, double alpha) {
  if (alpha == 1) return core::detail::silu(x, c.b.loc);
  return c.b.mul(x, core::detail::sigmoid(c.b.mul(x, c.number(alpha, x)), c.b.loc));
}

/// The larger or smaller of all operands.
Terms extremum(const Call& c, bool largest) {
  c.term(0);
  Datum best = c[0];
  const bool whole = !is_float(c.element());
  for (std::size_t i = 1; i < c.in.size(); ++i) {
    if (c.element(i) != c.element()) c.fail("expected operands of one element type");
    best = c.op(whole ? (largest ? Opcode::imax_ : Opcode::imin_) : (largest ? Opcode::max_ : Opcode::min_),
                best, c[i]);
  }
  return {c.result(best)};
}

Datum total(const Call& c) {
  c.term(0);
  c.require_float(0);
  Datum sum = c[0];
  for (std::size_t i = 1; i < c.in.size(); ++i) sum = c.b.add(sum, c[i]);
  return sum;
}

/// The nearest whole number, halves to the even one.
Datum round_half_even(const Call& c, const Datum& x) {
  const Datum floor = c.op(Opcode::floor_, x), rest = c.b.sub(x, floor), half = c.number(0.5, x);
  const Datum odd =
      c.op(Opcode::ne_, floor, c.b.mul(c.op(Opcode::floor_, c.b.mul(floor, half)), c.number(2, x)));
  const Datum up =
      c.op(Opcode::lor_, c.b.less(half, rest), c.op(Opcode::land_, c.op(Opcode::eq_, rest, half), odd));
  return c.b.add(floor, c.cast(up, x.type().element()));
}

Datum wide(const Call& c, const Datum& x) { return c.cast(x, ir::Kind::f64); }

/// 2^e, the largest power of 2 that is at most `size`, a number above 0.
Datum binade(const Call& c, const Datum& size) {
  const Datum p = c.op(Opcode::exp2_, c.op(Opcode::floor_, c.op(Opcode::log2_, size))), twice = c.b.add(p, p);
  // A logarithm just beside a whole number may be rounded to it.
  return c.where(c.op(Opcode::le_, twice, size), twice,
                 c.where(c.b.less(size, p), c.b.mul(p, c.number(0.5, p)), p));
}

/// The power of 2 beside a number's size that the rounding says: what float8e8m0 holds.
Datum power_of_two(const Call& c, const Datum& size, const FloatFormat& f, const Narrowing& how) {
  const Datum lowest = c.number(std::ldexp(1.0, f.least), size), some = c.op(Opcode::max_, size, lowest);
  Datum p = binade(c, c.op(Opcode::min_, some, c.number(std::ldexp(1.0, 1000), size)));
  if (how.rounding != "down") {
    const Datum least = how.rounding == "up" ? p : c.b.mul(p, c.number(1.5, p));
    const Datum up = how.rounding == "up" ? c.b.less(least, some) : c.op(Opcode::le_, least, some);
    p = c.where(up, c.b.add(p, p), p);
  }
  const Datum nothing = c.number(std::numeric_limits<double>::quiet_NaN(), p),
              largest = c.number(f.largest, p);
  p = c.where(c.b.less(largest, p), how.saturate ? largest : nothing, p);
  const Datum finite = c.b.less(size, c.number(std::numeric_limits<double>::infinity(), size));
  return c.where(finite, p, nothing);
}

/// The nearest number of a format, ties to even.
Datum narrowed(const Call& c, const Datum& narrow, const FloatFormat& f, const Narrowing& how) {
  const Datum x = wide(c, narrow), size = c.op(Opcode::abs_, x);
  if (!f.negative) return c.cast(power_of_two(c, size, f, how), narrow.type().element());
  const Datum lowest = c.number(std::ldexp(1.0, f.least), x);
  const Datum exponent = c.op(Opcode::floor_, c.op(Opcode::log2_, c.op(Opcode::max_, size, lowest)));
  const Datum unit =
      c.op(Opcode::max_, c.op(Opcode::exp2_, c.b.sub(exponent, c.number(f.digits - 1, x))), lowest);
  const Datum near = c.b.mul(round_half_even(c, c.b.div(x, unit)), unit);
  const Datum finite = c.op(Opcode::le_, c.op(Opcode::abs_, near), c.number(f.largest, x));
  const double end = f.infinite && !how.saturate    ? std::numeric_limits<double>::infinity()
                     : f.bits == 8 && !how.saturate ? std::numeric_limits<double>::quiet_NaN()
                                                    : f.largest;
  const Datum beyond = c.b.mul(c.op(Opcode::sign_, x), c.number(end, x));
  const Datum rest = f.not_a_number ? x : c.number(0, x);
  const Datum rounded = c.where(finite, near, c.where(c.op(Opcode::eq_, x, x), beyond, rest));
  return c.cast(rounded, narrow.type().element());
}

Narrowing narrowing(const Call& c) {
  Narrowing how{c.attribute("saturate", std::int64_t{1}) != 0, c.attribute("round_mode", std::string("up"))};
  if (how.rounding != "up" && how.rounding != "down" && how.rounding != "nearest")
    c.fail("attribute 'round_mode': expected up, down or nearest, got '" + how.rounding + "'");
  return how;
}

/// How a floating-point type lies in its bits.
FloatFormat layout_of(const Call& c, Element e) {
  if (e == Element::float32) return {32, 24, -149, 0, true, true, true, true};
  if (e == Element::float64) return {64, 53, -1074, 0, true, true, true, true};
  const auto f = format_of(e);
  if (!f || !f->negative) c.unsupported(std::string("the bits of ") + name(e));
  return *f;
}
/// x 2^e for whole e, of f64, in two steps, of which none overflows before the result does.
Datum scaled(const Call& c, const Datum& x, const Datum& e) {
  const Datum half = c.op(Opcode::floor_, c.b.mul(e, c.number(0.5, e)));
  return c.b.mul(c.b.mul(x, c.op(Opcode::exp2_, half)), c.op(Opcode::exp2_, c.b.sub(e, half)));
}
Datum int64(std::int64_t v) { return Datum::integer(v, ir::I64); }

/// The bits of numbers as i64, of which the lowest count.
Datum bits_of(const Call& c, const Datum& x, Element e) {
  if (!is_float(e)) return c.cast(x, ir::Kind::i64);
  const FloatFormat f = layout_of(c, e);
  const Datum v = wide(c, x), size = c.op(Opcode::abs_, v), zero = c.number(0, v), one = c.number(1, v);
  const std::int64_t hidden = std::int64_t{1} << (f.digits - 1), sign = std::int64_t{1} << (f.bits - 1);
  const int lowest = f.least + f.digits - 1;  // the exponent of the smallest number with all digits
  const Datum infinity = c.number(std::numeric_limits<double>::infinity(), v);
  const Datum finite = c.op(Opcode::land_, c.b.less(zero, size), c.b.less(size, infinity));
  const Datum some = c.where(finite, size, one);
  const Datum guess = c.op(Opcode::floor_, c.op(Opcode::log2_, some));
  // The quotient by 2^guess is from 1/2 to 4; the exponent is where it is from 1 to 2.
  const Datum rest = scaled(c, some, c.op(Opcode::neg_, guess));
  const Datum above = c.op(Opcode::le_, c.number(2, v), rest), below = c.b.less(rest, one);
  const Datum exponent =
      c.op(Opcode::max_, c.b.add(guess, c.b.sub(c.cast(above, ir::Kind::f64), c.cast(below, ir::Kind::f64))),
           c.number(lowest, v));
  const Datum units = c.cast(scaled(c, some, c.b.sub(c.number(f.digits - 1, v), exponent)), ir::Kind::i64);
  const Datum steps = c.b.mul(c.cast(c.b.sub(exponent, c.number(lowest, v)), ir::Kind::i64), int64(hidden));
  const std::int64_t ends = f.infinite ? sign - hidden : 0;
  Datum code = c.where(finite, c.b.add(steps, units), c.where(c.b.less(zero, size), int64(ends), int64(0)));
  const std::int64_t not_a_number = f.infinite ? ends + hidden / 2 : f.signed_zero ? sign - 1 : sign;
  const Datum negative = c.op(Opcode::lor_, c.b.less(v, zero), c.b.less(c.b.div(one, v), zero));
  code = c.where(negative, c.op(Opcode::bit_xor_, code, int64(sign)), code);
  return c.where(c.op(Opcode::eq_, v, v), code, int64(not_a_number));
}

/// Numbers of a type by their bits.
Datum from_bits(const Call& c, const Datum& bits, Element e) {
  if (!is_float(e))
    return e == Element::boolean ? c.op(Opcode::ne_, bits, int64(0)) : c.wrapped(c.cast(bits, e), e);
  const FloatFormat f = layout_of(c, e);
  const std::int64_t hidden = std::int64_t{1} << (f.digits - 1), sign = std::int64_t{1} << (f.bits - 1);
  const std::int64_t exponents = f.bits == 64 ? 2047 : sign / hidden - 1;
  const Datum size = c.op(Opcode::bit_and_, bits, int64(sign - 1));
  const Datum exponent = c.b.div(size, int64(hidden)),
              fraction = c.op(Opcode::bit_and_, size, int64(hidden - 1));
  const Datum subnormal = c.op(Opcode::eq_, exponent, int64(0));
  const Datum digits = c.b.add(fraction, c.where(subnormal, int64(0), int64(hidden)));
  const Datum power = c.b.add(c.op(Opcode::imax_, exponent, int64(1)), int64(f.least - 1));
  const Datum v = scaled(c, wide(c, digits), wide(c, power));
  const auto constant = [&](double x) { return c.number(x, v); };
  const Datum nothing = constant(std::numeric_limits<double>::quiet_NaN());
  Datum whole = v;
  if (f.infinite)
    whole = c.where(c.op(Opcode::eq_, exponent, int64(exponents)),
                    c.where(c.op(Opcode::eq_, fraction, int64(0)),
                            constant(std::numeric_limits<double>::infinity()), nothing),
                    v);
  else if (f.signed_zero && f.not_a_number)
    whole = c.where(c.op(Opcode::eq_, size, int64(sign - 1)), nothing, v);
  const Datum negative = c.op(Opcode::ne_, c.op(Opcode::bit_and_, bits, int64(sign)), int64(0));
  Datum result = c.where(negative, c.op(Opcode::neg_, whole), whole);
  if (!f.signed_zero)
    result = c.where(c.op(Opcode::land_, negative, c.op(Opcode::eq_, size, int64(0))), nothing, result);
  return c.cast(result, e);
}

}  // namespace

Datum converted(const Call& c, const Datum& x, Element from, Element to, Narrowing how) {
  if (from == to) return x;
  if (const auto f = format_of(to)) {
    if (f->bits == 16) how.saturate = false;
    return narrowed(c, c.cast(x, to), *f, how);
  }
  if (is_integer(to) && is_float(from)) {
    // Through the widest integer, whose lowest digits count.
    if (kind_of(to) == ir::Kind::i32 && to != Element::int32)
      return c.wrapped(c.cast(c.cast(x, ir::Kind::i64), ir::Kind::i32), to);
    return c.wrapped(c.cast(x, to), to);
  }
  return c.wrapped(c.cast(x, to), to);
}

// ---- arithmetic

Terms add(const Call& c) { return arithmetic(c, Opcode::add_); }
Terms sub(const Call& c) { return arithmetic(c, Opcode::sub_); }
Terms mul(const Call& c) { return arithmetic(c, Opcode::mul_); }
Terms div(const Call& c) { return arithmetic(c, Opcode::div_); }

Terms mod(const Call& c) {
  const Element e = joint(c);
  const Datum x = c[0], y = c[1];
  const bool like_c = c.attribute("fmod", std::int64_t{0}) != 0;
  const Datum rest = c.op(is_float(e) ? Opcode::fmod_ : Opcode::rem_, x, y);
  if (like_c || is_unsigned(e)) return {c.result(rest)};
  // Of the divisor's sign.
  const Datum none = c.number(0, x);
  const Datum below = c.b.less(rest, none), other = c.op(Opcode::land_, c.op(Opcode::ne_, rest, none),
                                                         c.op(Opcode::ne_, below, c.b.less(y, none)));
  return {c.result(c.where(other, c.b.add(rest, y), rest))};
}

Terms pow(const Call& c) {
  c.require_operands(2, 2);
  const Element e = c.element(0);
  const Datum x = c[0];
  if (const auto y = value_of(c.term(1)); y && !c.term(1).datum.is_tagged() && y->size() == 1 &&
                                          y->shape().size() <= 1 && c.rank(0) >= c.rank(1)) {
    const double exponent = y->at(0);
    if (exponent == 1) return {c.result(x)};
    if (exponent == 2) return {c.result(c.wrapped(c.b.mul(x, x), e))};
    if (exponent == 3) return {c.result(c.wrapped(c.b.mul(c.b.mul(x, x), x), e))};
    if (exponent == 0.5 && is_float(e)) return {c.result(c.op(Opcode::sqrt_, x))};
  }
  if (is_float(e)) return {c.result(c.op(Opcode::pow_, x, c.cast(second(c), e)))};
  return {c.result(c.wrapped(c.cast(c.op(Opcode::pow_, wide(c, x), wide(c, c[1])), e), e))};
}

Terms max(const Call& c) { return extremum(c, true); }
Terms min(const Call& c) { return extremum(c, false); }
Terms sum(const Call& c) { return {c.result(total(c))}; }
Terms mean(const Call& c) {
  const Datum sum = total(c);
  return {c.result(c.b.div(sum, c.number(static_cast<double>(c.in.size()), sum)))};
}

Terms bit_shift(const Call& c) {
  const Element e = joint(c);
  if (!is_integer(e) || (!is_unsigned(e) && c.opset < 28))
    c.fail(std::string("expected unsigned integers") + (c.opset < 28 ? ", or version 28" : "") + ", got " +
           name(e));
  const std::string direction = c.attribute("direction", std::string());
  if (direction != "LEFT" && direction != "RIGHT")
    c.fail("attribute 'direction': expected LEFT or RIGHT, got '" + direction + "'");
  const Datum x = c[0], y = c[1], none = c.number(0, x),
              last = c.number(static_cast<double>(bits_in_file(e)) - 1, x);
  const Datum some = c.op(Opcode::imin_, c.op(Opcode::imax_, y, none), last);
  // By more places than there are, or a number of places below 0: what copies of the sign leave.
  const Datum outside = c.op(Opcode::lor_, c.b.less(y, none), c.b.less(last, y));
  if (direction == "LEFT")
    return {c.result(c.where(outside, none, c.wrapped(c.op(Opcode::shift_left_, x, some), e)))};
  Datum moved = c.op(Opcode::shift_right_, x, some);
  if (e == Element::uint64) {  // the highest bit is no sign
    const Datum one = c.number(1, x), least = c.op(Opcode::imax_, c.b.sub(some, one), none);
    const Datum half = c.op(Opcode::bit_and_, c.op(Opcode::shift_right_, x, one),
                            Datum::integer(std::numeric_limits<std::int64_t>::max(), ir::I64));
    moved = c.where(c.op(Opcode::eq_, some, none), x, c.op(Opcode::shift_right_, half, least));
  }
  const Datum rest = is_unsigned(e) ? none : c.where(c.b.less(x, none), c.number(-1, x), none);
  return {c.result(c.where(outside, rest, moved))};
}

Terms bitwise_and(const Call& c) { return joint(c), Terms{c.result(c.op(Opcode::bit_and_, c[0], c[1]))}; }
Terms bitwise_or(const Call& c) { return joint(c), Terms{c.result(c.op(Opcode::bit_or_, c[0], c[1]))}; }
Terms bitwise_xor(const Call& c) { return joint(c), Terms{c.result(c.op(Opcode::bit_xor_, c[0], c[1]))}; }
Terms bitwise_not(const Call& c) {
  const Datum x = c[0];
  return {c.result(c.wrapped(c.op(Opcode::bit_xor_, x, c.number(-1, x)), c.element()))};
}

// ---- comparison and logic

Terms less(const Call& c) { return comparison(c, Opcode::lt_, false); }
Terms less_or_equal(const Call& c) { return comparison(c, Opcode::le_, false); }
Terms greater(const Call& c) { return comparison(c, Opcode::lt_, true); }
Terms greater_or_equal(const Call& c) { return comparison(c, Opcode::le_, true); }
Terms equal(const Call& c) { return comparison(c, Opcode::eq_, false); }
Terms logical_and(const Call& c) { return logic(c, Opcode::land_); }
Terms logical_or(const Call& c) { return logic(c, Opcode::lor_); }
Terms logical_xor(const Call& c) {
  if (joint(c) != Element::boolean) c.fail(std::string("expected bool operands, got ") + name(c.element(0)));
  return comparison(c, Opcode::ne_, false);
}
Terms logical_not(const Call& c) {
  if (c.element() != Element::boolean)
    c.fail(std::string("expected a bool operand, got ") + name(c.element()));
  return {c.result(c.op(Opcode::lnot_, c[0]))};
}
Terms is_nan(const Call& c) {
  c.require_float(0);
  return {c.result(c.op(Opcode::ne_, c[0], c[0]), Element::boolean)};
}
Terms is_inf(const Call& c) {
  c.require_float(0);
  const Datum x = c[0], infinity = c.number(std::numeric_limits<double>::infinity(), x);
  const bool below = c.attribute("detect_negative", std::int64_t{1}) != 0,
             above = c.attribute("detect_positive", std::int64_t{1}) != 0;
  if (below && above) return {c.result(c.op(Opcode::eq_, c.op(Opcode::abs_, x), infinity), Element::boolean)};
  if (above) return {c.result(c.op(Opcode::eq_, x, infinity), Element::boolean)};
  if (below) return {c.result(c.op(Opcode::eq_, x, c.op(Opcode::neg_, infinity)), Element::boolean)};
  return {c.result(c.b.less(x, c.number(-std::numeric_limits<double>::infinity(), x)), Element::boolean)};
}
Terms where(const Call& c) {
  c.require_operands(3, 3);
  if (c.element(0) != Element::boolean)
    c.fail(std::string("expected a bool condition, got ") + name(c.element(0)));
  if (c.element(1) != c.element(2)) c.fail("expected two operands of one element type");
  return {c.result(c.where(c[0], c[1], c[2]), c.element(1))};
}

// ---- functions

Terms exp(const Call& c) { return function(c, Opcode::exp_); }
Terms log(const Call& c) { return function(c, Opcode::log_); }
Terms sqrt(const Call& c) { return function(c, Opcode::sqrt_); }
Terms sin(const Call& c) { return function(c, Opcode::sin_); }
Terms cos(const Call& c) { return function(c, Opcode::cos_); }
Terms tan(const Call& c) { return function(c, Opcode::tan_); }
Terms asin(const Call& c) { return function(c, Opcode::asin_); }
Terms acos(const Call& c) { return function(c, Opcode::acos_); }
Terms atan(const Call& c) { return function(c, Opcode::atan_); }
Terms sinh(const Call& c) { return function(c, Opcode::sinh_); }
Terms cosh(const Call& c) { return function(c, Opcode::cosh_); }
Terms tanh(const Call& c) { return function(c, Opcode::tanh_); }
Terms asinh(const Call& c) { return function(c, Opcode::asinh_); }
Terms acosh(const Call& c) { return function(c, Opcode::acosh_); }
Terms atanh(const Call& c) { return function(c, Opcode::atanh_); }
Terms erf(const Call& c) { return function(c, Opcode::erf_); }
Terms floor(const Call& c) { return function(c, Opcode::floor_); }
Terms ceil(const Call& c) { return function(c, Opcode::ceil_); }
Terms round(const Call& c) {
  c.require_float(0);
  return {c.result(round_half_even(c, c[0]))};
}
Terms reciprocal(const Call& c) {
  c.require_float(0);
  return {c.result(c.b.div(one(c, c[0]), c[0]))};
}
Terms neg(const Call& c) { return {c.result(c.wrapped(c.op(Opcode::neg_, c[0]), c.element()))}; }
Terms abs(const Call& c) {
  const Datum x = c[0];
  if (is_float(c.element())) return {c.result(c.op(Opcode::abs_, x))};
  if (is_unsigned(c.element())) return {c.term(0)};
  return {c.result(c.wrapped(c.op(Opcode::imax_, x, c.op(Opcode::neg_, x)), c.element()))};
}
Terms sign(const Call& c) {
  const Datum x = c[0];
  if (is_float(c.element())) return {c.result(c.op(Opcode::sign_, x))};
  return {c.result(c.op(Opcode::imin_, c.op(Opcode::imax_, x, c.number(-1, x)), one(c, x)))};
}

// ---- activations

Terms relu(const Call& c) {
  const Datum x = c[0];
  if (is_integer(c.element())) return {c.result(c.op(Opcode::imax_, x, zero(c, x)))};
  return {c.result(relu(c, x))};
}
Terms leaky_relu(const Call& c) {
  const Datum x = c[0];
  return {c.result(c.where(c.b.less(x, zero(c, x)), c.b.mul(x, c.number(c.attribute("alpha", 0.01), x)), x))};
}
Terms prelu(const Call& c) {
  const Element e = joint(c);
  const Datum x = c[0];
  Datum slope = c[1];
  // A slope for each channel, in versions that had nothing else.
  if (slope.type().rank() == 1 && c.rank(0) > 2 &&
      (c.opset < 9 || known(c.b.size(slope, 0)) == known(c.b.size(x, 1))) && known(c.b.size(slope, 0)) != 1 &&
      known(c.b.size(slope, 0)) != known(c.b.size(x, c.rank(0) - 1))) {
    std::vector<int> ones;
    for (int d = 2; d < c.rank(0); ++d) ones.push_back(d - 1);
    slope = c.b.with_ones(slope, ones);
  }
  return {c.result(c.where(c.b.less(x, zero(c, x)), c.wrapped(c.b.mul(slope, x), e), x))};
}
Terms elu(const Call& c) { return {c.result(elu(c, c[0], c.attribute("alpha", 1.0)))}; }
Terms selu(const Call& c) {
  const Datum x = c[0];
  const bool old = c.opset < 6;
  const double alpha = c.attribute("alpha", old ? 1.6732 : 1.67326319217681884765625);
  const double gamma = c.attribute("gamma", old ? 1.0507 : 1.05070102214813232421875);
  return {c.result(c.b.mul(elu(c, x, alpha), c.number(gamma, x)))};
}
Terms celu(const Call& c) {
  const Datum x = c[0];
  const double alpha = c.attribute("alpha", 1.0);
  const Datum below = c.b.div(c.op(Opcode::min_, x, zero(c, x)), c.number(alpha, x));
  return {c.result(c.b.add(relu(c, x), c.b.mul(c.op(Opcode::expm1_, below), c.number(alpha, x))))};
}
Terms sigmoid(const Call& c) {
  c.require_float(0);
  return {c.result(core::detail::sigmoid(c[0], c.b.loc))};
}
Terms hard_sigmoid(const Call& c) {
  return {c.result(hard_sigmoid(c, c[0], c.attribute("alpha", 0.2), c.attribute("beta", 0.5)))};
}
Terms hard_swish(const Call& c) { return {c.result(c.b.mul(c[0], hard_sigmoid(c, c[0], 1.0 / 6, 0.5)))}; }
Terms softplus(const Call& c) {
  c.require_float(0);
  return {c.result(core::detail::softplus(c[0], c.b.loc))};
}
Terms softsign(const Call& c) {
  const Datum x = c[0];
  return {c.result(c.b.div(x, c.b.add(c.op(Opcode::abs_, x), one(c, x))))};
}
Terms thresholded_relu(const Call& c) {
  const Datum x = c[0];
  return {c.result(c.where(c.b.less(c.number(c.attribute("alpha", 1.0), x), x), x, zero(c, x)))};
}
Terms shrink(const Call& c) {
  const Element e = c.element();
  const Datum x = c.cast(c[0], is_float(e) ? kind_of(e) : ir::Kind::f64);
  const Datum limit = c.number(c.attribute("lambd", 0.5), x), bias = c.number(c.attribute("bias", 0.0), x);
  const Datum above = c.where(c.b.less(limit, x), c.b.sub(x, bias), zero(c, x));
  return {c.result(c.cast(c.where(c.b.less(x, c.op(Opcode::neg_, limit)), c.b.add(x, bias), above), e))};
}
Terms gelu(const Call& c) {
  c.require_float(0);
  const Datum x = c[0];
  if (c.attribute("approximate", std::string("none")) == "none")
    return {c.result(core::detail::gelu(x, c.b.loc))};
  const Datum cube = c.b.mul(c.b.mul(x, x), x), inner = c.b.add(x, c.b.mul(cube, c.number(0.044715, x)));
  const Datum t = c.op(Opcode::tanh_, c.b.mul(inner, c.number(0.7978845608028654, x)));
  return {c.result(c.b.mul(c.b.mul(x, c.number(0.5, x)), c.b.add(t, one(c, x))))};
}
Terms swish(const Call& c) {
  c.require_float(0);
  return {c.result(swish(c, c[0], c.attribute("alpha", 1.0)))};
}
Terms swiglu(const Call& c) {
  joint(c);
  c.require_float(0);
  return {c.result(c.b.mul(swish(c, c[0], c.attribute("alpha", 1.0)), c[1]))};
}
Terms mish(const Call& c) {
  c.require_float(0);
  return {c.result(c.b.mul(c[0], c.op(Opcode::tanh_, core::detail::softplus(c[0], c.b.loc))))};
}

Terms clip(const Call& c) {
  Datum x = c[0];
  const bool whole = !is_float(c.element());
  const auto bound = [&](const Datum& v, bool least) {
    x = c.op(whole ? (least ? Opcode::imax_ : Opcode::imin_) : (least ? Opcode::max_ : Opcode::min_), x, v);
  };
  if (c.opset < 11) {
    if (c.has_attribute("min")) bound(c.number(c.attribute("min", 0.0), x), true);
    if (c.has_attribute("max")) bound(c.number(c.attribute("max", 0.0), x), false);
    return {c.result(x)};
  }
  for (std::size_t i = 1; i <= 2; ++i) {
    if (!c.has(i)) continue;
    if (c.element(i) != c.element()) c.fail("expected bounds of the operand's element type");
    bound(c.reshape(c[i], {}), i == 1);
  }
  return {c.result(x)};
}

// ---- conversions

namespace {

Term cast_to(const Call& c, Element to) {
  if (c.element() == to) return c.term(0);
  if (to == Element::string) return as_texts(c, c.term(0));
  if (c.element() == Element::string) return c.result(from_texts(c, c.term(0), to), to);
  return c.result(converted(c, c[0], c.element(), to, narrowing(c)), to);
}

}  // namespace

Terms cast(const Call& c) {
  Element to = Element::undefined;
  if (c.opset < 6) {
    std::string wanted = c.attribute("to", std::string());
    for (int n = 1; n <= static_cast<int>(last_element); ++n) {
      std::string known = name(static_cast<Element>(n));
      for (char& letter : wanted)
        letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
      if (wanted == known || (wanted == "float" && known == "float32") ||
          (wanted == "double" && known == "float64"))
        to = static_cast<Element>(n);
    }
    if (!is_supported(to) && to != Element::string)
      c.fail("attribute 'to': expected an element type, got '" + wanted + "'");
  } else {
    const bool text = c.attribute("to") == static_cast<std::int64_t>(Element::string);
    to = text ? Element::string : c.element_attribute("to", Element::undefined);
  }
  return {cast_to(c, to)};
}
Terms cast_like(const Call& c) {
  c.require_operands(2, 2);
  return {cast_to(c, c.element(1))};
}

// The bits of a number are computed from its sign, its exponent and its digits, so that this is a program
// like any other; a NaN has one pattern.
Terms bit_cast(const Call& c) {
  c.attribute("to");
  const Element from = c.element(), to = c.element_attribute("to", Element::undefined);
  if (bits_in_file(from) != bits_in_file(to))
    c.fail("attribute 'to': expected an element type of " + std::to_string(bits_in_file(from)) +
           " bits, as " + name(from) + ", got " + name(to));
  if (from == to) return {c.term(0)};
  return {c.result(from_bits(c, bits_of(c, c[0], from), to), to)};
}

Terms identity(const Call& c) {
  if (c.in.empty()) c.fail("expected an operand, got none");
  return {c.in[0]};
}

}  // namespace lantern::onnx::rules
