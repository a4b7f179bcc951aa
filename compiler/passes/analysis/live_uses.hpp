// Liveness: which uses of a function's values its results and effects need.
#pragma once

#include <unordered_map>
#include <vector>

#include "lantern/ir/graph.hpp"
#include "lantern/ir/pointer_map.hpp"

namespace lantern::passes {

/// Uses of values in one function, not counting operations that compute nothing anybody needs.
class LiveUses {
 public:
  explicit LiveUses(const ir::Function& function);

  bool live(const ir::Op* op) const { return live_.contains(op); }
  /// True where anybody needs what a loop carries in its i-th state.
  bool live_state(const ir::Op* loop, std::size_t i) const;
  int count(const ir::Value* value) const;
  /// False for a tensor of which nothing wants more than the shape.
  bool elements_matter(const ir::Value* tensor) const;
  /// The user of a value that is used once.
  const ir::Op* user(const ir::Value* value) const;
  /// The user of a tensor whose elements are wanted once; others may ask for its shape.
  const ir::Op* only_reader(const ir::Value* tensor) const;
  /// Grows at every operation that may write memory or has an effect of another kind: equal numbers, same
  /// memory.
  int epoch(const ir::Op* op) const { return *epoch_.find(op); }
  /// True where the cell that a ref_get reads does not change any more while the value read is in use.
  bool cell_is_final(const ir::Op* ref_get) const;

 private:
  struct Use {
    int count = 0;
    const ir::Op* user = nullptr;
    int readers = 0;  ///< uses that want more than the shape
    const ir::Op* reader = nullptr;
    int last = -1;  ///< position of the last use
  };
  void find_live(const std::vector<const ir::Op*>& ops);
  bool live_operand(const ir::Op* op, std::size_t i) const;

  ir::PointerMap<const ir::Value, Use> uses_;
  ir::PointerSet<const ir::Op> live_;
  ir::PointerSet<const ir::Value> live_values_;
  ir::PointerMap<const ir::Op, int> epoch_;
  std::unordered_map<const ir::Value*, Use> cell_writes_;  ///< all uses of a cell but ref_get
  std::unordered_map<const ir::Op*, int> reads_;           ///< positions of ref_get
  std::vector<int> calls_;                                 ///< positions of call and jump
};

}  // namespace lantern::passes
