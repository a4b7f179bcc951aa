// The objective of ADBench's bundle adjustment, written as a programmer would without thinking of speed.
//
// Frozen: these loops are the yardstick that derivatives are measured with. They must not be tuned.
#pragma once

#include <span>

#include "../adbench_input.hpp"

namespace lantern::bench::reference {

/// Writes the weighted reprojection error of every observation (2 numbers each) and 1 - w² of its weight (1
/// each).
void ba(const BaInput& in, std::span<double> reprojection, std::span<double> weight);

}  // namespace lantern::bench::reference
