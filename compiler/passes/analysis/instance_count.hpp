// Instance counts: how often an access executes, as a polynomial in the bounds of the loops around it.
#pragma once

#include <optional>

#include "lantern/compiler/passes/analysis/index_form.hpp"
#include "lantern/ir/function_ref.hpp"

namespace lantern::passes {

/// How often an access is made, the numbers of iterations of inner loops taken as they are on average: `doubled` / `factor`,
/// so that no half is lost.
struct InstanceCount {
  IndexForm doubled = 1;
  std::int64_t factor = 1;
};
/// In one run of a block around the access; nothing where a loop between them does not count by ones, or a branch between
/// them is not `taken`.
std::optional<InstanceCount> instance_count(const Op& access, const Block* block,
                                            ir::FunctionRef<bool(const Op& branch)> taken);

/// True where an access in a loop is made at least an eighth of `size` times in all of its iterations, as the
/// sizes grow: to copy so many elements before the loop is in proportion to what the loop does.
bool footprint_covers(const Op& access, const Op* outermost, const IndexForm& size);

}  // namespace lantern::passes
