// Whether two staged functions compute the same.
#pragma once

#include "lantern/compiler/staging/staging.hpp"

namespace lantern::core {

/// True where the graphs of two functions are equal up to the names of values and functions, those that they
/// call included, and they capture the same values. False where that does not show: of functions that are
/// still being staged, or have derivatives of their own.
bool same_function(const Staging& staging, const StagedFunction& a, const StagedFunction& b);

}  // namespace lantern::core
