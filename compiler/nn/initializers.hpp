// What parameters hold before they are learnt: functions that fill tensors of the host with random numbers.
//
// Numbers are made of a std::mt19937_64 by arithmetic of our own: the same seed gives the same model with
// every standard library. A tensor's fan-in is the number of inputs that an output depends on, its fan-out
// the reverse: of a weight [out, in, k...] in * k... and out * k....
#pragma once

#include <algorithm>
#include <cmath>
#include <numbers>
#include <random>

#include "lantern/runtime/tensor.hpp"

namespace lantern::nn {

using Generator = std::mt19937_64;  ///< where initialisers take random numbers from

namespace detail {

/// From 0 up to below 1; of 53 bits.
inline double uniform_number(Generator& rng) { return static_cast<double>(rng() >> 11) * 0x1p-53; }
/// By the method of Box and Muller, of which one of the two numbers is taken.
inline double normal_number(Generator& rng) {
  const double u = 1 - uniform_number(rng), v = uniform_number(rng);
  return std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * v);
}

struct Fans {
  double in = 1, out = 1;
};
template <class T>
Fans fans(const TensorValue<T>& t) {
  if (t.shape.size() < 2)
    throw Error("initialiser: expected a weight of at least two dimensions, [out, in, ...], got " +
                std::to_string(t.shape.size()));
  double window = 1;
  for (std::size_t d = 2; d < t.shape.size(); ++d) window *= static_cast<double>(t.shape[d]);
  return {static_cast<double>(t.shape[1]) * window, static_cast<double>(t.shape[0]) * window};
}

}  // namespace detail

template <class T>  ///< every element is the value, rounded to T
void constant(TensorValue<T>& t, double value) {
  std::fill(t.data.begin(), t.data.end(), static_cast<T>(value));
}
/// From lo up to hi.
template <class T>
void uniform(TensorValue<T>& t, Generator& rng, double lo = 0, double hi = 1) {
  for (T& x : t.data) x = static_cast<T>(lo + (hi - lo) * detail::uniform_number(rng));
}
template <class T>
void normal(TensorValue<T>& t, Generator& rng, double mean = 0, double deviation = 1) {
  for (T& x : t.data) x = static_cast<T>(mean + deviation * detail::normal_number(rng));
}
/// Variance gain^2 2 / (fan_in + fan_out), uniform or normal (Glorot and Bengio 2010).
template <class T>
void xavier_uniform(TensorValue<T>& t, Generator& rng, double gain = 1) {
  const detail::Fans fan = detail::fans(t);
  const double bound = gain * std::sqrt(6 / (fan.in + fan.out));
  uniform(t, rng, -bound, bound);
}
template <class T>
void xavier_normal(TensorValue<T>& t, Generator& rng, double gain = 1) {
  const detail::Fans fan = detail::fans(t);
  normal(t, rng, 0, gain * std::sqrt(2 / (fan.in + fan.out)));
}
/// Variance gain^2 / fan_in, uniform or normal; the gain is that of relu (He et al. 2015).
template <class T>
void kaiming_uniform(TensorValue<T>& t, Generator& rng, double gain = std::numbers::sqrt2) {
  const double bound = gain * std::sqrt(3 / detail::fans(t).in);
  uniform(t, rng, -bound, bound);
}
template <class T>
void kaiming_normal(TensorValue<T>& t, Generator& rng, double gain = std::numbers::sqrt2) {
  normal(t, rng, 0, gain / std::sqrt(detail::fans(t).in));
}
/// Rows that are orthonormal, or columns where there are more rows than columns, of a matrix whose other
/// dimensions are taken as one (Saxe et al. 2014).
template <class T>
void orthogonal(TensorValue<T>& t, Generator& rng, double gain = 1) {
  const detail::Fans fan = detail::fans(t);
  const auto rows = static_cast<std::size_t>(t.shape[0]), columns = static_cast<std::size_t>(fan.in);
  const std::size_t count = std::min(rows, columns), size = std::max(rows, columns);
  std::vector<double> basis(count * size);
  for (std::size_t k = 0; k < count; ++k) {
    double* const v = &basis[k * size];
    for (std::size_t i = 0; i < size; ++i) v[i] = detail::normal_number(rng);
    for (int pass = 0; pass < 2; ++pass)  // the second removes what rounding left
      for (std::size_t j = 0; j < k; ++j) {
        double along = 0;
        for (std::size_t i = 0; i < size; ++i) along += v[i] * basis[j * size + i];
        for (std::size_t i = 0; i < size; ++i) v[i] -= along * basis[j * size + i];
      }
    double length = 0;
    for (std::size_t i = 0; i < size; ++i) length += v[i] * v[i];
    for (std::size_t i = 0; i < size; ++i) v[i] /= std::sqrt(length);
  }
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t j = 0; j < columns; ++j)
      t.data[i * columns + j] =
          static_cast<T>(gain * (rows <= columns ? basis[i * size + j] : basis[j * size + i]));
}

}  // namespace lantern::nn
