// Fourier transforms: linear maps, whose adjoints are the transforms with the other sign.
#include "lantern/compiler/linalg/functions.hpp"

namespace lantern::linalg::detail {

namespace {

/// batch, n0, n1, n2 of a transform of the last dimensions; the last one has `last` elements.
Datums sizes_of(const Value& x, int dimensions, const Datum& last) {
  const Location& loc = x.call.loc;
  Datum batch = integer(1);
  for (int k = 0; k < x.rank() - dimensions; ++k)
    batch = core::perform({Opcode::mul_, 0, loc}, {batch, x.dim(k)});
  Datums sizes{batch};
  for (int k = 3; k > 1; --k) sizes.push_back(k > dimensions ? integer(1) : x.dim(x.rank() - k));
  sizes.push_back(last);
  return sizes;
}
/// A zero like x, with another number of elements in the last dimension.
Value zeros_with(const Value& x, const Datum& last) {
  Datums sizes;
  for (int k = 0; k + 1 < x.rank(); ++k) sizes.push_back(x.dim(k));
  sizes.push_back(last);
  return filled(0, sizes, x);
}
Datum half_of(const Datum& n, const Call& call) {
  const Datum half = core::perform({Opcode::div_, 0, call.loc}, {n, integer(2)});
  return core::perform({Opcode::add_, 0, call.loc}, {half, integer(1)});
}

/// Unnormalised.
Values transform(const Value& re, const Value& im, int dimensions, bool backward) {
  const auto primal = [=](const Values& in) {
    Datums operands = sizes_of(in[0], dimensions, in[0].columns());
    operands.insert(operands.end(), {truth(backward), in[0].datum, in[1].datum});
    return run(&Kernels::fft, in[0].call, operands);
  };
  return with_rule({"fft", primal,
                    [=](const Values&, const Values&, const Values& g) {
                      return transform(g[0], g[1], dimensions, !backward);
                    },
                    [=](const Values&, const Values&, const Values& d) {
                      return transform(d[0], d[1], dimensions, backward);
                    }},
                   {re, im});
}

/// Times 1 where a coefficient represents itself alone, `others` where it represents its conjugate too.
Value weighed(const Value& coefficients, const Datum& n, double others) {
  const Location& loc = coefficients.call.loc;
  const Datum last = core::perform({Opcode::div_, 0, loc}, {n, integer(2)});
  const Datum odd = core::perform({Opcode::rem_, 0, loc}, {n, integer(2)});
  const Datum even = core::perform({Opcode::eq_, 0, loc}, {odd, integer(0)});
  const Datum one = number(1, coefficients);
  const Datum at_end = core::perform({Opcode::select_, 0, loc}, {even, one, number(others, coefficients)});
  Value weights = filled(others, {coefficients.columns()}, coefficients);
  weights.datum = core::perform({Opcode::set_, 0, loc}, {weights.datum, last, at_end});
  weights.datum = core::perform({Opcode::set_, 0, loc}, {weights.datum, integer(0), one});
  return coefficients * weights;
}

/// Unnormalised, of n elements in the last dimension.
Value real_transform(const Value& re, const Value& im, const Datum& n, int dimensions) {
  const auto primal = [=](const Values& in) {
    Datums operands = sizes_of(in[0], dimensions, in[2].datum);
    operands.insert(operands.end(), {in[0].datum, in[1].datum, zeros_with(in[0], in[2].datum).datum});
    return run(&Kernels::irfft, in[0].call, operands);
  };
  const auto backward = [=](const Values& in, const Values&, const Values& g) -> Values {
    const Values c = rfft(g[0], dimensions);
    return {weighed(c[0], in[2].datum, 2), weighed(c[1], in[2].datum, 2)};
  };
  const auto tangent = [=](const Values& in, const Values&, const Values& d) -> Values {
    return {real_transform(d[0], d[1], in[2].datum, dimensions)};
  };
  return with_rule({"irfft", primal, backward, tangent}, {re, im, {n, re.call}})[0];
}

/// Over the number of elements that a transform adds up.
Value normalised(const Value& x, int dimensions) {
  const Location& loc = x.call.loc;
  Datum all = integer(1);
  for (int k = x.rank() - dimensions; k < x.rank(); ++k)
    all = core::perform({Opcode::mul_, 0, loc}, {all, x.dim(k)});
  const auto kind = static_cast<std::int64_t>(x.datum.type().element());
  const Datum factor =
      core::perform({Opcode::div_, 0, loc}, {number(1, x), core::perform({Opcode::cast_, kind, loc}, {all})});
  return x * Value{factor, x.call};
}

void require_pair(const char* function, const Value& re, const Value& im, int dimensions) {
  require_rank(function, re, dimensions, 8);
  require_rank(function, im, re.rank(), re.rank());
  for (int k = 0; k < re.rank(); ++k)
    require_equal(function, re.dim(k), im.dim(k), "real and imaginary parts of the same sizes", re.call);
}

}  // namespace

Values fft(const Value& re, const Value& im, int dimensions, bool inverse) {
  require_pair(inverse ? "ifft" : "fft", re, im, dimensions);
  Values all = transform(re, im, dimensions, inverse);
  if (inverse)
    for (Value& v : all) v = normalised(v, dimensions);
  return all;
}

Values rfft(const Value& x, int dimensions) {
  require_rank("rfft", x, dimensions, 8);
  const auto primal = [=](const Values& in) {
    const Value& r = in[0];
    const Value none = zeros_with(r, half_of(r.columns(), r.call));
    Datums operands = sizes_of(r, dimensions, r.columns());
    operands.insert(operands.end(), {r.datum, none.datum, none.datum});
    return run(&Kernels::rfft, r.call, operands);
  };
  const auto backward = [=](const Values& in, const Values&, const Values& g) -> Values {
    const Datum n = in[0].columns();
    return {real_transform(weighed(g[0], n, 0.5), weighed(g[1], n, 0.5), n, dimensions)};
  };
  const auto tangent = [=](const Values&, const Values&, const Values& d) { return rfft(d[0], dimensions); };
  return with_rule({"rfft", primal, backward, tangent}, {x});
}

Value irfft(const Value& re, const Value& im, const Datum& n, int dimensions) {
  require_pair("irfft", re, im, dimensions);
  require_equal("irfft", re.columns(), half_of(n, re.call), "n / 2 + 1 coefficients for n numbers", re.call);
  return normalised(real_transform(re, im, n, dimensions), dimensions);
}

}  // namespace lantern::linalg::detail
