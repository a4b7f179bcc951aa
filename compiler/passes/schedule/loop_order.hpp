// What lies between loops of a block that are to run one right after the other.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "lantern/compiler/passes/analysis/index_ranges.hpp"
#include "lantern/compiler/passes/schedule/equal_numbers.hpp"
#include "lantern/compiler/passes/support/rewrite.hpp"
#include "lantern/ir/function_ref.hpp"

namespace lantern::passes {

/// The blocks whose loops are kernels: those outside of parallel loops.
std::vector<Block*> host_blocks(ir::Function& f);
/// True for control flow, and for what computes without memory: divisions of integers, too.
bool only_computes(const Op& op);
/// The values from around that loops of one block take.
std::unordered_set<const Value*> captured_by(const std::vector<Op*>& loops);
/// True where iterations save values or take them from tapes.
bool uses_tapes(const Op* loop);
/// True unless no iteration can fail: by an index outside, a division of integers, or what is not known.
/// `ranges`: of indices, where the loop is, or further down.
bool may_fail(const Op* loop, const EqualNumbers& equal, const IndexRanges* ranges = nullptr);

/// What an operation and those inside it do that others may not pass.
struct Doings {
  bool checks = false, keeps_order = false;
  std::vector<std::int64_t> tapes;  ///< that it saves to or takes from
  std::vector<const Value*> operands;
  std::vector<const Value*> updated;  ///< tensors, and those that views are of
  std::vector<const Value*> called;   ///< the same, that functions are called with
  std::vector<const Value*> touched;  ///< the same, of all but views and sizes
  std::vector<const Value*> inside;   ///< the same, of all operations in the body of a loop
};
/// Of the operations of a block, found once.
class BlockDoings {
 public:
  const Doings& of(const Op* op);
  /// The operation has changed, or a tensor that it has a view of has another name.
  void forget(const Op* op) { known_.erase(op); }

 private:
  std::unordered_map<const Op*, Doings> known_;
};

/// The operations of a block that use a value, themselves or in what they hold.
class BlockUsers {
 public:
  BlockUsers(const Block* block, BlockDoings& doings);
  /// True where an operation other than this one uses the value.
  bool others_use(const Value* v, const Op* user) const;
  /// An operation that is new in the block, or uses more than it did.
  void note(Op* op);
  /// It is in the block no longer.
  void forget(const Op* op) { gone_.insert(op); }
  /// All of them use what has another name by that.
  void replace(const Renaming& names);

 private:
  /// Those that use it, and some that did.
  std::vector<Op*> noted(const Value* v) const;

  BlockDoings& doings_;
  ir::PointerMap<const Value, std::vector<Op*>> users_;
  ir::PointerSet<const Op> gone_;
};

/// The operations between neighbouring loops and a later one of the same block. `earlier` ones need no result
/// of the loops and can stay before them, `later` ones can follow the last loop. What takes from a tape that
/// a `later` one saves to is `later`, too.
struct Between {
  std::vector<Op*> earlier, later;
  std::unordered_set<const Value*> made;  ///< results of the loops, and of what needs them
};
/// Nothing where there are more than `most`. `together` gives the operations that must keep their places
/// beside one, itself included.
std::optional<Between> between(const std::vector<Op*>& loops, const Op* last, std::ptrdiff_t most,
                               BlockDoings& doings, ir::FunctionRef<std::vector<Op*>(Op*)> together);

/// How the loops and the last one may fail, and which of the last one's operands are results of the loops
/// that it works on.
struct Reordering {
  bool first_fails = true, last_fails = true;
  std::unordered_set<const Value*> handed_on;
};
/// True where the loops can run as late as the last one, and that one before what needs them: nothing passes
/// an effect or a check that might tell another failure first, and no tensor would have to be copied.
bool undisturbed(const std::vector<Op*>& loops, const Op* last, const Between& between, const Reordering& how,
                 BlockDoings& doings);

}  // namespace lantern::passes
