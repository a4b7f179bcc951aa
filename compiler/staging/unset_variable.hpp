// The error of a Rep that is used before it has a value.
#pragma once

#include "lantern/ir/location.hpp"

namespace lantern::core {

/// Raises it with the name of the variable, where the line of the source uses one alone that nothing before gave a value.
[[noreturn]] void refuse_empty(const ir::Location& loc);

}  // namespace lantern::core
