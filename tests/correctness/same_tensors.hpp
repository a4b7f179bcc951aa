// Tensors of the host beside each other.
#pragma once

#include <catch2/catch.hpp>

#include "lantern/runtime/tensor.hpp"

namespace lantern::test {

/// The same shape, and elements that differ by rounding alone.
inline void same(const TensorValue<double>& x, const TensorValue<double>& y) {
  REQUIRE(x.shape == y.shape);
  for (std::size_t i = 0; i < x.data.size(); ++i)
    CHECK(x.data[i] == Approx(y.data[i]).epsilon(1e-10).margin(1e-12));
}

}  // namespace lantern::test
