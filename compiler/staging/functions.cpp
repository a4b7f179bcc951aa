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

Datum gelu(const Datum& x, const Location& loc) {
  const Arithmetic a{loc};
  const Datum cumulative = a.unary(Opcode::erf_, a.mul(x, a.number(0.7071067811865476, x)));
  return a.mul(a.mul(x, a.number(0.5, x)), a.add(cumulative, a.number(1, x)));
}

Datum gelu_tanh(const Datum& x, const Location& loc) {
  const Arithmetic a{loc};
  const Datum inner = a.add(x, a.mul(a.mul(a.mul(x, x), x), a.number(0.044715, x)));
  const Datum bent = a.unary(Opcode::tanh_, a.mul(inner, a.number(0.7978845608028654, x)));
  return a.mul(a.mul(x, a.number(0.5, x)), a.add(bent, a.number(1, x)));
}

Datum silu(const Datum& x, const Location& loc) { return Arithmetic{loc}.mul(x, sigmoid(x, loc)); }

Datum digamma(const Datum& x, const Location& loc) {
  const Arithmetic a{loc};
  return a.binary(Opcode::polygamma_, a.number(0, x), x);
}

}  // namespace lantern::core::detail
