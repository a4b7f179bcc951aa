#include "lantern/ir/team.hpp"

#include <algorithm>

namespace lantern::ir {

bool team_stands(const Op& first) {
  const auto& ops = first.parent->ops;
  const auto at = std::find(ops.begin(), ops.end(), &first);
  const std::int64_t size = team_size(first);
  if (size < 2 || ops.end() - at < size) return false;
  return std::all_of(at + 1, at + size, [&](const Op* op) {
    return op->is(Opcode::call_) && op->callee == first.callee && op->integer == 0;
  });
}

}  // namespace lantern::ir
