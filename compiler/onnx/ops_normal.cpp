// Normalisation: batch, instance, layer and group normalisation, softmax and its kin.
#include <algorithm>
#include <cmath>

#include "lantern/compiler/onnx/rules.hpp"

namespace lantern::onnx::rules {

namespace {

using core::detail::Over;

/// A vector of channels as a tensor beside [batch, channels, size...].
Datum channels(const Call& c, const Datum& v, int rank) {
  if (!v.type().is_tensor() || v.type().rank() != 1)
    c.fail("expected a number for each channel, got " + v.type().str());
  std::vector<int> ones;
  for (int d = 2; d < rank; ++d) ones.push_back(d - 1);
  return c.b.with_ones(v, ones);
}

Datum inverse_root(const Call& c, const Datum& variance, double epsilon) {
  const Datum root = c.op(Opcode::sqrt_, c.b.add(variance, c.number(epsilon, variance)));
  return c.b.div(c.number(1, variance), root);
}

struct Standardised {
  Datum x, mean, inverse;
};
/// Less its mean, over its standard deviation, along these dimensions.
Standardised standardised(const Call& c, const Datum& x, const std::vector<int>& axes, double epsilon) {
  const Datum mean = core::detail::mean_along(x, {axes, true}, c.b.loc), off = c.b.sub(x, mean);
  const Datum inverse =
      inverse_root(c, core::detail::mean_along(c.b.mul(off, off), {axes, true}, c.b.loc), epsilon);
  return {c.b.mul(off, inverse), mean, inverse};
}

std::vector<int> from_axis(int first, int rank) {
  std::vector<int> axes;
  for (int d = first; d < rank; ++d) axes.push_back(d);
  return axes;
}

/// f along an axis of the operand as a matrix that begins its second dimension there, in versions before 13.
template <class F>
Terms along_axis(const Call& c, F&& f) {
  c.require_float(0);
  const Datum x = c[0];
  if (c.opset >= 13) return {c.result(f(x, c.axis(c.attribute("axis", std::int64_t{-1}), c.rank())))};
  const std::int64_t given = c.attribute("axis", std::int64_t{1});
  const int axis = given == c.rank() ? c.rank() : c.axis(given, c.rank());
  const Indices all = c.sizes(x);
  if (axis == c.rank() - 1) return {c.result(f(x, axis))};
  const Datum matrix = c.reshape(x, {c.product(Indices(all.begin(), all.begin() + axis)),
                                     c.product(Indices(all.begin() + axis, all.end()))});
  return {c.result(c.reshape(f(matrix, 1), all))};
}

}  // namespace

Datum log_softmax_along(const Call& c, const Datum& x, int axis) {
  return core::detail::softmax(x, axis, true, c.b.loc);
}

Terms softmax(const Call& c) {
  return along_axis(c,
                    [&](const Datum& x, int axis) { return core::detail::softmax(x, axis, false, c.b.loc); });
}
Terms log_softmax(const Call& c) {
  return along_axis(c, [&](const Datum& x, int axis) { return log_softmax_along(c, x, axis); });
}
Terms hardmax(const Call& c) {
  return along_axis(c, [&](const Datum& x, int axis) {
    const std::vector<int> axes = {axis};
    const bool whole = x.type().rank() == 1;
    const Datum place = core::detail::place_of_extremum(
        x, {whole ? std::span<const int>() : std::span<const int>(axes), false}, true, c.b.loc);
    return c.b.tabulate(x.type().element(), c.sizes(x), [&](Indices at) {
      const Datum here = at[static_cast<std::size_t>(axis)];
      at.erase(at.begin() + axis);
      return c.cast(c.op(Opcode::eq_, c.get(place, at), here), x.type().element());
    });
  });
}

Terms batch_normalization(const Call& c) {
  c.require_operands(5, 5);
  c.require_float(0);
  const Datum x = c[0];
  const int rank = c.rank();
  if (rank < 2) c.fail("expected a tensor [batch, channels, size...], got " + x.type().str());
  if (c.opset < 9 && c.attribute("spatial", std::int64_t{1}) == 0) c.unsupported("attribute 'spatial' of 0");
  if (c.opset < 7 && c.attribute("is_test", std::int64_t{0}) == 0)
    c.unsupported("batch normalisation in training mode before version 14: attribute 'is_test' of 0");
  const double epsilon = c.attribute("epsilon", 1e-5), momentum = c.attribute("momentum", 0.9);
  const auto apply = [&](const Datum& mean, const Datum& variance) {
    const Datum factor = c.b.mul(c[1], inverse_root(c, variance, epsilon));
    const Datum offset = c.b.sub(c[2], c.b.mul(mean, factor));
    return c.b.add(c.b.mul(x, channels(c, factor, rank)), channels(c, offset, rank));
  };
  if (c.opset < 14 || c.attribute("training_mode", std::int64_t{0}) == 0) {
    if (c.opset < 14 && c.node.outputs.size() > 1)
      c.unsupported("batch normalisation in training mode before version 14, with " +
                    std::to_string(c.node.outputs.size()) + " results");
    return {c.result(apply(c[3], c[4]))};
  }
  std::vector<int> axes = {0};
  for (int d = 2; d < rank; ++d) axes.push_back(d);
  const Datum mean = core::detail::mean_along(x, {axes, false}, c.b.loc);
  const Datum variance = core::detail::variance(x, {axes, false}, 0, c.b.loc);
  const auto running = [&](const Datum& before, const Datum& now) {
    return c.b.add(c.b.mul(before, c.number(momentum, before)), c.b.mul(now, c.number(1 - momentum, now)));
  };
  return {c.result(apply(mean, variance)), c.result(running(c[3], mean)), c.result(running(c[4], variance))};
}

Terms instance_normalization(const Call& c) {
  c.require_operands(3, 3);
  const int rank = c.rank();
  if (rank < 3) c.fail("expected a tensor [batch, channels, size...], got " + c[0].type().str());
  const Datum y = standardised(c, c[0], from_axis(2, rank), c.attribute("epsilon", 1e-5)).x;
  return {c.result(c.b.add(c.b.mul(y, channels(c, c[1], rank)), channels(c, c[2], rank)))};
}

Terms layer_normalization(const Call& c) {
  c.require_float(0);
  const int axis = c.axis(c.attribute("axis", std::int64_t{-1}), c.rank());
  const Standardised s = standardised(c, c[0], from_axis(axis, c.rank()), c.attribute("epsilon", 1e-5));
  Datum y = c.b.mul(s.x, c[1]);
  if (c.has(2)) y = c.b.add(y, c[2]);
  return {c.result(y), c.result(s.mean), c.result(s.inverse)};
}

Terms rms_normalization(const Call& c) {
  c.require_operands(2, 2);
  c.require_float(0);
  const Datum x = c[0];
  const int axis = c.axis(c.attribute("axis", std::int64_t{-1}), c.rank());
  const std::vector<int> axes = from_axis(axis, c.rank());
  const Datum square = core::detail::mean_along(c.b.mul(x, x), {axes, true}, c.b.loc);
  const Datum y = c.b.mul(x, inverse_root(c, square, c.attribute("epsilon", 1e-5)));
  return {c.result(c.b.mul(c.cast(y, c.element(1)), c[1]), c.element(1))};
}

Terms group_normalization(const Call& c) {
  c.require_operands(3, 3);
  const Datum x = c[0];
  const int rank = c.rank();
  if (rank < 3) c.fail("expected a tensor [batch, channels, size...], got " + x.type().str());
  const std::int64_t groups = c.attribute("num_groups");
  if (groups < 1) c.fail("attribute 'num_groups': expected 1 or more, got " + std::to_string(groups));
  const Indices all = c.sizes(x);
  Indices split = all;
  split[1] = c.b.div(all[1], c.integer(groups));
  split.insert(split.begin() + 1, c.integer(groups));
  const Datum y = c.b.reshape(
      standardised(c, c.b.reshape(x, split), from_axis(2, rank + 1), c.attribute("epsilon", 1e-5)).x, all);
  const auto each = [&](const Datum& v) {  // before version 21 a number for each group
    return channels(c, c.opset < 21 ? core::detail::repeat(v, 0, split[2], c.b.loc) : v, rank);
  };
  return {c.result(c.b.add(c.b.mul(y, each(c[1])), each(c[2])))};
}

Terms mean_variance_normalization(const Call& c) {
  const Datum x = c[0];
  const std::vector<int> axes = c.axes(c.attributes("axes", {0, 2, 3}), c.rank());
  const Datum mean = core::detail::mean_along(x, {axes, true}, c.b.loc), off = c.b.sub(x, mean);
  const Datum deviation =
      c.op(Opcode::sqrt_, core::detail::mean_along(c.b.mul(off, off), {axes, true}, c.b.loc));
  return {c.result(c.b.div(off, c.b.add(deviation, c.number(1e-9, x))))};
}

Terms lp_normalization(const Call& c) {
  const Datum x = c[0];
  const std::vector<int> axes = {c.axis(c.attribute("axis", std::int64_t{-1}), c.rank())};
  const std::int64_t p = c.attribute("p", std::int64_t{2});
  if (p != 1 && p != 2) c.fail("attribute 'p': expected 1 or 2, got " + std::to_string(p));
  const Over over{axes, true};
  const Datum norm = p == 2 ? core::detail::norm(x, over, c.b.loc)
                            : core::detail::sum_along(c.op(Opcode::abs_, x), over, c.b.loc);
  const Datum none = c.number(0, x);  // what has no length stays 0
  return {c.result(c.b.div(x, c.where(c.op(Opcode::eq_, c.b.primal(norm), none), c.number(1, x), norm)))};
}

// Each element over a power of the sum of squares of the channels around it.
Terms lrn(const Call& c) {
  c.require_float(0);
  const Datum x = c[0];
  const std::int64_t size = c.attribute("size");
  if (size < 1 || c.rank() < 2)
    c.fail("expected a tensor [batch, channels, size...] and a size of 1 or more, got " + x.type().str() +
           " and " + std::to_string(size));
  const Datum alpha = c.number(c.attribute("alpha", 0.0001) / static_cast<double>(size), x),
              beta = c.number(c.attribute("beta", 0.75), x);
  const std::string rest = std::string("abdefgh").substr(0, static_cast<std::size_t>(c.rank()) - 2);
  const std::int64_t before = (size - 1) / 2;
  const std::string read = before > 0 ? "[i+p-" + std::to_string(before) + "]" : "[i+p]";
  const Datum channels = c.b.size(x, 1);
  const Sizes shape = x.type().dims();
  const Datum sums = c.b.einsum("n" + read + rest + "->ni" + rest + ";ip",
                                {c.b.mul(x, x), channels, c.integer(size)}, shape);
  const Datum base = c.b.add(c.b.mul(sums, alpha), c.number(c.attribute("bias", 1.0), x));
  return {c.result(c.b.div(x, c.op(Opcode::pow_, base, beta)))};
}

}  // namespace lantern::onnx::rules
