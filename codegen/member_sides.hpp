// The chain of branches that loops become which are one launch (horizontal_fusion).
#pragma once

#include <vector>

#include "lantern/codegen/analysis.hpp"

namespace lantern::codegen {

struct MemberSides {
  std::vector<const ir::Block*> blocks;
  std::vector<const ir::Value*> ends;  ///< of the rows of all but the last
  std::vector<const ir::Value*> rows;  ///< the row in a side, as a number of its own; null: there is none
};

/// The sides of `branch row < end { ... } else { branch row < end { ... } else ... }`, where the row is the
/// number of a loop's iteration and the ends are known before the loop; none of other branches.
MemberSides member_sides(const ir::Op& first, const ir::Op& loop);

}  // namespace lantern::codegen
