// ADBench's character model in the DSL, and its gradient.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "problem.hpp"

namespace lantern::bench {

/// "objective"; "reverse": the gradient with respect to main and extra parameters.
std::vector<Form> lstm_forms(const std::shared_ptr<const LstmInput>& in, const std::string& problem);

}  // namespace lantern::bench
