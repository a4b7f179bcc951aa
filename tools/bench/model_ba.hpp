// ADBench's bundle adjustment in the DSL, and its sparse Jacobian.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "problem.hpp"

namespace lantern::bench {

/// "objective": reprojection and weight errors; "reverse": what of their Jacobian is not zero.
std::vector<Form> ba_forms(const std::shared_ptr<const BaInput>& in, const std::string& problem,
                           int threads = 1);

}  // namespace lantern::bench
