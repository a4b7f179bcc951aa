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
  /// x <= 0 ? a : b, and which holds is no matter of derivatives.
  Datum if_not_positive(const Datum& x, const Datum& a, const Datum& b) const {
    return perform({Opcode::select_, 0, loc}, {binary(Opcode::le_, x, number(0, x)), a, b});
  }
  /// -|x|, of which the derivative at 0 is 1, not 0.
  Datum minus_size(const Datum& x) const { return if_not_positive(x, x, unary(Opcode::neg_, x)); }
  Datum zero(const Datum& x) const { return zeros_like(x, loc); }
  Datum one(const Datum& x) const { return add(zero(x), number(1, x)); }
};

}  // namespace

// exp of what is not positive neither overflows nor turns 0 * inf into NaN in the derivative.
Datum sigmoid(const Datum& x, const Location& loc) {
  const Arithmetic a{loc};
  const Datum e = a.unary(Opcode::exp_, a.minus_size(x));
  return a.binary(Opcode::div_, a.if_not_positive(x, e, a.one(x)), a.add(e, a.number(1, x)));
}

Datum softplus(const Datum& x, const Location& loc) {
  const Arithmetic a{loc};
  return a.add(relu(x, loc), a.unary(Opcode::log1p_, a.unary(Opcode::exp_, a.minus_size(x))));
}

Datum relu(const Datum& x, const Location& loc) {
  const Arithmetic a{loc};
  return a.if_not_positive(x, a.zero(x), x);
}

Datum gelu(const Datum& x, const Location& loc) {
  const Arithmetic a{loc};
  const Datum cumulative = a.unary(Opcode::erf_, a.mul(x, a.number(0.7071067811865476, x)));
  return a.mul(a.mul(x, a.number(0.5, x)), a.add(cumulative, a.number(1, x)));
}

Datum silu(const Datum& x, const Location& loc) { return Arithmetic{loc}.mul(x, sigmoid(x, loc)); }

Datum digamma(const Datum& x, const Location& loc) {
  const Arithmetic a{loc};
  return a.binary(Opcode::polygamma_, a.number(0, x), x);
}

}  // namespace lantern::core::detail
