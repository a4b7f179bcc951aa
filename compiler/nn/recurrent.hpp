// Recurrent layers: RNN (Elman 1990), LSTM (Hochreiter and Schmidhuber 1997, with forget gates), GRU (Cho et
// al. 2014).
//
// Sequences are [time, batch, features]. Parameters, their names and the order of the gates are PyTorch's. A
// number for each example says how many of its steps there are: the others leave its state as it is, and
// their output is 0.
#pragma once

#include <optional>

#include "lantern/compiler/nn/layers.hpp"
#include "lantern/compiler/random/random.hpp"

namespace lantern::nn {

enum class Gates : std::uint8_t { tanh, relu, lstm, gru };  ///< which equations a recurrent layer has

/// What training drops between layers: each number of the outputs of a layer that another one reads, with
/// this probability; the others are divided by 1 - rate. A step has a key of its own.
struct LayerDropout {
  Rep<std::int64_t> key;
  double rate = 0.5;
};

/// What a recurrent layer knows: [layers * directions, batch, hidden].
template <class S>
struct HiddenState {
  Parameter<S, dyn, dyn, dyn> hidden;
};
template <class S>
struct LstmState {
  Parameter<S, dyn, dyn, dyn> hidden, cell;
};

namespace detail {

constexpr std::int64_t gate_count(Gates g) { return g == Gates::lstm ? 4 : g == Gates::gru ? 3 : 1; }

/// 1 / (1 + exp(-x)), by a function that neither overflows nor asks for the sign. Near 0 it has the absolute
/// error of a sum with 1, which is all that a gate needs.
template <class T>
T gate_sigmoid(const T& x) {
  return 0.5 + 0.5 * tanh(0.5 * x);
}

/// h and, of an LSTM, c after a step: [batch, hidden].
template <class E>
struct StepState {
  Rep<Tensor<E>> h, c;
};
/// `x` is what the input gives to the gates, `u` what the hidden state does: [batch, gates * hidden].
template <Gates gates, class E>
StepState<E> next_state(const Rep<Tensor<E>>& x, const Rep<Tensor<E>>& u, const StepState<E>& s) {
  using T = Rep<Tensor<E>>;
  const Rep<std::int64_t> n = s.h.dim(1);
  const auto gate = [&](const T& of, std::int64_t k) {
    return of(core::named::all, core::range(n * k, n * (k + 1)));
  };
  if constexpr (gates == Gates::tanh)
    return {tanh(x + u), s.c};
  else if constexpr (gates == Gates::relu)
    return {relu(x + u), s.c};
  else if constexpr (gates == Gates::lstm) {
    const T all = x + u;
    const T c = gate_sigmoid(gate(all, 1)) * s.c + gate_sigmoid(gate(all, 0)) * tanh(gate(all, 2));
    return {gate_sigmoid(gate(all, 3)) * tanh(c), c};
  } else {
    const T reset = gate_sigmoid(gate(x, 0) + gate(u, 0)), keeps = gate_sigmoid(gate(x, 1) + gate(u, 1));
    return {(1.0 - keeps) * tanh(gate(x, 2) + reset * gate(u, 2)) + keeps * s.h, s.c};
  }
}

}  // namespace detail

/// One layer in one direction. By the gates' names, each with weights and biases of its own, * element by
/// element:
///
///   RNN   h' = tanh(W x + U h)
///   LSTM  i, f, g, o = sigmoid, sigmoid, tanh, sigmoid of W x + U h;  c' = f * c + i * g;  h' = o * tanh(c')
///   GRU   r, z = sigmoid(W x + U h);  n = tanh(W x + r * (U h));  h' = (1 - z) * n + z * h
template <class S, Gates gates>
struct RecurrentCell {
  Parameter<S, dyn, dyn> weight_ih, weight_hh;  ///< [gates * hidden, in], [gates * hidden, hidden]
  Parameter<S, dyn> bias_ih, bias_hh;           ///< [gates * hidden]

  static RecurrentCell init(std::int64_t in, std::int64_t hidden, Generator& rng) {
    const std::int64_t rows = detail::gate_count(gates) * hidden;
    RecurrentCell c{Parameter<S, dyn, dyn>({rows, in}), Parameter<S, dyn, dyn>({rows, hidden}),
                    Parameter<S, dyn>({rows}), Parameter<S, dyn>({rows})};
    const double bound = 1 / std::sqrt(static_cast<double>(hidden));
    uniform(c.weight_ih, rng, -bound, bound);
    uniform(c.weight_hh, rng, -bound, bound);
    uniform(c.bias_ih, rng, -bound, bound);
    uniform(c.bias_hh, rng, -bound, bound);
    return c;
  }

  /// All steps of x, [time, batch, in], from a state: the hidden state after each step, in the order of x,
  /// and the state after the last. `lengths` may be none.
  template <class E>
  std::pair<Rep<Tensor<E>>, detail::StepState<E>> run(
      const Rep<Tensor<E>>& x, const detail::StepState<E>& start, bool backwards,
      const std::optional<Rep<Tensor<std::int64_t>>>& lengths) const {
    using T = Rep<Tensor<E>>;
    constexpr bool own_bias = gates == Gates::gru;  // which the reset gate scales
    const Rep<std::int64_t> steps = x.dim(0), batch = x.dim(1), in = x.dim(2);
    const Rep<std::int64_t> rows = weight_ih.dim(0), hidden = weight_hh.dim(1);
    const T bias = own_bias ? T(bias_ih) : T(bias_ih + bias_hh);
    const T inputs =
        reshape(matmul(reshape(x, steps * batch, in), transpose(weight_ih)) + bias, steps, batch, rows);
    const T u = transpose(weight_hh);
    const T outputs = fill(Rep<E>(E(0)), steps, batch, hidden);
    const auto [last_h, last_c, all_h] =
        FOR(0, steps, std::tuple(start.h, start.c, outputs),
            [&](const Rep<std::int64_t>& i, const T& h, const T& c, const T& ys) {
              const Rep<std::int64_t> at = backwards ? steps - 1 - i : i;
              T from_h = matmul(h, u);
              if constexpr (own_bias) from_h = from_h + bias_hh;
              detail::StepState<E> next = detail::next_state<gates, E>(inputs.row(at), from_h, {h, c});
              if (!lengths) return std::tuple(next.h, next.c, ys.set_part({at}, next.h));
              const auto where_present = [&](const T& made, const auto& otherwise) {
                return T(tabulate(
                    [&](const Rep<std::int64_t>& b, const Rep<std::int64_t>& k) {
                      return select((*lengths)(b) > at, made(b, k), otherwise(b, k));
                    },
                    batch, hidden));
              };
              const T output = where_present(next.h, [](const auto&...) { return Rep<E>(E(0)); });
              next.h = where_present(next.h, h);
              if constexpr (gates == Gates::lstm) next.c = where_present(next.c, c);
              return std::tuple(next.h, next.c, ys.set_part({at}, output));
            });
    return {all_h, {last_h, last_c}};
  }
};

/// Layers one above the other: x of [time, batch, in] gives {y, state}, y of [time, batch, hidden] or, in
/// both directions, [time, batch, 2 hidden]. Without a state they start from zeros. The cells are those of
/// the first layer forwards and backwards, then of the second.
///
///   auto [y, state] = lstm(x);  lstm(x, lengths);  lstm(x, state);  lstm(x, state, lengths)
///
/// While training, `train` takes the same and a LayerDropout behind: lstm.train(x, {key, 0.2}).
template <class S, Gates gates, std::size_t layers = 1, bool both_ways = false>
struct Recurrent {
  static constexpr std::size_t directions = both_ways ? 2 : 1;
  using State = std::conditional_t<gates == Gates::lstm, LstmState<S>, HiddenState<S>>;

  std::array<RecurrentCell<S, gates>, layers * directions> cells;

  static Recurrent init(std::int64_t in, std::int64_t hidden, Generator& rng) {
    Recurrent r;
    for (std::size_t i = 0; i < r.cells.size(); ++i)
      r.cells[i] = RecurrentCell<S, gates>::init(
          i < directions ? in : static_cast<std::int64_t>(directions) * hidden, hidden, rng);
    return r;
  }
  /// Zeros: on the host for a batch of this size.
  static State zero_state(std::int64_t batch, std::int64_t hidden) {
    const Parameter<S, dyn, dyn, dyn> zero({static_cast<std::int64_t>(layers * directions), batch, hidden});
    if constexpr (gates == Gates::lstm)
      return {zero, zero};
    else
      return {zero};
  }

  template <core::detail::FloatTensor X>
  auto operator()(const Rep<X>& x,
                  std::source_location l = std::source_location::current()) const {
    const detail::Caller caller(l);
    return run(detail::Values<X>(x), {}, {}, {});
  }
  template <core::detail::FloatTensor X, core::detail::IndexTensor L>
  auto operator()(const Rep<X>& x, const Rep<L>& lengths,
                  std::source_location l = std::source_location::current()) const {
    const detail::Caller caller(l);
    return run(detail::Values<X>(x), {}, lengths, {});
  }
  template <core::detail::FloatTensor X>
  auto operator()(const Rep<X>& x, const State& state,
                  std::source_location l = std::source_location::current()) const {
    const detail::Caller caller(l);
    return run(detail::Values<X>(x), state, {}, {});
  }
  template <core::detail::FloatTensor X, core::detail::IndexTensor L>
  auto operator()(const Rep<X>& x, const State& state, const Rep<L>& lengths,
                  std::source_location l = std::source_location::current()) const {
    const detail::Caller caller(l);
    return run(detail::Values<X>(x), state, lengths, {});
  }

  template <core::detail::FloatTensor X>
  auto train(const Rep<X>& x, const LayerDropout& dropout,
             std::source_location l = std::source_location::current()) const {
    const detail::Caller caller(l);
    return run(detail::Values<X>(x), {}, {}, dropout);
  }
  template <core::detail::FloatTensor X, core::detail::IndexTensor L>
  auto train(const Rep<X>& x, const Rep<L>& lengths, const LayerDropout& dropout,
             std::source_location l = std::source_location::current()) const {
    const detail::Caller caller(l);
    return run(detail::Values<X>(x), {}, lengths, dropout);
  }
  template <core::detail::FloatTensor X>
  auto train(const Rep<X>& x, const State& state, const LayerDropout& dropout,
             std::source_location l = std::source_location::current()) const {
    const detail::Caller caller(l);
    return run(detail::Values<X>(x), state, {}, dropout);
  }
  template <core::detail::FloatTensor X, core::detail::IndexTensor L>
  auto train(const Rep<X>& x, const State& state, const Rep<L>& lengths, const LayerDropout& dropout,
             std::source_location l = std::source_location::current()) const {
    const detail::Caller caller(l);
    return run(detail::Values<X>(x), state, lengths, dropout);
  }

 private:
  template <class E>
  std::pair<Rep<Tensor<E>>, State> run(Rep<Tensor<E>> x, const std::optional<State>& state,
                                       const std::optional<Rep<Tensor<std::int64_t>>>& lengths,
                                       const std::optional<LayerDropout>& dropped) const {
    using T = Rep<Tensor<E>>;
    detail::require_dimensions("recurrent layer", x.datum(), 3, "[time, batch, features]");
    std::vector<T> hidden, cell;
    for (std::size_t layer = 0; layer < layers; ++layer) {
      std::vector<T> outputs;
      for (std::size_t k = layer * directions; k < (layer + 1) * directions; ++k) {
        const T zero = fill(Rep<E>(E(0)), x.dim(1), cells[k].weight_hh.dim(1));
        detail::StepState<E> start{zero, zero};
        if (state) {
          start.h = state->hidden.row(k);
          if constexpr (gates == Gates::lstm) start.c = state->cell.row(k);
        }
        auto [y, end] = cells[k].run(x, start, k % directions == 1, lengths);
        outputs.push_back(y);
        hidden.push_back(end.h);
        cell.push_back(end.c);
      }
      x = both_ways ? T(concat<2>(outputs)) : outputs[0];
      if (!dropped || layer + 1 == layers) continue;
      const auto key = core::random::fold_in(dropped->key, static_cast<std::int64_t>(layer));
      x = dropout(x, core::random::uniform<E>(key, x.dim(0), x.dim(1), x.dim(2)), dropped->rate);
    }
    State end;
    const auto put = [](auto& to, const std::vector<T>& from) {
      T all = unsqueeze<0>(from[0]);
      for (std::size_t k = 1; k < from.size(); ++k) all = concat(all, T(unsqueeze<0>(from[k])));
      to = std::remove_cvref_t<decltype(to)>(all);
    };
    put(end.hidden, hidden);
    if constexpr (gates == Gates::lstm) put(end.cell, cell);
    return {x, end};
  }
};

template <class S, std::size_t layers = 1, bool both_ways = false>
using RNN = Recurrent<S, Gates::tanh, layers, both_ways>;  ///< with tanh (Elman 1990); Recurrent says the rest
template <class S, std::size_t layers = 1, bool both_ways = false>
using ReluRNN = Recurrent<S, Gates::relu, layers, both_ways>;  ///< with relu
template <class S, std::size_t layers = 1, bool both_ways = false>
using LSTM = Recurrent<S, Gates::lstm, layers, both_ways>;  ///< Hochreiter and Schmidhuber 1997
template <class S, std::size_t layers = 1, bool both_ways = false>
using GRU = Recurrent<S, Gates::gru, layers, both_ways>;  ///< Cho et al. 2014

}  // namespace lantern::nn
