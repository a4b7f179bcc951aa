// Groups of equal values among eigenvalues and singular values.
#pragma once

#include <cmath>
#include <utility>
#include <vector>

#include "lantern/runtime/linalg/lapack.hpp"

namespace lantern::linalg {

template <class T>
T largest(Size n, const T* x) {
  T most = 0;
  for (Size i = 0; i < n; ++i) most = std::isnan(x[i]) ? x[i] : std::max(most, std::abs(x[i]));
  return most;
}

/// What counts as nothing beside 1: for what is made of exact numbers, and for gaps.
template <class T>
T negligible() {
  return std::sqrt(std::numeric_limits<T>::epsilon());
}
template <class T>
T least_gap() {
  return std::pow(std::numeric_limits<T>::epsilon(), T(2) / 3);
}

/// Whether neighbours among n values, of which the largest is `most`, are equal: to eps^(2/3) of the largest where both
/// are of its size. Small values differ sooner, as their logarithms and powers do: by sqrt(eps) of their own size, or by
/// more than rounding makes of the matrix.
template <class T>
bool are_equal(Size n, T most, T x, T y) {
  const T eps = std::numeric_limits<T>::epsilon();
  const T own = negligible<T>() * std::max(std::abs(x), std::abs(y));
  const T rounding = static_cast<T>(n + 8) * eps * most;
  return std::abs(x - y) <= std::min(least_gap<T>() * most, std::max(own, rounding));
}

/// The range of each group of equal values in w, which is sorted.
template <class T>
std::vector<std::pair<Size, Size>> groups(Size n, const T* w) {
  const T most = largest(n, w);
  std::vector<std::pair<Size, Size>> all;
  for (Size i = 0; i < n; ++i)
    if (i == 0 || !are_equal(n, most, w[i], w[i - 1]))
      all.push_back({i, i + 1});
    else
      all.back().second = i + 1;
  return all;
}

}  // namespace lantern::linalg
