// Recurrent layers over sequences: LSTM, GRU, RNN.
#include <algorithm>

#include "lantern/compiler/onnx/rules.hpp"
#include "lantern/compiler/staging/containers.hpp"
#include "lantern/compiler/staging/functions.hpp"

namespace lantern::onnx::rules {

namespace {

/// An activation by its name and numbers.
struct Activation {
  std::string name;
  std::optional<double> alpha, beta;

  Datum operator()(const Call& c, const Datum& x) const {
    const auto number = [&](double v) { return c.number(v, x); };
    const auto linear = [&](double a, double b) {
      return c.b.add(c.b.mul(x, number(alpha.value_or(a))), number(beta.value_or(b)));
    };
    const Datum zero = number(0);
    if (name == "sigmoid") return core::detail::sigmoid(x, c.b.loc);
    if (name == "tanh") return c.op(Opcode::tanh_, x);
    if (name == "relu") return core::detail::relu(x, c.b.loc);
    if (name == "affine") return linear(1, 0);
    if (name == "leakyrelu") return c.where(c.b.less(x, zero), c.b.mul(x, number(alpha.value_or(0.01))), x);
    if (name == "thresholdedrelu")
      return c.where(c.b.less(number(alpha.value_or(1)), x), x, core::zeros_like(x, c.b.loc));
    if (name == "scaledtanh")
      return c.b.mul(c.op(Opcode::tanh_, c.b.mul(x, number(beta.value_or(1)))), number(alpha.value_or(1)));
    if (name == "hardsigmoid")
      return c.op(Opcode::min_, c.op(Opcode::max_, linear(0.2, 0.5), zero), number(1));
    if (name == "elu")
      return c.where(c.b.less(x, zero),
                     c.b.mul(c.op(Opcode::expm1_, c.op(Opcode::min_, x, zero)), number(alpha.value_or(1))),
                     x);
    if (name == "softsign") return c.b.div(x, c.b.add(c.op(Opcode::abs_, x), number(1)));
    if (name == "softplus") return core::detail::softplus(x, c.b.loc);
    c.fail("attribute 'activations': expected the name of an activation, got '" + name + "'");
  }
};

Datum matrix_row(const Call& c, const Datum& x, std::int64_t i) {
  return core::perform({Opcode::take_, 0, c.b.loc}, {x, c.integer(i)});
}
/// Columns from k n on, n of them, of the last dimension.
Datum block(const Call& c, const Datum& x, const Datum& n, std::int64_t k, std::int64_t count = 1) {
  std::vector<core::Part> parts(static_cast<std::size_t>(x.type().rank()), core::Part(core::named::all));
  parts.back().lo = c.b.mul(n, c.integer(k));
  parts.back().hi = c.b.mul(n, c.integer(k + count));
  return core::detail::part(x, parts, c.b.loc);
}
Datum rows(const Call& c, const Datum& x, const Datum& n, std::int64_t k, std::int64_t count) {
  return core::perform({Opcode::slice_, 0, c.b.loc},
                       {x, c.b.mul(n, c.integer(k)), c.b.mul(n, c.integer(k + count))});
}

/// What LSTM, GRU and RNN have in common: operands in one layout, directions, lengths.
struct Recurrent {
  const Call& c;
  std::int64_t gates;
  Datum x, w, r, hidden, length, batch;
  std::int64_t directions;
  bool batch_first, reverse_only;
  std::optional<Datum> lengths;
  std::vector<Activation> activations;
  std::optional<double> clip;

  Recurrent(const Call& call, std::int64_t number_of_gates, const std::vector<std::string>& defaults)
      : c(call), gates(number_of_gates) {
    for (std::size_t i = 0; i < 3; ++i)
      if (c.rank(i) != 3)
        c.fail("expected operands of three dimensions, got " + c[i].type().str() + " as number " +
               std::to_string(i + 1));
    c.require_float(0);
    batch_first = c.attribute("layout", std::int64_t{0}) != 0;
    x = batch_first ? c.permute(c[0], {1, 0, 2}) : c[0];
    w = c[1];
    r = c[2];
    hidden = c.b.size(r, 2);
    length = c.b.size(x, 0);
    batch = c.b.size(x, 1);
    if (c.has_attribute("hidden_size"))
      c.b.require_equal(hidden, c.integer(c.attribute("hidden_size")),
                        "attribute 'hidden_size': expected the size of the weights");
    c.b.require_equal(c.b.size(w, 1), c.b.mul(hidden, c.integer(gates)),
                      "expected weights of a row for each gate and hidden number");
    const std::string direction = c.attribute("direction", std::string("forward"));
    if (direction != "forward" && direction != "reverse" && direction != "bidirectional")
      c.fail("attribute 'direction': expected forward, reverse or bidirectional, got '" + direction + "'");
    directions = direction == "bidirectional" ? 2 : 1;
    reverse_only = direction == "reverse";
    c.b.require_equal(c.b.size(w, 0), c.integer(directions), "expected weights for each direction");
    if (c.has(4)) lengths = c.cast(c[4], ir::Kind::i64);
    if (c.has_attribute("clip")) clip = c.attribute("clip", 0.0);
    std::vector<std::string> names = c.text_attributes("activations");
    if (names.empty())
      for (std::int64_t d = 0; d < directions; ++d)
        names.insert(names.end(), defaults.begin(), defaults.end());
    if (names.size() != defaults.size() * static_cast<std::size_t>(directions))
      c.fail("attribute 'activations': expected " +
             std::to_string(defaults.size() * static_cast<std::size_t>(directions)) + " names, got " +
             std::to_string(names.size()));
    const std::vector<double> alphas = c.real_attributes("activation_alpha"),
                              betas = c.real_attributes("activation_beta");
    std::size_t alpha = 0, beta = 0;
    for (std::string& n : names) {
      for (char& ch : n) ch = static_cast<char>(std::tolower(static_cast<unsigned char>(ch)));
      Activation a{n, {}, {}};
      const bool takes_alpha = n == "affine" || n == "leakyrelu" || n == "thresholdedrelu" ||
                               n == "scaledtanh" || n == "hardsigmoid" || n == "elu";
      const bool takes_beta = n == "affine" || n == "scaledtanh" || n == "hardsigmoid";
      if (takes_alpha && alpha < alphas.size()) a.alpha = alphas[alpha++];
      if (takes_beta && beta < betas.size()) a.beta = betas[beta++];
      activations.push_back(std::move(a));
    }
  }

  bool backward(std::int64_t d) const { return reverse_only || d == 1; }
  Datum activated(std::int64_t d, std::size_t which, const Datum& v) const {
    const std::size_t each = activations.size() / static_cast<std::size_t>(directions);
    Datum bounded = v;
    if (clip) bounded = c.op(Opcode::min_, c.op(Opcode::max_, v, c.number(-*clip, v)), c.number(*clip, v));
    return activations[static_cast<std::size_t>(d) * each + which](c, bounded);
  }
  Datum initial(std::size_t i, std::int64_t d) const {
    if (!c.has(i)) return c.b.fill(Build::number(0, x), {batch, hidden});
    const Datum all = batch_first ? c.permute(c[i], {1, 0, 2}) : c[i];
    return matrix_row(c, all, d);
  }
  /// a [n,k] times the transpose of b [m,k].
  Datum times(const Datum& a, const Datum& b) const { return c.b.einsum("ik,jk->ij", {a, b}); }

  /// Where iteration t of a direction reads and writes along the sequence of example n.
  Datum turned(const Datum& all) const {
    return c.b.tabulate(all.type().element(), c.sizes(all), [&](const Indices& at) {
      const Datum end = lengths ? c.b.get(*lengths, {at[1]}) : length;
      const Datum back = c.b.sub(c.b.sub(end, c.integer(1)), at[0]);
      return c.b.get(all, {c.b.select(c.b.less(at[0], end), back, at[0]), at[1], at[2]});
    });
  }

  struct Direction {
    Datum y;  ///< [length, batch, hidden]
    Datums state;
  };
  /// The products of the inputs are computed for all steps at once; a step adds those of the state.
  Direction run(std::int64_t d, Datums state, const Datum& input_bias,
                const std::function<Datums(const Datum& products, const Datums& state)>& step) const {
    const Datum sequence = backward(d) ? turned(x) : x;
    Datum products = c.b.einsum("tni,ki->tnk", {sequence, matrix_row(c, w, d)});
    if (!input_bias.empty()) products = c.b.add(products, input_bias);
    const std::size_t n = state.size();
    state.push_back(c.b.fill(Build::number(0, x), {length, batch, hidden}));
    const Datums end =
        c.b.loop(c.integer(0), length, std::move(state), [&](const Datum& t, const Datums& now) {
          Datums next = step(core::perform({Opcode::take_, 0, c.b.loc}, {products, t}),
                             Datums(now.begin(), now.begin() + static_cast<std::ptrdiff_t>(n)));
          Datum shown = next[0];
          if (lengths) {
            const int last = 1;
            const Datum inside = c.b.with_ones(
                c.b.less(c.b.add(core::zeros_like(*lengths, c.b.loc), t), *lengths), {&last, 1});
            for (std::size_t k = 0; k < n; ++k) next[k] = c.where(inside, next[k], now[k]);
            shown = c.where(inside, shown, core::zeros_like(shown, c.b.loc));
          }
          next.push_back(core::perform({Opcode::add_take_, 0, c.b.loc}, {now[n], t, shown}));
          return next;
        });
    return {backward(d) ? turned(end[n]) : end[n],
            Datums(end.begin(), end.begin() + static_cast<std::ptrdiff_t>(n))};
  }

  /// Y, then the last state, each with its directions put together.
  Terms results(const std::vector<Direction>& all) const {
    Datums ys;
    std::vector<Datums> states(all[0].state.size());
    for (const Direction& d : all) {
      ys.push_back(d.y);
      for (std::size_t k = 0; k < states.size(); ++k) states[k].push_back(d.state[k]);
    }
    // [length, directions, batch, hidden]; with the batch first [batch, length, directions, hidden].
    Datum y = core::detail::stack(ys, 1, c.b.loc);
    if (batch_first) y = c.permute(y, {2, 0, 1, 3});
    Terms out = {c.result(y)};
    for (const Datums& s : states) {
      const Datum last = core::detail::stack(s, 0, c.b.loc);
      out.push_back(c.result(batch_first ? c.permute(last, {1, 0, 2}) : last));
    }
    return out;
  }
};

}  // namespace

Terms rnn(const Call& c) {
  const Recurrent net(c, 1, {"Tanh"});
  std::vector<Recurrent::Direction> all;
  for (std::int64_t d = 0; d < net.directions; ++d) {
    Datum bias;
    if (c.has(3)) {
      const Datum both = matrix_row(c, c[3], d);
      bias = c.b.add(block(c, both, net.hidden, 0), block(c, both, net.hidden, 1));
    }
    const Datum r = matrix_row(c, net.r, d);
    all.push_back(net.run(d, {net.initial(5, d)}, bias, [&](const Datum& products, const Datums& s) {
      return Datums{net.activated(d, 0, c.b.add(products, net.times(s[0], r)))};
    }));
  }
  return net.results(all);
}

// i, o, f, c: the order of the gates in the weights.
Terms lstm(const Call& c) {
  const Recurrent net(c, 4, {"Sigmoid", "Tanh", "Tanh"});
  const Datum& h = net.hidden;
  const bool coupled = c.attribute("input_forget", std::int64_t{0}) != 0;
  std::vector<Recurrent::Direction> all;
  for (std::int64_t d = 0; d < net.directions; ++d) {
    Datum bias;
    if (c.has(3)) {
      const Datum both = matrix_row(c, c[3], d);
      bias = c.b.add(block(c, both, h, 0, 4), block(c, both, h, 4, 4));
    }
    const Datum r = matrix_row(c, net.r, d);
    const auto peephole = [&](const Datum& gate, const Datum& cell, std::int64_t k) {
      return c.has(7) ? c.b.add(gate, c.b.mul(cell, block(c, matrix_row(c, c[7], d), h, k))) : gate;
    };
    all.push_back(
        net.run(d, {net.initial(5, d), net.initial(6, d)}, bias, [&](const Datum& products, const Datums& s) {
          const Datum gates = c.b.add(products, net.times(s[0], r));
          const Datum i = net.activated(d, 0, peephole(block(c, gates, h, 0), s[1], 0));
          const Datum f = coupled ? c.b.sub(c.number(1, i), i)
                                  : net.activated(d, 0, peephole(block(c, gates, h, 2), s[1], 2));
          const Datum candidate = net.activated(d, 1, block(c, gates, h, 3));
          const Datum cell = c.b.add(c.b.mul(f, s[1]), c.b.mul(i, candidate));
          const Datum o = net.activated(d, 0, peephole(block(c, gates, h, 1), cell, 1));
          return Datums{c.b.mul(o, net.activated(d, 2, cell)), cell};
        }));
  }
  return net.results(all);
}

// z, r, h: the order of the gates in the weights.
Terms gru(const Call& c) {
  const Recurrent net(c, 3, {"Sigmoid", "Tanh"});
  const Datum& h = net.hidden;
  const bool linear_first = c.attribute("linear_before_reset", std::int64_t{0}) != 0;
  std::vector<Recurrent::Direction> all;
  for (std::int64_t d = 0; d < net.directions; ++d) {
    Datum input_bias, state_bias;
    if (c.has(3)) {
      const Datum both = matrix_row(c, c[3], d);
      input_bias = block(c, both, h, 0, 3);
      state_bias = block(c, both, h, 3, 3);
    }
    const Datum r = matrix_row(c, net.r, d), of_gates = rows(c, r, h, 0, 2),
                of_candidate = rows(c, r, h, 2, 1);
    const auto biased = [&](const Datum& v, std::int64_t k, std::int64_t count) {
      return state_bias.empty() ? v : c.b.add(v, block(c, state_bias, h, k, count));
    };
    all.push_back(net.run(d, {net.initial(5, d)}, input_bias, [&](const Datum& products, const Datums& s) {
      const Datum gates = c.b.add(block(c, products, h, 0, 2), biased(net.times(s[0], of_gates), 0, 2));
      const Datum z = net.activated(d, 0, block(c, gates, h, 0)),
                  reset = net.activated(d, 0, block(c, gates, h, 1));
      const Datum past = linear_first ? c.b.mul(reset, biased(net.times(s[0], of_candidate), 2, 1))
                                      : biased(net.times(c.b.mul(reset, s[0]), of_candidate), 2, 1);
      const Datum candidate = net.activated(d, 1, c.b.add(block(c, products, h, 2), past));
      return Datums{c.b.add(c.b.mul(c.b.sub(c.number(1, z), z), candidate), c.b.mul(z, s[0]))};
    }));
  }
  return net.results(all);
}

}  // namespace lantern::onnx::rules
