#include "lantern/compiler/tensor/window.hpp"

#include <algorithm>
#include <limits>

#include "lantern/compiler/tensor/build.hpp"
#include "lantern/compiler/tensor/reduce.hpp"
#include "lantern/ir/notation.hpp"

namespace lantern::core::detail {

namespace {

constexpr std::string_view result_letters = "ijk", window_letters = "pqr";

/// The spatial dimensions of an operand [batch, channels, size...] and how a window moves over them.
struct Moves {
  Build b;
  const char* what;
  std::size_t spatial;
  std::vector<std::int64_t> stride, padding, dilation;

  std::vector<std::int64_t> each(const PerDimension& given, std::int64_t least, const char* name) const {
    std::vector<std::int64_t> all = given.values;
    if (all.size() == 1) all.resize(spatial, all[0]);
    if (all.size() != spatial)
      raise_at(b.loc, std::string(what) + ": expected one " + name + ", or one for each of the " +
                          std::to_string(spatial) + " spatial dimensions, got " + std::to_string(all.size()));
    for (const std::int64_t v : all)
      if (v < least || v > (std::int64_t{1} << 28))
        raise_at(b.loc, std::string(what) + ": expected " + name + " of " + std::to_string(least) + " or more, got " +
                            std::to_string(v));
    return all;
  }

  Moves(const char* name, const Datum& x, int dimensions, const Location& loc) : b{loc}, what(name), spatial(0) {
    const int rank = x.type().is_tensor() ? x.type().rank() : 0;
    if (rank < 3 || rank > 5 || (dimensions > 0 && rank != dimensions + 2))
      raise_at(loc, std::string(what) + ": expected a tensor [batch, channels, " +
                        (dimensions > 0 ? std::to_string(dimensions) + " sizes" : "one to three sizes") + "], got " +
                        x.type().str());
    spatial = static_cast<std::size_t>(rank) - 2;
  }
  void moved_by(const ConvolutionOptions& o) {
    stride = each(o.stride, 1, "stride");
    padding = each(o.padding, 0, "padding");
    dilation = each(o.dilation, 1, "dilation");
  }

  /// (size + 2 padding - dilation (window - 1) - 1) / stride + 1: places where the window fits; with `ceil` rounded up,
  /// if the last window begins before the padding at the end.
  Datum places(const Datum& size, std::size_t d, const Datum& window, bool ceil = false) const {
    const Datum step = Build::integer(stride[d]);
    const Datum reach = b.mul(Build::integer(dilation[d]), b.sub(window, Build::integer(1)));
    const std::int64_t more = 2 * padding[d] - 1 + (ceil ? stride[d] - 1 : 0);
    const Datum room = b.sub(b.add(size, Build::integer(more)), reach);
    const std::string padded = padding[d] > 0 ? " (" + std::to_string(2 * padding[d]) + " of them padding)" : "";
    const std::string dilated = dilation[d] > 1 ? " with its dilation of " + std::to_string(dilation[d]) : "";
    b.require(b.binary(Opcode::le_, Build::integer(0), room),
              std::string(what) + ": expected a window within {} elements" + padded + " of spatial dimension " +
                  std::to_string(d) + ", got one of {}" + dilated,
              {b.add(size, Build::integer(2 * padding[d])), b.add(reach, Build::integer(1))});
    const Datum last = b.div(room, step), all = b.add(last, Build::integer(1));
    if (!ceil) return all;
    const Datum begins = b.less(b.mul(last, step), b.add(size, Build::integer(padding[d])));
    return b.select(begins, all, last);
  }
  /// A sum of products of what is read: without padding `places` has seen to it that all lies inside.
  Datum sum(const std::string& notation, const Datums& operands, std::span<const std::int64_t> dims) const {
    const bool inside = std::ranges::all_of(padding, [](std::int64_t p) { return p == 0; });
    return perform({Opcode::einsum_, inside ? ir::inside : 0, b.loc, dims, ir::canonical(ir::notation(notation))}, operands);
  }
  /// "[2i+3p-1]" for each spatial dimension: where the operand is read.
  std::string read() const {
    std::string all;
    for (std::size_t d = 0; d < spatial; ++d) {
      all += "[" + std::to_string(stride[d]) + result_letters[d] + "+" + std::to_string(dilation[d]) + window_letters[d];
      if (padding[d] > 0) all += "-" + std::to_string(padding[d]);
      all += "]";
    }
    return all;
  }
  std::string results() const { return std::string(result_letters.substr(0, spatial)); }
  std::string window() const { return std::string(window_letters.substr(0, spatial)); }
};

std::int64_t number(const Datum& d) { return known(d); }
std::vector<std::int64_t> numbers(const Datums& sizes) {
  std::vector<std::int64_t> all;
  for (const Datum& d : sizes) all.push_back(number(d));
  return all;
}

/// x [n, c, ...] as [n, groups, c / groups, ...].
Datum grouped(const Build& b, const Datum& x, int dimension, std::int64_t groups) {
  Datums sizes = b.sizes(x);
  const auto d = static_cast<std::size_t>(dimension);
  sizes[d] = b.div(sizes[d], Build::integer(groups));
  sizes.insert(sizes.begin() + dimension, Build::integer(groups));
  return b.reshape(x, sizes);
}

Datum kernel(const Build& b, const char* what, const Datum& x, const Datum& w, std::int64_t groups) {
  if (!w.type().is_tensor() || w.type().rank() != x.type().rank() || w.type().element() != x.type().element())
    raise_at(b.loc, std::string(what) + ": expected weights of as many dimensions and the element type of " +
                        x.type().str() + ", got " + w.type().str());
  if (groups < 1) raise_at(b.loc, std::string(what) + ": expected one group or more, got " + std::to_string(groups));
  return w;
}

}  // namespace

Datum convolution(const Datum& x, const Datum& weights, const ConvolutionOptions& options, int dimensions,
                  const Location& loc) {
  Moves m("conv", x, dimensions, loc);
  m.moved_by(options);
  const Build& b = m.b;
  const std::int64_t groups = options.groups;
  const Datum w = kernel(b, "conv", x, weights, groups);
  b.require_equal(b.size(x, 1), b.mul(b.size(w, 1), Build::integer(groups)),
                "conv: expected as many channels as the weights have inputs, times the groups");
  if (groups > 1)
    b.require(b.binary(Opcode::eq_, b.rem(b.size(w, 0), Build::integer(groups)), Build::integer(0)),
              "conv: expected outputs whose number the groups divide, got {} outputs and {} groups",
              {b.size(w, 0), Build::integer(groups)});
  Datums out_sizes, shape = {b.size(x, 0), b.size(w, 0)};
  for (std::size_t d = 0; d < m.spatial; ++d)
    out_sizes.push_back(m.places(b.size(x, static_cast<int>(d) + 2), d, b.size(w, static_cast<int>(d) + 2)));
  shape.insert(shape.end(), out_sizes.begin(), out_sizes.end());
  const std::string out = m.results(), win = m.window(), at = m.read();
  if (groups == 1) {
    Datums operands = {x, w};
    operands.insert(operands.end(), out_sizes.begin(), out_sizes.end());
    return m.sum("nc" + at + ",oc" + win + "->no" + out + ";" + out, operands, numbers(shape));
  }
  Datums operands = {grouped(b, x, 1, groups), grouped(b, w, 0, groups)};
  operands.insert(operands.end(), out_sizes.begin(), out_sizes.end());
  Datums wide = shape;
  wide[1] = b.div(shape[1], Build::integer(groups));
  wide.insert(wide.begin() + 1, Build::integer(groups));
  return b.reshape(m.sum("ngc" + at + ",goc" + win + "->ngo" + out + ";" + out, operands, numbers(wide)), shape);
}

// Each element of x is multiplied with the weights and added where a convolution would have read:
// "no[2i+p-1]+=nci,cop".
Datum transposed_convolution(const Datum& x, const Datum& weights, const ConvolutionOptions& options,
                             int dimensions, const Location& loc) {
  Moves m("conv_transpose", x, dimensions, loc);
  m.moved_by(options);
  const Build& b = m.b;
  const std::int64_t groups = options.groups;
  const Datum w = kernel(b, "conv_transpose", x, weights, groups);
  b.require_equal(b.size(x, 1), b.size(w, 0), "conv_transpose: expected as many channels as the weights have inputs");
  if (groups > 1)
    b.require(b.binary(Opcode::eq_, b.rem(b.size(x, 1), Build::integer(groups)), Build::integer(0)),
              "conv_transpose: expected channels whose number the groups divide, got {} channels and {} groups",
              {b.size(x, 1), Build::integer(groups)});
  const std::vector<std::int64_t> more = m.each(options.output_padding, 0, "output padding");
  Datums shape = {b.size(x, 0), b.mul(b.size(w, 1), Build::integer(groups))};
  for (std::size_t d = 0; d < m.spatial; ++d) {
    const auto k = static_cast<int>(d) + 2;
    const Datum moved = b.mul(b.sub(b.size(x, k), Build::integer(1)), Build::integer(m.stride[d]));
    const Datum reach = b.mul(Build::integer(m.dilation[d]), b.sub(b.size(w, k), Build::integer(1)));
    shape.push_back(b.add(b.add(moved, reach), Build::integer(1 + more[d] - 2 * m.padding[d])));
  }
  const Datum zero = Datum::zero(ir::Type(x.type().element()));
  const std::string out = m.results(), win = m.window(), at = m.read();
  if (groups == 1) return b.einsum("no" + at + "+=nc" + out + ",co" + win, {b.fill(zero, shape), x, w});
  Datums wide = shape;
  wide[1] = b.size(w, 1);
  wide.insert(wide.begin() + 1, Build::integer(groups));
  return b.reshape(b.einsum("ngo" + at + "+=ngc" + out + ",gco" + win,
                            {b.fill(zero, wide), grouped(b, x, 1, groups), grouped(b, w, 0, groups)}),
                   shape);
}

Datum with_bias(const Datum& y, const Datum& bias, const Location& loc) {
  const Build b{loc};
  if (bias.type().rank() != 1) raise_at(loc, "conv: expected a vector as bias, got " + bias.type().str());
  b.require_equal(b.size(bias, 0), b.size(y, 1), "conv: expected a bias for each channel of the result");
  std::vector<int> ones;
  for (int d = 2; d < y.type().rank(); ++d) ones.push_back(d - 1);
  return b.add(y, b.with_ones(bias, ones));
}

namespace {

struct Pool : Moves {
  std::vector<std::int64_t> size;
  Datums shape;  ///< of the result
  bool ceil;

  Pool(const char* name, const Datum& x, const PerDimension& window, const PoolOptions& o, const Location& loc)
      : Moves(name, x, 0, loc), ceil(o.ceil) {
    size = each(window, 1, "window size");
    stride = each(o.stride, 0, "stride");
    padding = each(o.padding, 0, "padding");
    dilation = each(o.dilation, 1, "dilation");
    shape = {b.size(x, 0), b.size(x, 1)};
    for (std::size_t d = 0; d < spatial; ++d) {
      if (stride[d] == 0) stride[d] = size[d];
      const std::int64_t reach = dilation[d] * (size[d] - 1) + 1;
      if (padding[d] >= reach)
        raise_at(loc, std::string(what) + ": expected a padding below the window's size " + std::to_string(reach) +
                          ", got " + std::to_string(padding[d]));
      shape.push_back(places(length(x, d), d, Build::integer(size[d]), ceil));
    }
  }
  Datum length(const Datum& x, std::size_t d) const { return b.size(x, static_cast<int>(d) + 2); }
  /// Where in x a window begins.
  Datum from(const Datum& place, std::size_t d) const {
    return b.sub(b.mul(place, Build::integer(stride[d])), Build::integer(padding[d]));
  }
  /// Each window has an element: those that begin before the first one reach it, and it is there.
  void require_elements(const Datum& x) const {
    for (std::size_t d = 0; d < spatial; ++d) {
      std::int64_t first = -1;
      for (std::int64_t before = padding[d]; before > 0; before -= stride[d])
        first = std::max(first, (dilation[d] - before % dilation[d]) % dilation[d]);
      if (first >= 0)
        b.require(b.less(Build::integer(first), length(x, d)),
                  std::string(what) + ": expected a tensor with elements in each window, more than " +
                      std::to_string(first) + " in spatial dimension " + std::to_string(d) + ", got {}",
                  {length(x, d)});
    }
  }
};

}  // namespace

namespace {

// The largest element is had by comparing; which elements equal it, and share its derivative, matters to the derivative
// alone, which looks again. The element of x at each point of a window is at `place` in it; one that is at another place than
// its point is there for what lies outside, and has no share.
Datum largest(const Build& b, const Datum& x, const Indices& window,
              const std::function<Indices(const Indices& point)>& place,
              const std::function<Datum(const Datum& t, const Indices& place)>& element) {
  const Datum primal = b.primal(x);
  const bool floating = x.type().is_float_element();
  const Datum first = element(primal, place(Indices(window.size(), Build::integer(0))));
  const Datum best = b.points(window, {first}, [&](const Indices& point, const Datums& s) {
    const Datum v = element(primal, place(point));
    if (floating) return Datums{b.binary(Opcode::max_, s[0], v)};
    return Datums{b.select(b.less(s[0], v), v, s[0])};
  })[0];
  if (!floating) return best;
  const Datum zero = Build::number(0, x), one = Build::number(1, x);
  const Datums ties = b.points(window, {zero, zero}, [&](const Indices& point, const Datums& s) {
    const Indices here = place(point);
    Datum same = b.binary(Opcode::eq_, element(primal, here), best);
    for (std::size_t d = 0; d < here.size(); ++d)
      same = b.binary(Opcode::land_, same, b.binary(Opcode::eq_, here[d], point[d]));
    return Datums{b.add(s[0], b.select(same, element(x, here), zero)), b.add(s[1], b.select(same, one, zero))};
  });
  return b.binary(Opcode::with_value_, b.div(ties[0], b.binary(Opcode::max_, ties[1], one)), best);
}

}  // namespace

// With padding a window reads the element at the edge in place of what lies outside: which is the largest,
// and the first place of it in the window, do not change by that.
Datum max_pool(const Datum& x, const PerDimension& window, const PoolOptions& options, const Location& loc) {
  const Pool p("max_pool", x, window, options, loc);
  const Build& b = p.b;
  p.require_elements(x);
  Indices window_sizes;
  for (const std::int64_t n : p.size) window_sizes.push_back(Build::integer(n));
  return b.tabulate(x.type().element(), p.shape, [&](const Indices& at) {
    Indices from;
    for (std::size_t d = 0; d < p.spatial; ++d) from.push_back(p.from(at[d + 2], d));
    // Where in the window there is an element for the k-th place of a dimension.
    const auto inside = [&](std::size_t d, Datum k) {
      const std::int64_t step = p.dilation[d];
      if (p.padding[d] > 0) {
        const Datum before = step == 1 ? b.sub(Build::integer(0), from[d])
                                       : b.div(b.sub(Build::integer(step - 1), from[d]), Build::integer(step));
        k = b.binary(Opcode::imax_, k, before);
      }
      if (p.padding[d] > 0 || p.ceil) {
        const Datum last = b.sub(b.sub(p.length(x, d), Build::integer(1)), from[d]);
        k = b.binary(Opcode::imin_, k, step == 1 ? last : b.div(last, Build::integer(step)));
      }
      return k;
    };
    const auto place = [&](const Indices& point) {
      Indices here;
      for (std::size_t d = 0; d < p.spatial; ++d) here.push_back(inside(d, point[d]));
      return here;
    };
    return largest(b, x, window_sizes, place, [&](const Datum& t, const Indices& in_window) {
      Indices all = {at[0], at[1]};
      for (std::size_t d = 0; d < p.spatial; ++d) {
        const std::int64_t step = p.dilation[d];
        all.push_back(b.add(from[d], step == 1 ? in_window[d] : b.mul(in_window[d], Build::integer(step))));
      }
      return b.get(t, all);
    });
  });
}

namespace {

/// How many elements of each window lie in x or its padding, which a last window may leave.
Datum within_padding(const Pool& p, const Datum& x) {
  const Build& b = p.b;
  return b.tabulate(x.type().element(), {p.shape.begin() + 2, p.shape.end()}, [&](const Indices& at) {
    Datum all = Build::integer(1);
    for (std::size_t d = 0; d < p.spatial; ++d) {
      const Datum left = b.sub(b.add(p.length(x, d), Build::integer(p.padding[d])), p.from(at[d], d));
      const Datum step = Build::integer(p.dilation[d]);
      const Datum fit = b.div(b.add(left, b.sub(step, Build::integer(1))), step);
      all = b.mul(all, b.binary(Opcode::imin_, fit, Build::integer(p.size[d])));
    }
    return b.cast(all, x.type().element());
  });
}

}  // namespace

Datum average_pool(const Datum& x, const PerDimension& window, const PoolOptions& options, const Location& loc) {
  const Pool p("average_pool", x, window, options, loc);
  const Build& b = p.b;
  std::int64_t count = 1;
  Datums sizes(p.shape.begin() + 2, p.shape.end()), widths;
  for (const std::int64_t n : p.size) {
    count *= n;
    widths.push_back(Build::integer(n));
  }
  const std::string notation = p.read() + "->nc" + p.results() + ";" + p.results() + p.window();
  const auto sums = [&](const Datum& t) {
    Datums operands = {t};
    operands.insert(operands.end(), sizes.begin(), sizes.end());
    operands.insert(operands.end(), widths.begin(), widths.end());
    return b.einsum("nc" + notation, operands, numbers(p.shape));
  };
  if (!options.count_padding) p.require_elements(x);
  if (options.count_padding && !p.ceil)
    return b.mul(sums(x), b.div(Build::number(1, x), Build::number(static_cast<double>(count), x)));
  if (options.count_padding) return b.div(sums(x), within_padding(p, x));
  const Datum ones = b.add(zeros_like(x, loc), Build::number(1, x));
  return b.div(sums(x), sums(ones));
}

namespace {

/// Windows of x that give a result of these sizes, in each dimension from floor(i n / m) to below ceil((i +
/// 1) n / m).
struct Adaptive : Moves {
  std::vector<std::int64_t> to;
  Datums shape;  ///< of the result

  Adaptive(const char* name, const Datum& x, const PerDimension& given, const Location& loc)
      : Moves(name, x, 0, loc) {
    to = each(given, 1, "size");
    shape = {b.size(x, 0), b.size(x, 1)};
    for (std::size_t d = 0; d < spatial; ++d) {
      shape.push_back(Build::integer(to[d]));
      b.require(b.less(Build::integer(0), b.size(x, static_cast<int>(d) + 2)),
                std::string(what) + ": expected a tensor with elements in each of its spatial dimensions, got none in " +
                    std::to_string(d));
    }
  }
  struct Window {
    Indices from, sizes;
  };
  Window window(const Datum& x, const Indices& at) const {
    Window w;
    for (std::size_t d = 0; d < spatial; ++d) {
      const Datum n = b.size(x, static_cast<int>(d) + 2), parts = Build::integer(to[d]);
      w.from.push_back(b.div(b.mul(at[d + 2], n), parts));
      const Datum next = b.mul(b.add(at[d + 2], Build::integer(1)), n);
      w.sizes.push_back(b.sub(b.div(b.add(next, b.sub(parts, Build::integer(1))), parts), w.from.back()));
    }
    return w;
  }
  Datum element(const Datum& t, const Indices& at, const Window& w, const Indices& point) const {
    Indices all = {at[0], at[1]};
    for (std::size_t d = 0; d < spatial; ++d) all.push_back(b.add(w.from[d], point[d]));
    return b.get(t, all);
  }
};

}  // namespace

Datum adaptive_average_pool(const Datum& x, const PerDimension& given, const Location& loc) {
  const Adaptive p("adaptive_average_pool", x, given, loc);
  const Build& b = p.b;
  return b.tabulate(x.type().element(), p.shape, [&](const Indices& at) {
    const Adaptive::Window w = p.window(x, at);
    Datum count = Build::integer(1);
    for (const Datum& n : w.sizes) count = b.mul(count, n);
    const Datum total = b.points(w.sizes, {Build::number(0, x)}, [&](const Indices& point, const Datums& s) {
      return Datums{b.add(s[0], p.element(x, at, w, point))};
    })[0];
    return b.div(total, b.cast(count, x.type().element()));
  });
}

namespace {

Datum largest_of_each(const Adaptive& p, const Datum& x) {
  return p.b.tabulate(x.type().element(), p.shape, [&](const Indices& at) {
    const Adaptive::Window w = p.window(x, at);
    return largest(
        p.b, x, w.sizes, [](const Indices& point) { return point; },
        [&](const Datum& t, const Indices& point) { return p.element(t, at, w, point); });
  });
}

}  // namespace

Datum adaptive_max_pool(const Datum& x, const PerDimension& given, const Location& loc) {
  return largest_of_each(Adaptive("adaptive_max_pool", x, given, loc), x);
}
Datum global_max_pool(const Datum& x, const Location& loc) {
  return largest_of_each(Adaptive("global_max_pool", x, 1, loc), x);
}
Datum global_average_pool(const Datum& x, const Location& loc) {
  const Moves m("global_average_pool", x, 0, loc);
  std::vector<int> axes;
  for (std::size_t d = 0; d < m.spatial; ++d) axes.push_back(static_cast<int>(d) + 2);
  return mean_along(x, {axes, true}, loc);
}

Datum unfold(const Datum& x, const PerDimension& window, const ConvolutionOptions& options, const Location& loc) {
  Moves m("unfold", x, 0, loc);
  m.moved_by(options);
  const Build& b = m.b;
  const std::vector<std::int64_t> size = m.each(window, 1, "window size");
  Datums shape = {b.size(x, 0), b.size(x, 1)}, places, widths;
  for (std::size_t d = 0; d < m.spatial; ++d) {
    widths.push_back(Build::integer(size[d]));
    places.push_back(m.places(b.size(x, static_cast<int>(d) + 2), d, widths.back()));
  }
  shape.insert(shape.end(), widths.begin(), widths.end());
  shape.insert(shape.end(), places.begin(), places.end());
  Datums operands = {x};
  operands.insert(operands.end(), widths.begin(), widths.end());
  operands.insert(operands.end(), places.begin(), places.end());
  return b.einsum("nc" + m.read() + "->nc" + m.window() + m.results() + ";" + m.window() + m.results(), operands,
                  numbers(shape));
}

}  // namespace lantern::core::detail
