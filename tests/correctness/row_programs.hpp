// What tests of programs that go row by row share: loops, numbers and comparisons.
#pragma once

#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <vector>

#include "agree.hpp"
#include "lantern/lantern.hpp"

namespace lantern::test {

using D = core::Rep<double>;
using I = core::Rep<std::int64_t>;
using A = core::Rep<core::Array<double>>;
using M = core::Rep<core::Tensor<double, core::dyn, core::dyn>>;

template <class F>
D total(const I& n, F f) {
  return core::FOR(0, n, D(0.0), [&](I i, D sum) { return sum + f(i); });
}

inline std::vector<double> numbers(std::size_t n, double shift) {
  std::vector<double> v(n);
  for (std::size_t i = 0; i < n; ++i) v[i] = std::sin(shift + 1.3 * static_cast<double>(i)) / 2;
  return v;
}
inline TensorView<const double> matrix(const std::vector<double>& v, std::size_t rows, std::size_t columns) {
  return {v.data(), {static_cast<std::int64_t>(rows), static_cast<std::int64_t>(columns)}};
}

inline void check_close(const std::vector<double>& got, const std::vector<double>& expected) {
  REQUIRE(got.size() == expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) CHECK(agree::close(got[i], expected[i], 1e-11));
}

}  // namespace lantern::test
