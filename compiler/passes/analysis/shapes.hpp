// Which tensors have the same shape.
#pragma once

#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "lantern/compiler/passes/support/rewrite.hpp"
#include "lantern/ir/shape.hpp"

namespace lantern::passes {

/// Whose shape the tensors of a function have, noted while the function is walked in order. A loop's state
/// has the shape that it starts with where an iteration hands on what has it; what is popped has the shape of what
/// was pushed, if that is another's which is available.
class Shapes {
 public:
  /// Before the function is walked.
  explicit Shapes(const ir::Function& function);

  /// The next operation, whose blocks are still to be walked.
  void note(const Op* op);

  /// A value with the shape of `v`, as early in the program as is known; it is seen where `v` is.
  Value* of(const Value* v) const {
    const auto it = origins_.find(v);
    return it == origins_.end() ? const_cast<Value*>(v) : it->second;
  }

  /// Where a size comes from, as far back as is known.
  ir::Size source(Value* t, std::size_t dimension) const;

 private:
  struct Tape {
    std::size_t pushes = 0, pops = 0;   ///< in the module
    std::vector<const Value*> origins;  ///< of what was pushed so far
    std::vector<ir::Size> sizes;        ///< of it, where they are those of all that was pushed so far
  };

  void note_loop(const Op* loop);
  /// Of results that have the shape of one tensor, whichever way is gone, and of those that have the shape of an argument.
  void note_ways(const Op* op);
  void note_push(const Op* push);
  void note_pop(const Op* pop);
  bool is_at_hand(const Value* v, const Op* pop, const Tape& tape) const;

  const Value* origin(const Value* v);
  const Value* origin_of_ways(const Op& op, std::size_t result);
  const std::vector<bool>& kept(const Op* loop);
  std::unordered_map<const Value*, Value*> origins_;
  std::unordered_map<const Value*, std::vector<ir::Size>>
      sizes_;                                              ///< of what is popped, null where not available
  std::unordered_map<const Op*, std::vector<bool>> kept_;  ///< which of a loop's state keeps its shape
  std::unordered_map<std::int64_t, Tape> tapes_;           ///< of tensors
  std::unordered_set<const Value*> followed_;              ///< results of branches and calls that were looked at
};

}  // namespace lantern::passes
