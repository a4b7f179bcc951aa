// Pictures: Resize and Upsample, GridSample, RoiAlign, NonMaxSuppression.
#include <algorithm>
#include <cmath>

#include "lantern/compiler/onnx/rules.hpp"
#include "lantern/compiler/staging/containers.hpp"

namespace lantern::onnx::rules {

namespace {

constexpr ir::Kind f64 = ir::Kind::f64;

Datum real(double v) { return Datum::number(v, ir::F64); }
Datum clamped(const Call& c, const Datum& i, const Datum& last) {
  return c.op(Opcode::imax_, c.op(Opcode::imin_, i, last), c.integer(0));
}

/// How the numbers of one dimension become those of another size.
struct Resampling {
  std::string mode, transform, nearest;
  double cubic = -0.75;
  bool exclude_outside = false;
  double extrapolation = 0;

  /// Where in n elements number o of `out` lies.
  Datum place(const Call& c, const Datum& o, const Datum& n, const Datum& out, const Datum& scale,
              const Datum& from, const Datum& to) const {
    const Datum i = c.cast(o, f64), size = c.cast(n, f64), wanted = c.cast(out, f64), one = real(1),
                half = real(0.5);
    const auto centred = [&] { return c.b.sub(c.b.div(c.b.add(i, half), scale), half); };
    const Datum single = c.op(Opcode::le_, out, c.integer(1));
    // A size that is no whole number before it is rounded counts as it is.
    const Datum gaps =
        c.op(Opcode::max_, c.b.sub(transform == "align_corners" ? c.b.mul(scale, size) : wanted, one),
             real(1e-300));
    if (transform == "half_pixel") return centred();
    if (transform == "pytorch_half_pixel") return c.b.select(single, real(0), centred());
    if (transform == "asymmetric") return c.b.div(i, scale);
    if (transform == "tf_half_pixel_for_nn") return c.b.div(c.b.add(i, half), scale);
    if (transform == "align_corners")
      return c.b.select(single, real(0), c.b.div(c.b.mul(i, c.b.sub(size, one)), gaps));
    if (transform == "half_pixel_symmetric") {
      const Datum adjusted = c.b.div(wanted, c.b.mul(scale, size));
      return c.b.add(c.b.mul(c.b.mul(size, half), c.b.sub(one, adjusted)), centred());
    }
    if (transform == "tf_crop_and_resize") {
      const Datum last = c.b.sub(size, one), step = c.b.div(c.b.mul(c.b.sub(to, from), last), gaps);
      return c.b.select(single, c.b.mul(c.b.mul(half, c.b.add(from, to)), last),
                        c.b.add(c.b.mul(from, last), c.b.mul(i, step)));
    }
    c.fail("attribute 'coordinate_transformation_mode': expected one that is known, got '" + transform + "'");
  }

  Datum rounded(const Call& c, const Datum& x) const {
    if (nearest == "floor") return c.op(Opcode::floor_, x);
    if (nearest == "ceil") return c.op(Opcode::ceil_, x);
    if (nearest == "round_prefer_ceil") return c.op(Opcode::floor_, c.b.add(x, real(0.5)));
    if (nearest == "round_prefer_floor") return c.op(Opcode::ceil_, c.b.sub(x, real(0.5)));
    c.fail("attribute 'nearest_mode': expected one that is known, got '" + nearest + "'");
  }

  /// The tensor with another size along an axis.
  Datum along(const Call& c, const Datum& x, std::size_t axis, const Datum& out, const Datum& scale,
              const Datum& from, const Datum& to) const {
    const Indices own = c.sizes(x);
    const Datum n = own[axis], last = c.b.sub(n, c.integer(1));
    const ir::Kind k = x.type().element();
    Indices sizes = own;
    sizes[axis] = out;
    const auto at_place = [&](const Indices& at) { return place(c, at[0], n, out, scale, from, to); };
    const Datum places = c.b.tabulate(f64, {out}, at_place);
    const auto read = [&](Indices at, const Datum& i) {
      at[axis] = i;
      return c.b.get(x, at);
    };
    // Numbers and weights are computed once for each place, not for each element.
    const auto integers = [&](const std::function<Datum(const Datum&)>& f) {
      return c.b.tabulate(ir::Kind::i64, {out}, [&](const Indices& at) {
        return clamped(c, c.cast(f(c.b.get(places, {at[0]})), ir::Kind::i64), last);
      });
    };
    const auto weights = [&](const std::function<Datum(const Datum&)>& f) {
      return c.b.tabulate(k, {out},
                          [&](const Indices& at) { return c.cast(f(c.b.get(places, {at[0]})), k); });
    };
    const auto fraction = [&](const Datum& p) { return c.b.sub(p, c.op(Opcode::floor_, p)); };
    Datum y;
    if (mode == "nearest") {
      const Datum numbers = integers([&](const Datum& p) { return rounded(c, p); });
      y = c.b.tabulate(k, sizes, [&](const Indices& at) { return read(at, c.b.get(numbers, {at[axis]})); });
    } else if (mode == "linear" || mode == "cubic") {
      const int first = mode == "linear" ? 0 : -1, taps = mode == "linear" ? 2 : 4;
      const auto weight = [&](const Datum& p, int tap) -> Datum {
        const Datum r = fraction(p);
        if (mode == "linear") return tap == 0 ? c.b.sub(real(1), r) : r;
        // The convolution kernel of Keys, "Cubic convolution interpolation for digital image processing",
        // 1981.
        const Datum d = c.op(Opcode::abs_, c.b.sub(r, real(tap + first)));
        const auto polynomial = [&](std::initializer_list<double> coefficients) {
          Datum sum = real(0);
          for (const double a : coefficients) sum = c.b.add(c.b.mul(sum, d), real(a));
          return sum;
        };
        const double a = cubic;
        return c.b.select(c.op(Opcode::le_, d, real(1)), polynomial({a + 2, -(a + 3), 0, 1}),
                          polynomial({a, -5 * a, 8 * a, -4 * a}));
      };
      const auto inside = [&](const Datum& p, int tap) {
        const Datum i = c.cast(c.b.add(c.op(Opcode::floor_, p), real(tap + first)), ir::Kind::i64);
        return c.op(Opcode::land_, c.op(Opcode::le_, c.integer(0), i), c.op(Opcode::le_, i, last));
      };
      const auto kept_weight = [&](const Datum& p, int tap) {
        return exclude_outside ? c.b.select(inside(p, tap), weight(p, tap), real(0)) : weight(p, tap);
      };
      Datums numbers, factors;
      for (int tap = 0; tap < taps; ++tap) {
        numbers.push_back(
            integers([&](const Datum& p) { return c.b.add(c.op(Opcode::floor_, p), real(tap + first)); }));
        factors.push_back(weights([&](const Datum& p) {
          if (!exclude_outside) return weight(p, tap);
          Datum total = real(0);
          for (int other = 0; other < taps; ++other) total = c.b.add(total, kept_weight(p, other));
          return c.b.div(kept_weight(p, tap), total);
        }));
      }
      y = c.b.tabulate(k, sizes, [&](const Indices& at) {
        Datum sum = Build::number(0, x);
        for (std::size_t tap = 0; tap < numbers.size(); ++tap)
          sum = c.b.add(
              sum, c.b.mul(c.b.get(factors[tap], {at[axis]}), read(at, c.b.get(numbers[tap], {at[axis]}))));
        return sum;
      });
    } else {
      c.fail("attribute 'mode': expected nearest, linear or cubic, got '" + mode + "'");
    }
    if (transform != "tf_crop_and_resize") return y;
    return c.b.tabulate(k, sizes, [&](const Indices& at) {
      const Datum p = c.b.get(places, {at[axis]});
      const Datum in =
          c.op(Opcode::land_, c.op(Opcode::le_, real(0), p), c.op(Opcode::le_, p, c.cast(last, f64)));
      return c.b.select(in, c.b.get(y, at), Build::number(extrapolation, x));
    });
  }
};

Terms resized(const Call& c, const Resampling& how, const std::vector<double>& scales, const Sizes& wanted,
              const std::vector<double>& region, const std::vector<int>& axes) {
  Datum x = c[0];
  if (how.mode != "nearest" && !is_float(c.element())) c.require_float(0);
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const Datum n = c.b.size(x, axes[i]);
    const Datum from = real(region.empty() ? 0 : region[i]),
                to = real(region.empty() ? 1 : region[i + axes.size()]);
    Datum out, scale;
    if (!wanted.empty()) {
      if (wanted[i] < 0 || wanted[i] > (std::int64_t{1} << 32))
        c.fail("expected sizes of 0 or more, got " + std::to_string(wanted[i]));
      out = c.integer(wanted[i]);
      scale = c.b.div(real(static_cast<double>(wanted[i])), c.cast(n, f64));
      if (known(n) == wanted[i] && how.transform != "tf_crop_and_resize") continue;
    } else {
      if (!(scales[i] > 0) || scales[i] > 1e6)
        c.fail("expected scales above 0, got " + std::to_string(scales[i]));
      if (scales[i] == 1 && how.transform != "tf_crop_and_resize") continue;
      scale = real(scales[i]);
      const Datum part = how.transform == "tf_crop_and_resize" ? c.b.sub(to, from) : real(1);
      out = c.cast(c.op(Opcode::floor_, c.b.mul(c.b.mul(c.cast(n, f64), part), scale)), ir::Kind::i64);
    }
    x = how.along(c, x, static_cast<std::size_t>(axes[i]), out, scale, from, to);
  }
  return {c.result(x)};
}

std::vector<int> all_axes(const Call& c) {
  std::vector<int> axes;
  for (int d = 0; d < c.rank(); ++d) axes.push_back(d);
  return axes;
}

void require_one_each(const Call& c, std::size_t have, std::size_t axes, const char* what) {
  if (have != axes)
    c.fail(std::string("expected ") + what + " for each of " + std::to_string(axes) + " dimensions, got " +
           std::to_string(have));
}

}  // namespace

Terms resize(const Call& c) {
  Resampling how{c.attribute("mode", std::string("nearest")), "asymmetric", "floor"};
  if (c.opset < 11) {
    const std::vector<double> scales = c.numbers(1, "scales");
    require_one_each(c, scales.size(), static_cast<std::size_t>(c.rank()), "a scale");
    return resized(c, how, scales, {}, {}, all_axes(c));
  }
  how.transform = c.attribute("coordinate_transformation_mode", std::string("half_pixel"));
  how.nearest = c.attribute("nearest_mode", std::string("round_prefer_floor"));
  how.cubic = c.attribute("cubic_coeff_a", -0.75);
  how.exclude_outside = c.attribute("exclude_outside", std::int64_t{0}) != 0;
  how.extrapolation = c.attribute("extrapolation_value", 0.0);
  if (c.attribute("antialias", std::int64_t{0}) != 0) c.unsupported("attribute 'antialias'");
  if (c.attribute("keep_aspect_ratio_policy", std::string("stretch")) != "stretch")
    c.unsupported("attribute 'keep_aspect_ratio_policy'");
  const std::vector<int> axes =
      c.has_attribute("axes") ? c.axes(c.attributes("axes"), c.rank()) : all_axes(c);
  std::vector<double> region, scales;
  Sizes wanted;
  if (how.transform == "tf_crop_and_resize") {
    region = c.numbers(1, "a region");
    require_one_each(c, region.size(), 2 * axes.size(), "two bounds");
  }
  if (c.has(3)) wanted = c.integers(3, "sizes");
  if (wanted.empty()) {
    if (!c.has(2)) c.fail("expected scales or sizes, got neither");
    scales = c.numbers(2, "scales");
    require_one_each(c, scales.size(), axes.size(), "a scale");
  } else {
    require_one_each(c, wanted.size(), axes.size(), "a size");
  }
  return resized(c, how, scales, wanted, region, axes);
}

Terms upsample(const Call& c) {
  const std::vector<double> scales = c.opset < 9 ? c.real_attributes("scales") : c.numbers(1, "scales");
  require_one_each(c, scales.size(), static_cast<std::size_t>(c.rank()), "a scale");
  return resized(c, {c.attribute("mode", std::string("nearest")), "asymmetric", "floor"}, scales, {}, {},
                 all_axes(c));
}

// ---- elements at places that are no whole numbers

namespace {

/// A picture of [batch, channels, height, width], read around places.
struct Sampler {
  const Call& c;
  Datum x, height, width;
  std::string padding;
  bool corners = false;

  Datum bound(const Datum& v, const Datum& n) const {  // of an index
    return clamped(c, v, c.b.sub(n, c.integer(1)));
  }
  /// An element, 0 outside.
  Datum read(const Datum& n, const Datum& channel, const Datum& i, const Datum& j) const {
    const auto in = [&](const Datum& v, const Datum& size) {
      return c.op(Opcode::land_, c.op(Opcode::le_, c.integer(0), v), c.b.less(v, size));
    };
    const Datum v = c.b.get(x, {n, channel, bound(i, height), bound(j, width)});
    return c.b.select(c.op(Opcode::land_, in(i, height), in(j, width)), v, Build::number(0, x));
  }
  /// A coordinate from -1 to 1 as a place among n elements.
  Datum place(const Datum& v, const Datum& n) const {
    const Datum size = c.cast(n, f64), one = real(1), wide = c.cast(v, f64);
    if (corners) return c.b.mul(c.b.mul(c.b.add(wide, one), real(0.5)), c.b.sub(size, one));
    return c.b.mul(c.b.sub(c.b.mul(c.b.add(wide, one), size), one), real(0.5));
  }
  /// What lies outside brought inside, as the padding says.
  Datum inside(const Datum& v, const Datum& n) const {
    const Datum last = c.b.sub(c.cast(n, f64), real(1));
    const auto clipped = [&](const Datum& p) {
      return c.op(Opcode::max_, c.op(Opcode::min_, p, last), real(0));
    };
    if (padding == "border") return clipped(v);
    if (padding != "reflection") return v;
    const Datum lo = real(corners ? 0 : -0.5), span = corners ? last : c.b.add(last, real(1));
    const Datum some = c.op(Opcode::max_, span, real(1e-300));
    const Datum off = c.op(Opcode::abs_, c.b.sub(v, lo)), turns = c.op(Opcode::floor_, c.b.div(off, some));
    const Datum rest = c.b.sub(off, c.b.mul(turns, some)), half = c.b.mul(turns, real(0.5));
    const Datum even = c.op(Opcode::eq_, half, c.op(Opcode::floor_, half));
    return clipped(c.b.select(even, c.b.add(rest, lo), c.b.sub(c.b.add(lo, span), rest)));
  }
  Datum whole(const Datum& v) const { return c.cast(v, ir::Kind::i64); }
  Datum padded_index(const Datum& v, const Datum& n) const { return whole(inside(v, n)); }

  Datum bilinear(const Datum& n, const Datum& channel, const Datum& i, const Datum& j) const {
    const ir::Kind k = x.type().element();
    const Datum top = c.op(Opcode::floor_, i), left = c.op(Opcode::floor_, j);
    const Datum below = c.cast(c.b.sub(i, top), k), right = c.cast(c.b.sub(j, left), k),
                one = Build::number(1, x);
    const Datum row = whole(top), column = whole(left), next_row = c.b.add(row, c.integer(1)),
                next_column = c.b.add(column, c.integer(1));
    const auto line = [&](const Datum& r) {
      return c.b.add(c.b.mul(read(n, channel, r, column), c.b.sub(one, right)),
                     c.b.mul(read(n, channel, r, next_column), right));
    };
    return c.b.add(c.b.mul(line(row), c.b.sub(one, below)), c.b.mul(line(next_row), below));
  }
  Datum bicubic(const Datum& n, const Datum& channel, const Datum& i, const Datum& j) const {
    const ir::Kind k = x.type().element();
    const Datum top = c.op(Opcode::floor_, i), left = c.op(Opcode::floor_, j);
    const auto weight = [&](const Datum& r, int tap) {  // a = -0.75
      const Datum d = c.op(Opcode::abs_, c.b.sub(r, real(tap)));
      const auto polynomial = [&](std::initializer_list<double> coefficients) {
        Datum sum = real(0);
        for (const double a : coefficients) sum = c.b.add(c.b.mul(sum, d), real(a));
        return sum;
      };
      return c.cast(c.b.select(c.op(Opcode::le_, d, real(1)), polynomial({1.25, -2.25, 0, 1}),
                               polynomial({-0.75, 3.75, -6, 3})),
                    k);
    };
    Datum sum = Build::number(0, x);
    for (int a = -1; a <= 2; ++a) {
      Datum line = Build::number(0, x);
      for (int b = -1; b <= 2; ++b) {
        const Datum r = padded_index(c.b.add(top, real(a)), height),
                    s = padded_index(c.b.add(left, real(b)), width);
        line = c.b.add(line, c.b.mul(read(n, channel, r, s), weight(c.b.sub(j, left), b)));
      }
      sum = c.b.add(sum, c.b.mul(line, weight(c.b.sub(i, top), a)));
    }
    return sum;
  }
  Datum nearest(const Datum& n, const Datum& channel, const Datum& i, const Datum& j) const {
    const auto rounded = [&](const Datum& v) {  // halves to the even one
      const Datum floor = c.op(Opcode::floor_, v), rest = c.b.sub(v, floor), half = c.b.mul(floor, real(0.5));
      const Datum odd = c.op(Opcode::ne_, half, c.op(Opcode::floor_, half));
      const Datum up = c.op(Opcode::lor_, c.b.less(real(0.5), rest),
                            c.op(Opcode::land_, c.op(Opcode::eq_, rest, real(0.5)), odd));
      return whole(c.b.add(floor, c.cast(up, f64)));
    };
    return read(n, channel, rounded(i), rounded(j));
  }
};

}  // namespace

Terms grid_sample(const Call& c) {
  c.require_operands(2, 2);
  c.require_float(0);
  const Datum x = c[0], grid = c[1];
  if (c.rank(0) != 4 || c.rank(1) != 4)
    c.unsupported("operands of other than 4 dimensions: " + x.type().str() + " and " + grid.type().str());
  const std::string mode = c.attribute("mode", std::string("bilinear"));
  const Sampler s{c,
                  x,
                  c.b.size(x, 2),
                  c.b.size(x, 3),
                  c.attribute("padding_mode", std::string("zeros")),
                  c.attribute("align_corners", std::int64_t{0}) != 0};
  if (s.padding != "zeros" && s.padding != "border" && s.padding != "reflection")
    c.fail("attribute 'padding_mode': expected zeros, border or reflection, got '" + s.padding + "'");
  const Indices sizes = {c.b.size(x, 0), c.b.size(x, 1), c.b.size(grid, 1), c.b.size(grid, 2)};
  return {c.result(c.b.tabulate(x.type().element(), sizes, [&](const Indices& at) {
    const auto coordinate = [&](std::int64_t k) {
      return c.b.get(grid, {at[0], at[2], at[3], c.integer(k)});
    };
    const Datum i = s.place(coordinate(1), s.height), j = s.place(coordinate(0), s.width);
    if (mode == "bicubic" || mode == "cubic") return s.bicubic(at[0], at[1], i, j);
    const Datum row = s.inside(i, s.height), column = s.inside(j, s.width);
    if (mode == "nearest") return s.nearest(at[0], at[1], row, column);
    if (mode == "bilinear" || mode == "linear") return s.bilinear(at[0], at[1], row, column);
    c.fail("attribute 'mode': expected bilinear, nearest or bicubic, got '" + mode + "'");
  }))};
}

Terms roi_align(const Call& c) {
  c.require_operands(3, 3);
  c.require_float(0);
  const Datum x = c[0], regions = c[1], batches = c.cast(c[2], ir::Kind::i64);
  if (c.rank(0) != 4 || c.rank(1) != 2)
    c.fail("expected pictures [batch, channels, height, width] and regions [n, 4]");
  const ir::Kind k = x.type().element();
  const std::int64_t out_h = c.attribute("output_height", std::int64_t{1}),
                     out_w = c.attribute("output_width", std::int64_t{1});
  const std::int64_t ratio = c.attribute("sampling_ratio", std::int64_t{0});
  const double scale = c.attribute("spatial_scale", 1.0);
  const bool largest = c.attribute("mode", std::string("avg")) == "max";
  const bool half = c.opset >= 16 &&
                    c.attribute("coordinate_transformation_mode", std::string("half_pixel")) == "half_pixel";
  if (out_h < 1 || out_w < 1 || ratio < 0) c.fail("expected an output and a sampling ratio of sizes above 0");
  const Sampler s{c, x, c.b.size(x, 2), c.b.size(x, 3), "zeros"};
  const Indices sizes = {c.b.size(regions, 0), c.b.size(x, 1), c.integer(out_h), c.integer(out_w)};
  return {c.result(c.b.tabulate(k, sizes, [&](const Indices& at) {
    const auto corner = [&](std::int64_t i) {
      return c.b.sub(c.b.mul(c.cast(c.b.get(regions, {at[0], c.integer(i)}), f64), real(scale)),
                     real(half ? 0.5 : 0));
    };
    const Datum batch = c.b.get(batches, {at[0]});
    const auto extent = [&](const Datum& from, const Datum& to) {
      const Datum size = c.b.sub(to, from);
      return half ? size : c.op(Opcode::max_, size, real(1));
    };
    const Datum left = corner(0), top = corner(1);
    const Datum bin_h = c.b.div(extent(top, corner(3)), real(static_cast<double>(out_h))),
                bin_w = c.b.div(extent(left, corner(2)), real(static_cast<double>(out_w)));
    const auto count = [&](const Datum& bin) {
      return ratio > 0 ? c.integer(ratio) : c.cast(c.op(Opcode::ceil_, bin), ir::Kind::i64);
    };
    const Datum rows = count(bin_h), columns = count(bin_w);
    const auto sample = [&](const Indices& p) {
      const auto place = [&](const Datum& from, const Datum& cell, const Datum& bin, const Datum& i,
                             const Datum& n, const Datum& size) {
        const Datum step = c.b.div(c.b.mul(c.b.add(c.cast(i, f64), real(0.5)), bin), c.cast(n, f64));
        const Datum v = c.b.add(c.b.add(from, c.b.mul(c.cast(cell, f64), bin)), step);
        const Datum out = c.op(Opcode::lor_, c.b.less(v, real(-1)), c.b.less(c.cast(size, f64), v));
        const Datum last = c.b.sub(c.cast(size, f64), real(1));
        return std::pair(c.op(Opcode::min_, c.op(Opcode::max_, v, real(0)), last), out);
      };
      const auto [i, i_out] = place(top, at[2], bin_h, p[0], rows, s.height);
      const auto [j, j_out] = place(left, at[3], bin_w, p[1], columns, s.width);
      const Datum outside = c.op(Opcode::lor_, i_out, j_out);
      if (!largest) return c.b.select(outside, Build::number(0, x), s.bilinear(batch, at[1], i, j));
      // The largest of the four weighted neighbours.
      const Datum r = c.op(Opcode::floor_, i), q = c.op(Opcode::floor_, j), below = c.cast(c.b.sub(i, r), k),
                  right = c.cast(c.b.sub(j, q), k);
      const Datum one = Build::number(1, x), row = s.whole(r), column = s.whole(q);
      Datum best;
      for (int a = 0; a < 2; ++a)
        for (int b = 0; b < 2; ++b) {
          const Datum w = c.b.mul(a ? below : c.b.sub(one, below), b ? right : c.b.sub(one, right));
          const Datum v =
              c.b.mul(s.read(batch, at[1], c.b.add(row, c.integer(a)), c.b.add(column, c.integer(b))), w);
          best = best.empty() ? v : c.op(Opcode::max_, best, v);
        }
      return c.b.select(outside, Build::number(0, x), best);
    };
    if (largest) {
      const Datum first = sample({c.integer(0), c.integer(0)});
      return c.b.points({rows, columns}, {first}, [&](const Indices& p, const Datums& now) {
        return Datums{c.op(Opcode::max_, now[0], sample(p))};
      })[0];
    }
    const Datum sum = c.b.points(
        {rows, columns}, {Build::number(0, x)},
        [&](const Indices& p, const Datums& now) { return Datums{c.b.add(now[0], sample(p))}; })[0];
    return c.b.div(sum, c.cast(c.op(Opcode::imax_, c.b.mul(rows, columns), c.integer(1)), k));
  }))};
}

// For each class of each picture: boxes from the best score on, but those that overlap one that is taken.
Terms non_max_suppression(const Call& c) {
  const Datum boxes = c[0], scores = c[1];
  if (c.rank(0) != 3 || c.rank(1) != 3) c.fail("expected boxes [batch, n, 4] and scores [batch, classes, n]");
  const auto first = [&](std::size_t i) { return c.rank(i) == 0 ? c[i] : c.b.get(c[i], {c.integer(0)}); };
  const ir::Kind k = boxes.type().element();
  const Datum zero = c.integer(0), one = c.integer(1), batches = c.b.size(scores, 0),
              classes = c.b.size(scores, 1), n = c.b.size(boxes, 1);
  const Datum most = c.op(Opcode::imin_, c.has(2) ? c.cast(first(2), ir::Kind::i64) : zero, n);
  const Datum overlap = c.has(3) ? c.cast(first(3), k) : Build::number(0, boxes);
  const bool centred = c.attribute("center_point_box", std::int64_t{0}) != 0;
  const Datum order = core::detail::argsort(scores, 2, true, c.b.loc);
  const auto edges = [&](const Datum& batch, const Datum& box) {  // top, left, bottom, right
    Datums v;
    for (std::int64_t i = 0; i < 4; ++i) v.push_back(c.b.get(boxes, {batch, box, c.integer(i)}));
    const auto lo = [&](const Datum& p, const Datum& q) { return c.op(Opcode::min_, p, q); };
    const auto hi = [&](const Datum& p, const Datum& q) { return c.op(Opcode::max_, p, q); };
    if (!centred) return Datums{lo(v[0], v[2]), lo(v[1], v[3]), hi(v[0], v[2]), hi(v[1], v[3])};
    const Datum half_w = c.b.mul(v[2], Build::number(0.5, boxes)),
                half_h = c.b.mul(v[3], Build::number(0.5, boxes));
    return Datums{c.b.sub(v[1], half_h), c.b.sub(v[0], half_w), c.b.add(v[1], half_h), c.b.add(v[0], half_w)};
  };
  const auto area = [&](const Datums& e) { return c.b.mul(c.b.sub(e[2], e[0]), c.b.sub(e[3], e[1])); };
  const auto too_near = [&](const Datums& p, const Datums& q) {
    const Datum none = Build::number(0, boxes);
    const auto side = [&](std::size_t d) {
      return c.op(Opcode::max_,
                  c.b.sub(c.op(Opcode::min_, p[d + 2], q[d + 2]), c.op(Opcode::max_, p[d], q[d])), none);
    };
    const Datum both = c.b.mul(side(0), side(1)), all = c.b.sub(c.b.add(area(p), area(q)), both);
    return c.op(Opcode::land_, c.b.less(none, all), c.b.less(c.b.mul(overlap, all), both));
  };
  const Datum rows = c.b.mul(c.b.mul(batches, classes), c.op(Opcode::imax_, most, zero)),
              three = c.integer(3);
  const Datums end = c.b.points(
      {batches, classes}, {c.b.fill(zero, {rows, three}), zero}, [&](const Indices& at, const Datums& s) {
        const Datum start = s[1];
        return c.b.loop(zero, n, s, [&](const Datum& i, const Datums& now) {
          const Datum box = c.b.get(order, {at[0], at[1], i});
          Datum good = c.b.less(c.b.sub(now[1], start), most);
          if (c.has(4))
            good = c.op(
                Opcode::land_, good,
                c.b.less(c.cast(first(4), scores.type().element()), c.b.get(scores, {at[0], at[1], box})));
          const Datums mine = edges(at[0], box);
          const Datum kept = c.b.loop(start, now[1], {good}, [&](const Datum& other, const Datums& ok) {
            const Datum near = too_near(mine, edges(at[0], c.b.get(now[0], {other, c.integer(2)})));
            return Datums{c.op(Opcode::land_, ok[0], c.op(Opcode::lnot_, near))};
          })[0];
          return core::detail::branch(
              kept,
              [&] {
                Datum out = now[0];
                const Datum entries[] = {at[0], at[1], box};
                for (std::int64_t d = 0; d < 3; ++d) out = c.b.set(out, {now[1], c.integer(d)}, entries[d]);
                return Datums{out, c.b.add(now[1], one)};
              },
              [&] { return now; }, c.b.loc);
        });
      });
  return {c.result(core::perform({Opcode::slice_, 0, c.b.loc}, {end[0], zero, end[1]}), Element::int64)};
}

}  // namespace lantern::onnx::rules
