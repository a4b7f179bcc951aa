// Who uses which values: an analysis of a function, a loop or a block, made by those who ask. Operations
// carry no lists of their users, for passes rebuild whole blocks in one walk (passes/support/rewrite.hpp),
// which would have to keep them up to date for nothing.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "lantern/ir/clone.hpp"

namespace lantern::ir {

/// Where a value is used.
struct Use {
  Op* op;
  std::size_t operand;
};

/// The users of each value below a block, in order; it holds until operations change.
class Uses {
 public:
  explicit Uses(Block* block) : Uses(std::span(&block, 1)) {}
  explicit Uses(const Function& f) : Uses(f.body) {}
  /// In the blocks of an operation.
  explicit Uses(const Op* op) : Uses(std::span<Block* const>(op->blocks)) {}

  /// They are kept by this object.
  std::span<const Use> of(const Value* v) const&;
  void of(const Value* v) && = delete;
  std::size_t count(const Value* v) const { return of(v).size(); }
  /// True where one operand is the value, and nothing else.
  bool once(const Value* v) const { return count(v) == 1; }
  /// The user of a value that is used once; else null.
  Op* only_user(const Value* v) const { return once(v) ? of(v)[0].op : nullptr; }

 private:
  /// The uses of a value are uses_[begin] and those behind it.
  struct Slot {
    const Value* value = nullptr;
    std::size_t begin = 0, count = 0;
  };
  explicit Uses(std::span<Block* const> blocks);
  /// Where a value is in the hash table, or would be.
  std::size_t slot(const Value* v) const;

  std::vector<Slot> slots_;  ///< open addressing, at most half full
  std::vector<Use> uses_;
};

/// All that uses `from` below a block uses `to`.
void replace_uses(Block* below, const Value* from, Value* to);
/// All that uses what has another name below a block uses that, whose own name may be another again.
void replace_uses(Block* below, const Renaming& names);

}  // namespace lantern::ir
