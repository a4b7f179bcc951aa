#include "lantern/compiler/tensor/index.hpp"

#include "lantern/compiler/tensor/build.hpp"

namespace lantern::core::detail {

Datum where(const Datum& c, const Datum& first, const Datum& second, const Location& loc) {
  const Build b{loc};
  Datum condition = c, x = first, y = second;
  if (x.type().element() != y.type().element())
    raise_at(loc, "where: expected two operands of one element type, got " + x.type().str() + " and " + y.type().str());
  // The shape that all three have together, in the condition first, then in the others.
  const auto like = [&](const Datum& d, const Datum& other) { return broadcast_like(d, other, loc); };
  condition = like(like(condition, x), y);
  condition = like(condition, x);
  x = like(x, condition);
  y = like(y, condition);
  return b.select(condition, x, y);
}

Datum take_along(const Datum& t, int given, const Datum& indices, const Location& loc) {
  const Build b{loc};
  const auto axis = static_cast<std::size_t>(axis_of("take", t, given, loc));
  const Indices own = b.sizes(t), chosen = b.sizes(indices);
  Indices sizes(own.begin(), own.begin() + static_cast<std::ptrdiff_t>(axis));
  sizes.insert(sizes.end(), chosen.begin(), chosen.end());
  sizes.insert(sizes.end(), own.begin() + static_cast<std::ptrdiff_t>(axis) + 1, own.end());
  return b.tabulate(t.type().element(), sizes, [&](const Indices& at) {
    const auto first = at.begin() + static_cast<std::ptrdiff_t>(axis);
    const auto behind = first + static_cast<std::ptrdiff_t>(chosen.size());
    Indices from(at.begin(), first);
    from.push_back(b.get(indices, Indices(first, behind)));
    from.insert(from.end(), behind, at.end());
    return b.get(t, from);
  });
}

Datum gather(const Datum& t, int given, const Datum& indices, const Location& loc) {
  const Build b{loc};
  const auto axis = static_cast<std::size_t>(axis_of("gather", t, given, loc));
  if (indices.type().rank() != t.type().rank())
    raise_at(loc, "gather: expected indices of as many dimensions as " + t.type().str() + " has, got " +
                      indices.type().str());
  return b.tabulate(t.type().element(), b.sizes(indices), [&](Indices at) {
    at[axis] = b.get(indices, at);
    return b.get(t, at);
  });
}

Datum scatter_add(const Datum& t, int given, const Datum& indices, const Datum& v, const Location& loc) {
  const Build b{loc};
  const auto axis = static_cast<std::size_t>(axis_of("scatter_add", t, given, loc));
  if (indices.type().rank() != 1 || v.type().rank() != t.type().rank() || v.type().element() != t.type().element())
    raise_at(loc, "scatter_add: expected a vector of indices and values of as many dimensions and the element type of " +
                      t.type().str() + ", got " + indices.type().str() + " and " + v.type().str());
  Indices sizes = b.sizes(t);
  sizes[axis] = b.size(indices, 0);
  for (std::size_t d = 0; d < sizes.size(); ++d)
    b.require_equal(b.size(v, static_cast<int>(d)), sizes[d],
                    d == axis ? "scatter_add: expected as many values along the dimension as indices"
                              : "scatter_add: expected values of the tensor's sizes in the other dimensions");
  return b.points(sizes, {t}, [&](const Indices& at, const Datums& now) {
    Indices to = at;
    to[axis] = b.get(indices, {at[axis]});
    return Datums{b.add_at(now[0], to, b.get(v, at))};
  })[0];
}

Datum one_hot(const Datum& indices, const Datum& n, ir::Kind kind, const Location& loc) {
  const Build b{loc};
  Indices sizes = b.sizes(indices);
  sizes.push_back(n);
  return b.tabulate(kind, sizes, [&](const Indices& at) {
    const Datum found = b.binary(Opcode::eq_, b.get(indices, Indices(at.begin(), at.end() - 1)), at.back());
    return kind == ir::Kind::boolean ? found : b.cast(found, kind);
  });
}

Datum largest_places(const Datum& t, const Datum& k, const Location& loc) {
  const Build b{loc};
  const Datum order = argsort(t, -1, true, loc), n = b.size(t, t.type().rank() - 1);
  b.require(b.binary(Opcode::land_, b.binary(Opcode::le_, Build::integer(0), k), b.binary(Opcode::le_, k, n)),
            "topk: expected a number from 0 to that of the elements in the last dimension, got {} of {}",
            {k, n});
  std::vector<Part> parts(static_cast<std::size_t>(t.type().rank()), Part(named::all));
  parts.back().lo = Build::integer(0);
  parts.back().hi = k;
  return part(order, parts, loc);
}

// Merge sort from below: runs of w elements are merged to runs of 2 w, one element after the other, until there
// is one run. Equal elements of the left run come first, so the order is stable.
Datum argsort(const Datum& tagged, int given, bool descending, const Location& loc) {
  const Build b{loc};
  const Datum t = b.primal(tagged);
  const auto axis = static_cast<std::size_t>(axis_of("argsort", t, given, loc));
  const Indices sizes = b.sizes(t);
  const Datum n = sizes[axis], zero = Build::integer(0), one = Build::integer(1);
  Indices outer = sizes;
  outer.erase(outer.begin() + static_cast<std::ptrdiff_t>(axis));
  const Datum out = b.fill(zero, sizes);
  return b.points(outer, {out}, [&](const Indices& place, const Datums& now) {
    const auto at = [&](const Datum& i) {
      Indices all = place;
      all.insert(all.begin() + static_cast<std::ptrdiff_t>(axis), i);
      return all;
    };
    // Whether x comes before y: NaN comes after every number.
    const auto before = [&](const Datum& x, const Datum& y) {
      const Datum less = descending ? b.less(y, x) : b.less(x, y);
      if (!t.type().is_float_element()) return less;
      return b.binary(Opcode::lor_, less,
                      b.binary(Opcode::land_, b.binary(Opcode::eq_, x, x), b.binary(Opcode::ne_, y, y)));
    };
    const auto both = [&](const Datum& x, const Datum& y) { return b.binary(Opcode::land_, x, y); };
    const auto lesser = [&](const Datum& x, const Datum& y) { return b.binary(Opcode::imin_, x, y); };
    const Datum start = b.tabulate(ir::Kind::i64, {n}, [](const Indices& i) { return i[0]; });
    const Datums sorted = detail::loop(
        {one, start}, [&](const Datums& s) { return b.less(s[0], n); },
        [&](const Datums& s) {
          const Datum width = s[0], order = s[1], pair = b.mul(width, Build::integer(2));
          const Datum merged = b.fill(zero, {n});
          const Datums end = b.loop(zero, n, {merged, zero, zero}, [&](const Datum& k, const Datums& m) {
            const Datum lo = b.sub(k, b.rem(k, pair)), first = b.binary(Opcode::eq_, k, lo);
            const Datum middle = lesser(b.add(lo, width), n), hi = lesser(b.add(lo, pair), n);
            const Datum i = b.select(first, lo, m[1]), j = b.select(first, middle, m[2]);
            const Datum left = b.get(order, {lesser(i, b.sub(n, one))}), right = b.get(order, {lesser(j, b.sub(n, one))});
            const Datum goes_right =
                both(b.less(j, hi), b.binary(Opcode::lor_, b.binary(Opcode::le_, middle, i),
                                             before(b.get(t, at(right)), b.get(t, at(left)))));
            const Datum taken = b.select(goes_right, right, left);
            return Datums{b.set(m[0], {k}, taken), b.select(goes_right, i, b.add(i, one)),
                          b.select(goes_right, b.add(j, one), j)};
          });
          return Datums{pair, end[0]};
        },
        loc);
    return b.loop(zero, n, {now[0]}, [&](const Datum& i, const Datums& s) {
      return Datums{b.set(s[0], at(i), b.get(sorted[1], {i}))};
    });
  })[0];
}

}  // namespace lantern::core::detail
