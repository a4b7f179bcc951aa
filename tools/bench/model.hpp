// What the problems' programs in the DSL share: names for its types, loops that give an array or a sum, small
// vectors.
#pragma once

#include <array>
#include <concepts>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "lantern/lantern.hpp"

namespace lantern::bench {

using Number = Rep<double>;
using Index = Rep<std::int64_t>;
using Vector = Rep<Array<double>>;
using Indices = Rep<Array<std::int64_t>>;
using Matrix = Rep<Tensor<double, dyn, dyn>>;

/// How the programs are compiled. Their indices are right for every input that the readers accept.
inline CompileOptions model_options(std::string name, int threads = 1) {
  return {
      .target = Target::cpp, .opt = 3, .bounds_checks = false, .threads = threads, .name = std::move(name)};
}

/// The name of a form that uses several threads beside the one that does not.
inline std::string in_threads(const std::string& form, int threads) {
  return form + "_" + std::to_string(threads) + "_threads";
}

/// f(0) ... f(n - 1) as an array.
template <class F>
Vector tabulate(const Index& n, F f) {
  return FOR(0, n, fill(Number(0.0), n), [&](Index i, Vector a) { return a.set(i, f(i)); });
}

/// f(lo) + ... + f(hi - 1).
template <class F>
Number total(const Index& lo, const Index& hi, F f) {
  return FOR(lo, hi, 0.0, [&](Index i, Number sum) { return sum + f(i); });
}

/// The first N entries of row `i`.
template <std::size_t N>
std::array<Number, N> entries(const Matrix& m, const Index& i) {
  std::array<Number, N> out;
  for (std::size_t k = 0; k < N; ++k) out[k] = m(i, static_cast<std::int64_t>(k));
  return out;
}
/// The matrix with entries of row `i` replaced, from column `first` on.
template <std::size_t N>
Matrix with_entries(Matrix m, const Index& i, const Index& first, const std::array<Number, N>& values) {
  for (std::size_t k = 0; k < N; ++k) m = m.set(i, first + static_cast<std::int64_t>(k), values[k]);
  return m;
}

/// A vector of space.
using Vector3 = std::array<Number, 3>;
inline Vector3 plus(const Vector3& a, const Vector3& b) { return {a[0] + b[0], a[1] + b[1], a[2] + b[2]}; }
inline Vector3 minus(const Vector3& a, const Vector3& b) { return {a[0] - b[0], a[1] - b[1], a[2] - b[2]}; }
inline Vector3 times(const Number& s, const Vector3& a) { return {s * a[0], s * a[1], s * a[2]}; }
inline Number dot(const Vector3& a, const Vector3& b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }
inline Vector3 cross(const Vector3& a, const Vector3& b) {
  return {a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]};
}

/// Memory as a matrix of so many columns.
template <class T>
auto matrix(T&& data, std::integral auto columns) {
  const auto n = static_cast<std::int64_t>(columns);
  return TensorView<std::remove_pointer_t<decltype(data.data())>>(
      data.data(), {static_cast<std::int64_t>(data.size()) / n, n});
}

/// Consecutive parts of memory, of the given sizes.
template <class... Size>
auto parts(std::span<double> memory, Size... sizes) {
  const auto next = [&](std::size_t n) {
    const auto part = memory.first(n);
    memory = memory.subspan(n);
    return part;
  };
  return std::tuple{next(sizes)...};
}

}  // namespace lantern::bench
