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

/// The nearest number with so many binary digits, the smallest a multiple of 2^least; what is `largest` or
/// more is infinite.
Datum with_digits(const Call& c, const Datum& narrow, int digits, int least, double largest) {
  const Datum x = wide(c, narrow), size = c.op(Opcode::abs_, x);
  const Datum lowest = c.number(std::ldexp(1.0, least), x);
  const Datum exponent = c.op(Opcode::floor_, c.op(Opcode::log2_, c.op(Opcode::max_, size, lowest)));
  const Datum unit =
      c.op(Opcode::max_, c.op(Opcode::exp2_, c.b.sub(exponent, c.number(digits - 1, x))), lowest);
  const Datum near = c.b.mul(round_half_even(c, c.b.div(x, unit)), unit);
  const Datum finite = c.b.less(c.op(Opcode::abs_, near), c.number(largest, x));
  const Datum infinite =
      c.b.mul(c.op(Opcode::sign_, x), c.number(std::numeric_limits<double>::infinity(), x));
  const Datum rounded = c.where(finite, near, c.where(c.op(Opcode::eq_, x, x), infinite, x));
  return c.cast(rounded, narrow.type().element());
}

}  // namespace

Datum converted(const Call& c, const Datum& x, Element from, Element to) {
  if (from == to) return x;
  if (to == Element::float16) return with_digits(c, c.cast(x, to), 11, -24, 65520.0);
  if (to == Element::bfloat16) return with_digits(c, c.cast(x, to), 8, -133, std::ldexp(1.0, 128));
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
  if (is_float(e)) {
    if (!like_c) c.fail("attribute 'fmod': expected 1 for floating-point numbers, got 0");
    return {c.result(c.op(Opcode::fmod_, x, y))};
  }
  const Datum rest = c.op(Opcode::rem_, x, y);
  if (like_c || is_unsigned(e)) return {c.result(rest)};
  // Of the divisor's sign.
  const Datum none = c.number(0, x);
  const Datum other =
      c.op(Opcode::land_, c.op(Opcode::ne_, rest, none), c.b.less(c.op(Opcode::bit_xor_, rest, y), none));
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
  if (!is_unsigned(e)) c.fail(std::string("expected unsigned integers, got ") + name(e));
  const std::string direction = c.attribute("direction", std::string());
  if (direction != "LEFT" && direction != "RIGHT")
    c.fail("attribute 'direction': expected LEFT or RIGHT, got '" + direction + "'");
  const Opcode code = direction == "LEFT" ? Opcode::shift_left_ : Opcode::shift_right_;
  return {c.result(c.wrapped(core::detail::shifted(code, c[0], c[1], c.b.loc), e))};
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

Terms cast(const Call& c) {
  Element to = Element::undefined;
  if (c.opset < 6) {
    std::string wanted = c.attribute("to", std::string());
    for (int n = 1; n <= static_cast<int>(Element::bfloat16); ++n) {
      std::string known = name(static_cast<Element>(n));
      for (char& letter : wanted)
        letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
      if (wanted == known || (wanted == "float" && known == "float32") ||
          (wanted == "double" && known == "float64"))
        to = static_cast<Element>(n);
    }
    if (!is_supported(to)) c.fail("attribute 'to': expected an element type, got '" + wanted + "'");
  } else {
    c.attribute("to");
    to = c.element_attribute("to", Element::undefined);
  }
  return {c.result(converted(c, c[0], c.element(), to), to)};
}
Terms cast_like(const Call& c) {
  c.require_operands(2, 2);
  return {c.result(converted(c, c[0], c.element(0), c.element(1)), c.element(1))};
}

Terms identity(const Call& c) {
  if (c.in.empty()) c.fail("expected an operand, got none");
  return {c.in[0]};
}

}  // namespace lantern::onnx::rules
