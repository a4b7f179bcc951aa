// ADBench's hand tracking in the DSL, and its dense Jacobian.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "problem.hpp"

namespace lantern::bench {

/// "objective"; "forward": the Jacobian with respect to the pose and, in the complicated form, each point's
/// own place on its triangle; with more than one thread the same in so many, which share out the directions.
std::vector<Form> hand_forms(const std::shared_ptr<const HandInput>& in, const std::string& problem,
                             int threads = 1);

}  // namespace lantern::bench
