#include "lantern/compiler/staging/functions.hpp"

namespace lantern::core::detail {

namespace {

/// Arithmetic on data of one shape; numbers are repeated.
struct Arithmetic {
  const Location& loc;

  Datum number(double v, const Datum& like) const {
    return Datum::number(v, ir::Type(like.type().element()));
  }
  Datum binary(Opcode op, const Datum& a, const Datum& b) const {
    return perform_broadcast({op, 0, loc}, a, b);
  }
  Datum add(const Datum& a, const Datum& b) const { return binary(Opcode::add_, a, b); }
  Datum mul(const Datum& a, const Datum& b) const { return binary(Opcode::mul_, a, b); }
  Datum unary(Opcode op, const Datum& a) const { return perform({op, 0, loc}, {a}); }
};

}  // namespace

Datum sigmoid(const Datum& x, const Location& loc) { return Arithmetic{loc}.unary(Opcode::sigmoid_, x); }

Datum softplus(const Datum& x, const Location& loc) { return Arithmetic{loc}.unary(Opcode::softplus_, x); }

Datum relu(const Datum& x, const Location& loc) { return Arithmetic{loc}.unary(Opcode::relu_, x); }

Datum bounded(const Datum& x, const Datum& bound, bool below, bool constant, const Location& loc) {
  const Arithmetic a{loc};
  if (!constant) return a.binary(below ? Opcode::max_ : Opcode::min_, x, bound);
  const Datum to = x.type().is_tensor() ? perform({Opcode::broadcast_, 0, loc}, {bound, x}) : bound;
  const Datum outside = below ? a.binary(Opcode::lt_, x, to) : a.binary(Opcode::lt_, to, x);
  return perform({Opcode::select_, 0, loc}, {outside, to, x});
}

Datum keep_nan(const Datum& x, const Datum& y, const Location& loc) {
  return perform({Opcode::select_, 0, loc}, {perform({Opcode::ne_, 0, loc}, {x, x}), x, y});
}

namespace {

/// An x at which a function that ends as 0 * x and as x has its limits, and the same without a derivative above: infinite
/// factors meet no zeros.
struct Limited {
  Datum below, both;
  Limited(const Datum& x, double most, const Location& loc) {
    const auto number = [&](double v) { return Datum::number(v, ir::Type(x.type().element())); };
    below = bounded(x, number(-most), true, true, loc);
    both = bounded(below, number(most), false, true, loc);
  }
};

}  // namespace

Datum gelu(const Datum& given, const Location& loc) {
  const Arithmetic a{loc};
  const auto [x, z] = Limited(given, 40, loc);
  const Datum cumulative = a.unary(Opcode::erf_, a.mul(z, a.number(0.7071067811865476, x)));
  return a.mul(a.mul(x, a.number(0.5, x)), a.add(cumulative, a.number(1, x)));
}

Datum gelu_tanh(const Datum& given, const Location& loc) {
  const Arithmetic a{loc};
  const auto [x, z] = Limited(given, 40, loc);
  const Datum inner = a.add(z, a.mul(a.mul(a.mul(z, z), z), a.number(0.044715, x)));
  const Datum bent = a.unary(Opcode::tanh_, a.mul(inner, a.number(0.7978845608028654, x)));
  return a.mul(a.mul(x, a.number(0.5, x)), a.add(bent, a.number(1, x)));
}

Datum silu(const Datum& given, const Location& loc) {
  const auto [x, z] = Limited(given, 800, loc);
  return Arithmetic{loc}.mul(x, sigmoid(z, loc));
}

Datum digamma(const Datum& x, const Location& loc) {
  const Arithmetic a{loc};
  return a.binary(Opcode::polygamma_, a.number(0, x), x);
}

}  // namespace lantern::core::detail
