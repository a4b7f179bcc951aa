// Interpolation in tables: interp by lines, cubic_spline by cubics. A place in the table is found by bisection; the
// derivatives by the place, the points and the values are those of the piece that it is in.
#pragma once

#include <cstdint>

#include "lantern/compiler/tensor/build.hpp"

namespace lantern::core {

namespace detail {
/// The i with points[i] <= x < points[i + 1], or the first or last piece.
template <class E>
Rep<std::int64_t> piece_of(const Rep<Array<E>>& points, const Rep<E>& x, const char* what, std::source_location l) {
  const Rep<std::int64_t> n = points.size(l);
  Build{here(l)}.require((n >= 2).datum(), std::string(what) + ": expected two points or more");
  using Bounds = std::tuple<Rep<std::int64_t>, Rep<std::int64_t>>;
  const auto [lo, hi] = WHILE(
      Bounds(0, n - 1), [](const Rep<std::int64_t>& from, const Rep<std::int64_t>& to) { return to - from > 1; },
      [&](const Rep<std::int64_t>& from, const Rep<std::int64_t>& to) {
        const Rep<std::int64_t> middle = (from + to) / 2;
        const Rep<bool> right = x >= points[middle];
        return Bounds(select(right, middle, from, l), select(right, to, middle, l));
      },
      l);
  return lo;
}
}  // namespace detail

/// The value at x on the lines between the points (numpy.interp): xs ascend strictly, and left and right of them the
/// value is the first and the last one. The slope by x is that of the line to the right of a point, and outside 0.
/// NaN where x is NaN. Errors: less than two points. More values than points are not looked at.
template <FloatElement E>
[[nodiscard]] Rep<E> interp(const std::type_identity_t<Rep<E>>& x, const Rep<Array<E>>& xs, const Rep<Array<E>>& ys,
                            std::source_location l = std::source_location::current()) {
  const Rep<std::int64_t> i = detail::piece_of(xs, x, "interp", l);
  const Rep<E> from = xs[i], part = (x - from) / (xs[i + 1] - from);
  const Rep<E> inside = max(min(part, E(1)), E(0));
  const Rep<E> used = select(part == part, select((part >= E(0)) & (part <= E(1)), part, inside, l), part, l);
  return (E(1) - used) * ys[i] + used * ys[i + 1];
}
/// At each of many places.
template <FloatElement E>
[[nodiscard]] Rep<Array<E>> interp(const Rep<Array<E>>& x, const std::type_identity_t<Rep<Array<E>>>& xs,
                                   const std::type_identity_t<Rep<Array<E>>>& ys,
                                   std::source_location l = std::source_location::current()) {
  return FOR(
      0, x.size(l), fill(Rep<E>(E(0)), x.size(l)),
      [&](const Rep<std::int64_t>& i, const Rep<Array<E>>& all) { return all.set(i, interp(x[i], xs, ys, l)); }, l);
}

/// A curve of cubics through points, with continuous second derivatives; see cubic_spline.
template <class E>
struct CubicSpline {
  Rep<Array<E>> points, values, curvatures;  ///< curvatures: the second derivatives at the points

  /// The value at x; outside, the first and the last cubic go on.
  [[nodiscard]] Rep<E> operator()(const Rep<E>& x, std::source_location l = std::source_location::current()) const {
    const Rep<std::int64_t> i = detail::piece_of(points, x, "cubic_spline", l);
    const Rep<E> width = points[i + 1] - points[i], right = (x - points[i]) / width, left = E(1) - right;
    const auto bend = [](const Rep<E>& t) { return (t * t * t - t) / E(6); };
    return left * values[i] + right * values[i + 1] +
           width * width * (bend(left) * curvatures[i] + bend(right) * curvatures[i + 1]);
  }
  /// The slope at x; grad of the value by x is the same.
  [[nodiscard]] Rep<E> slope(const Rep<E>& x, std::source_location l = std::source_location::current()) const {
    const Rep<std::int64_t> i = detail::piece_of(points, x, "cubic_spline", l);
    const Rep<E> width = points[i + 1] - points[i], right = (x - points[i]) / width, left = E(1) - right;
    const auto bend = [](const Rep<E>& t) { return (E(3) * t * t - E(1)) / E(6); };
    return (values[i + 1] - values[i]) / width +
           width * (bend(right) * curvatures[i + 1] - bend(left) * curvatures[i]);
  }
};

/// The natural cubic spline through points that ascend strictly: its second derivative at both ends is 0
/// (scipy.interpolate.CubicSpline, bc_type "natural"). Errors: less than two points.
/// Source: Press, Teukolsky, Vetterling and Flannery, "Numerical Recipes", 3rd ed., section 3.3.
template <FloatElement E>
[[nodiscard]] CubicSpline<E> cubic_spline(const Rep<Array<E>>& xs, const std::type_identity_t<Rep<Array<E>>>& ys,
                                          std::source_location l = std::source_location::current()) {
  const Rep<std::int64_t> n = xs.size(l);
  detail::Build{here(l)}.require((n >= 2).datum(), "cubic_spline: expected two points or more");
  const Rep<Array<E>> zeros = fill(Rep<E>(E(0)), n);
  using State = std::tuple<Rep<Array<E>>, Rep<Array<E>>>;
  // Elimination from above: the curvature at i is right[i] - factor[i] times that at i + 1.
  const auto [factor, right] = FOR(
      1, n - 1, State(zeros, zeros),
      [&](const Rep<std::int64_t>& i, const Rep<Array<E>>& f, const Rep<Array<E>>& r) {
        const Rep<E> before = xs[i] - xs[i - 1], after = xs[i + 1] - xs[i];
        const Rep<E> bend = (ys[i + 1] - ys[i]) / after - (ys[i] - ys[i - 1]) / before;
        const Rep<E> pivot = E(2) * (before + after) - before * f[i - 1];
        return State(f.set(i, after / pivot), r.set(i, (E(6) * bend - before * r[i - 1]) / pivot));
      },
      l);
  const Rep<Array<E>> curvatures = FOR(
      1, n - 1, zeros,
      [&](const Rep<std::int64_t>& k, const Rep<Array<E>>& m) {
        const Rep<std::int64_t> i = n - 1 - k;
        return m.set(i, right[i] - factor[i] * m[i + 1]);
      },
      l);
  return {xs, ys, curvatures};
}

}  // namespace lantern::core
