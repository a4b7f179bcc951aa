// Sums and differences with a constant, followed to what is neither.
#include "lantern/compiler/passes/analysis/offset.hpp"

#include "lantern/compiler/passes/support/rewrite.hpp"

namespace lantern::passes {

namespace {

std::size_t rank(const Op& op) { return static_cast<std::size_t>(op.operands[0]->type.rank()); }

}  // namespace

Offset offset(const Value* v) {
  Offset o{v, 0};
  for (int depth = 0; depth < 16 && o.base; ++depth) {
    const Op* def = o.base->def;
    if (!def) return o;
    if (def->is(Opcode::constant_)) return {nullptr, o.by + static_cast<std::uint64_t>(def->integer)};
    const bool subtract = def->is(Opcode::sub_);
    if (!def->is(Opcode::add_) && !subtract) return o;
    const Op *left = constant(def->operands[0]), *right = constant(def->operands[1]);
    if (right) {
      const auto by = static_cast<std::uint64_t>(right->integer);
      o = {def->operands[0], subtract ? o.by - by : o.by + by};
    } else if (left && !subtract) {
      o = {def->operands[1], o.by + static_cast<std::uint64_t>(left->integer)};
    } else {
      return o;
    }
  }
  return o;
}

bool same_element(const Op& a, const Op& b) {
  for (std::size_t i = 1; i <= rank(a); ++i)
    if (a.operands[i] != b.operands[i] && !(offset(a.operands[i]) == offset(b.operands[i]))) return false;
  return true;
}

bool differ_by_offset(const Op& a, const Op& b) {
  for (std::size_t i = 1; i <= rank(a); ++i) {
    const Offset x = offset(a.operands[i]), y = offset(b.operands[i]);
    if (x.base == y.base && x.by != y.by) return true;
  }
  return false;
}

}  // namespace lantern::passes
