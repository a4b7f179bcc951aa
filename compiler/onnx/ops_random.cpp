// Random numbers, and the optimisers of the training domain.
#include <algorithm>
#include <cmath>

#include "lantern/compiler/onnx/rules.hpp"
#include "lantern/compiler/staging/functions.hpp"

namespace lantern::onnx::rules {

namespace {

/// The generator of NumPy's RandomState, which ONNX's reference evaluator draws from: the Mersenne Twister
/// (Matsumoto and Nishimura, 1998), an integer of 32 bits at a time, from the seed of its reference
/// implementation. A node starts its own, so that the numbers are the same at each run and on each target.
class Twister {
 public:
  Twister(const Call& call, const Datum& seed) : c(call) {
    // x[i] = 1812433253 (x[i-1] ^ x[i-1] >> 30) + i
    Datum all = c.b.fill(c.integer(0), {c.integer(words)});
    all = c.b.set(all, {c.integer(0)}, seed);
    start = c.b.loop(c.integer(1), c.integer(words), {all}, [&](const Datum& i, const Datums& s) {
      const Datum x = c.b.get(s[0], {c.b.sub(i, c.integer(1))});
      const Datum mixed = c.b.mul(c.op(Opcode::bit_xor_, x, right(x, 30)), c.integer(1812433253));
      return Datums{c.b.set(s[0], {i}, low(c.b.add(mixed, i)))};
    })[0];
  }

  /// The state, words and place first.
  Datums begin() const { return {start, c.integer(0)}; }

  /// The next word, uniform below 2^32; words and place go on.
  Datum word(Datum& all, Datum& at) const {
    const Datum mask = c.integer(0x7fffffff), top = c.integer(0x80000000);
    const auto behind = [&](std::int64_t k) {  // (at + k) mod 624
      const Datum to = c.b.add(at, c.integer(k)), n = c.integer(words);
      return c.b.select(c.b.less(to, n), to, c.b.sub(to, n));
    };
    const Datum after = behind(1);
    const Datum joined = c.op(Opcode::bit_or_, c.op(Opcode::bit_and_, c.b.get(all, {at}), top),
                              c.op(Opcode::bit_and_, c.b.get(all, {after}), mask));
    const Datum odd = c.op(Opcode::bit_and_, joined, c.integer(1));
    Datum y = c.op(Opcode::bit_xor_, c.b.get(all, {behind(397)}), right(joined, 1));
    y = c.op(Opcode::bit_xor_, y, c.b.mul(odd, c.integer(0x9908b0df)));
    all = c.b.set(all, {at}, y);
    at = after;
    y = c.op(Opcode::bit_xor_, y, right(y, 11));
    y = c.op(Opcode::bit_xor_, y, c.op(Opcode::bit_and_, left(y, 7), c.integer(0x9d2c5680)));
    y = c.op(Opcode::bit_xor_, y, c.op(Opcode::bit_and_, left(y, 15), c.integer(0xefc60000)));
    return c.op(Opcode::bit_xor_, y, right(y, 18));
  }

  /// A number of 53 bits, uniform from 0 to below 1.
  Datum uniform(Datum& all, Datum& at) const {
    const Datum a = c.cast(right(word(all, at), 5), ir::Kind::f64),
                b = c.cast(right(word(all, at), 6), ir::Kind::f64);
    const auto real = [](double v) { return Datum::number(v, ir::F64); };
    return c.b.div(c.b.add(c.b.mul(a, real(67108864)), b), real(9007199254740992));
  }

  /// A vector of so many numbers, uniform from 0 to below 1.
  Datum uniforms(const Datum& n) const {
    Datums state = begin();
    state.push_back(c.b.fill(Datum::number(0, ir::F64), {n}));
    return c.b.loop(c.integer(0), n, state, [&](const Datum& i, Datums s) {
      const Datum v = uniform(s[0], s[1]);
      return Datums{s[0], s[1], c.b.set(s[2], {i}, v)};
    })[2];
  }

  /// The same of standard normal distribution, by the polar method (Marsaglia, 1962): a point within the unit
  /// circle gives two.
  Datum normals(const Datum& n) const {
    const auto real = [](double v) { return Datum::number(v, ir::F64); };
    const Datum two = c.integer(2), pairs = c.b.div(c.b.add(n, c.integer(1)), two);
    Datums state = begin();
    state.push_back(c.b.fill(real(0), {c.b.mul(pairs, two)}));
    const Datum all = c.b.loop(c.integer(0), pairs, state, [&](const Datum& i, const Datums& s) {
      const Datums found = core::detail::loop(
          {s[0], s[1], real(0), real(0), real(0)},
          [&](const Datums& t) {
            return c.op(Opcode::lor_, c.op(Opcode::eq_, t[4], real(0)), c.op(Opcode::le_, real(1), t[4]));
          },
          [&](Datums t) {
            t[2] = c.b.sub(c.b.mul(uniform(t[0], t[1]), real(2)), real(1));
            t[3] = c.b.sub(c.b.mul(uniform(t[0], t[1]), real(2)), real(1));
            t[4] = c.b.add(c.b.mul(t[2], t[2]), c.b.mul(t[3], t[3]));
            return t;
          },
          c.b.loc);
      const Datum& square = found[4];
      const Datum factor =
          c.op(Opcode::sqrt_, c.b.div(c.b.mul(c.op(Opcode::log_, square), real(-2)), square));
      const Datum at = c.b.mul(i, two);
      const Datum first = c.b.set(s[2], {at}, c.b.mul(factor, found[3]));
      return Datums{found[0], found[1],
                    c.b.set(first, {c.b.add(at, c.integer(1))}, c.b.mul(factor, found[2]))};
    })[2];
    return part_of(c, all, 0, c.integer(0), n);
  }

 private:
  static constexpr std::int64_t words = 624;

  Datum right(const Datum& x, std::int64_t by) const { return c.op(Opcode::shift_right_, x, c.integer(by)); }
  Datum left(const Datum& x, std::int64_t by) const {
    return low(c.op(Opcode::shift_left_, x, c.integer(by)));
  }
  Datum low(const Datum& x) const { return c.op(Opcode::bit_and_, x, c.integer(0xffffffff)); }

  const Call& c;
  Datum start;
};

/// The node's seed, or which random node it is, from 1 on, where it has none: below 2^32.
Datum seed_of(const Call& c) {
  const Attribute* const seed = c.node.find("seed");  // an integer of Dropout, a number of the others
  const auto* const whole = seed ? std::get_if<std::int64_t>(&seed->content) : nullptr;
  ++c.execution.random;
  const std::int64_t number =
      whole  ? *whole
      : seed ? static_cast<std::int64_t>(std::clamp(c.attribute("seed", 0.0), -0x1p62, 0x1p62))
             : static_cast<std::int64_t>(c.execution.random);
  return c.integer(number & 0xffffffff);
}

/// Numbers of float64 in a tensor of these sizes, a number where there are none.
Datum drawn(const Call& c, bool normal, const Indices& sizes) {
  const Twister twister(c, seed_of(c));
  const Datum n = c.product(sizes);
  return c.reshape(normal ? twister.normals(n) : twister.uniforms(n), sizes);
}
Datum drawn(const Call& c, bool normal, const Indices& sizes, Element e) {
  if (!is_float(e)) c.fail(std::string("expected floating-point numbers, got ") + name(e));
  return c.cast(drawn(c, normal, sizes), e);
}

Terms scaled(const Call& c, const Datum& v, double factor, double offset, Element e) {
  return {c.result(c.b.add(c.b.mul(v, c.number(factor, v)), c.number(offset, v)), e)};
}

Terms normal(const Call& c, const Indices& sizes, Element e) {
  return scaled(c, drawn(c, true, sizes, e), c.attribute("scale", 1.0), c.attribute("mean", 0.0), e);
}
Terms uniform(const Call& c, const Indices& sizes, Element e) {
  const double low = c.attribute("low", 0.0), high = c.attribute("high", 1.0);
  return scaled(c, drawn(c, false, sizes, e), high - low, low, e);
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

// As numpy.random.RandomState.binomial(1, p) draws: the less likely of both where the number is above what
// the other has.
Terms bernoulli(const Call& c) {
  c.require_float(0);
  const Element to = c.element_attribute("dtype", c.element());
  const Datum p = c.cast(c[0], ir::Kind::f64), u = drawn(c, false, c.sizes(c[0]));
  const Datum likely = c.b.less(Datum::number(0.5, ir::F64), p), q = c.b.sub(Datum::number(1, ir::F64), p);
  const Datum one = c.where(likely, c.op(Opcode::le_, u, p), c.b.less(q, u));
  return {c.result(c.cast(one, to), to)};
}

/// Classes by their unnormalised log-probabilities: the largest of those plus Gumbel noise.
Terms multinomial(const Call& c) {
  c.require_float(0);
  if (c.rank() != 2) c.fail("expected log-probabilities [batch, classes], got " + c[0].type().str());
  const Element to = c.element_attribute("dtype", Element::int32);
  const Datum samples = c.integer(c.attribute("sample_size", std::int64_t{1}));
  const Datum u = drawn(c, false, {c.b.size(c[0], 0), samples, c.b.size(c[0], 1)});
  const auto minus_log = [&](const Datum& v) { return c.op(Opcode::neg_, c.op(Opcode::log_, v)); };
  const Datum noise = minus_log(minus_log(u));
  const int middle = 1, last = 2;
  const Datum sum =
      c.b.add(noise, core::detail::expand(c.b.with_ones(c.cast(c[0], ir::Kind::f64), {&middle, 1}),
                                          c.sizes(noise), c.b.loc));
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
  const Datum mask = c.op(Opcode::le_, Datum::number(ratio, ir::F64), drawn(c, false, sizes));
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
