// Elements at places that are no whole numbers: GridSample, AffineGrid, RoiAlign, DeformConv.
#include <algorithm>

#include "lantern/compiler/onnx/rules.hpp"
#include "lantern/compiler/onnx/window.hpp"

namespace lantern::onnx::rules {

namespace {

/// A tensor [batch, channels, size...], read around places.
struct Sampler {
  const Call& c;
  Datum x;
  Indices size;
  std::string padding;
  bool corners = false;

  Datum bound(const Datum& v, const Datum& n) const {  // of an index
    return c.op(Opcode::imax_, c.op(Opcode::imin_, v, c.b.sub(n, c.integer(1))), c.integer(0));
  }
  /// An element, 0 outside.
  Datum read(const Datum& n, const Datum& channel, const Indices& places) const {
    Indices at = {n, channel};
    Datum inside;
    for (std::size_t d = 0; d < size.size(); ++d) {
      at.push_back(bound(places[d], size[d]));
      const Datum in =
          c.op(Opcode::land_, c.op(Opcode::le_, c.integer(0), places[d]), c.b.less(places[d], size[d]));
      inside = inside.empty() ? in : c.op(Opcode::land_, inside, in);
    }
    return c.b.select(inside, c.b.get(x, at), Build::number(0, x));
  }
  /// A coordinate from -1 to 1 as a place among n elements.
  Datum place(const Datum& v, const Datum& n) const {
    const Datum extent = c.cast(n, f64), one = real(1), wide = c.cast(v, f64);
    if (corners) return c.b.mul(c.b.mul(c.b.add(wide, one), real(0.5)), c.b.sub(extent, one));
    return c.b.mul(c.b.sub(c.b.mul(c.b.add(wide, one), extent), one), real(0.5));
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

  /// Between the two neighbours in each dimension.
  Datum linear(const Datum& n, const Datum& channel, const Indices& places) const {
    const Datum one = Build::number(1, x);
    const auto between = [&](const auto& self, Indices chosen) -> Datum {
      const std::size_t d = chosen.size();
      if (d == size.size()) return read(n, channel, chosen);
      const Datum floor = c.op(Opcode::floor_, places[d]), low = whole(floor);
      const Datum rest = c.cast(c.b.sub(places[d], floor), x.type().element());
      chosen.push_back(low);
      const Datum before = c.b.mul(self(self, chosen), c.b.sub(one, rest));
      chosen.back() = c.b.add(low, c.integer(1));
      return c.b.add(before, c.b.mul(self(self, chosen), rest));
    };
    return between(between, {});
  }
  Datum cubic(const Datum& n, const Datum& channel, const Indices& places) const {
    const ir::Kind k = x.type().element();
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
    const auto between = [&](const auto& self, Indices chosen) -> Datum {
      const std::size_t d = chosen.size();
      if (d == size.size()) return read(n, channel, chosen);
      const Datum floor = c.op(Opcode::floor_, places[d]);
      Datum sum = Build::number(0, x);
      chosen.emplace_back();
      for (int tap = -1; tap <= 2; ++tap) {
        chosen.back() = padded_index(c.b.add(floor, real(tap)), size[d]);
        sum = c.b.add(sum, c.b.mul(self(self, chosen), weight(c.b.sub(places[d], floor), tap)));
      }
      return sum;
    };
    return between(between, {});
  }
  Datum nearest(const Datum& n, const Datum& channel, const Indices& places) const {
    Indices chosen;
    for (const Datum& v : places) {  // halves to the even one
      const Datum floor = c.op(Opcode::floor_, v), rest = c.b.sub(v, floor), half = c.b.mul(floor, real(0.5));
      const Datum odd = c.op(Opcode::ne_, half, c.op(Opcode::floor_, half));
      const Datum up = c.op(Opcode::lor_, c.b.less(real(0.5), rest),
                            c.op(Opcode::land_, c.op(Opcode::eq_, rest, real(0.5)), odd));
      chosen.push_back(whole(c.b.add(floor, c.cast(up, f64))));
    }
    return read(n, channel, chosen);
  }
};

Indices from_second(const Indices& all) { return Indices(all.begin() + 2, all.end()); }

}  // namespace

// Coordinates of the grid are those of the dimensions from the last on.
Terms grid_sample(const Call& c) {
  c.require_operands(2, 2);
  c.require_float(0);
  const Datum x = c[0], grid = c[1];
  if (c.rank(0) < 3 || c.rank(0) > 5 || c.rank(1) != c.rank(0))
    c.unsupported("operands of other than 3 to 5 dimensions, as many each: " + x.type().str() + " and " +
                  grid.type().str());
  const std::string mode = c.attribute("mode", std::string("bilinear"));
  const Sampler s{c, x, from_second(c.sizes(x)), c.attribute("padding_mode", std::string("zeros")),
                  c.attribute("align_corners", std::int64_t{0}) != 0};
  if (s.padding != "zeros" && s.padding != "border" && s.padding != "reflection")
    c.fail("attribute 'padding_mode': expected zeros, border or reflection, got '" + s.padding + "'");
  Indices sizes = {c.b.size(x, 0), c.b.size(x, 1)};
  for (int d = 1; d + 1 < c.rank(1); ++d) sizes.push_back(c.b.size(grid, d));
  const auto spatial = static_cast<std::int64_t>(s.size.size());
  c.b.require_equal(c.b.size(grid, c.rank(1) - 1), c.integer(spatial),
                    "expected a coordinate for each dimension");
  return {c.result(c.b.tabulate(x.type().element(), sizes, [&](const Indices& at) {
    Indices places;
    for (std::int64_t d = 0; d < spatial; ++d) {
      Indices from(at.begin() + 2, at.end());
      from.insert(from.begin(), at[0]);
      from.push_back(c.integer(spatial - 1 - d));
      places.push_back(s.place(c.b.get(grid, from), s.size[static_cast<std::size_t>(d)]));
    }
    if (mode == "bicubic" || mode == "cubic") return s.cubic(at[0], at[1], places);
    for (std::size_t d = 0; d < places.size(); ++d) places[d] = s.inside(places[d], s.size[d]);
    if (mode == "nearest") return s.nearest(at[0], at[1], places);
    if (mode == "bilinear" || mode == "linear") return s.linear(at[0], at[1], places);
    c.fail(
        "attribute 'mode': expected linear, nearest or cubic (before version 20 bilinear and bicubic), got "
        "'" +
        mode + "'");
  }))};
}

// Operands: matrices [batch, n, n + 1], and the sizes [batch, channels, n sizes] of a tensor.
Terms affine_grid(const Call& c) {
  c.require_operands(2, 2);
  c.require_float(0);
  const Datum matrices = c[0];
  Datums all = c.elements(1, "sizes");
  if (c.rank(0) != 3 || (all.size() != 4 && all.size() != 5))
    c.fail("expected matrices [batch, n, n + 1] and 4 or 5 sizes, got " + matrices.type().str() + " and " +
           std::to_string(all.size()));
  for (Datum& n : all) n = c.cast(n, ir::Kind::i64);
  const bool corners = c.attribute("align_corners", std::int64_t{0}) != 0;
  const std::size_t spatial = all.size() - 2;
  c.b.require_equal(c.b.size(matrices, 1), c.integer(static_cast<std::int64_t>(spatial)),
                    "expected matrices [batch, n, n + 1] for n sizes");
  c.b.require_equal(c.b.size(matrices, 2), c.integer(static_cast<std::int64_t>(spatial) + 1),
                    "expected matrices [batch, n, n + 1] for n sizes");
  c.b.require_equal(c.b.size(matrices, 0), all[0], "expected a matrix for each example");
  Indices sizes = {all[0]};
  sizes.insert(sizes.end(), all.begin() + 2, all.end());
  sizes.push_back(c.integer(static_cast<std::int64_t>(spatial)));
  const ir::Kind k = matrices.type().element();
  return {c.result(c.b.tabulate(k, sizes, [&](const Indices& at) {
    Datum sum = c.b.get(matrices, {at[0], at.back(), c.integer(static_cast<std::int64_t>(spatial))});
    for (std::size_t d = 0; d < spatial; ++d) {
      const Datum i = c.cast(at[1 + d], f64), n = c.cast(all[2 + d], f64), one = real(1);
      // From -1 to 1, of one element 0.
      const Datum edges = c.op(Opcode::max_, c.b.sub(n, one), one);
      const Datum place = corners ? c.b.div(c.b.sub(c.b.add(i, i), c.b.sub(n, one)), edges)
                                  : c.b.div(c.b.sub(c.b.add(c.b.add(i, i), one), n), n);
      const Datum factor =
          c.b.get(matrices, {at[0], at.back(), c.integer(static_cast<std::int64_t>(spatial - 1 - d))});
      sum = c.b.add(sum, c.b.mul(factor, c.cast(place, k)));
    }
    return sum;
  }))};
}

// A convolution whose elements are read where offsets say. Dai et al., "Deformable Convolutional Networks",
// 2017; with masks Zhu et al., "Deformable ConvNets v2", 2019.
Terms deform_conv(const Call& c) {
  c.require_operands(3, 5);
  c.require_float(0);
  const Datum x = c[0], w = c[1], offsets = c[2];
  const int rank = c.rank();
  if (rank < 3 || rank > 5 || c.rank(1) != rank || c.rank(2) != rank)
    c.fail(
        "expected a tensor [batch, channels, size...], and weights and offsets of as many dimensions, got " +
        x.type().str() + ", " + w.type().str() + " and " + offsets.type().str());
  const Indices kernel = from_second(c.sizes(w)), places = from_second(c.sizes(offsets));
  const Window window(c, x, kernel);
  const Indices fits = window.places(x, false);
  for (std::size_t d = 0; d < places.size(); ++d)
    c.b.require_equal(places[d], fits[d], "expected offsets for each place of the window");
  const std::int64_t groups = c.attribute("group", std::int64_t{1}),
                     offset_groups = c.attribute("offset_group", std::int64_t{1});
  if (groups < 1 || offset_groups < 1) c.fail("attributes 'group' and 'offset_group': expected 1 or more");
  const std::size_t spatial = kernel.size();
  const Sampler s{c, x, from_second(c.sizes(x)), "zeros"};
  const Datum batch = c.b.size(x, 0), channels = c.b.size(x, 1), outputs = c.b.size(w, 0),
              taps = c.product(kernel);
  const Datum in_group = c.b.div(channels, c.integer(offset_groups));
  const auto dimensions = static_cast<std::int64_t>(spatial);
  c.b.require_equal(c.b.size(offsets, 1), c.product({c.integer(offset_groups * dimensions), taps}),
                    "expected offsets [batch, offset groups * size of the window * dimensions, place...]");
  Indices sizes = {batch, channels};
  sizes.insert(sizes.end(), kernel.begin(), kernel.end());
  sizes.insert(sizes.end(), places.begin(), places.end());
  const Datum read = c.b.tabulate(x.type().element(), sizes, [&](const Indices& at) {
    Datum tap = c.integer(0);
    for (std::size_t d = 0; d < spatial; ++d) tap = c.b.add(c.b.mul(tap, kernel[d]), at[2 + d]);
    const Datum row = c.b.add(c.b.mul(c.b.div(at[1], in_group), taps), tap);
    const auto at_place = [&](const Datum& t, const Datum& channel) {
      Indices from = {at[0], channel};
      from.insert(from.end(), at.begin() + 2 + static_cast<std::ptrdiff_t>(spatial), at.end());
      return c.b.get(t, from);
    };
    Indices where;
    for (std::size_t d = 0; d < spatial; ++d) {
      const Datum start = c.b.add(c.b.mul(at[2 + spatial + d], c.integer(window.stride[d])),
                                  c.b.mul(at[2 + d], c.integer(window.dilation[d])));
      const Datum moved = at_place(
          offsets, c.b.add(c.b.mul(row, c.integer(dimensions)), c.integer(static_cast<std::int64_t>(d))));
      where.push_back(c.b.add(c.cast(c.b.sub(start, c.integer(window.before[d])), f64), c.cast(moved, f64)));
    }
    const Datum v = s.linear(at[0], at[1], where);
    return c.has(4) ? c.b.mul(v, at_place(c[4], row)) : v;
  });
  const Datum group = c.integer(groups), each = c.b.div(channels, group), made = c.b.div(outputs, group);
  const Datum columns = c.b.reshape(read, {batch, group, c.b.mul(each, taps), c.product(places)});
  const Datum weights = c.b.reshape(w, {group, made, c.b.mul(c.b.size(w, 1), taps)});
  Indices shape = {batch, outputs};
  shape.insert(shape.end(), places.begin(), places.end());
  const Datum y = c.b.reshape(c.b.einsum("gok,ngkl->ngol", {weights, columns}), shape);
  return {c.result(c.has(3) ? core::detail::with_bias(y, c[3], c.b.loc) : y)};
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
  const Sampler s{c, x, {c.b.size(x, 2), c.b.size(x, 3)}, "zeros"};
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
      const auto [i, i_out] = place(top, at[2], bin_h, p[0], rows, s.size[0]);
      const auto [j, j_out] = place(left, at[3], bin_w, p[1], columns, s.size[1]);
      const Datum outside = c.op(Opcode::lor_, i_out, j_out);
      if (!largest) return c.b.select(outside, Build::number(0, x), s.linear(batch, at[1], {i, j}));
      // The largest of the four weighted neighbours.
      const Datum r = c.op(Opcode::floor_, i), q = c.op(Opcode::floor_, j), below = c.cast(c.b.sub(i, r), k),
                  right = c.cast(c.b.sub(j, q), k);
      const Datum one = Build::number(1, x), row = s.whole(r), column = s.whole(q);
      Datum best;
      for (int a = 0; a < 2; ++a)
        for (int b = 0; b < 2; ++b) {
          const Datum w = c.b.mul(a ? below : c.b.sub(one, below), b ? right : c.b.sub(one, right));
          const Datum v =
              c.b.mul(s.read(batch, at[1], {c.b.add(row, c.integer(a)), c.b.add(column, c.integer(b))}), w);
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

}  // namespace lantern::onnx::rules
