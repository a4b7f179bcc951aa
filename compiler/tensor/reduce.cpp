#include "lantern/compiler/tensor/reduce.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "lantern/compiler/tensor/build.hpp"

namespace lantern::core::detail {

namespace {

/// A tensor's dimensions, those that are reduced and the others.
struct Plan {
  Build b;
  std::vector<int> axes, rest;
  bool keep;

  Plan(const char* what, const Datum& t, const Over& over, const Location& loc) : b{loc}, keep(over.keep) {
    if (!t.type().is_tensor()) raise_at(loc, std::string(what) + ": expected a tensor, got " + t.type().str());
    axes = axes_of(what, t, over.axes, loc);
    std::ranges::sort(axes);
    if (axes.empty()) axes = others(t.type().rank(), {});
    rest = others(t.type().rank(), axes);
    if (!over.axes.empty() && rest.empty() && !keep)
      raise_at(loc, std::string(what) + ": over all dimensions it is written " + what + "(t)");
  }

  /// In place of dimensions that are gone, those of size 1.
  Datum finished(const Datum& reduced) const {
    if (!keep) return reduced;
    if (reduced.type().is_tensor()) return b.with_ones(reduced, axes);
    return b.fill(reduced, Indices(axes.size(), Build::integer(1)));
  }
  Indices sizes(const Datum& t, const std::vector<int>& dims) const {
    Indices all;
    for (const int d : dims) all.push_back(b.size(t, d));
    return all;
  }
  /// The place in the tensor where the others have these indices, and the reduced dimensions those.
  Indices at(const Indices& outer, const Indices& inner) const {
    Indices all(rest.size() + axes.size());
    for (std::size_t i = 0; i < rest.size(); ++i) all[static_cast<std::size_t>(rest[i])] = outer[i];
    for (std::size_t i = 0; i < axes.size(); ++i) all[static_cast<std::size_t>(axes[i])] = inner[i];
    return all;
  }
  Datum count(const Datum& t) const {
    Datum n = Build::integer(1);
    for (const int d : axes) n = b.mul(n, b.size(t, d));
    return n;
  }
  /// For each place of the others the number that `of` gives.
  Datum each(const Datum& t, ir::Kind element, FunctionRef<Datum(const Indices& outer)> of) const {
    return finished(b.tabulate(element, sizes(t, rest), of));
  }
  /// The state after step(element, state), over the reduced dimensions at one place of the others.
  Datums fold(const Datum& t, const Indices& outer, Datums state,
              FunctionRef<Datums(const Datum& v, const Datums& state)> step) const {
    return b.points(sizes(t, axes), std::move(state), [&](const Indices& inner, const Datums& now) {
      return step(b.get(t, at(outer, inner)), now);
    });
  }
};

/// Number `flat` of a box, in row-major order, as indices.
Indices unravelled(const Build& b, const Datum& flat, const Indices& sizes) {
  Indices at(sizes.size());
  Datum rest = flat;
  for (std::size_t d = sizes.size(); d-- > 1;) {
    at[d] = b.rem(rest, sizes[d]);
    rest = b.div(rest, sizes[d]);
  }
  at[0] = rest;
  return at;
}

/// Whether `v` comes before `best`: a NaN does before no number.
Datum beats(const Build& b, const Datum& v, const Datum& best, bool largest) {
  const Datum better = largest ? b.less(best, v) : b.less(v, best);
  if (!v.type().is_float_element()) return better;
  const Datum first = b.binary(Opcode::land_, b.binary(Opcode::ne_, best, best), b.binary(Opcode::eq_, v, v));
  return b.binary(Opcode::lor_, better, first);
}

/// The position of the first largest or smallest of the reduced elements.
Datum extreme_place(const Plan& p, const Datum& t, const Indices& outer, bool largest) {
  const Datum first = p.b.get(t, p.at(outer, Indices(p.axes.size(), Build::integer(0))));
  return p.fold(t, outer, {Build::integer(0), Build::integer(0), first}, [&](const Datum& v, const Datums& s) {
    const Datum better = beats(p.b, v, s[2], largest);
    return Datums{p.b.add(s[0], Build::integer(1)), p.b.select(better, s[0], s[1]), p.b.select(better, v, s[2])};
  })[1];
}

/// The largest, as a number without a derivative: -inf of none.
Datum largest_value(const Plan& p, const Datum& t) {
  const Datum primal = p.b.primal(t);
  const Datum lowest = Build::number(-std::numeric_limits<double>::infinity(), t);
  return p.each(primal, t.type().element(), [&](const Indices& outer) {
    return p.fold(primal, outer, {lowest}, [&](const Datum& v, const Datums& s) {
      return Datums{p.b.binary(Opcode::max_, s[0], v)};
    })[0];
  });
}

/// A largest or smallest value, with dimensions kept, as one with a derivative, which the elements that equal it share.
Datum shared(const Plan& p, const Datum& t, const Datum& value) {
  const Build& b = p.b;
  const Datum same = b.binary(Opcode::eq_, b.primal(t), value);
  const Datum zeros = zeros_like(t, b.loc), ones = b.add(zeros, Build::number(1, t));
  const auto total = [&](const Datum& x) { return sum_along(x, {p.axes, true}, b.loc); };
  const Datum ties = b.binary(Opcode::max_, total(b.select(same, ones, zeros)), Build::number(1, t));
  return b.binary(Opcode::with_value_, b.div(total(b.select(same, t, zeros)), ties), value);
}

/// `t` less the largest of each row, where that is finite, and what was taken off, with dimensions kept.
struct Shifted {
  Datum t, by;
};
Shifted shifted_rows(const Plan& p, const Datum& t) {
  const Datum largest = largest_value(p, t);
  const double most = t.type().element() == ir::Kind::f32 ? std::numeric_limits<float>::max()
                                                          : std::numeric_limits<double>::max();
  const Datum finite = p.b.binary(Opcode::le_, p.b.unary(Opcode::abs_, largest), Build::number(most, t));
  const Datum by = p.b.select(finite, largest, zeros_like(largest, p.b.loc));
  return {p.b.sub(t, by), by};
}

}  // namespace

Datum sum_along(const Datum& t, Over over, const Location& loc) {
  const Plan p("sum", t, over, loc);
  const bool whole = p.rest.empty();
  return p.finished(whole ? p.b.unary(Opcode::sum_, t) : sum_over(t, p.axes, loc));
}

Datum mean_along(const Datum& t, Over over, const Location& loc) {
  const Plan p("mean", t, over, loc);
  const Datum n = p.b.cast(p.count(t), t.type().element());
  return p.b.mul(sum_along(t, over, loc), p.b.div(Build::number(1, t), n));
}

Datum variance(const Datum& t, Over over, std::int64_t correction, const Location& loc) {
  const Plan p("var", t, over, loc);
  const Datum mean = mean_along(t, {over.axes, !over.axes.empty()}, loc);
  const Datum off = p.b.sub(t, mean);
  const Datum n = p.b.sub(p.count(t), Build::integer(correction));
  return p.b.div(sum_along(p.b.mul(off, off), over, loc), p.b.cast(n, t.type().element()));
}

Datum product(const Datum& t, Over over, const Location& loc) {
  const Plan p("prod", t, over, loc);
  return p.each(t, t.type().element(), [&](const Indices& outer) {
    return p.fold(t, outer, {Build::number(1, t)}, [&](const Datum& v, const Datums& s) {
      return Datums{p.b.mul(s[0], v)};
    })[0];
  });
}

Datum place_of_extremum(const Datum& t, Over over, bool largest, const Location& loc) {
  const Plan p(largest ? "argmax" : "argmin", t, over, loc);
  const Datum primal = p.b.primal(t);
  return p.each(primal, ir::Kind::i64,
                [&](const Indices& outer) { return extreme_place(p, primal, outer, largest); });
}

Datum extremum_along(const Datum& t, Over over, bool largest, const Location& loc) {
  const char* const name = largest ? "max" : "min";
  const Plan asked(name, t, over, loc), p(name, t, {over.axes, true}, loc);
  const Datum primal = p.b.primal(t);
  const Indices sizes = p.sizes(t, p.axes);
  const Datum value = p.each(primal, t.type().element(), [&](const Indices& outer) {
    return p.b.get(primal, p.at(outer, unravelled(p.b, extreme_place(p, primal, outer, largest), sizes)));
  });
  const Datum result = t.type().is_float_element() ? shared(p, t, value) : value;
  return asked.keep ? result : p.b.without(result, p.axes);
}

Datum any_of(const Datum& t, Over over, bool any, const Location& loc) {
  const Plan p(any ? "any_of" : "all_of", t, over, loc);
  return p.each(t, ir::Kind::boolean, [&](const Indices& outer) {
    return p.fold(t, outer, {Datum::integer(any ? 0 : 1, ir::Bool)}, [&](const Datum& v, const Datums& s) {
      return Datums{p.b.binary(any ? Opcode::lor_ : Opcode::land_, s[0], v)};
    })[0];
  });
}

/// Elements whose squares would overflow or underflow are scaled by a power of two meanwhile.
Datum norm(const Datum& t, Over over, const Location& loc) {
  const Plan asked("norm", t, over, loc), p("norm", t, {over.axes, !over.axes.empty()}, loc);
  const Build& b = p.b;
  const bool narrow = t.type().element() == ir::Kind::f32;
  const int powers = narrow ? 100 : 600;
  const double large = narrow ? 1e15 : 1e150, small = narrow ? 1e-15 : 1e-140;
  const Datum most = largest_value(p, b.unary(Opcode::abs_, b.primal(t)));
  const auto number = [&](double v) { return b.add(zeros_like(most, loc), Build::number(v, t)); };
  const Datum above = b.less(number(large), most), below = b.less(most, number(small));
  const auto scale = [&](int sign) {
    return b.select(above, number(std::ldexp(1.0, -sign * powers)),
                    b.select(below, number(std::ldexp(1.0, sign * powers)), number(1)));
  };
  const Datum scaled = b.mul(t, scale(1));
  const Datum squares = sum_along(b.mul(scaled, scaled), {over.axes, p.keep}, loc);
  const Datum length = b.mul(b.unary(Opcode::root_, squares), scale(-1));
  if (over.axes.empty()) return asked.finished(length);
  return over.keep ? length : b.without(length, p.axes);
}

Datum logsumexp_along(const Datum& t, Over over, const Location& loc) {
  const Plan kept("logsumexp", t, {over.axes, true}, loc);
  const Build& b = kept.b;
  const auto [off, by] = shifted_rows(kept, t);
  const Datum sum = sum_along(b.unary(Opcode::exp_, off), {kept.axes, true}, loc);
  const Datum none = b.binary(Opcode::eq_, sum, Build::number(0, t));
  const Datum one = b.add(zeros_like(sum, loc), Build::number(1, t));
  const Datum lowest = b.add(zeros_like(sum, loc), Build::number(-std::numeric_limits<double>::infinity(), t));
  const Datum log = b.unary(Opcode::log_, b.select(none, one, sum));
  const Datum result = b.select(none, lowest, b.add(by, log));
  return over.keep ? result : b.without(result, kept.axes);
}

Datum softmax(const Datum& t, int axis, bool logarithm, const Location& loc) {
  const Plan p(logarithm ? "log_softmax" : "softmax", t, {{&axis, 1}, true}, loc);
  const Datum off = shifted_rows(p, t).t;
  const Datum e = p.b.unary(Opcode::exp_, off);
  const Datum sum = sum_along(e, {p.axes, true}, loc);
  // Where all are -inf.
  const Datum none = p.b.binary(Opcode::eq_, sum, Build::number(0, t));
  const Datum total = p.b.select(none, p.b.add(zeros_like(sum, loc), Build::number(1, t)), sum);
  return logarithm ? p.b.sub(off, p.b.unary(Opcode::log_, total)) : p.b.div(e, total);
}

Datum running(Opcode op, const Datum& t, int axis, const Location& loc) {
  const Plan p(op == Opcode::add_ ? "cumsum" : "cumprod", t, {{&axis, 1}, true}, loc);
  const Datum none = Build::number(op == Opcode::add_ ? 0 : 1, t);
  const Datum out = p.b.fill(Datum::zero(ir::Type(t.type().element())), p.b.sizes(t));
  return p.b.points(p.sizes(t, p.rest), {out}, [&](const Indices& outer, const Datums& now) {
    const Datums end = p.b.loop(Build::integer(0), p.b.size(t, p.axes[0]), {now[0], none},
                                [&](const Datum& i, const Datums& s) {
                                  const Indices at = p.at(outer, {i});
                                  const Datum total = p.b.binary(op, s[1], p.b.get(t, at));
                                  return Datums{p.b.set(s[0], at, total), total};
                                });
    return Datums{end[0]};
  })[0];
}

}  // namespace lantern::core::detail
