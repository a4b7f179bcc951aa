// Users, looked for in one walk, and kept by value in one array.
#include "lantern/ir/uses.hpp"

#include <bit>
#include <cstdint>
#include <utility>

namespace lantern::ir {

namespace {

std::size_t hash(const Value* v) {
  return static_cast<std::size_t>((reinterpret_cast<std::uintptr_t>(v) >> 4) * 0x9E3779B97F4A7C15ull >> 20);
}

}  // namespace

Uses::Uses(std::span<Block* const> blocks) {
  std::vector<Use> all;
  for (Block* b : blocks)
    walk(b, [&](Op* op) {
      for (std::size_t i = 0; i < op->operands.size(); ++i) all.push_back({op, i});
    });
  if (all.empty()) return;
  slots_.resize(std::bit_ceil(2 * all.size()));
  for (const Use& use : all) {
    Slot& s = slots_[slot(use.op->operands[use.operand])];
    s.value = use.op->operands[use.operand];
    ++s.count;
  }
  std::size_t begin = 0;
  for (Slot& s : slots_) {
    s.begin = begin;
    begin += std::exchange(s.count, 0);
  }
  uses_.resize(all.size());
  for (const Use& use : all) {
    Slot& s = slots_[slot(use.op->operands[use.operand])];
    uses_[s.begin + s.count++] = use;
  }
}

std::size_t Uses::slot(const Value* v) const {
  const std::size_t mask = slots_.size() - 1;
  std::size_t at = hash(v) & mask;
  while (slots_[at].value != nullptr && slots_[at].value != v) at = (at + 1) & mask;
  return at;
}

std::span<const Use> Uses::of(const Value* v) const& {
  if (slots_.empty()) return {};
  const Slot& s = slots_[slot(v)];
  return std::span(uses_).subspan(s.begin, s.count);
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
