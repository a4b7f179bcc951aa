// ADBench's Gaussian mixture in the DSL, and its gradient.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "problem.hpp"

namespace lantern::bench {

/// "objective"; "reverse": the gradient with respect to alphas, means and factors; with
/// several threads also "reverse_N_threads", the same in so many.
std::vector<Form> gmm_forms(const std::shared_ptr<const GmmInput>& in, const std::string& problem,
                            int threads = 1);

}  // namespace lantern::bench
