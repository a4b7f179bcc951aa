// Legality and profitability of vectorisation: which loops can run in lanes. The pass vectorise asks for it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "lantern/compiler/passes/analysis/loops.hpp"

namespace lantern::passes {

/// How iterations are shared out to vectors: whole blocks of so many lanes, then of fewer; then blocks with idle
/// lanes for what is left.
struct VectorWidths {
  std::vector<int> whole;  ///< falling powers of two; 1: iteration by iteration
  std::vector<int> rest;   ///< falling powers of two: each takes what the next ones could not hold in a block

  int widest() const { return whole.empty() ? rest.front() : whole.front(); }
  /// Any order will do: loops that must have the same blocks take the first.
  auto operator<=>(const VectorWidths&) const = default;
};

/// What the choice of blocks asks about a loop.
struct LoopShape {
  bool inner = false;    ///< there are loops inside
  bool reads = false;    ///< reads elements of each iteration's own
  bool strided = false;  ///< accesses of inner loops are strided from lane to lane
  bool brief = false;    ///< inner loops make a few iterations, as is known
  bool heavy = false;    ///< calls functions such as exp
  bool narrow = false;   ///< no vector is wider than f32
  int work = 0;          ///< floating-point operations that differ from iteration to iteration, outside inner loops
  std::size_t size = 0;  ///< all operations
  std::optional<std::int64_t> iterations;  ///< if they are known
};

/// The blocks for a loop; nothing where iteration by iteration is better. `native`: how many f64 a register holds.
std::optional<VectorWidths> choose_blocks(const LoopShape& shape, int native);

/// How a loop's iterations become lanes.
struct LanePlan {
  Op* loop = nullptr;
  std::size_t index = 0;   ///< which of the state counts
  bool down = false;       ///< counts down to zero: the mirror of a loop that counts up
  Value* bound = nullptr;  ///< of a loop that counts up
  Value* iteration = nullptr;   ///< in the body: the index, or what numbers the iterations of a loop that counts down
  VectorWidths blocks;
  int lanes = 8;                            ///< of the widest blocks
  std::optional<std::int64_t> iterations;        ///< how many, where that is known
  std::unordered_set<const Op*> scattered;  ///< access rows by their lanes' own numbers, or write there
  bool calls = false;                       ///< functions such as exp, outside inner loops
  std::unordered_set<const Op*> guarded;    ///< behind a branch, which may be what keeps them in range
  std::unordered_set<const Op*> strided;    ///< access elements that do not follow each other from lane to lane, or one
  std::unordered_set<const Op*> interleaved;  ///< of these, every second to fourth one, or backwards: of whole vectors
  std::unordered_set<std::int64_t> outer_tapes;  ///< pushed here and popped elsewhere, or the other way round
  std::unordered_set<const Value*>
      varying;                              ///< differ from lane to lane; tensors among them gain a dimension
  std::unordered_set<const Value*> shared;  ///< tensors from outside that all iterations add to
  /// The loop's state that is a sum over its iterations, or the largest or smallest number of them, by body
  /// parameter: add, max or min.
  std::unordered_map<const Value*, ir::Opcode> reductions;

  /// Values that are only needed summed over all lanes. The adjoint of what all iterations share is such: it is
  /// linear in what differs from iteration to iteration, and factors that do not differ leave the sum. (The adjoint of
  /// a matrix times a vector, summed over the points, is the matrix times one sum.) They are kept as that
  /// sum, without lanes.
  std::unordered_set<const Value*> summed;
  std::unordered_set<const Value*> packed;  ///< tensors whose rows are read again and again, a row a lane

  /// True for an integer of the state that moves on with the index.
  bool counts_along(std::size_t state) const { return !down && state != index && step_of(loop, state); }

  bool is_varying(const Value* v) const { return varying.contains(v) && !summed.contains(v); }
  bool is_summed(const Value* v) const { return summed.contains(v); }
  bool is_shared(const Value* v) const { return shared.contains(v); }
};

/// The operations on each tape of the module.
using TapeUses = std::unordered_map<std::int64_t, std::vector<const Op*>>;
TapeUses tape_uses(const ir::Module& module);

/// True for an addition or subtraction of floating numbers that the program asks for. In the backward part of
/// a derivative adjoints are added up, whose order the program does not fix.
bool is_ordered_sum(const Op& op);

/// A plan, or null where the loop cannot run in lanes. `native`: how many f64 a register of the target holds.
/// `reassociate`: false where the program's own sums are to keep their order.
std::unique_ptr<LanePlan> plan_lanes(Op* loop, const TapeUses& tapes, int native, bool reassociate = true);

/// Finds what is only needed as a sum over the lanes (lane_sums.cpp).
void find_summed(LanePlan& plan, const Uses& uses, const std::vector<Op*>& ops);

/// A tensor of one value throughout, which can be made again with lanes.
bool is_uniform_fill(const Value* t);

}  // namespace lantern::passes
