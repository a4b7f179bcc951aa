// Windows that move: convolutions, their transposes, pooling.
#include <algorithm>
#include <limits>

#include "lantern/compiler/onnx/rules.hpp"
#include "lantern/compiler/onnx/window.hpp"

namespace lantern::onnx::rules {

Window::Window(const Call& c, const Datum& x, const Indices& window_sizes)
    : call(c), size(window_sizes), spatial(window_sizes.size()) {
  const auto each = [&](const char* name, std::int64_t otherwise, std::size_t n, std::int64_t least) {
    Sizes all = c.attributes(name);
    if (all.empty()) all.assign(n, otherwise);
    if (all.size() != n)
      c.fail(std::string("attribute '") + name + "': expected " + std::to_string(n) + " integers, got " +
             std::to_string(all.size()));
    for (const std::int64_t v : all)
      if (v < least || v > (std::int64_t{1} << 28))
        c.fail(std::string("attribute '") + name + "': expected integers of " + std::to_string(least) +
               " or more, got " + std::to_string(v));
    return all;
  };
  stride = each("strides", 1, spatial, 1);
  dilation = each("dilations", 1, spatial, 1);
  const Sizes pads = each("pads", 0, 2 * spatial, 0);
  before.assign(pads.begin(), pads.begin() + static_cast<std::ptrdiff_t>(spatial));
  after.assign(pads.begin() + static_cast<std::ptrdiff_t>(spatial), pads.end());
  const std::string automatic = c.attribute("auto_pad", std::string("NOTSET"));
  if (automatic == "VALID") {
    before.assign(spatial, 0);
    after.assign(spatial, 0);
  } else if (automatic == "SAME_UPPER" || automatic == "SAME_LOWER") {
    for (std::size_t d = 0; d < spatial; ++d) {
      const std::int64_t n = c.known_size(x, static_cast<int>(d) + 2), k = known(size[d]);
      if (k == ir::dynamic) c.fail("expected a window whose size is known while the program is made");
      const std::int64_t places = (n + stride[d] - 1) / stride[d];
      const std::int64_t more =
          std::max<std::int64_t>(0, (places - 1) * stride[d] + (k - 1) * dilation[d] + 1 - n);
      before[d] = automatic == "SAME_UPPER" ? more / 2 : more - more / 2;
      after[d] = more - before[d];
    }
  } else if (automatic != "NOTSET") {
    c.fail("attribute 'auto_pad': expected NOTSET, SAME_UPPER, SAME_LOWER or VALID, got '" + automatic + "'");
  }
}

bool Window::symmetric() const { return before == after; }

Indices Window::places(const Datum& x, bool ceil) const {
  const Call& c = call;
  Indices all;
  for (std::size_t d = 0; d < spatial; ++d) {
    const Datum n = c.b.size(x, static_cast<int>(d) + 2);
    const Datum reach = c.b.mul(c.integer(dilation[d]), c.b.sub(size[d], c.integer(1)));
    const Datum room = c.b.sub(c.b.add(n, c.integer(before[d] + after[d] - 1)), reach);
    c.b.require(c.op(Opcode::le_, c.integer(0), room), "expected a window that fits into the padded operand");
    const Datum step = c.integer(stride[d]);
    Datum count = c.b.add(c.b.div(ceil ? c.b.add(room, c.integer(stride[d] - 1)) : room, step), c.integer(1));
    if (ceil) {  // the last window begins in the operand or before it
      const Datum last = c.b.mul(c.b.sub(count, c.integer(1)), step);
      const Datum outside = c.op(Opcode::le_, c.b.add(n, c.integer(before[d])), last);
      count = c.b.select(outside, c.b.sub(count, c.integer(1)), count);
    }
    all.push_back(count);
  }
  return all;
}

bool Window::ends_within(const Datum& x) const {
  for (std::size_t d = 0; d < spatial; ++d) {
    const std::int64_t n = known(call.b.size(x, static_cast<int>(d) + 2)), wide = known(size[d]);
    if (n == ir::dynamic || wide == ir::dynamic) return false;
    if ((n + before[d] + after[d] - 1 - dilation[d] * (wide - 1)) % stride[d] != 0) return false;
  }
  return true;
}

std::string Window::read() const {
  std::string text;
  for (std::size_t d = 0; d < spatial; ++d) {
    text += "[" + std::to_string(stride[d]) + places_letters[d] + "+" + std::to_string(dilation[d]) +
            window_letters[d];
    if (before[d] > 0) text += "-" + std::to_string(before[d]);
    text += "]";
  }
  return text;
}

Datum Window::padded(const Datum& x, const Datum& value) const {
  std::vector<std::array<Datum, 2>> widths(spatial + 2, {call.integer(0), call.integer(0)});
  for (std::size_t d = 0; d < spatial; ++d) widths[d + 2] = {call.integer(before[d]), call.integer(after[d])};
  return core::detail::pad(x, widths, core::Pad::constant, value, call.b.loc);
}

core::PerDimension per_dimension(const Sizes& all) {
  core::PerDimension p(0);
  p.values = all;
  return p;
}

namespace {

void require_images(const Call& c, const Datum& x) {
  if (!x.type().is_tensor() || x.type().rank() < 3 || x.type().rank() > 5)
    c.unsupported("operands of other than 3 to 5 dimensions [batch, channels, size...]: " + x.type().str());
}

/// The window that an attribute says.
Indices kernel_shape(const Call& c, std::size_t spatial) {
  const Sizes all = c.attributes("kernel_shape");
  if (all.size() != spatial)
    c.fail("attribute 'kernel_shape': expected " + std::to_string(spatial) + " integers, got " +
           std::to_string(all.size()));
  for (const std::int64_t n : all)
    if (n < 1 || n > (std::int64_t{1} << 28))
      c.fail("attribute 'kernel_shape': expected integers of 1 or more, got " + std::to_string(n));
  return Call::literals(all);
}

}  // namespace

Datum convolved(const Call& c, const Datum& given, const Datum& w) {
  require_images(c, given);
  if (!w.type().is_tensor() || w.type().rank() != given.type().rank())
    c.fail("expected weights of as many dimensions as " + given.type().str() + ", got " + w.type().str());
  Indices kernel = c.sizes(w);
  kernel.erase(kernel.begin(), kernel.begin() + 2);
  if (const Sizes said = c.attributes("kernel_shape"); !said.empty()) {
    if (said.size() != kernel.size())
      c.fail("attribute 'kernel_shape': expected a size for each spatial dimension");
    for (std::size_t d = 0; d < said.size(); ++d)
      c.b.require_equal(kernel[d], c.integer(said[d]),
                        "attribute 'kernel_shape': expected the sizes of the weights");
  }
  const Window window(c, given, kernel);
  core::ConvolutionOptions options;
  options.stride = per_dimension(window.stride);
  options.dilation = per_dimension(window.dilation);
  options.groups = c.attribute("group", std::int64_t{1});
  const auto of_padded = [&] {
    return core::detail::convolution(window.padded(given, Build::number(0, given)), w, options, 0, c.b.loc);
  };
  const bool pads = std::ranges::any_of(window.before, [](std::int64_t n) { return n > 0; });
  if (!window.symmetric()) return of_padded();
  if (!pads || options.groups == 1 || known(c.b.size(w, 1)) != 1) {
    options.padding = per_dimension(window.before);
    return core::detail::convolution(given, w, options, 0, c.b.loc);
  }
  // Of a depthwise convolution the derivatives have few products for each element: they go by a copy with its pads, for to ask
  // at each element whether it lies in the operand would take longer.
  // Eager evaluation of a value asks for no derivative.
  const auto has_derivative = [](const Datum& d) { return d.is_node() || d.is_tagged(); };
  const Datum derivative = has_derivative(given) || has_derivative(w) ? of_padded() : Datum();
  options.padding = per_dimension(window.before);
  const Datum value = core::detail::convolution(c.b.primal(given), c.b.primal(w), options, 0, c.b.loc);
  return derivative.empty() ? value : c.b.binary(Opcode::with_value_, derivative, value);
}

Terms conv(const Call& c) {
  c.require_operands(2, 3);
  c.require_float(0);
  const Datum y = convolved(c, c[0], c[1]);
  return {c.result(c.has(2) ? core::detail::with_bias(y, c[2], c.b.loc) : y)};
}

Terms conv_transpose(const Call& c) {
  c.require_operands(2, 3);
  c.require_float(0);
  const Datum x = c[0], w = c[1];
  require_images(c, x);
  Indices kernel = c.sizes(w);
  if (kernel.size() < 3) c.fail("expected weights of as many dimensions as the operand");
  kernel.erase(kernel.begin(), kernel.begin() + 2);
  const std::size_t spatial = kernel.size();
  const Sizes wanted = c.attributes("output_shape");
  Sizes more = c.attributes("output_padding");
  if (more.empty()) more.assign(spatial, 0);
  if (more.size() != spatial)
    c.fail("attribute 'output_padding': expected a size for each spatial dimension");
  const std::string automatic = c.attribute("auto_pad", std::string("NOTSET"));
  const bool same = automatic == "SAME_UPPER" || automatic == "SAME_LOWER";
  // The pads of SAME and of an output's shape follow from its sizes, not from the operand's.
  Node plain = c.node;
  std::erase_if(plain.attributes, [](const Attribute& a) { return a.name == "auto_pad"; });
  const Call without(c.execution, c.frame, plain, c.opset, c.in);
  Window window(without, x, kernel);
  if (!wanted.empty() || same) {
    if (!wanted.empty() && wanted.size() < spatial)
      c.fail("attribute 'output_shape': expected a size for each spatial dimension");
    for (std::size_t d = 0; d < spatial; ++d) {
      const std::int64_t n = c.known_size(x, static_cast<int>(d) + 2),
                         k = c.known_size(w, static_cast<int>(d) + 2);
      const std::int64_t out = wanted.empty() ? n * window.stride[d] : wanted[wanted.size() - spatial + d];
      const std::int64_t total =
          window.stride[d] * (n - 1) + more[d] + (k - 1) * window.dilation[d] + 1 - out;
      // A shape that is larger than what the pads leave takes more elements at the end.
      if (total < 0) more[d] -= total;
      const std::int64_t pads = std::max<std::int64_t>(0, total);
      window.before[d] = automatic == "SAME_UPPER" ? pads / 2 : pads - pads / 2;
      window.after[d] = pads - window.before[d];
    }
  }
  core::ConvolutionOptions options;
  options.stride = per_dimension(window.stride);
  options.dilation = per_dimension(window.dilation);
  options.groups = c.attribute("group", std::int64_t{1});
  // Pads that differ: without them, and then what they take away is cut off.
  const bool symmetric = window.symmetric();
  if (symmetric) options.padding = per_dimension(window.before);
  options.output_padding = per_dimension(more);
  Datum y = core::detail::transposed_convolution(x, w, options, 0, c.b.loc);
  if (!symmetric) {
    std::vector<core::Part> parts(spatial + 2, core::Part(core::named::all));
    for (std::size_t d = 0; d < spatial; ++d) {
      parts[d + 2].lo = c.integer(window.before[d]);
      parts[d + 2].hi = c.b.sub(c.b.size(y, static_cast<int>(d) + 2), c.integer(window.after[d]));
    }
    y = core::detail::part(y, parts, c.b.loc);
  }
  return {c.result(c.has(2) ? core::detail::with_bias(y, c[2], c.b.loc) : y)};
}

// ---- pooling

Terms average_pool(const Call& c) {
  c.require_float(0);
  const Datum x = c[0];
  require_images(c, x);
  const Window w(c, x, kernel_shape(c, static_cast<std::size_t>(c.rank()) - 2));
  const bool ceil = c.attribute("ceil_mode", std::int64_t{0}) != 0;
  const bool with_pads = c.attribute("count_include_pad", std::int64_t{0}) != 0;
  const bool padded = std::ranges::any_of(w.before, [](auto p) { return p > 0; }) ||
                      std::ranges::any_of(w.after, [](auto p) { return p > 0; });
  const Indices places = w.places(x, ceil);
  const auto sums = [&](const Datum& t, const Window& by) {
    Datums operands = {t};
    operands.insert(operands.end(), places.begin(), places.end());
    operands.insert(operands.end(), by.size.begin(), by.size.end());
    const std::string out(Window::places_letters.substr(0, by.spatial)),
        in(Window::window_letters.substr(0, by.spatial));
    Sizes shape = {known(c.b.size(t, 0)), known(c.b.size(t, 1))};
    for (const Datum& n : places) shape.push_back(known(n));
    return c.b.einsum("nc" + by.read() + "->nc" + out + ";" + out + in, operands, shape);
  };
  if (!ceil && (with_pads || !padded)) {
    double count = 1;
    for (const Datum& n : w.size) count *= static_cast<double>(known(n));
    return {c.result(c.b.mul(sums(x, w), c.number(1 / count, x)))};
  }
  // As many as there are in each window: of the operand, or of it with its pads.
  Indices extent = {c.integer(1), c.integer(1)};
  Window counted = w;
  for (std::size_t d = 0; d < w.spatial; ++d) {
    extent.push_back(
        c.b.add(c.b.size(x, static_cast<int>(d) + 2), c.integer(with_pads ? w.before[d] + w.after[d] : 0)));
    if (with_pads) counted.before[d] = 0;
  }
  return {c.result(c.b.div(sums(x, w), sums(c.b.fill(c.number(1, x), extent), counted)))};
}

namespace {

/// The largest of each window and where in the operand it is; whatever the pads and distances.
Terms largest(const Call& c, const Window& w, const Datum& x, bool ceil) {
  const Indices own = c.sizes(x), places = w.places(x, ceil);
  Indices sizes = {own[0], own[1]};
  sizes.insert(sizes.end(), places.begin(), places.end());
  const bool columns = c.attribute("storage_order", std::int64_t{0}) != 0;
  const Datum primal = c.b.primal(x);
  const Datum none = c.integer(-1);
  // The place of the largest, counted within the spatial dimensions in row-major order.
  const Datum found = c.b.tabulate(ir::Kind::i64, sizes, [&](const Indices& at) {
    return c.b.points(w.size, {Build::number(0, x), none}, [&](const Indices& k, const Datums& s) {
      Indices read = {at[0], at[1]};
      Datum inside = Datum::integer(1, ir::Bool), flat = c.integer(0);
      for (std::size_t d = 0; d < w.spatial; ++d) {
        const Datum moved =
            c.b.add(c.b.mul(at[d + 2], c.integer(w.stride[d])), c.b.mul(k[d], c.integer(w.dilation[d])));
        const Datum i = c.b.sub(moved, c.integer(w.before[d]));
        const Datum fits = c.op(Opcode::land_, c.op(Opcode::le_, c.integer(0), i), c.b.less(i, own[d + 2]));
        inside = c.op(Opcode::land_, inside, fits);
        const Datum safe = c.b.select(fits, i, c.integer(0));
        read.push_back(safe);
        flat = c.b.add(c.b.mul(flat, own[d + 2]), safe);
      }
      const Datum v = c.b.get(primal, read);
      Datum better = c.op(Opcode::lor_, c.b.less(s[0], v), c.op(Opcode::eq_, s[1], none));
      better = c.op(Opcode::land_, better, inside);
      return Datums{c.b.select(better, v, s[0]), c.b.select(better, flat, s[1])};
    })[1];
  });
  const auto unravelled = [&](const Indices& at) {
    Indices read(own.size());
    Datum rest = c.b.get(found, at);
    for (std::size_t d = own.size(); d-- > 2;) {
      read[d] = c.b.rem(rest, own[d]);
      rest = c.b.div(rest, own[d]);
    }
    read[0] = at[0];
    read[1] = at[1];
    return read;
  };
  const Datum y =
      c.b.tabulate(x.type().element(), sizes, [&](const Indices& at) { return c.b.get(x, unravelled(at)); });
  if (c.node.outputs.size() < 2) return {c.result(y)};
  const Datum indices = c.b.tabulate(ir::Kind::i64, sizes, [&](const Indices& at) {
    const Indices read = unravelled(at);
    Datum flat = c.b.add(c.b.mul(at[0], own[1]), at[1]);
    for (std::size_t d = 2; d < own.size(); ++d) flat = c.b.mul(flat, own[d]);
    Datum within = c.integer(0);
    if (columns)
      for (std::size_t d = own.size(); d-- > 2;) within = c.b.add(c.b.mul(within, own[d]), read[d]);
    else
      for (std::size_t d = 2; d < own.size(); ++d) within = c.b.add(c.b.mul(within, own[d]), read[d]);
    return c.b.add(flat, within);
  });
  return {c.result(y), c.result(indices, Element::int64)};
}

}  // namespace

Terms max_pool(const Call& c) {
  const Datum x = c[0];
  require_images(c, x);
  const Window w(c, x, kernel_shape(c, static_cast<std::size_t>(c.rank()) - 2));
  bool ceil = c.attribute("ceil_mode", std::int64_t{0}) != 0;
  if (ceil && w.ends_within(x)) ceil = false;
  bool plain = w.symmetric() && c.node.outputs.size() < 2;
  Sizes window;
  for (std::size_t d = 0; d < w.spatial; ++d) {
    window.push_back(known(w.size[d]));
    plain = plain && w.before[d] <= w.dilation[d] * (window[d] - 1);
  }
  if (!plain) return largest(c, w, x, ceil);
  core::PoolOptions options;
  options.stride = per_dimension(w.stride);
  options.padding = per_dimension(w.before);
  options.dilation = per_dimension(w.dilation);
  options.ceil = ceil;
  return {c.result(core::detail::max_pool(x, per_dimension(window), options, c.b.loc))};
}

Terms lp_pool(const Call& c) {
  c.require_float(0);
  const Datum x = c[0];
  require_images(c, x);
  const Window w(c, x, kernel_shape(c, static_cast<std::size_t>(c.rank()) - 2));
  const Indices places = w.places(x, c.attribute("ceil_mode", std::int64_t{0}) != 0);
  const Datum p = c.number(static_cast<double>(c.attribute("p", std::int64_t{2})), x);
  Datums operands = {c.op(Opcode::pow_, c.op(Opcode::abs_, x), p)};
  operands.insert(operands.end(), places.begin(), places.end());
  operands.insert(operands.end(), w.size.begin(), w.size.end());
  const std::string out(Window::places_letters.substr(0, w.spatial)),
      in(Window::window_letters.substr(0, w.spatial));
  const Datum sums = c.b.einsum("nc" + w.read() + "->nc" + out + ";" + out + in, operands);
  return {c.result(c.op(Opcode::pow_, sums, c.b.div(c.number(1, x), p)))};
}

namespace {

std::vector<int> spatial_axes(const Call& c) {
  if (c.rank() < 3) c.fail("expected a tensor [batch, channels, size...], got " + c[0].type().str());
  std::vector<int> axes;
  for (int d = 2; d < c.rank(); ++d) axes.push_back(d);
  return axes;
}

}  // namespace

Terms global_average_pool(const Call& c) {
  return {c.result(core::detail::mean_along(c[0], {spatial_axes(c), true}, c.b.loc))};
}
Terms global_max_pool(const Call& c) {
  return {c.result(core::detail::extremum_along(c[0], {spatial_axes(c), true}, true, c.b.loc))};
}
Terms global_lp_pool(const Call& c) {
  const Datum x = c[0], p = c.number(static_cast<double>(c.attribute("p", std::int64_t{2})), x);
  const Datum powers = c.op(Opcode::pow_, c.op(Opcode::abs_, x), p);
  return {c.result(c.op(Opcode::pow_, core::detail::sum_along(powers, {spatial_axes(c), true}, c.b.loc),
                        c.b.div(c.number(1, x), p)))};
}

Terms max_unpool(const Call& c) {
  const Datum x = c[0], at = c.cast(c[1], ir::Kind::i64);
  require_images(c, x);
  const Window w(c, x, kernel_shape(c, static_cast<std::size_t>(c.rank()) - 2));
  const Indices own = c.sizes(x);
  // Indices count within the shape that the pooling had; an output_shape says another to put them into.
  Indices inferred = {own[0], own[1]};
  for (std::size_t d = 0; d < w.spatial; ++d)
    inferred.push_back(c.b.add(c.b.mul(c.b.sub(own[d + 2], c.integer(1)), c.integer(w.stride[d])),
                               c.b.sub(w.size[d], c.integer(w.before[d] + w.after[d]))));
  Indices sizes = inferred;
  if (c.has(2)) sizes = Call::literals(c.integers(2, "an output shape"));
  if (sizes.size() != own.size())
    c.fail("expected an output shape of " + std::to_string(own.size()) + " sizes, got " +
           std::to_string(sizes.size()));
  const Datum flat = c.b.points(own, {c.b.fill(Build::number(0, x), {c.product(inferred)})},
                                [&](const Indices& place, const Datums& now) {
                                  return Datums{c.b.set(now[0], {c.b.get(at, place)}, c.b.get(x, place))};
                                })[0];
  const Datum y = c.b.reshape(flat, inferred);
  if (!c.has(2)) return {c.result(y)};
  std::vector<std::array<Datum, 2>> widths;
  for (std::size_t d = 0; d < sizes.size(); ++d)
    widths.push_back({c.integer(0), c.b.sub(sizes[d], inferred[d])});
  return {c.result(core::detail::pad(y, widths, core::Pad::constant, Build::number(0, x), c.b.loc))};
}

}  // namespace lantern::onnx::rules
