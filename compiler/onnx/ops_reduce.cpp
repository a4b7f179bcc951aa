// Reductions over dimensions: sums, means, extremes, their places, and running sums.
#include <algorithm>
#include <cmath>
#include <limits>

#include "lantern/compiler/onnx/rules.hpp"

namespace lantern::onnx::rules {

namespace {

using core::detail::Over;

/// Which dimensions are reduced; none where nothing is.
std::optional<std::vector<int>> reduced_axes(const Call& c, bool operand) {
  Sizes given = operand ? (c.has(1) ? c.integers(1, "axes") : Sizes()) : c.attributes("axes");
  if (given.empty()) {
    if (c.attribute("noop_with_empty_axes", std::int64_t{0}) != 0) return std::nullopt;
    for (int d = 0; d < c.rank(); ++d) given.push_back(d);
  }
  std::vector<int> axes = c.axes(given, c.rank());
  std::ranges::sort(axes);
  return axes;
}

/// A reduction of the library over these dimensions, in which all dimensions are named by none.
template <class F>
Datum over(const Call& c, const Datum& x, const std::vector<int>& axes, bool keep, F&& f) {
  const bool all = static_cast<int>(axes.size()) == x.type().rank();
  return f(x, Over{all && !keep ? std::span<const int>() : std::span<const int>(axes), keep}, c.b.loc);
}

/// The largest or the least value of a type.
Datum end_of(Element e, bool largest) {
  const ir::Type type(kind_of(e));
  const double inf = std::numeric_limits<double>::infinity();
  if (is_float(e)) {
    const auto f = format_of(e);
    const double most = f && !f->infinite ? f->largest : inf;
    return Datum::number(largest ? most : f && !f->negative ? std::ldexp(1.0, f->least) : -most, type);
  }
  if (e == Element::boolean) return Datum::integer(largest ? 1 : 0, type);
  if (e == Element::uint64) return Datum::integer(largest ? -1 : 0, type);
  const std::size_t bits = bits_in_file(e) - (is_unsigned(e) ? 0 : 1);
  const std::int64_t most =
      bits == 63 ? std::numeric_limits<std::int64_t>::max() : (std::int64_t{1} << bits) - 1;
  return Datum::integer(largest ? most : is_unsigned(e) ? 0 : -most - 1, type);
}

enum class How : std::uint8_t { sum, mean, max, min, prod, l1, l2, log_sum, log_sum_exp, sum_square };

Datum sum_of(const Call& c, const Datum& x, const std::vector<int>& axes, bool keep) {
  return over(c, x, axes, keep, core::detail::sum_along);
}

Terms reduce(const Call& c, How how, int operand_since) {
  const Element e = c.element();
  if (e == Element::boolean && how != How::max && how != How::min) c.fail("expected numbers, got bool");
  const auto axes = reduced_axes(c, c.opset >= operand_since);
  const bool keep = c.attribute("keepdims", std::int64_t{1}) != 0;
  Datum x = c[0];
  const auto square = [&] { return c.b.mul(x, x); };
  const auto size = [&] {
    return is_float(e) ? c.op(Opcode::abs_, x) : c.op(Opcode::imax_, x, c.op(Opcode::neg_, x));
  };
  if (!axes) return {c.term(0)};
  if (c.rank() == 0) {  // of one number
    switch (how) {
      case How::l1:
      case How::l2:
        return {c.result(size())};
      case How::log_sum:
        return {c.result(c.op(Opcode::log_, x))};
      case How::sum_square:
        return {c.result(square())};
      default:
        return {c.term(0)};
    }
  }
  switch (how) {
    case How::sum:
      return {c.result(c.wrapped(sum_of(c, x, *axes, keep), e))};
    case How::sum_square:
      return {c.result(c.wrapped(sum_of(c, square(), *axes, keep), e))};
    case How::l1:
      return {c.result(c.wrapped(sum_of(c, size(), *axes, keep), e))};
    case How::l2:
      if (!is_float(e)) {
        const Datum wide = c.cast(x, ir::Kind::f64);
        return {c.result(c.cast(c.op(Opcode::sqrt_, sum_of(c, c.b.mul(wide, wide), *axes, keep)), e))};
      }
      return {c.result(over(c, x, *axes, keep, core::detail::norm))};
    case How::log_sum:
      c.require_float(0);
      return {c.result(c.op(Opcode::log_, sum_of(c, x, *axes, keep)))};
    case How::log_sum_exp: {
      c.require_float(0);
      const bool all = static_cast<int>(axes->size()) == c.rank();
      if (!all || keep) return {c.result(core::detail::logsumexp_along(x, {*axes, keep}, c.b.loc))};
      return {c.result(c.reshape(core::detail::logsumexp_along(x, {*axes, true}, c.b.loc), {}))};
    }
    case How::mean:
      if (!is_float(e))
        return {
            c.result(c.cast(over(c, c.cast(x, ir::Kind::f64), *axes, keep, core::detail::mean_along), e))};
      return {c.result(over(c, x, *axes, keep, core::detail::mean_along))};
    case How::prod:
      return {c.result(c.wrapped(over(c, x, *axes, keep, core::detail::product), e))};
    case How::max:
    case How::min: {
      // Of nothing it is what every other number beats.
      if (std::ranges::any_of(*axes, [&](int d) { return known(c.b.size(x, d)) == 0; })) {
        Indices sizes;
        for (int d = 0; d < c.rank(); ++d) {
          const bool reduced = std::ranges::find(*axes, d) != axes->end();
          if (!reduced || keep) sizes.push_back(reduced ? c.integer(1) : c.b.size(x, d));
        }
        return {c.result(c.fill(end_of(e, how == How::min), sizes))};
      }
      if (e == Element::boolean) x = c.cast(x, ir::Kind::i32);
      const Datum best = over(c, x, *axes, keep, [&](const Datum& t, Over o, const core::Location& loc) {
        return core::detail::extremum_along(t, o, how == How::max, loc);
      });
      return {c.result(c.cast(best, e))};
    }
  }
  return {};
}

Terms place(const Call& c, bool largest) {
  const int axis = c.axis(c.attribute("axis", std::int64_t{0}), c.rank());
  const bool keep = c.attribute("keepdims", std::int64_t{1}) != 0,
             last = c.attribute("select_last_index", std::int64_t{0}) != 0;
  const std::vector<int> axes = {axis};
  const Datum x = last ? core::detail::flip(c[0], axes, c.b.loc) : c[0];
  const Datum found = over(c, x, axes, keep, [&](const Datum& t, Over o, const core::Location& loc) {
    return core::detail::place_of_extremum(t, o, largest, loc);
  });
  if (!last) return {c.result(found, Element::int64)};
  return {c.result(c.b.sub(c.b.sub(c.b.size(x, axis), c.integer(1)), found), Element::int64)};
}

}  // namespace

Terms reduce_sum(const Call& c) { return reduce(c, How::sum, 13); }
Terms reduce_mean(const Call& c) { return reduce(c, How::mean, 18); }
Terms reduce_max(const Call& c) { return reduce(c, How::max, 18); }
Terms reduce_min(const Call& c) { return reduce(c, How::min, 18); }
Terms reduce_prod(const Call& c) { return reduce(c, How::prod, 18); }
Terms reduce_l1(const Call& c) { return reduce(c, How::l1, 18); }
Terms reduce_l2(const Call& c) { return reduce(c, How::l2, 18); }
Terms reduce_log_sum(const Call& c) { return reduce(c, How::log_sum, 18); }
Terms reduce_log_sum_exp(const Call& c) { return reduce(c, How::log_sum_exp, 18); }
Terms reduce_sum_square(const Call& c) { return reduce(c, How::sum_square, 18); }

Terms arg_max(const Call& c) { return place(c, true); }
Terms arg_min(const Call& c) { return place(c, false); }

namespace {

/// Sums or products of the elements up to each, along an axis.
Terms cumulative(const Call& c, Opcode code, double neutral) {
  if (c.element(0) == Element::boolean) c.fail("operand 1: expected numbers, got bool");
  const Datum x = c[0];
  const auto axis = static_cast<std::size_t>(c.axis(c.integer(1, "an axis"), c.rank()));
  const bool exclusive = c.attribute("exclusive", std::int64_t{0}) != 0,
             reverse = c.attribute("reverse", std::int64_t{0}) != 0;
  if (!exclusive && !reverse)
    return {
        c.result(c.wrapped(core::detail::running(code, x, static_cast<int>(axis), c.b.loc), c.element()))};
  const Indices sizes = c.sizes(x);
  Indices outer = sizes;
  outer.erase(outer.begin() + static_cast<std::ptrdiff_t>(axis));
  const Datum none = Build::number(neutral, x), last = c.b.sub(sizes[axis], c.integer(1));
  const Datum all = c.b.points(outer, {c.b.fill(none, sizes)}, [&](const Indices& place, const Datums& now) {
    return Datums{c.b.loop(c.integer(0), sizes[axis], {now[0], none}, [&](const Datum& i, const Datums& s) {
      Indices at = place;
      at.insert(at.begin() + static_cast<std::ptrdiff_t>(axis), reverse ? c.b.sub(last, i) : i);
      const Datum total = c.op(code, s[1], c.b.get(x, at));
      return Datums{c.b.set(s[0], at, exclusive ? s[1] : total), total};
    })[0]};
  })[0];
  return {c.result(c.wrapped(all, c.element()))};
}

}  // namespace

Terms cum_sum(const Call& c) { return cumulative(c, Opcode::add_, 0); }
Terms cum_prod(const Call& c) { return cumulative(c, Opcode::mul_, 1); }

}  // namespace lantern::onnx::rules
