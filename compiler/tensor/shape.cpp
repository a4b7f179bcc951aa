#include "lantern/compiler/tensor/shape.hpp"

#include <algorithm>

#include "lantern/compiler/tensor/build.hpp"
#include "lantern/ir/notation.hpp"

namespace lantern::core::detail {

Datum tabulate(ir::Kind kind, const Datums& sizes, FunctionRef<Datum(const Datums&)> body,
               const Location& loc) {
  return Build{loc}.tabulate(kind, sizes, body);
}

Datum reshape(const Datum& t, const Datums& sizes, const Location& loc) { return Build{loc}.reshape(t, sizes); }

Datum reshape(const Datum& t, std::span<const Subscript> given) {
  const Build b{given[0].loc};
  Indices sizes;
  std::size_t rest = given.size();
  for (std::size_t d = 0; d < given.size(); ++d) {
    sizes.push_back(given[d].datum);
    if (!given[d].plain || sizes[d].i() != -1) continue;
    if (rest < given.size())
      raise_at(b.loc, "reshape: expected one size of -1 at most, got one in dimensions " + std::to_string(rest) + " and " +
                          std::to_string(d));
    rest = d;
  }
  if (rest == given.size()) return b.reshape(t, sizes);
  Datum all = Build::integer(1), others = Build::integer(1);
  for (const Datum& n : b.sizes(t)) all = b.mul(all, n);
  for (std::size_t d = 0; d < sizes.size(); ++d)
    if (d != rest) others = b.mul(others, sizes[d]);
  b.require(b.less(Build::integer(0), others), "reshape: expected sizes above 0 beside one of -1, got {} elements without it",
            {others});
  b.require(b.binary(Opcode::eq_, b.rem(all, others), Build::integer(0)),
            "reshape: expected sizes that divide the {} elements of the tensor, beside one of -1, got {} elements without it",
            {all, others});
  sizes[rest] = b.div(all, others);
  return b.reshape(t, sizes);
}

namespace {

// "[0]j->ij;i": the sizes that are not the tensor's own are operands. Dimensions that are not known to be 1
// are of these sizes, which the caller has seen to.
Datum expanded(const Build& b, const Datum& t, const Datums& sizes) {
  constexpr std::string_view letters = ir::index_letters;
  const int more = static_cast<int>(sizes.size()) - t.type().rank();
  std::string from, to, given;
  Datums operands = {t};
  std::vector<std::int64_t> shape;
  for (int d = 0; d < static_cast<int>(sizes.size()); ++d) {
    const auto i = static_cast<std::size_t>(d);
    const std::int64_t own = d < more ? 1 : t.type().dims()[static_cast<std::size_t>(d - more)];
    to += letters[i];
    shape.push_back(known(sizes[i]));
    if (d >= more && !(own == 1 && shape.back() != 1)) {
      from += letters[i];
      if (shape.back() == ir::dynamic) shape.back() = own;
      continue;
    }
    if (d >= more) from += "[0]";
    given += letters[i];
    operands.push_back(sizes[i]);
  }
  return given.empty() ? t : b.einsum(from + "->" + to + ";" + given, operands, shape);
}

}  // namespace

Datum expand(const Datum& t, const Datums& sizes, const Location& loc) {
  const Build b{loc};
  const int rank = t.type().rank(), more = static_cast<int>(sizes.size()) - rank;
  if (more < 0)
    raise_at(loc, "expand: expected at least " + std::to_string(rank) + " sizes for " + t.type().str() +
                      ", got " + std::to_string(sizes.size()));
  if (sizes.size() > ir::index_letters.size()) raise_at(loc, "expand: the tensor has too many dimensions");
  for (const Datum& size : sizes)
    if (size.is_literal() && size.i() < 0)
      raise_at(loc, "expand: a tensor of negative size, " + std::to_string(size.i()));
  // Dimensions of which it is only known at run time whether they are of the size, or 1.
  Datum as_they_are = Datum::integer(1, ir::Bool);
  const auto both = [&](const Datum& x, const Datum& y) {
    return x.is_literal() ? y : b.binary(Opcode::land_, x, y);
  };
  std::vector<std::size_t> unknown;
  for (int d = more; d < static_cast<int>(sizes.size()); ++d) {
    const auto i = static_cast<std::size_t>(d);
    const std::int64_t own = t.type().dims()[static_cast<std::size_t>(d - more)];
    if (own == 1 && known(sizes[i]) != 1) continue;
    const Datum n = b.size(t, d - more), one = Build::integer(1);
    const std::string message =
        "expand: expected the size of dimension " + std::to_string(d - more) + ", or that to be 1";
    if (own != ir::dynamic || known(sizes[i]) == 1) {
      b.require_equal(n, sizes[i], message);
      continue;
    }
    const Datum same = b.binary(Opcode::eq_, n, sizes[i]);
    b.require(b.binary(Opcode::lor_, same, b.binary(Opcode::eq_, n, one)), message + ", got {} for {}", {n, sizes[i]});
    as_they_are = both(as_they_are, same);
    unknown.push_back(i);
  }
  if (unknown.empty()) return expanded(b, t, sizes);
  return branch(
      as_they_are, [&] { return Datums{expanded(b, t, sizes)}; },
      [&] {
        return Datums{b.tabulate(t.type().element(), sizes, [&](const Indices& at) {
          Indices from(at.begin() + more, at.end());
          for (std::size_t k = 0; k < from.size(); ++k) {
            const Datum last = b.sub(b.size(t, static_cast<int>(k)), Build::integer(1));
            from[k] = b.binary(Opcode::imin_, from[k], last);
          }
          return b.get(t, from);
        })};
      },
      loc)[0];
}

Datum squeeze(const Datum& t, std::span<const int> axes, const Location& loc) {
  const Build b{loc};
  const std::vector<int> gone = axes_of("squeeze", t, axes, loc);
  for (const int d : gone)
    b.require_equal(b.size(t, d), Build::integer(1), "squeeze: expected a dimension of size 1");
  return b.without(t, gone);
}

Datum unsqueeze(const Datum& t, std::span<const int> places, const Location& loc) {
  const int rank = t.type().rank() + static_cast<int>(places.size());
  std::vector<int> at;
  for (const int place : places) {
    at.push_back(place < 0 ? place + rank : place);
    if (at.back() < 0 || at.back() >= rank || std::ranges::count(at, at.back()) > 1)
      raise_at(loc, "unsqueeze: expected different places from 0 to " + std::to_string(rank - 1) + ", got " +
                        std::to_string(place));
  }
  return Build{loc}.with_ones(t, at);
}

Datum flip(const Datum& t, std::span<const int> axes, const Location& loc) {
  const Build b{loc};
  const std::vector<int> turned = axes_of("flip", t, axes, loc);
  const Indices sizes = b.sizes(t);
  return b.tabulate(t.type().element(), sizes, [&](Indices at) {
    for (const int d : turned) {
      const auto i = static_cast<std::size_t>(d);
      at[i] = b.sub(b.sub(sizes[i], Build::integer(1)), at[i]);
    }
    return b.get(t, at);
  });
}

Datum roll(const Datum& t, int given, const Datum& by, const Location& loc) {
  const Build b{loc};
  const auto axis = static_cast<std::size_t>(axis_of("roll", t, given, loc));
  const Indices sizes = b.sizes(t);
  const Datum n = b.binary(Opcode::imax_, sizes[axis], Build::integer(1));
  // Where the first element comes from: -by modulo n, not below 0. Two pieces, each read in order.
  const Datum start = b.rem(b.sub(n, b.rem(by, n)), n);
  return b.tabulate(t.type().element(), sizes, [&](Indices at) {
    const Datum moved = b.add(at[axis], start);
    at[axis] = b.select(b.less(moved, n), moved, b.sub(moved, n));
    return b.get(t, at);
  });
}

Datum pad(const Datum& t, const std::vector<std::array<Datum, 2>>& widths, Pad how, const Datum& value,
          const Location& loc) {
  const Build b{loc};
  const auto rank = static_cast<std::size_t>(t.type().rank());
  if (widths.size() > rank)
    raise_at(loc, "pad: expected widths of at most " + std::to_string(rank) + " dimensions, got " +
                      std::to_string(widths.size()));
  const Indices inner = b.sizes(t);
  Indices sizes = inner;
  std::vector<Part> parts(rank, Part(named::all));
  for (std::size_t d = 0; d < widths.size(); ++d) {
    const auto& [before, after] = widths[d];
    for (const Datum& w : widths[d]) {
      b.require(b.binary(Opcode::le_, Build::integer(0), w), "pad: expected widths of 0 or more, got {}", {w});
      const char* const few = how == Pad::reflect
                                  ? "pad: a reflection is as wide as there are elements, less one, at most, got {} of {}"
                                  : "pad: there is no element to repeat for a width of {}, the dimension has {}";
      const Datum least = how == Pad::reflect ? b.add(w, Build::integer(1)) : Build::integer(1);
      if (how == Pad::constant || known(w) == 0) continue;
      b.require(b.binary(Opcode::le_, least, inner[d]), few, {w, inner[d]});
    }
    sizes[d] = b.add(b.add(before, inner[d]), after);
    parts[d].lo = before;
    parts[d].hi = b.add(before, inner[d]);
  }
  if (how == Pad::constant) return with_part(b.fill(value, sizes), parts, t, loc);
  return b.tabulate(t.type().element(), sizes, [&](Indices at) {
    for (std::size_t d = 0; d < widths.size(); ++d) {
      const Datum zero = Build::integer(0), last = b.sub(inner[d], Build::integer(1));
      const Datum i = b.sub(at[d], widths[d][0]);
      const Datum below = how == Pad::edge ? zero : b.unary(Opcode::neg_, i);
      const Datum above = how == Pad::edge ? last : b.sub(b.mul(Build::integer(2), last), i);
      at[d] = b.select(b.less(i, zero), below, b.select(b.less(last, i), above, i));
    }
    return b.get(t, at);
  });
}

namespace {

/// Tensors one after the other along a dimension, for `what`.
Datum joined_along(const char* what, std::span<const Datum> operands, int given, const Location& loc) {
  const Build b{loc};
  const std::string name = std::string(what) + ": expected ";
  if (operands.empty()) raise_at(loc, name + "at least one tensor");
  const Datum& first = operands[0];
  const auto axis = static_cast<std::size_t>(axis_of(what, first, given, loc));
  Indices sizes = b.sizes(first);
  for (const Datum& t : operands.subspan(1)) {
    if (!t.type().is_tensor() || t.type().rank() != first.type().rank() || t.type().element() != first.type().element())
      raise_at(loc, name + "tensors of one element type and as many dimensions, got " + first.type().str() + " and " +
                        t.type().str());
    for (std::size_t d = 0; d < sizes.size(); ++d)
      if (d != axis)
        b.require_equal(b.size(first, static_cast<int>(d)), b.size(t, static_cast<int>(d)),
                        name + "the same sizes but along the dimension that grows");
    sizes[axis] = b.add(sizes[axis], b.size(t, static_cast<int>(axis)));
  }
  if (axis == 0) {
    Datum joined = first;
    for (const Datum& t : operands.subspan(1)) joined = perform({Opcode::concat_, 0, loc}, {joined, t});
    return joined;
  }
  // Rows stay in one piece: the dimensions before and behind are joined, [before, along, behind], where there are several.
  const bool joins = axis > 1 || sizes.size() > axis + 2;
  const auto product = [&](std::size_t begin, std::size_t end) {
    Datum all = sizes[begin];
    for (std::size_t d = begin + 1; d < end; ++d) all = b.mul(all, sizes[d]);
    return all;
  };
  const std::size_t along = joins ? 1 : axis;
  Indices rows = sizes;
  if (joins) {
    rows = {product(0, axis), sizes[axis]};
    if (axis + 1 < sizes.size()) rows.push_back(product(axis + 1, sizes.size()));
  }
  Datum out = b.fill(Datum::zero(ir::Type(first.type().element())), rows), from = Build::integer(0);
  for (const Datum& t : operands) {
    Indices own = joins ? rows : b.sizes(t);
    own[along] = b.size(t, static_cast<int>(axis));
    const Datum part = joins ? b.reshape(t, own) : t;
    out = b.points(own, {out}, [&](const Indices& at, const Datums& now) {
      Indices moved = at;
      moved[along] = b.add(at[along], from);
      return Datums{b.set(now[0], moved, b.get(part, at))};
    })[0];
    from = b.add(from, own[along]);
  }
  return joins ? b.reshape(out, sizes) : out;
}

}  // namespace

Datum concat(std::span<const Datum> operands, int axis, const Location& loc) {
  return joined_along("concat", operands, axis, loc);
}

Datum stack(std::span<const Datum> operands, int axis, const Location& loc) {
  Datums all;
  for (const Datum& t : operands) all.push_back(unsqueeze(t, {&axis, 1}, loc));
  return joined_along("stack", all, axis, loc);
}

Datums split(const Datum& t, int given, std::size_t parts, const Location& loc) {
  const Build b{loc};
  const auto axis = static_cast<std::size_t>(axis_of("split", t, given, loc));
  const Datum n = Build::integer(static_cast<std::int64_t>(parts)), size = b.size(t, static_cast<int>(axis));
  b.require(b.binary(Opcode::eq_, b.rem(size, n), Build::integer(0)),
            "split: expected a size that " + std::to_string(parts) + " divides, got {}", {size});
  const Datum step = b.div(size, n);
  Datums out;
  for (std::size_t i = 0; i < parts; ++i) {
    std::vector<Part> named(static_cast<std::size_t>(t.type().rank()), Part(named::all));
    named[axis].lo = b.mul(step, Build::integer(static_cast<std::int64_t>(i)));
    named[axis].hi = b.add(named[axis].lo, step);
    out.push_back(part(t, named, loc));
  }
  return out;
}

Datum tensordot(const Datum& a, const Datum& b, int axes, const Location& loc) {
  constexpr std::string_view letters = ir::index_letters;
  const int ra = a.type().rank(), rb = b.type().rank();
  if (axes > ra || axes > rb || ra + rb == 2 * axes || ra + rb - axes > static_cast<int>(letters.size()))
    raise_at(loc, "tensordot: expected more than " + std::to_string(axes) + " dimensions, or as many in one of both, got " +
                      a.type().str() + " and " + b.type().str() + "; the sum of all products is dot(a, b)");
  const auto all = [&](int from, int to) {
    return std::string(letters.substr(static_cast<std::size_t>(from), static_cast<std::size_t>(to - from)));
  };
  return Build{loc}.einsum(all(0, ra) + "," + all(ra - axes, ra + rb - axes) + "->" + all(0, ra - axes) +
                               all(ra, ra + rb - axes),
                           {a, b});
}

Datum tile(const Datum& t, const Datums& times, const Location& loc) {
  const Build b{loc};
  const auto rank = static_cast<std::size_t>(t.type().rank());
  if (times.size() != rank)
    raise_at(loc, "tile: expected a number for each of the " + std::to_string(rank) + " dimensions of " + t.type().str() +
                      ", got " + std::to_string(times.size()));
  // Copies are dimensions of their own, before each of the tensor's, and are then taken together.
  std::vector<int> places;
  Indices wide, sizes;
  for (std::size_t d = 0; d < rank; ++d) {
    b.require(b.binary(Opcode::le_, Build::integer(0), times[d]), "tile: expected numbers of 0 or more, got {}",
              {times[d]});
    const Datum n = b.size(t, static_cast<int>(d));
    places.push_back(static_cast<int>(2 * d));
    wide.push_back(times[d]);
    wide.push_back(n);
    sizes.push_back(b.mul(times[d], n));
  }
  return b.reshape(expanded(b, b.with_ones(t, places), wide), sizes);
}

Datum repeat(const Datum& t, int given, const Datum& times, const Location& loc) {
  const Build b{loc};
  const int axis = axis_of("repeat", t, given, loc);
  const int behind = axis + 1;
  b.require(b.binary(Opcode::le_, Build::integer(0), times), "repeat: expected a number of 0 or more, got {}", {times});
  Indices sizes = b.sizes(t), wide = sizes;
  wide.insert(wide.begin() + behind, times);
  sizes[static_cast<std::size_t>(axis)] = b.mul(sizes[static_cast<std::size_t>(axis)], times);
  return b.reshape(expanded(b, b.with_ones(t, {&behind, 1}), wide), sizes);
}

}  // namespace lantern::core::detail
