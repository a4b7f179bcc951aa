// Users, looked for in one walk.
#include "lantern/ir/uses.hpp"

namespace lantern::ir {

void Uses::add(Block* block) {
  walk(block, [&](Op* op) {
    for (std::size_t i = 0; i < op->operands.size(); ++i) uses_[op->operands[i]].push_back({op, i});
  });
}

const std::vector<Use>& Uses::of(const Value* v) const {
  static const std::vector<Use> none;
  const auto it = uses_.find(v);
  return it == uses_.end() ? none : it->second;
}

void replace_uses(Block* below, const Value* from, Value* to) {
  walk(below, [&](Op* op) {
    for (Value*& v : op->operands)
      if (v == from) v = to;
  });
}

void replace_uses(Block* below, const Renaming& names) {
  if (names.empty()) return;
  walk(below, [&](Op* op) {
    for (Value*& v : op->operands)
      for (auto it = names.find(v); it != names.end(); it = names.find(v)) v = it->second;
  });
}

}  // namespace lantern::ir
