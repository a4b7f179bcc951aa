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

/// The range of each group of w, which is sorted. Groups begin where a gap is larger than the least one.
template <class T>
std::vector<std::pair<Size, Size>> groups(Size n, const T* w) {
  const T least = least_gap<T>() * largest(n, w);
  std::vector<std::pair<Size, Size>> all;
  for (Size i = 0; i < n; ++i)
    if (i == 0 || !(std::abs(w[i] - w[i - 1]) <= least))
      all.push_back({i, i + 1});
    else
      all.back().second = i + 1;
  return all;
}

}  // namespace lantern::linalg
