// Vectors of indices in equal steps.
#pragma once

#include <optional>

#include "lantern/compiler/passes/analysis/index_form.hpp"

namespace lantern::passes {

/// The first of a vector of indices, and how far it is from one to the next.
struct IndexSteps {
  IndexForm first;
  std::int64_t step = 1;
};
/// The largest step, up or down.
inline constexpr std::int64_t largest_multiple = 1 << 20;

/// Of a vector of indices in equal steps; of one index itself.
std::optional<IndexSteps> index_steps(const Value* index);

}  // namespace lantern::passes
