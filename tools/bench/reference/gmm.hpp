// The objective of ADBench's Gaussian mixture problem, written as a programmer would without thinking of
// speed.
//
// Frozen: these loops are the yardstick that derivatives are measured with. They must not be tuned.
#pragma once

#include "../adbench_input.hpp"

namespace lantern::bench::reference {

/// The log-likelihood of the points with a Wishart prior on the factors (ADBench, GMM).
double gmm(const GmmInput& in);

}  // namespace lantern::bench::reference
