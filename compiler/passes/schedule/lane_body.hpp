// A loop's body written again, in lanes.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "lantern/compiler/passes/analysis/lanes.hpp"

namespace lantern::passes {

/// What represents a value of the code around the loop by now.
using Resolve = std::function<Value*(Value*)>;

/// The tapes that lanes share with other loops: for blocks of fewer lanes than a plan's widest ones, tapes of
/// their own. What such a block pushes, a block of as many lanes pops.
class LaneTapes {
 public:
  std::int64_t of(ir::Module& module, const LanePlan& plan, std::int64_t tape, int lanes) {
    if (lanes == plan.lanes) return tape;
    const auto [it, added] = tapes_.try_emplace({tape, lanes}, 0);
    if (added) it->second = module.new_tape();
    return it->second;
  }

 private:
  std::map<std::pair<std::int64_t, int>, std::int64_t> tapes_;
};

/// One version of a loop's body: of so many iterations at once, in lanes, or of a single iteration as it was.
class LaneBody {
 public:
  LaneBody(ir::Module& module, const LanePlan& plan, LaneTapes& tapes, int lanes, const Resolve& outside,
           Block* into)
      : module_(module),
        plan_(plan),
        tapes_(tapes),
        lanes_(lanes),
        outside_(outside),
        builder_(module, into) {}

  /// The iterations `first` .. of a whole block, or as many as `active` says.
  /// `state`: the loop's state by body parameter, vectors for sums. Gives the next state in the same form.
  std::vector<Value*> run(Value* lo, Value* first, Value* active, const std::vector<Value*>& state);

  /// The sum of a vector over the lanes that are not idle.
  Value* sum(Value* v) { return builder_.emit(Opcode::lane_sum_, {only_active(v)}); }
  /// A next state where lanes work, the one before where they are idle.
  Value* kept(Value* next, Value* before) {
    return working_ ? builder_.select({working_, next, before}) : next;
  }
  ir::Builder& builder() { return builder_; }

 private:
  bool varies(const Value* v) const { return lanes_ > 1 && plan_.is_varying(v); }
  bool is_summed(const Value* v) const { return lanes_ > 1 && plan_.is_summed(v); }
  bool is_shared(const Value* v) const { return lanes_ > 1 && plan_.is_shared(v); }

  Value* now(Value* v) const;
  Value* splat(Value* v) { return lanes_ == 1 ? v : builder_.emit(Opcode::lane_splat_, {v}, lanes_); }

  /// A scalar as a vector, a tensor with a dimension of lanes.
  Value* in_lanes(Value* v);

  /// Zeros of a type whose first dimensions are those of `like`; a dimension of lanes may follow.
  Value* zeros(const ir::Type& type, Value* like);

  Value* only_active(Value* vector);

  void block(const Block* b);

  void operation(Op* op);

  void define(const Op* op, Value* v);

  /// Values whose sum is asked for further in: it is taken where they are made.
  void find_wanted();

  /// A value summed over the lanes.
  Value* sum_of(Value* v);

  /// A value that is the same in all lanes, as often as there are lanes at work.
  Value* times_active(Value* v);

  /// An operation of which only the sum over the lanes is needed.
  void summed(const Op* op);

  /// Rows that inner loops read over and over are laid out once, lane beside lane.
  void pack(Value* index);

  /// Values that are the same in all lanes.
  void plain(const Op* op);

  void get(const Op* op);

  /// What an index grows by from lane to lane; nothing where that is not seen.
  std::optional<std::int64_t> lane_step(const Value* index);
  /// The index in the first lane, of one that has a step. `made`: those that are there already.
  Value* first_of(Value* index, std::unordered_map<const Value*, Value*>& made);

  /// A read or a sum behind a branch, of one element after the other: of all lanes at once where all of the elements
  /// are in range. `guarded`: the operands elsewhere. Null where the elements do not follow each other.
  Value* whole_or_by_lanes(const Op& op, const std::vector<Value*>& guarded);

  /// True where the lanes access different elements.
  bool scattered(const Op& op, std::size_t last) const;

  void update(const Op* op);

  /// Indices of lanes that do not take the current branch become those of the first element; whether they need to.
  bool guard(const Op& op, std::vector<Value*>& operands);
  /// What an update stores where the lane takes the branch, and else what changes nothing.
  Value* chosen(const Op& op, std::vector<Value*> operands);

  void tape(const Op* op);

  /// Each version of the body has tapes of its own, so that it is seen to pop whatever it pushes.
  std::int64_t own_tape(std::int64_t tape);

  /// A tape holds vectors where what is popped varies.
  bool varying_tape(std::int64_t tape);

  ir::Type type_of(const Value* v) const;
  std::vector<ir::Type> types_of(const std::vector<Value*>& values) const;
  /// The results of an operation are those of its copy, which have their names.
  void give_results(const Op* op, const Op* copy);
  Value* as(const Value* like, Value* v) { return varies(like) ? in_lanes(v) : now(v); }

  bool branch_on_any_lane(const Op* op, std::size_t side) const;
  std::vector<Value*> side(const Op* op, std::size_t k, Value* taken);
  void both_sides(const Op* op);

  void loop(const Op* op);

  void branch(const Op* op);
  static Value* before(Value* v, const Block* side);

  ir::Module& module_;
  const LanePlan& plan_;
  LaneTapes& tapes_;
  int lanes_;
  const Resolve& outside_;
  ir::Builder builder_;
  Value* first_ = nullptr;  ///< the number of the first lane's iteration
  std::unordered_map<const Value*, Value*> now_;
  std::unordered_map<std::int64_t, bool> varying_tapes_;
  std::unordered_map<std::int64_t, std::int64_t> own_tapes_;
  std::unordered_set<const Value*> wanted_;
  std::unordered_map<const Value*, Value*> sums_;
  std::unordered_map<const Value*, std::optional<std::int64_t>> steps_;  ///< of sums and differences
  std::unordered_map<const Value*, Value*> packed_;
  Value* lane_ = nullptr;     ///< their numbers; null where there is one
  Value* working_ = nullptr;  ///< true in the lanes that work; null where all do
  Value* active_ = nullptr;   ///< how many that are
  Value* taken_ = nullptr;    ///< true in the lanes that take the current branch; null where all do
};

}  // namespace lantern::passes
