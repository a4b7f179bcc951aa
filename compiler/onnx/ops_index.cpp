// Operators that read and write elements at places that other operands say.
#include <algorithm>
#include <numeric>

#include "lantern/compiler/onnx/rules.hpp"
#include "lantern/compiler/staging/containers.hpp"

namespace lantern::onnx::rules {

namespace {

/// A place along a dimension of n elements; below 0 it counts from the end.
Datum from_end(const Call& c, const Datum& i, const Datum& n) {
  if (i.is_literal()) return i.i() < 0 ? c.b.add(n, i) : i;
  return c.b.select(c.b.less(i, c.integer(0)), c.b.add(i, n), i);
}

/// An operand of integers as i64.
Datum indices(const Call& c, std::size_t i) {
  if (!is_integer(c.element(i)))
    c.fail("operand " + std::to_string(i + 1) + ": expected integers, got " + name(c.element(i)));
  return c.cast(c[i], ir::Kind::i64);
}

/// What an update does to the element that is there.
Datum combined(const Call& c, const Datum& old, const Datum& update) {
  const std::string how = c.attribute("reduction", std::string("none"));
  const bool whole = !update.type().is_float_element();
  if (how == "none") return update;
  if (how == "add") return c.wrapped(c.b.add(old, update), c.element());
  if (how == "mul") return c.wrapped(c.b.mul(old, update), c.element());
  if (how == "max") return c.op(whole ? Opcode::imax_ : Opcode::max_, old, update);
  if (how == "min") return c.op(whole ? Opcode::imin_ : Opcode::min_, old, update);
  c.fail("attribute 'reduction': expected none, add, mul, max or min, got '" + how + "'");
}

/// The numbers of the elements of a vector that are true.
Datum places_of(const Call& c, const Datum& truth) {
  const Datum n = c.b.size(truth, 0), zero = c.integer(0), one = c.integer(1);
  const Datum count = c.b.loop(zero, n, {zero}, [&](const Datum& i, const Datums& s) {
    return Datums{c.b.add(s[0], c.b.cast(c.b.get(truth, {i}), ir::Kind::i64))};
  })[0];
  return c.b.loop(zero, n, {c.b.fill(zero, {count}), zero}, [&](const Datum& i, const Datums& s) {
    return core::detail::branch(
        c.b.get(truth, {i}), [&] { return Datums{c.b.set(s[0], {s[1]}, i), c.b.add(s[1], one)}; },
        [&] { return s; }, c.b.loc);
  })[0];
}

}  // namespace

Terms gather(const Call& c) {
  const Datum x = c[0], at = indices(c, 1);
  const int rank = c.rank();
  if (rank == 0) c.fail("expected a tensor of one dimension or more, got a number");
  const auto axis = static_cast<std::size_t>(c.axis(c.attribute("axis", std::int64_t{0}), rank));
  const Indices own = c.sizes(x);
  if (!at.type().is_tensor()) {
    const Datum i = from_end(c, at, own[axis]);
    if (rank == 1) return {c.result(c.b.get(x, {i}))};
    std::vector<core::Part> parts(own.size(), core::Part(core::named::all));
    parts[axis].lo = i;
    parts[axis].step = 0;
    return {c.result(core::detail::part(x, parts, c.b.loc))};
  }
  const Indices chosen = c.sizes(at);
  Indices sizes(own.begin(), own.begin() + static_cast<std::ptrdiff_t>(axis));
  sizes.insert(sizes.end(), chosen.begin(), chosen.end());
  sizes.insert(sizes.end(), own.begin() + static_cast<std::ptrdiff_t>(axis) + 1, own.end());
  return {c.result(c.b.tabulate(x.type().element(), sizes, [&](const Indices& place) {
    const auto first = place.begin() + static_cast<std::ptrdiff_t>(axis);
    const auto behind = first + static_cast<std::ptrdiff_t>(chosen.size());
    Indices from(place.begin(), first);
    from.push_back(from_end(c, c.b.get(at, Indices(first, behind)), own[axis]));
    from.insert(from.end(), behind, place.end());
    return c.b.get(x, from);
  }))};
}

Terms gather_elements(const Call& c) {
  const Datum x = c[0], at = indices(c, 1);
  const auto axis = static_cast<std::size_t>(c.axis(c.attribute("axis", std::int64_t{0}), c.rank()));
  if (c.rank(1) != c.rank())
    c.fail("expected indices of as many dimensions as the operand has, " + std::to_string(c.rank()) +
           ", got " + std::to_string(c.rank(1)));
  const Datum n = c.b.size(x, static_cast<int>(axis));
  return {c.result(c.b.tabulate(x.type().element(), c.sizes(at), [&](Indices place) {
    place[axis] = from_end(c, c.b.get(at, place), n);
    return c.b.get(x, place);
  }))};
}

Terms gather_nd(const Call& c) {
  const Datum x = c[0], at = indices(c, 1);
  const auto batch =
      static_cast<std::size_t>(std::max<std::int64_t>(0, c.attribute("batch_dims", std::int64_t{0})));
  const int rank = c.rank();
  if (c.rank(1) < 1) c.fail("expected indices of one dimension or more, got a number");
  const auto depth = static_cast<std::size_t>(c.known_size(at, c.rank(1) - 1));
  const Indices own = c.sizes(x), outer = c.sizes(at);
  if (batch + depth > own.size() || batch >= outer.size() || depth == 0)
    c.fail("expected indices of 1 to " + std::to_string(rank) + " dimensions, got " +
           std::to_string(batch + depth));
  Indices sizes(outer.begin(), outer.end() - 1);
  const std::size_t leading = sizes.size();
  sizes.insert(sizes.end(), own.begin() + static_cast<std::ptrdiff_t>(batch + depth), own.end());
  return {c.result(c.tabulate(x.type().element(), sizes, [&](const Indices& place) {
    Indices from(place.begin(), place.begin() + static_cast<std::ptrdiff_t>(batch));
    for (std::size_t k = 0; k < depth; ++k) {
      Indices where(place.begin(), place.begin() + static_cast<std::ptrdiff_t>(leading));
      where.push_back(c.integer(static_cast<std::int64_t>(k)));
      from.push_back(from_end(c, c.b.get(at, where), own[batch + k]));
    }
    from.insert(from.end(), place.begin() + static_cast<std::ptrdiff_t>(leading), place.end());
    return c.b.get(x, from);
  }))};
}

Terms scatter_elements(const Call& c) {
  c.require_operands(3, 3);
  const Datum x = c[0], at = indices(c, 1), updates = c[2];
  const auto axis = static_cast<std::size_t>(c.axis(c.attribute("axis", std::int64_t{0}), c.rank()));
  if (c.rank(1) != c.rank() || c.rank(2) != c.rank() || c.element(2) != c.element(0))
    c.fail("expected indices and updates of as many dimensions, and updates of the element type, of " +
           x.type().str() + ", got " + at.type().str() + " and " + updates.type().str());
  for (int d = 0; d < c.rank(); ++d)
    c.b.require_equal(c.b.size(at, d), c.b.size(updates, d), "expected indices and updates of one shape");
  const Datum n = c.b.size(x, static_cast<int>(axis));
  return {c.result(c.b.points(c.sizes(at), {x}, [&](const Indices& place, const Datums& now) {
    Indices to = place;
    to[axis] = from_end(c, c.b.get(at, place), n);
    return Datums{c.b.set(now[0], to, combined(c, c.b.get(now[0], to), c.b.get(updates, place)))};
  })[0])};
}

Terms scatter_nd(const Call& c) {
  c.require_operands(3, 3);
  const Datum x = c[0], at = indices(c, 1), updates = c[2];
  if (c.rank(1) < 1) c.fail("expected indices of one dimension or more, got a number");
  const auto depth = static_cast<std::size_t>(c.known_size(at, c.rank(1) - 1));
  const Indices own = c.sizes(x), outer = c.sizes(at);
  if (depth > own.size() || depth == 0)
    c.fail("expected indices of 1 to " + std::to_string(own.size()) + " dimensions, got " +
           std::to_string(depth));
  Indices sizes(outer.begin(), outer.end() - 1);
  const std::size_t leading = sizes.size();
  sizes.insert(sizes.end(), own.begin() + static_cast<std::ptrdiff_t>(depth), own.end());
  if (static_cast<std::size_t>(c.rank(2)) != sizes.size() || c.element(2) != c.element(0))
    c.fail("expected updates of " + std::to_string(sizes.size()) +
           " dimensions and the operand's element type, got " + updates.type().str());
  for (std::size_t d = 0; d < sizes.size(); ++d)
    c.b.require_equal(c.b.size(updates, static_cast<int>(d)), sizes[d],
                      "expected updates of the shape that the indices say");
  return {c.result(c.b.points(sizes, {x}, [&](const Indices& place, const Datums& now) {
    Indices to;
    for (std::size_t k = 0; k < depth; ++k) {
      Indices where(place.begin(), place.begin() + static_cast<std::ptrdiff_t>(leading));
      where.push_back(c.integer(static_cast<std::int64_t>(k)));
      to.push_back(from_end(c, c.b.get(at, where), own[k]));
    }
    to.insert(to.end(), place.begin() + static_cast<std::ptrdiff_t>(leading), place.end());
    return Datums{c.b.set(now[0], to, combined(c, c.b.get(now[0], to), c.get(updates, place)))};
  })[0])};
}

Terms one_hot(const Call& c) {
  c.require_operands(3, 3);
  const Datum at = c.cast(c[0], ir::Kind::i64), values = c[2];
  const Datum depth = c.single(1, "depth");
  const int rank = c.rank();
  const auto axis = static_cast<std::size_t>(c.axis(c.attribute("axis", std::int64_t{-1}), rank + 1));
  Indices sizes = c.sizes(at);
  sizes.insert(sizes.begin() + static_cast<std::ptrdiff_t>(axis), depth);
  const Datum off = c.b.get(values, {c.integer(0)}), on = c.b.get(values, {c.integer(1)});
  return {c.result(c.b.tabulate(values.type().element(), sizes,
                                [&](Indices place) {
                                  const Datum here = place[axis];
                                  place.erase(place.begin() + static_cast<std::ptrdiff_t>(axis));
                                  return c.b.select(
                                      c.op(Opcode::eq_, from_end(c, c.get(at, place), depth), here), on, off);
                                }),
                   c.element(2))};
}

Terms top_k(const Call& c) {
  const Datum x = c[0];
  const int axis = c.axis(c.attribute("axis", std::int64_t{-1}), c.rank());
  const bool largest = c.attribute("largest", std::int64_t{1}) != 0;
  const Datum k = c.opset < 10 ? c.integer(c.attribute("k")) : c.single(1, "k");
  const Datum n = c.b.size(x, static_cast<std::size_t>(axis));
  c.b.require(c.b.binary(Opcode::land_, c.b.binary(Opcode::le_, c.integer(0), k), c.b.binary(Opcode::le_, k, n)),
              "expected k from 0 to the {} elements of dimension " + std::to_string(axis) + ", got k = {}", {n, k});
  const Datum order = core::detail::argsort(x, axis, largest, c.b.loc);
  std::vector<core::Part> parts(static_cast<std::size_t>(c.rank()), core::Part(core::named::all));
  parts[static_cast<std::size_t>(axis)].lo = c.integer(0);
  parts[static_cast<std::size_t>(axis)].hi = k;
  const Datum first = core::detail::part(order, parts, c.b.loc);
  return {c.result(core::detail::gather(x, axis, first, c.b.loc)), c.result(first, Element::int64)};
}

Terms non_zero(const Call& c) {
  const Datum x = c[0];
  const Indices sizes = c.sizes(x);
  const Datum flat = c.reshape(x, {c.product(sizes)});
  const Datum truth =
      x.type().element() == ir::Kind::boolean ? flat : c.op(Opcode::ne_, flat, Build::number(0, x));
  const Datum places = places_of(c, truth), count = c.b.size(places, 0);
  const Datum rows = c.integer(static_cast<std::int64_t>(std::max<std::size_t>(1, sizes.size())));
  return {c.result(c.b.tabulate(ir::Kind::i64, {rows, count},
                                [&](const Indices& at) {
                                  // Row d: the place divided by the sizes behind d, as a remainder of size d.
                                  const Datum place = c.b.get(places, {at[1]});
                                  Datum found = c.integer(0), behind = c.integer(1);
                                  for (std::size_t d = sizes.size(); d-- > 0;) {
                                    const Datum here = c.b.rem(c.b.div(place, behind), sizes[d]);
                                    found = c.b.select(
                                        c.op(Opcode::eq_, at[0], c.integer(static_cast<std::int64_t>(d))),
                                        here, found);
                                    behind = c.b.mul(behind, sizes[d]);
                                  }
                                  return found;
                                }),
                   Element::int64)};
}

Terms compress(const Call& c) {
  Datum x = c[0];
  if (c.element(1) != Element::boolean || c.rank(1) != 1) c.fail("expected a vector of bool as condition");
  int axis = 0;
  if (c.has_attribute("axis"))
    axis = c.axis(c.attribute("axis"), c.rank());
  else
    x = c.reshape(x, {c.product(c.sizes(x))});
  if (const auto known_truth = value_of(c.term(1))) {
    Sizes places;
    for (std::size_t i = 0; i < static_cast<std::size_t>(known_truth->size()); ++i)
      if (known_truth->integer_at(i) != 0) places.push_back(static_cast<std::int64_t>(i));
    return {
        c.result(core::detail::take_along(x, axis, c.datum(literal_term(places, Element::int64)), c.b.loc))};
  }
  return {c.result(core::detail::take_along(x, axis, places_of(c, c[1]), c.b.loc))};
}

Terms reverse_sequence(const Call& c) {
  const Datum x = c[0], lengths = indices(c, 1);
  const auto batch = static_cast<std::size_t>(c.axis(c.attribute("batch_axis", std::int64_t{1}), c.rank()));
  const auto time = static_cast<std::size_t>(c.axis(c.attribute("time_axis", std::int64_t{0}), c.rank()));
  return {c.result(c.b.tabulate(x.type().element(), c.sizes(x), [&](Indices at) {
    const Datum length = c.b.get(lengths, {at[batch]});
    at[time] =
        c.b.select(c.b.less(at[time], length), c.b.sub(c.b.sub(length, c.integer(1)), at[time]), at[time]);
    return c.b.get(x, at);
  }))};
}

// How many elements are different is known only once they are: the operand is needed while the program is
// made.
Terms unique(const Call& c) {
  const Value v = c.value(c.term(0), "an operand");
  const bool sorted = c.attribute("sorted", std::int64_t{1}) != 0;
  const bool flat = !c.has_attribute("axis");
  const Sizes shape = flat ? Sizes{v.size()} : v.shape();
  const auto axis = static_cast<std::size_t>(flat ? 0 : c.axis(c.attribute("axis"), c.rank()));
  const auto n = static_cast<std::size_t>(shape[axis]);
  std::size_t outer = 1, inner = 1;
  for (std::size_t d = 0; d < shape.size(); ++d)
    if (d != axis) (d < axis ? outer : inner) *= static_cast<std::size_t>(shape[d]);
  const auto element = [&](std::size_t slice, std::size_t k) {
    return v.at((k / inner * n + slice) * inner + k % inner);
  };
  const auto compare = [&](std::size_t x, std::size_t y) {
    for (std::size_t k = 0; k < outer * inner; ++k)
      if (element(x, k) != element(y, k)) return element(x, k) < element(y, k) ? -1 : 1;
    return 0;
  };
  std::vector<std::size_t> order(n);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, [&](std::size_t x, std::size_t y) { return compare(x, y) < 0; });
  std::vector<std::size_t> firsts;  // the first of each group
  std::vector<std::size_t> group_of(n);
  for (std::size_t k = 0; k < n; ++k) {
    if (k == 0 || compare(order[k - 1], order[k]) != 0) firsts.push_back(order[k]);
    group_of[order[k]] = firsts.size() - 1;
  }
  std::vector<std::size_t> rank(firsts.size());
  std::iota(rank.begin(), rank.end(), std::size_t{0});
  if (!sorted) std::ranges::sort(rank, [&](std::size_t x, std::size_t y) { return firsts[x] < firsts[y]; });
  std::vector<std::size_t> place(firsts.size());
  for (std::size_t k = 0; k < rank.size(); ++k) place[rank[k]] = k;
  Sizes first_at, inverse(n), counts(firsts.size(), 0);
  for (const std::size_t g : rank) first_at.push_back(static_cast<std::int64_t>(firsts[g]));
  for (std::size_t k = 0; k < n; ++k) {
    inverse[k] = static_cast<std::int64_t>(place[group_of[k]]);
    ++counts[place[group_of[k]]];
  }
  Datum x = c[0];
  if (flat) x = c.reshape(x, {c.integer(v.size())});
  const Datum chosen = core::detail::take_along(x, static_cast<int>(axis),
                                                c.datum(literal_term(first_at, Element::int64)), c.b.loc);
  return {c.result(chosen), literal_term(first_at, Element::int64), literal_term(inverse, Element::int64),
          literal_term(counts, Element::int64)};
}

}  // namespace lantern::onnx::rules
