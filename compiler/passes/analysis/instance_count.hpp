// How often accesses are made, as a polynomial in what loops count to.
#pragma once

#include "lantern/compiler/passes/analysis/index_form.hpp"

namespace lantern::passes {

/// True where an access in a loop is made at least an eighth of `size` times in all of its iterations, as the
/// sizes grow: to copy so many elements before the loop is in proportion to what the loop does.
bool footprint_covers(const Op& access, const Op* outermost, const IndexForm& size);

}  // namespace lantern::passes
