// Dynamic programming: each value is the largest or smallest of several.
#pragma once

#include "types.hpp"

namespace lantern::bench::programs {

/// All shortest paths.
template <class T>
Number<T> floyd_warshall(Input<T> lengths, Index<T> n) {
  using std::min;
  Array<T> d = T::copy(lengths, n * n);
  for (Index<T> k = 0; k < n; ++k)
    for (Index<T> i = 0; i < n; ++i)
      for (Index<T> j = 0; j < n; ++j) d[i * n + j] = min(d[i * n + j], d[i * n + k] + d[k * n + j]);
  return sum_of_squares<T>(d, n * n);
}

/// The best way to pair the letters of a sequence.
template <class T>
Number<T> nussinov(Input<T> gain, Index<T> n) {
  using std::max;
  Array<T> t = T::zeros(n * n);
  for (Index<T> l = 1; l < n; ++l)
    for (Index<T> i = 0; i < n - l; ++i) {
      const Index<T> j = i + l;
      Number<T> best = max(t[i * n + j - 1], t[(i + 1) * n + j]);
      best = max(best, t[(i + 1) * n + j - 1] + gain[i * n + j]);
      for (Index<T> k = i + 1; k < j; ++k) best = max(best, t[i * n + k] + t[(k + 1) * n + j]);
      t[i * n + j] = best;
    }
  return t[n - 1];
}

/// Costs of the best order of a product of many matrices, shortest intervals last rows first.
template <class T>
Number<T> matrix_chain(Input<T> p, Index<T> n) {
  using std::min;
  Array<T> m = T::zeros(n * n);
  for (Index<T> s = 0; s < n - 1; ++s) {
    const Index<T> i = n - 2 - s;
    for (Index<T> j = i + 1; j < n; ++j) {
      Number<T> best = 1e30;
      for (Index<T> k = i; k < j; ++k)
        best = min(best, m[i * n + k] + m[(k + 1) * n + j] + p[i] * p[k + 1] * p[j + 1]);
      m[i * n + j] = best;
    }
  }
  return m[n - 1];
}

/// Dynamic time warping of two signals.
template <class T>
Number<T> time_warping(Input<T> x, Input<T> y, Index<T> n) {
  using std::min;
  Array<T> d = T::zeros(n * n);
  d[0] = (x[0] - y[0]) * (x[0] - y[0]);
  for (Index<T> j = 1; j < n; ++j) d[j] = d[j - 1] + (x[0] - y[j]) * (x[0] - y[j]);
  for (Index<T> i = 1; i < n; ++i) {
    d[i * n] = d[i * n - n] + (x[i] - y[0]) * (x[i] - y[0]);
    for (Index<T> j = 1; j < n; ++j) {
      const Number<T> e = x[i] - y[j];
      d[i * n + j] = e * e + min(min(d[i * n - n + j], d[i * n + j - 1]), d[i * n - n + j - 1]);
    }
  }
  return d[n * n - 1];
}

/// The likeliest path through a hidden Markov model, by logarithms.
template <class T>
Number<T> viterbi(Input<T> next, Input<T> emit, Index<T> states, Index<T> steps) {
  using std::max;
  Array<T> now = T::copy(emit, states), after = T::zeros(states);
  for (Index<T> t = 1; t < steps; ++t) {
    for (Index<T> j = 0; j < states; ++j) {
      Number<T> best = now[0] + next[j];
      for (Index<T> i = 1; i < states; ++i) best = max(best, now[i] + next[i * states + j]);
      after[j] = best + emit[t * states + j];
    }
    for (Index<T> j = 0; j < states; ++j) now[j] = after[j];
  }
  Number<T> best = now[0];
  for (Index<T> j = 1; j < states; ++j) best = max(best, now[j]);
  return best;
}

/// An American put in a binomial tree; `market` holds spot, strike, rate, volatility, and years.
template <class T>
Number<T> american_option(Input<T> market, Index<T> n) {
  using std::max;
  const Number<T> spot = market[0], strike = market[1], rate = market[2], volatility = market[3];
  const Number<T> dt = market[4] / T::number(n);
  const Number<T> up = exp(volatility * sqrt(dt)), down = 1.0 / up, discount = exp((0.0 - rate) * dt);
  const Number<T> p = (1.0 / discount - down) / (up - down);
  Array<T> v = T::zeros(n + 1), price = T::zeros(2 * n + 1);
  price[0] = spot * exp((0.0 - volatility) * sqrt(dt) * T::number(n));
  for (Index<T> i = 1; i < 2 * n + 1; ++i) price[i] = price[i - 1] * up;
  for (Index<T> i = 0; i < n + 1; ++i) v[i] = max(strike - price[2 * i], 0.0);
  for (Index<T> s = 0; s < n; ++s) {
    const Index<T> t = n - 1 - s;
    for (Index<T> i = 0; i < t + 1; ++i)
      v[i] = max(discount * (p * v[i + 1] + (1.0 - p) * v[i]), strike - price[n - t + 2 * i]);
  }
  return v[0];
}

}  // namespace lantern::bench::programs
