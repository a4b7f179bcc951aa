// Elimination of bounds checks: which checks of indices can never fail, so that none is printed.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lantern/compiler/passes/analysis/index_form.hpp"
#include "lantern/compiler/passes/analysis/live_uses.hpp"
#include "lantern/compiler/passes/analysis/shapes.hpp"
#include "lantern/ir/graph.hpp"
#include "lantern/ir/pointer_map.hpp"

namespace lantern::passes {

/// A check of all indices that one access has in a loop, to be made before it: first, first + step, ... below
/// end, and after each `count` - 1 that follow it, must be below size. With step -1 they come in falling
/// order. There is nothing to check where end is not above first; `iterations`, where given, must then be positive
/// for there to be anything.
///
/// Where numbers may wrap, `start` says what the first index is, modulo 2^64, and the loop counts from
/// `first` to below `end` as it is compared; the index is so many times that number, and the start. Where `times` is
/// negative, the indices fall as the loop counts up.
struct LoopCheck {
  IndexForm first, end, size;
  std::int64_t step = 1, count = 1;
  std::optional<IndexForm> iterations;
  std::optional<IndexForm> start;
  std::int64_t times = 1;
  const ir::Op* access = nullptr;  ///< the first one that it is for
};

/// What is known of an index without looking: that it is not negative, that it is below the size; or which of
/// the checks before the loop says so.
struct KnownRange {
  bool low = false;
  bool high = false;
  int check = -1;

  bool is_inside() const { return low && high; }
};

/// Where indices of one function lie, whatever its arguments are.
///
/// Integers are written as sums of multiples of those that nothing is known about. Where a loop begins, what
/// conditions say, sizes of tensors, and checks that come before give sums that are not negative; an index i
/// of a dimension of n elements is in range where i and n - 1 - i are sums of such sums. (Farkas: linear
/// inequalities that follow from others are nonnegative combinations of them; found by elimination, newest
/// unknown first.)
class IndexRanges {
 public:
  IndexRanges(const ir::Function& function, const LiveUses& uses);

  /// Of operand `operand` of an access, as the index of a dimension; of a vector of indices that follow each
  /// other: of all of them.
  KnownRange of(const ir::Op& access, std::size_t operand) const;
  /// True where an integer operation gives what it gives of numbers without bounds: nothing wraps.
  bool exact(const ir::Op& op) const { return exact_.contains(&op); }
  /// True for a fill none of whose sizes is negative.
  bool sized(const ir::Op& fill) const { return sized_.contains(&fill); }
  /// The checks to make before a loop.
  const std::vector<LoopCheck>& before(const ir::Op& loop) const;

 private:
  /// constant + sum of factors times unknowns, by falling number of the unknown.
  struct Sum {
    std::int64_t constant = 0;
    std::vector<std::pair<int, std::int64_t>> terms;
    bool known = true;  ///< false where a number grew too large, or the sum too long
  };
  static constexpr std::int64_t unbounded = std::numeric_limits<std::int64_t>::max();
  struct Unknown {
    const ir::Value* value = nullptr;
    int dimension = -1;
    bool size = false;  ///< of a dimension: not negative
    /// What its absolute value never exceeds: known of sizes, and of what counts from them. A sum of others,
    /// as the machine computes it, need not be the sum, and is an unknown of its own.
    std::int64_t most = unbounded;
    std::vector<int> facts;  ///< in which it is
  };

  /// How a loop counts: in steps of so much, all numbers from first to below end, if nothing else ends it; by
  /// -1 the last one comes first.
  struct Counting {
    const ir::Op* loop = nullptr;
    int counter = 0;  ///< the unknown
    Sum first, end;
    std::int64_t step = 1;
  };
  std::optional<Counting> counting(const ir::Op& loop, const std::vector<Sum>& condition);
  int check_before(const Counting& loop, const ir::Op& access, const Sum& index, std::int64_t count,
                   const Sum& size);
  int wrapping_check_before(const Counting& loop, const ir::Op& access, const ir::Value* index,
                            std::int64_t count, const Sum& size);
  int add_check(const Counting& loop, LoopCheck check);
  bool printable(const Sum& s) const;
  IndexForm form(const Sum& s) const;
  static const ir::Value* in_body(const ir::Value* v);
  bool visible(const Sum& s, const ir::Block* from) const;

  void block(const ir::Block* b);
  void operation(const ir::Op& op);
  void loop(const ir::Op& op);
  void assume_multiples(const ir::Op& loop);
  void branch(const ir::Op& op);
  void access(const ir::Op& op);
  void integer(const ir::Op& op);

  Sum sum_of(const ir::Value* v);
  Sum size_of(const ir::Value* t, std::size_t dimension);
  Sum unknown(const ir::Value* v, int dimension);
  struct Lanes {
    Sum first;
    std::int64_t step = 1;
  };
  std::optional<Lanes> lanes(const ir::Value* index);

  static void add(Sum& to, const Sum& x, std::int64_t factor);
  static Sum difference(const Sum& x, const Sum& y, std::int64_t constant = 0);
  /// What the absolute value of a sum never exceeds; unbounded where that may be so much that it wraps.
  std::int64_t most(const Sum& s) const;
  bool small(const Sum& s) const { return most(s) != unbounded; }
  /// Bounds the unknown that a value is.
  void set_most(const ir::Value* v, std::int64_t most);
  struct Limit {
    std::int64_t most = unbounded;  ///< of the value that ends the loop
    bool strict = false;            ///< the counter is less than it, or more where it falls
  };
  std::optional<Limit> limit(const ir::Op& loop, std::size_t counter, bool up);
  /// Writes a value as a sum, if what the machine computes is that.
  void set_sum(const ir::Value* v, Sum s);
  /// From here on `s` is not negative.
  void assume(Sum s);
  void assume(const ir::Value* condition, bool holds);
  bool proved(const Sum& s);
  bool proved(const Sum& s, int depth, int& steps);
  std::vector<Sum> facts_of(const ir::Value* condition, bool holds);
  void forget(std::size_t facts);

  const LiveUses& uses_;
  Shapes shapes_;
  std::optional<Counting> counting_;  ///< of the loop whose body is being walked
  std::vector<Sum> facts_;
  std::vector<Unknown> unknowns_;
  std::unordered_map<const ir::Value*, std::vector<std::pair<int, int>>> numbers_;  ///< dimension, unknown
  ir::PointerMap<const ir::Value, Sum> sums_;
  std::unordered_map<const ir::Op*, std::vector<KnownRange>> known_;
  std::unordered_map<const ir::Op*, std::vector<LoopCheck>> checks_;
  ir::PointerSet<const ir::Op> exact_, sized_;
};

}  // namespace lantern::passes
