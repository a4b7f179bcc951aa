// Signals: windows, discrete Fourier transforms, mel weights.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "lantern/compiler/onnx/rules.hpp"

namespace lantern::onnx::rules {

namespace {

/// a0 - a1 cos(2 pi i / n) + a2 cos(4 pi i / n).
Terms cosine_window(const Call& c, double a0, double a1, double a2) {
  const Element e = c.element_attribute("output_datatype", Element::float32);
  if (!is_float(e))
    c.fail(std::string("attribute 'output_datatype': expected floating-point numbers, got ") + name(e));
  const Datum size = c.single(0, "size");
  const Datum n = c.attribute("periodic", std::int64_t{1}) != 0
                      ? size
                      : c.op(Opcode::imax_, c.b.sub(size, c.integer(1)), c.integer(1));
  const auto real = [](double v) { return Datum::number(v, ir::F64); };
  return {c.result(
      c.b.tabulate(kind_of(e), {size},
                   [&](const Indices& at) {
                     const Datum angle =
                         c.b.div(c.b.mul(c.cast(at[0], f64), real(2 * std::numbers::pi)), c.cast(n, f64));
                     const Datum first = c.b.mul(c.op(Opcode::cos_, angle), real(a1));
                     const Datum second = c.b.mul(c.op(Opcode::cos_, c.b.mul(angle, real(2))), real(a2));
                     return c.cast(c.b.add(c.b.sub(real(a0), first), second), e);
                   }),
      e)};
}

/// The transform along dimension `axis` of a tensor whose last dimension is a real part and, if it has 2, an
/// imaginary one: a product with the cosines and sines of all frequencies. `length`: elements that are
/// transformed, with zeros. Of one side: the frequencies from 0 to half of them, or, the other way, a real
/// signal of those, which represent the others as well.
Datum transformed(const Call& c, const Datum& x, int axis, const Datum& length, bool inverse, bool onesided) {
  const int rank = x.type().rank();
  const ir::Kind k = x.type().element();
  const std::int64_t parts = c.known_size(x, rank - 1);
  if (parts != 1 && parts != 2)
    c.fail("expected a last dimension of 1 or 2, the real and imaginary parts, got " + std::to_string(parts));
  const bool real_signal = inverse && onesided;
  const Datum n = c.b.size(x, axis), half = c.b.add(c.b.div(length, c.integer(2)), c.integer(1));
  const Datum used = c.op(Opcode::imin_, n, real_signal ? half : length);
  const Datum results = onesided && !inverse ? half : length;
  const auto table = [&](Opcode f) {
    return c.b.tabulate(k, {results, n}, [&](const Indices& at) {
      // The angle's multiple of a turn is taken off while it is a whole number.
      const Datum turn = c.cast(c.b.rem(c.b.mul(at[0], at[1]), length), f64);
      const Datum angle =
          c.b.div(c.b.mul(turn, Datum::number(2 * std::numbers::pi, ir::F64)), c.cast(length, f64));
      Datum v = c.cast(c.op(f, angle), k);
      if (real_signal) {  // what has a mirror image counts twice
        const Datum alone = c.op(Opcode::lor_, c.op(Opcode::eq_, at[1], c.integer(0)),
                                 c.op(Opcode::eq_, c.b.add(at[1], at[1]), length));
        v = c.b.select(alone, v, c.b.add(v, v));
      }
      return c.b.select(c.b.less(at[1], used), v, Datum::zero(ir::Type(k)));
    });
  };
  const Datum cosines = table(Opcode::cos_), sines = table(Opcode::sin_);
  std::string from, to;
  for (int d = 0; d < rank - 1; ++d) {
    from += static_cast<char>(d == axis ? 'z' : 'a' + d);
    to += static_cast<char>(d == axis ? 'y' : 'a' + d);
  }
  const auto times = [&](const Datum& m, std::int64_t part) {
    const Datum one = c.b.einsum(from + "[" + std::to_string(part) + "]->" + from, {x});
    return c.b.einsum("yz," + from + "->" + to, {m, one});
  };
  // (re + i im)(cos -+ i sin): the sign is that of the direction.
  Datum re = times(cosines, 0);
  if (parts == 2) {
    const Datum cross = times(sines, 1);
    re = inverse ? c.b.sub(re, cross) : c.b.add(re, cross);
  }
  Datum y;
  if (real_signal) {
    const int last = rank - 1;
    y = c.b.with_ones(re, {&last, 1});
  } else {
    Datum im = times(sines, 0);
    if (!inverse) im = c.op(Opcode::neg_, im);
    if (parts == 2) im = c.b.add(im, times(cosines, 1));
    y = core::detail::stack(Datums{re, im}, rank - 1, c.b.loc);
  }
  if (inverse) y = c.b.div(y, c.cast(length, k));
  return y;
}

}  // namespace

Terms hann_window(const Call& c) { return cosine_window(c, 0.5, 0.5, 0); }
Terms hamming_window(const Call& c) { return cosine_window(c, 25.0 / 46, 21.0 / 46, 0); }
Terms blackman_window(const Call& c) { return cosine_window(c, 0.42, 0.5, 0.08); }

Terms dft(const Call& c) {
  c.require_float(0);
  const bool operand = c.opset >= 20 && c.has(2);
  const std::int64_t given = operand
                                 ? c.integer(2, "an axis")
                                 : c.attribute("axis", c.opset >= 20 ? std::int64_t{-2} : std::int64_t{1});
  const int axis = c.axis(given, c.rank());
  const bool inverse = c.attribute("inverse", std::int64_t{0}) != 0,
             onesided = c.attribute("onesided", std::int64_t{0}) != 0;
  if (axis == c.rank() - 1)
    c.fail("attribute 'axis': expected a dimension of the signal, got the last, which is for its parts");
  const Datum own = c.b.size(c[0], axis);
  const Datum whole = inverse && onesided ? c.b.mul(c.b.sub(own, c.integer(1)), c.integer(2)) : own;
  const Datum length = c.has(1) ? c.single(1, "dft_length") : whole;
  return {c.result(transformed(c, c[0], axis, length, inverse, onesided))};
}

// Operands: the signal [batch, n, parts] or [batch, n], the step between frames, a window, the length of a
// frame.
Terms stft(const Call& c) {
  c.require_float(0);
  Datum x = c[0];
  if (c.rank() == 2) {
    const int last = 2;
    x = c.b.with_ones(x, {&last, 1});
  }
  const Datum step = c.integer(c.integer(1, "a step between frames"));
  if (known(step) < 1) c.fail("expected a step of 1 or more, got " + std::to_string(known(step)));
  const Datum length = c.has(3) ? c.integer(c.integer(3, "a length of frames")) : c.b.size(c[2], 0);
  const Datum n = c.b.size(x, 1), count = c.b.add(c.b.div(c.b.sub(n, length), step), c.integer(1));
  const Datum frames = c.b.tabulate(
      x.type().element(), {c.b.size(x, 0), count, length, c.b.size(x, 2)}, [&](const Indices& at) {
        const Datum v = c.b.get(x, {at[0], c.b.add(c.b.mul(at[1], step), at[2]), at[3]});
        return c.has(2) ? c.b.mul(v, c.b.get(c[2], {at[2]})) : v;
      });
  return {c.result(transformed(c, frames, 2, length, false, c.attribute("onesided", std::int64_t{1}) != 0))};
}

// Triangles on the mel scale, each from the centre before to the one behind; frequencies as numbers of bins.
Terms mel_weight_matrix(const Call& c) {
  c.require_operands(5, 5);
  const std::int64_t mels = c.integer(0, "a number of mel bins"), length = c.integer(1, "a length"),
                     rate = c.integer(2, "a sample rate");
  const double lowest = c.number(3, "a lower edge"), highest = c.number(4, "an upper edge");
  if (mels < 1 || length < 1 || rate < 1 || mels > 100000 || length > 10'000'000)
    c.fail("expected numbers of bins, a length and a sample rate of 1 or more");
  const Element e = c.element_attribute("output_datatype", Element::float32);
  const std::int64_t bins = length / 2 + 1;
  const auto mel = [](double hertz) { return 2595 * std::log10(1 + hertz / 700); };
  std::vector<double> places;
  for (std::int64_t i = 0; i < mels + 2; ++i) {
    const double at =
        mel(lowest) + static_cast<double>(i) * (mel(highest) - mel(lowest)) / static_cast<double>(mels + 2);
    const double hertz = 700 * (std::pow(10, at / 2595) - 1);
    places.push_back(std::floor(static_cast<double>(length + 1) * hertz / static_cast<double>(rate)));
  }
  std::vector<double> flat(static_cast<std::size_t>(bins * mels), 0.0);
  for (std::int64_t m = 0; m < mels; ++m) {
    const auto i = static_cast<std::size_t>(m);
    const auto lo = static_cast<std::int64_t>(places[i]), mid = static_cast<std::int64_t>(places[i + 1]),
               hi = static_cast<std::int64_t>(places[i + 2]);
    const auto put = [&](std::int64_t bin, double v) {
      if (bin >= 0 && bin < bins) flat[static_cast<std::size_t>(bin * mels + m)] = v;
    };
    if (mid == lo) put(mid, 1);
    for (std::int64_t b = lo; b <= mid && mid > lo; ++b)
      put(b, static_cast<double>(b - lo) / static_cast<double>(mid - lo));
    for (std::int64_t b = mid; b < hi && hi > mid; ++b)
      put(b, static_cast<double>(hi - b) / static_cast<double>(hi - mid));
  }
  Datums all;
  for (const double v : flat)
    all.push_back(is_float(e) ? Datum::number(v, ir::Type(kind_of(e)))
                              : Datum::integer(static_cast<std::int64_t>(v), ir::Type(kind_of(e))));
  return {Term::of_elements(std::move(all), {bins, mels}, e)};
}

}  // namespace lantern::onnx::rules
