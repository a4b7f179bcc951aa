// Functions whose numbers lie in the GPU's memory, as tensors of one element: frameworks have them there, and nothing waits.
#pragma once

#include <vector>

#include "lantern/compiler/driver/compile.hpp"
#include "options.hpp"
#include "stage.hpp"

namespace lantern::tool {

/// Stages a program of these parameters as the function's module. For a module of a framework on the GPU floating numbers among
/// the parameters, for JAX all numbers, and all numbers among the results become tensors of one element; the function then
/// has the types that its caller sees.
void stage_for(const Options& options, StagedFunction& function, const std::vector<ir::Type>& parameters,
               ir::FunctionRef<core::Datums(const core::Datums&)> run);

/// What a caller passes and gets: numbers are numbers, wherever they lie.
std::vector<ir::Type> caller_parameters(const StagedFunction& function);
std::vector<ir::Type> caller_results(const StagedFunction& function);

}  // namespace lantern::tool
