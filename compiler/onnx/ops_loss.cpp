// Losses: negative log-likelihood and softmax cross entropy.
#include <algorithm>

#include "lantern/compiler/onnx/rules.hpp"

namespace lantern::onnx::rules {

namespace {

/// - w[t] x[n, t, ...], and its mean over the weights, its sum, or all of it; log-probabilities x, labels t.
Datum likelihood_loss(const Call& c, const Datum& x) {
  if (c.rank(0) < 2 || c.rank(1) != c.rank(0) - 1)
    c.fail("expected scores [batch, classes, size...] and labels [batch, size...], got " + c[0].type().str() +
           " and " + c[1].type().str());
  const Datum labels = c.cast(c[1], ir::Kind::i64);
  const bool ignores = c.has_attribute("ignore_index");
  const Datum ignored = c.integer(c.attribute("ignore_index", std::int64_t{0}));
  const Indices sizes = c.sizes(labels);
  const ir::Kind k = x.type().element();
  const Datum zero = Datum::zero(ir::Type(k)), one = Datum::number(1, ir::Type(k));
  const auto label = [&](const Indices& at) { return c.b.get(labels, at); };
  const auto counts = [&](const Indices& at) { return c.op(Opcode::ne_, label(at), ignored); };
  // An ignored label need not be one: the first class represents it.
  const auto place = [&](const Indices& at) {
    return ignores ? c.b.select(counts(at), label(at), c.integer(0)) : label(at);
  };
  const auto weight = [&](const Indices& at) {
    const Datum w = c.has(2) ? c.b.get(c[2], {place(at)}) : one;
    return ignores ? c.b.select(counts(at), w, zero) : w;
  };
  const Datum losses = c.tabulate(k, sizes, [&](const Indices& at) {
    Indices from = at;
    from.insert(from.begin() + 1, place(at));
    return c.op(Opcode::neg_, c.b.mul(weight(at), c.b.get(x, from)));
  });
  const std::string reduction = c.attribute("reduction", std::string("mean"));
  if (reduction == "none") return losses;
  const Datum sum = c.b.unary(Opcode::sum_, losses);
  if (reduction == "sum") return sum;
  if (reduction != "mean")
    c.fail("attribute 'reduction': expected none, sum or mean, got '" + reduction + "'");
  if (!ignores && !c.has(2)) return c.b.div(sum, c.cast(c.product(sizes), k));
  return c.b.div(sum, c.b.unary(Opcode::sum_, c.tabulate(k, sizes, weight)));
}

}  // namespace

Terms nll_loss(const Call& c) {
  c.require_operands(2, 3);
  c.require_float(0);
  return {c.result(likelihood_loss(c, c[0]))};
}

Terms softmax_cross_entropy(const Call& c) {
  c.require_operands(2, 3);
  c.require_float(0);
  const Datum log = log_softmax_along(c, c[0], 1);
  return {c.result(likelihood_loss(c, log)), c.result(log)};
}

}  // namespace lantern::onnx::rules
