// Reductions that are made of several operations.
#include <limits>

#include "lantern/compiler/staging/containers.hpp"

namespace lantern::core::detail {

namespace {

/// The elements of a tensor of any rank, in row-major order.
Datum in_a_row(const Datum& t, const Location& loc) {
  if (t.type().rank() == 1) return t;
  Datum count = Datum::integer(1, ir::I64);
  std::int64_t known = 1;
  for (int d = 0; d < t.type().rank(); ++d) {
    const std::int64_t size = t.type().dims()[static_cast<std::size_t>(d)];
    known = known == ir::dynamic || size == ir::dynamic ? ir::dynamic : known * size;
    count = perform({Opcode::mul_, 0, loc}, {count, dimension_of(t, d, loc)});
  }
  const Datum zero = Datum::zero(ir::Type(t.type().element()));
  return perform({Opcode::reshape_, 0, loc}, {t, perform({Opcode::fill_, 0, loc, {&known, 1}}, {zero, count})});
}

}  // namespace

/// The largest element is taken out of the sum, whatever its value: no derivative passes through it. An
/// infinite one is left in, for inf - inf is no number.
Datum logsumexp(const Datum& t, const Location& loc) {
  const Datum vector = in_a_row(t, loc);
  const ir::Type type(vector.type().element());
  const bool narrow = type.kind() == ir::Kind::f32;
  const double most = narrow ? std::numeric_limits<float>::max() : std::numeric_limits<double>::max();
  const Datum zero = Datum::number(0, type), one = Datum::number(1, type);
  const auto apply = [&](Opcode code, std::initializer_list<Datum> operands) {
    return perform({code, 0, loc}, operands);
  };
  const Datum element = apply(Opcode::get_, {vector, perform({Opcode::argmax_, 0, loc, {}, "logsumexp"}, {strip(vector)})});
  const Datum largest = apply(Opcode::stop_gradient_, {element});
  const Datum finite = apply(Opcode::le_, {apply(Opcode::abs_, {largest}), Datum::number(most, type)});
  const Datum shift = apply(Opcode::select_, {finite, largest, zero});
  const Datum shifted = perform_broadcast({Opcode::sub_, 0, loc}, vector, shift);
  const Datum sum = apply(Opcode::sum_, {apply(Opcode::exp_, {shifted})});
  const Datum none = apply(Opcode::eq_, {sum, zero});
  const Datum log = apply(Opcode::log_, {apply(Opcode::select_, {none, one, sum})});
  return apply(Opcode::select_, {none, largest, apply(Opcode::add_, {shift, log})});
}

Datum extremum(const Datum& t, bool largest, const Location& loc) {
  const Datum flat = in_a_row(t, loc);
  const Datum primal = strip(flat);
  const Datum compared =
      largest                       ? primal
      : t.type().is_float_element() ? perform({Opcode::neg_, 0, loc}, {primal})  // of integers, what reverses their
                                                                                 // order without overflow
                                    : perform_broadcast({Opcode::bit_xor_, 0, loc}, primal,
                                                        Datum::integer(-1, ir::Type(t.type().element())));
  const Datum place = perform({Opcode::argmax_, 0, loc, {}, largest ? "max" : "min"}, {compared});
  if (!t.type().is_float_element()) return perform({Opcode::get_, 0, loc}, {flat, place});
  // The derivative is that of the mean of the elements which equal it.
  const auto op = [&](Opcode code, const Datums& operands) { return perform({code, 0, loc}, operands); };
  const auto stopped = [&](const Datum& d) { return op(Opcode::stop_gradient_, {d}); };
  const Datum value = op(Opcode::get_, {stopped(flat), place}), zeros = zeros_like(flat, loc);
  const Datum one = Datum::number(1, ir::Type(t.type().element()));
  const Datum same = perform_broadcast({Opcode::eq_, 0, loc}, stopped(flat), value);
  const Datum ties =
      op(Opcode::sum_, {op(Opcode::select_, {same, perform_broadcast({Opcode::add_, 0, loc}, zeros, one), zeros})});
  const Datum total = op(Opcode::sum_, {op(Opcode::select_, {same, flat, zeros})});
  return op(Opcode::with_value_, {op(Opcode::div_, {total, op(Opcode::max_, {ties, one})}), value});
}

}  // namespace lantern::core::detail
