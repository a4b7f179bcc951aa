// The evaluation of the series benchmark (thesis, section 6.1), written as a programmer would without
// thinking of speed.
//
// Frozen: this loop is the yardstick that derivatives are measured with. It must not be tuned.
#pragma once

#include <cstdint>

namespace lantern::bench::reference {

/// The first n + 1 terms of the Taylor series of 1/x around 1: the sum of (1 - x)^i for i = 0 ... n.
double series(double x, std::int64_t n);

}  // namespace lantern::bench::reference
