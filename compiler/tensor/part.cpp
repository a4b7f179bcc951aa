// Parts of tensors: t(all, range(1, -1), i), and tensors with a part replaced.
#include "lantern/compiler/tensor/build.hpp"
#include "lantern/ir/notation.hpp"

namespace lantern::core::detail {

namespace {

/// Which elements a part has: index k of its dimension is lo + step k of the tensor's.
struct Selection {
  Indices lo;
  std::vector<std::int64_t> step;
  Indices sizes;  ///< of the part, without the dimensions of which there is one index
  std::vector<bool> kept;

  /// Whether the places are sums of indices and numbers, in tensors that are not too large for a notation.
  bool starts_are_known() const {
    constexpr std::int64_t most = 100'000'000;
    for (std::size_t d = 0; d < lo.size(); ++d)
      if (!lo[d].is_literal() || lo[d].i() < 0 || lo[d].i() > most || step[d] > most) return false;
    return lo.size() <= 26;
  }
  Indices at(const Build& b, const Indices& k) const {
    Indices all;
    std::size_t next = 0;
    for (std::size_t d = 0; d < lo.size(); ++d) {
      if (!kept[d]) {
        all.push_back(lo[d]);
        continue;
      }
      const Datum scaled = step[d] == 1 ? k[next] : b.mul(k[next], Build::integer(step[d]));
      all.push_back(known(lo[d]) == 0 ? scaled : b.add(scaled, lo[d]));
      ++next;
    }
    return all;
  }
};

/// "[k+1][2l-l][3]->kl;kl": the elements as a move in index notation, which is done where they are read. A place that
/// is a letter alone would say that the part has the whole dimension.
Datum moved_part(const Build& b, const Datum& t, const Selection& s) {
  std::string from, to;
  Datums operands = {t};
  std::vector<std::int64_t> shape;
  for (std::size_t d = 0; d < s.lo.size(); ++d) {
    const std::string start = std::to_string(s.lo[d].i());
    if (!s.kept[d]) {
      const Datum size = b.size(t, static_cast<int>(d));
      b.require(b.less(s.lo[d], size), "index " + start + " of a part is outside its dimension of size {}", {size});
      from += "[" + start + "]";
      continue;
    }
    const char k = static_cast<char>('a' + to.size());
    const std::string step = std::to_string(s.step[d]);
    to += k;
    from += s.step[d] == 1 && s.lo[d].i() == 0 ? std::string("[2") + k + "-" + k + "]" : "[" + step + k + "+" + start + "]";
    operands.push_back(s.sizes[to.size() - 1]);
    shape.push_back(known(s.sizes[to.size() - 1]));
  }
  const std::string notation = from + "->" + to + ";" + to;
  return perform({Opcode::einsum_, ir::inside, b.loc, shape, ir::canonical(ir::notation(notation))}, operands);
}

/// A bound: numbers of C++ below 0 count from the end.
Datum bound(const Build& b, const Datum& v, bool plain, const Datum& size) {
  if (known(v) == to_end) return size;
  if (!plain || v.i() >= 0) return v;
  return size.is_literal() ? Build::integer(size.i() + v.i()) : b.add(size, v);
}

Selection selected(const Build& b, const Datum& t, std::span<const Part> parts) {
  const int rank = t.type().rank();
  if (static_cast<int>(parts.size()) > rank)
    raise_at(b.loc, "expected at most " + std::to_string(rank) + " indices and ranges for " + t.type().str() + ", got " +
                        std::to_string(parts.size()));
  Selection s;
  for (int d = 0; d < rank; ++d) {
    const Part part = static_cast<std::size_t>(d) < parts.size() ? parts[static_cast<std::size_t>(d)] : Part(named::all);
    const Datum size = b.size(t, d);
    s.step.push_back(part.step);
    s.kept.push_back(part.step != 0 || !part.hi.empty());  // of an index there is no end
    if (part.lo.empty()) {
      s.lo.push_back(Build::integer(0));
      s.sizes.push_back(size);
      continue;
    }
    s.lo.push_back(bound(b, part.lo, part.plain_lo, size));
    if (!s.kept.back()) continue;
    if (part.step < 1)
      raise_at(b.loc, "range: expected a step of 1 or more, got " + std::to_string(part.step) +
                          "; flip<" + std::to_string(d) + ">(t) turns a dimension round");
    const Datum lo = s.lo.back(), hi = bound(b, part.hi, part.plain_hi, size);
    const auto at_most = [&](const Datum& x, const Datum& y) { return b.binary(Opcode::le_, x, y); };
    const auto both = [&](const Datum& x, const Datum& y) { return b.binary(Opcode::land_, x, y); };
    b.require(both(both(at_most(Build::integer(0), lo), at_most(lo, hi)), at_most(hi, size)),
              "range: expected 0 <= lo <= hi <= the dimension's size, got {} to {} of {}", {lo, hi, size});
    const Datum length = b.sub(hi, lo);
    s.sizes.push_back(part.step == 1 ? length
                                     : b.div(b.add(length, Build::integer(part.step - 1)), Build::integer(part.step)));
  }
  return s;
}

}  // namespace

Datum part(const Datum& t, std::span<const Part> parts, const Location& loc) {
  const Build b{loc};
  const Selection s = selected(b, t, parts);
  if (s.sizes.empty())
    raise_at(loc, "a part of one element: t(i, j) with indices alone is that number");
  if (s.starts_are_known()) return moved_part(b, t, s);
  return b.tabulate(t.type().element(), s.sizes, [&](const Indices& k) { return b.get(t, s.at(b, k)); });
}

Datum with_part(const Datum& t, std::span<const Part> parts, const Datum& v, const Location& loc) {
  const Build b{loc};
  const Selection s = selected(b, t, parts);
  if (v.type().rank() > static_cast<int>(s.sizes.size()))
    raise_at(loc, "set_part: expected a value of at most " + std::to_string(s.sizes.size()) + " dimensions, got " +
                      v.type().str());
  // NumPy's broadcasting: dimensions at the front, and those of 1, are repeated.
  const auto skipped = s.sizes.size() - static_cast<std::size_t>(v.type().is_tensor() ? v.type().rank() : 0);
  const auto repeated = [&](std::size_t d) {
    return v.type().dims()[d] == 1 && known(s.sizes[skipped + d]) != 1;
  };
  if (v.type().is_tensor())
    for (std::size_t d = 0; d < static_cast<std::size_t>(v.type().rank()); ++d) {
      if (repeated(d)) continue;
      const Datum have = b.size(v, static_cast<int>(d)), want = s.sizes[skipped + d];
      b.require(b.binary(Opcode::eq_, have, want),
                "set_part: the value's shape is not that of the part: dimension " + std::to_string(d) +
                    " is {}, expected {}",
                {have, want});
    }
  return b.points(s.sizes, {t}, [&](const Indices& k, const Datums& now) {
    Datum element = v;
    if (v.type().is_tensor()) {
      Indices from;
      for (std::size_t d = 0; d < static_cast<std::size_t>(v.type().rank()); ++d)
        from.push_back(repeated(d) ? Build::integer(0) : k[skipped + d]);
      element = b.get(v, from);
    }
    return Datums{b.set(now[0], s.at(b, k), element)};
  })[0];
}

}  // namespace lantern::core::detail
