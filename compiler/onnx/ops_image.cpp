// Pictures: Resize and Upsample, NonMaxSuppression.
#include <algorithm>
#include <cmath>

#include "lantern/compiler/onnx/rules.hpp"
#include "lantern/compiler/staging/containers.hpp"

namespace lantern::onnx::rules {

namespace {

Datum clamped(const Call& c, const Datum& i, const Datum& last) {
  return c.op(Opcode::imax_, c.op(Opcode::imin_, i, last), c.integer(0));
}

/// How the numbers of one dimension become those of another size.
struct Resampling {
  std::string mode, transform, nearest;
  double cubic = -0.75;
  bool exclude_outside = false;
  double extrapolation = 0;
  bool antialias = false;

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

  /// The weight at a distance: 0 from 1 (linear) or 2 (cubic) on.
  Datum kernel(const Call& c, const Datum& d) const {
    if (mode == "linear") return c.op(Opcode::max_, c.b.sub(real(1), d), real(0));
    // The convolution kernel of Keys, "Cubic convolution interpolation for digital image processing", 1981.
    const auto polynomial = [&](std::initializer_list<double> coefficients) {
      Datum sum = real(0);
      for (const double a : coefficients) sum = c.b.add(c.b.mul(sum, d), real(a));
      return sum;
    };
    const double a = cubic;
    return c.b.select(c.op(Opcode::le_, d, real(1)), polynomial({a + 2, -(a + 3), 0, 1}),
                      c.b.select(c.b.less(d, real(2)), polynomial({a, -5 * a, 8 * a, -4 * a}), real(0)));
  }

  /// Along an axis that becomes shorter: the kernel is as much wider as the elements get further away from
  /// each other, so that each of them counts.
  Datum filtered(const Call& c, const Datum& x, std::size_t axis, const Indices& sizes, const Datum& places,
                 const Datum& scale) const {
    const ir::Kind k = x.type().element();
    const Datum n = c.b.size(x, static_cast<int>(axis)), last = c.b.sub(n, c.integer(1));
    const Datum narrow = c.op(Opcode::min_, scale, real(1)), reach = real(mode == "linear" ? 1 : 2);
    const Datum first = c.cast(
        c.b.add(c.op(Opcode::floor_, c.op(Opcode::neg_, c.b.div(reach, narrow))), real(1)), ir::Kind::i64);
    const Datum taps = c.b.mul(c.b.sub(c.integer(1), first), c.integer(2));
    const auto number = [&](const Datum& place, const Datum& tap) {
      return c.b.add(c.cast(c.op(Opcode::floor_, c.b.get(places, {place})), ir::Kind::i64),
                     c.b.add(first, tap));
    };
    const Datum weights = c.b.tabulate(f64, {sizes[axis], taps}, [&](const Indices& at) {
      const Datum i = number(at[0], at[1]), off = c.b.sub(c.cast(i, f64), c.b.get(places, {at[0]}));
      const Datum w = kernel(c, c.b.mul(c.op(Opcode::abs_, off), narrow));
      if (!exclude_outside) return w;
      const Datum in = c.op(Opcode::land_, c.op(Opcode::le_, c.integer(0), i), c.op(Opcode::le_, i, last));
      return c.b.select(in, w, real(0));
    });
    const int second = 1;
    const Datum sums = core::detail::sum_along(weights, {{&second, 1}, true}, c.b.loc);
    const Datum shares = c.cast(c.b.div(weights, sums), k);
    return c.b.tabulate(k, sizes, [&](const Indices& at) {
      return c.b.loop(c.integer(0), taps, {Build::number(0, x)}, [&](const Datum& tap, const Datums& s) {
        Indices from = at;
        from[axis] = clamped(c, number(at[axis], tap), last);
        return Datums{c.b.add(s[0], c.b.mul(c.b.get(shares, {at[axis], tap}), c.b.get(x, from)))};
      })[0];
    });
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
    if (antialias && mode != "nearest") {
      y = filtered(c, x, axis, sizes, places, scale);
    } else if (mode == "nearest") {
      const Datum numbers = integers([&](const Datum& p) { return rounded(c, p); });
      y = c.b.tabulate(k, sizes, [&](const Indices& at) { return read(at, c.b.get(numbers, {at[axis]})); });
    } else if (mode == "linear" || mode == "cubic") {
      const int first = mode == "linear" ? 0 : -1, taps = mode == "linear" ? 2 : 4;
      const auto weight = [&](const Datum& p, int tap) -> Datum {
        const Datum r = fraction(p);
        if (mode == "linear") return tap == 0 ? c.b.sub(real(1), r) : r;
        return kernel(c, c.op(Opcode::abs_, c.b.sub(r, real(tap + first))));
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
  const std::string policy = c.attribute("keep_aspect_ratio_policy", std::string("stretch"));
  if (policy != "stretch" && policy != "not_larger" && policy != "not_smaller")
    c.fail("attribute 'keep_aspect_ratio_policy': expected stretch, not_larger or not_smaller, got '" +
           policy + "'");
  Datum common;  // one scale for all dimensions: the least, or the largest, of theirs
  for (std::size_t i = 0; i < axes.size() && !wanted.empty() && policy != "stretch"; ++i) {
    const Datum own = c.b.div(real(static_cast<double>(wanted[i])), c.cast(c.b.size(x, axes[i]), f64));
    common = common.empty() ? own : c.op(policy == "not_larger" ? Opcode::min_ : Opcode::max_, common, own);
  }
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
      if (!common.empty()) {
        scale = common;
        out = c.cast(c.op(Opcode::floor_, c.b.add(c.b.mul(c.cast(n, f64), scale), real(0.5))), ir::Kind::i64);
      } else if (known(n) == wanted[i] && how.transform != "tf_crop_and_resize")
        continue;
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
  how.antialias = c.attribute("antialias", std::int64_t{0}) != 0;
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

// ---- boxes

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
