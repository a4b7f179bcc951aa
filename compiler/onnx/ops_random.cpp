// Random numbers, and the optimisers of the training domain.
#include <algorithm>
#include <cmath>

#include "lantern/compiler/onnx/rules.hpp"
#include "lantern/compiler/random/random.hpp"

namespace lantern::onnx::rules {

namespace {

using core::random::detail::Law;

/// A key of the node: of its seed, if it has one, and of its place in the graph. The same numbers are drawn
/// at each run.
Datum key(const Call& c) {
  const Attribute* const seed = c.node.find("seed");  // an integer of Dropout, a number of the others
  const auto* const whole = seed ? std::get_if<std::int64_t>(&seed->content) : nullptr;
  const std::int64_t number =
      whole ? *whole : static_cast<std::int64_t>(std::clamp(c.attribute("seed", 0.0), -1e15, 1e15) * 1024);
  return core::random::detail::derived(
      c.integer(number), c.integer(static_cast<std::int64_t>(++c.execution.random)), 2, c.b.loc);
}

Datum drawn(const Call& c, Law law, const Indices& sizes, Element e) {
  if (!is_float(e)) c.fail(std::string("expected floating-point numbers, got ") + name(e));
  if (sizes.empty()) return core::random::detail::draw(law, key(c), c.integer(0), kind_of(e), c.b.loc);
  return core::random::detail::draws(law, key(c), sizes, kind_of(e), c.b.loc);
}

Terms scaled(const Call& c, const Datum& v, double factor, double offset, Element e) {
  return {c.result(c.b.add(c.b.mul(v, c.number(factor, v)), c.number(offset, v)), e)};
}

Terms normal(const Call& c, const Indices& sizes, Element e) {
  return scaled(c, drawn(c, Law::normal, sizes, e), c.attribute("scale", 1.0), c.attribute("mean", 0.0), e);
}
Terms uniform(const Call& c, const Indices& sizes, Element e) {
  const double low = c.attribute("low", 0.0), high = c.attribute("high", 1.0);
  return scaled(c, drawn(c, Law::uniform, sizes, e), high - low, low, e);
}
Indices shape_attribute(const Call& c) {
  const Sizes all = c.attributes("shape");
  for (const std::int64_t n : all)
    if (n < 0 || n > (std::int64_t{1} << 40))
      c.fail("attribute 'shape': expected sizes of 0 or more, got " + std::to_string(n));
  return Call::literals(all);
}
Element like(const Call& c) {
  return c.element_attribute("dtype", is_float(c.element()) ? c.element() : Element::float32);
}

}  // namespace

Terms random_normal(const Call& c) {
  return normal(c, shape_attribute(c), c.element_attribute("dtype", Element::float32));
}
Terms random_uniform(const Call& c) {
  return uniform(c, shape_attribute(c), c.element_attribute("dtype", Element::float32));
}
Terms random_normal_like(const Call& c) { return normal(c, c.sizes(c[0]), like(c)); }
Terms random_uniform_like(const Call& c) { return uniform(c, c.sizes(c[0]), like(c)); }

Terms bernoulli(const Call& c) {
  c.require_float(0);
  const Element to = c.element_attribute("dtype", c.element());
  return {c.result(c.cast(c.b.less(drawn(c, Law::uniform, c.sizes(c[0]), c.element()), c[0]), to), to)};
}

/// Classes by their unnormalised log-probabilities: the largest of those plus Gumbel noise.
Terms multinomial(const Call& c) {
  c.require_float(0);
  if (c.rank() != 2) c.fail("expected log-probabilities [batch, classes], got " + c[0].type().str());
  const Element to = c.element_attribute("dtype", Element::int32);
  const Datum samples = c.integer(c.attribute("sample_size", std::int64_t{1}));
  const Datum noise = drawn(c, Law::gumbel, {c.b.size(c[0], 0), samples, c.b.size(c[0], 1)}, c.element());
  const int middle = 1, last = 2;
  const Datum sum =
      c.b.add(noise, core::detail::expand(c.b.with_ones(c[0], {&middle, 1}), c.sizes(noise), c.b.loc));
  return {c.result(c.cast(core::detail::place_of_extremum(sum, {{&last, 1}, false}, true, c.b.loc), to), to)};
}

// Not in training mode, or of ratio 0: all that there is.
Terms dropout(const Call& c) {
  const Term x = c.term(0);
  const Indices sizes = c.sizes(c[0]);
  const ir::Type truth(ir::Kind::boolean);
  const bool training = c.opset >= 12 && c.has(2) && c.integer(2, "a training mode") != 0;
  const double ratio = c.has(1) ? c.number(1, "a ratio") : 0.5;
  if (!training || ratio == 0)
    return {x, c.result(c.fill(Datum::integer(1, truth), sizes), Element::boolean)};
  if (!(ratio > 0 && ratio < 1)) c.fail("expected a ratio from 0 to below 1, got " + std::to_string(ratio));
  c.require_float(0);
  const Datum mask = c.op(Opcode::le_, c.number(ratio, c[0]), drawn(c, Law::uniform, sizes, x.element));
  const Datum kept = c.b.mul(c.cast(mask, x.element), c.number(1 / (1 - ratio), c[0]));
  return {c.result(c.b.mul(c[0], kept)), c.result(mask, Element::boolean)};
}

// ---- optimisers: R, T, then the parameters, their gradients, and their states, each as many

namespace {

struct Step {
  const Call& c;
  Datum rate, count;
  std::size_t n;
  Step(const Call& call, std::size_t states) : c(call), n((call.in.size() - 2) / (2 + states)) {
    if (c.in.size() < 2 || n == 0 || c.in.size() != 2 + n * (2 + states))
      c.fail("expected a rate, a count, and as many parameters, gradients and states, got " +
             std::to_string(c.in.size()) + " operands");
    rate = c.reshape(c[0], {});
    count = c.reshape(c[1], {});
  }
  Datum x(std::size_t i) const { return c[2 + i]; }
  Datum g(std::size_t i) const {
    const Datum v = c[2 + n + i];
    return c.b.add(v, c.b.mul(x(i), c.number(c.attribute("norm_coefficient", 0.0), v)));
  }
  Datum state(std::size_t k, std::size_t i) const { return c[2 + (2 + k) * n + i]; }
  Terms results(const std::vector<Datums>& all) const {
    Terms out;
    for (const Datums& each : all)
      for (const Datum& d : each) out.push_back(c.result(d, c.element(2)));
    return out;
  }
};

}  // namespace

Terms adagrad(const Call& c) {
  const Step s(c, 1);
  Datums x, h;
  const Datum decayed = c.b.add(
      c.b.mul(c.cast(s.count, s.rate.type().element()), c.number(c.attribute("decay_factor", 0.0), s.rate)),
      c.number(1, s.rate));
  for (std::size_t i = 0; i < s.n; ++i) {
    const Datum g = s.g(i);
    h.push_back(c.b.add(s.state(0, i), c.b.mul(g, g)));
    const Datum size = c.b.add(c.op(Opcode::sqrt_, h[i]), c.number(c.attribute("epsilon", 1e-6), g));
    x.push_back(c.b.sub(s.x(i), c.b.div(c.b.mul(g, c.b.div(s.rate, decayed)), size)));
  }
  return s.results({x, h});
}

Terms adam(const Call& c) {
  const Step s(c, 2);
  const double alpha = c.attribute("alpha", 0.9), beta = c.attribute("beta", 0.999),
               after = c.attribute("norm_coefficient_post", 0.0);
  const Datum t = c.cast(s.count, s.rate.type().element());
  const auto missing = [&](double b) {
    return c.b.sub(c.number(1, t), c.op(Opcode::pow_, c.number(b, t), t));
  };
  const Datum corrected = c.b.div(c.b.mul(s.rate, c.op(Opcode::sqrt_, missing(beta))), missing(alpha));
  const Datum rate = c.where(c.b.less(c.number(0, t), t), corrected, s.rate);
  const auto mixed = [&](const Datum& old, const Datum& now, double b) {
    return c.b.add(c.b.mul(old, c.number(b, old)), c.b.mul(now, c.number(1 - b, now)));
  };
  Datums x, v, h;
  for (std::size_t i = 0; i < s.n; ++i) {
    const Datum g = s.g(i);
    v.push_back(mixed(s.state(0, i), g, alpha));
    h.push_back(mixed(s.state(1, i), c.b.mul(g, g), beta));
    const Datum size = c.b.add(c.op(Opcode::sqrt_, h[i]), c.number(c.attribute("epsilon", 1e-6), g));
    const Datum moved = c.b.sub(s.x(i), c.b.div(c.b.mul(v[i], rate), size));
    x.push_back(c.b.mul(moved, c.number(1 - after, moved)));
  }
  return s.results({x, v, h});
}

Terms momentum(const Call& c) {
  const Step s(c, 1);
  const double alpha = c.attribute("alpha", 0.0), beta = c.attribute("beta", 0.0);
  const bool nesterov = c.attribute("mode", std::string("standard")) == "nesterov";
  Datums x, v;
  const Datum first = c.op(Opcode::eq_, s.count, c.cast(c.integer(0), s.count.type().element()));
  for (std::size_t i = 0; i < s.n; ++i) {
    const Datum g = s.g(i);
    const Datum weight = c.where(first, c.number(1, g), c.number(beta, g));
    v.push_back(c.b.add(c.b.mul(s.state(0, i), c.number(alpha, g)), c.b.mul(g, weight)));
    const Datum direction = nesterov ? c.b.add(g, c.b.mul(v[i], c.number(alpha, g))) : v[i];
    x.push_back(c.b.sub(s.x(i), c.b.mul(direction, s.rate)));
  }
  return s.results({x, v});
}

}  // namespace lantern::onnx::rules
