// The state of unwind: regions, their mirrored blocks, frames and adjoint values. See unwind.hpp.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "lantern/compiler/passes/analysis/index_form.hpp"
#include "lantern/compiler/passes/analysis/loops.hpp"
#include "lantern/compiler/passes/analysis/iterations.hpp"
#include "lantern/compiler/passes/direct/flow.hpp"
#include "lantern/ir/checkpoint.hpp"
#include "lantern/ir/graph.hpp"
#include "lantern/ir/pointer_map.hpp"

namespace lantern::passes {

struct Region;

/// What parameter i, a cell, is the adjoint of: cells follow their primal.
inline Value* primal_of(const std::vector<Value*>& params, std::size_t i) {
  while (params[i]->type.is_ref()) --i;
  return params[i];
}
/// The cells among parameters, and the others.
inline std::vector<Value*> cells_of(std::vector<Value*> params) {
  std::erase_if(params, [](const Value* p) { return !p->type.is_ref(); });
  return params;
}
inline std::vector<Value*> without_cells(std::vector<Value*> params) {
  std::erase_if(params, [](const Value* p) { return p->type.is_ref(); });
  return params;
}

/// One `A; T; P` of a region's chain, in the original graph.
struct Segment {
  enum class Kind {
    halt,     ///< the end of the program
    exit,     ///< jump to the region's exit
    inlined,  ///< jump to a continuation of this chain: its body is the next segment
    branch,   ///< both sides, then the join's body as the next segment
    loop,     ///< the loop, then the exit's body as the next segment
    call,     ///< a function, then its continuation's body as the next segment
  };
  Kind kind = Kind::halt;
  Block* block = nullptr;      ///< original block
  std::size_t t = 0;           ///< index of T in it; P starts behind
  Op* continuation = nullptr;  ///< the `fun` whose body continues the chain (inlined, branch, loop, call)
  Op* forward = nullptr;       ///< the emitted construct
  std::unique_ptr<Region> sides[2];  ///< of a branch; sides[0] is a loop's body
  bool join_is_exit = false;         ///< branch: both sides leave the region
};

/// A part of the program that is run, or not, as a whole: its forward block has a mirrored backward block.
struct Region {
  /// iteration: one of a parallel loop, forward and backward part in one block (see unwind_parallel.cpp).
  enum class Kind { unit, function, side, body, iteration };
  Region(Kind k, Region* p, Block* f) : kind(k), parent(p), fwd(f) {}

  Kind kind;
  Region* parent;
  Block* fwd;            ///< where the forward part is emitted
  Block* bwd = nullptr;  ///< where the backward part is emitted
  std::vector<Segment> chain;
  Op* construct = nullptr;  ///< side, body: the forward branch or loop it belongs to
  std::size_t side = 0;
  Value* exit = nullptr;  ///< the continuation that leaves the region (original)

  std::unordered_map<Value*, Value*> saved;  ///< forward value -> the same value in `bwd`
  std::unordered_map<Value*, Value*>
      own;                              ///< body: the loop header's values in this iteration (original -> forward)
  ir::PointerMap<Value, Value*> cells;  ///< cell -> adjoint so far; null or absent: zero
  ir::PointerSet<Value> declared;       ///< cells of this region
  std::vector<Value*> imported;         ///< cells of enclosing regions touched in `bwd`, in order
  std::size_t forward_ops = 0;          ///< iteration: so many operations belong to the forward part
  bool is_doall = false;                ///< body: iterations do not depend on each other
  Value* iterations = nullptr;               ///< body: in `bwd`, how many iterations are left, this one included
  std::size_t pops = 0;                 ///< at the start of `bwd`: pops,
  std::size_t derived = 0;              ///< then values computed again from what is available

  /// True where the backward part sees the forward part's values as they are.
  bool visible() const { return kind == Kind::unit || kind == Kind::iteration; }
};

/// The direct-style halves of a function in continuation-passing style.
struct ForwardBackward {
  ir::Function* fwd = nullptr;
  ir::Function* bwd = nullptr;
  std::vector<std::size_t> shared;  ///< parameters of the original that both halves take
};

class Unwinder {
 public:
  Unwinder(ir::Function& unit, bool segments, MarkedCells marked)
      : unit_(unit), module_(*unit.module), automatic_(segments), marked_(std::move(marked)) {}
  void run();

 private:
  // Forward.
  void forward(Region& r, Block* start);
  Segment scan(Block* block) const;
  void forward_ops(Region& r, const Segment& s);
  Block* forward_branch(Region& r, Segment& s);
  Block* forward_loop(Region& r, Segment& s, Op* loop, std::vector<Value*> initial);
  Block* forward_call(Region& r, Segment& s);
  void end_forward(Region& r, const std::vector<Value*>& values);
  Value* exit_of(Block* start);
  void clone(Op* op, Block* into);
  Value* fwd(Value* original) const;
  std::vector<Value*> primals(const std::vector<Value*>& params_or_args, std::size_t from) const;
  void bind(Region& r, const std::vector<Value*>& params, const std::vector<Value*>& values);

  /// What is kept of an array, and the index that the first element had in it; null where it is all of it.
  struct Part {
    Value *elements, *first;
  };
  using Parts = std::unordered_map<const Op*, Part>;  ///< of each element's reading in the backward part

  // Backward.
  void backward(Region& r, const std::vector<Value*>& incoming);
  void backward_ops(Region& r, const Segment& s);
  void backward_op(Region& r, Op* op);
  void backward_branch(Region& r, Segment& s, const std::vector<Value*>& incoming);
  void backward_loop(Region& r, Segment& s);
  void backward_parallel(Region& r, Segment& s, const CountedLoop& count);
  Op* open_backward_loop(Region& r, Segment& s, Region& body, const char* index, std::vector<Value*>& incoming);
  void yield_adjoints(Region& r, const Segment& s, Region& body, Value* next_index, std::vector<Value*>& initial);
  void take_adjoints(Region& r, const Segment& s, const Region& body, const std::vector<Value*>& results);
  void enter_iteration(Region& body, const Segment& loop);
  bool may_run_twice(const Op* loop) const;
  bool cheaper_again(const Segment& s) const;
  bool only_frames(const Region& r, const Segment& s) const;
  bool may_be_overwritten(const Value* tensor) const;
  bool survives_forward_pass(const Value* tensor) const;
  static bool covers_tensor(const Op& get, const Op* outermost);
  void import_parallel_operands(Region& body, const Parts& parts);
  void mark_backward(Block* block, std::size_t from);
  const char* adjoint_name(Value* cell) const;
  Value* trip_count_of(Region& r, const Op* loop);
  void backward_call(Region& r, Segment& s, const std::vector<Value*>& incoming);
  std::vector<Value*> adjoints_of(Region& r, const std::vector<Value*>& params);
  void pass_to(Region& r, const std::vector<Value*>& args, std::size_t from,
               const std::vector<Value*>& adjoints);

  // Frames and cells.
  Value* at(Region& r, Value* forward_value);
  Value* save(Region& home, Value* v);
  Value* shared_result(const Region& side, Value* v);
  Value* compared_number(const Region& home, const Value* v) const;
  Value* derive(Region& home, Value* v);
  Value* made_again(Region& home, Value* v, const std::function<Value*()>& make);
  void settle(Region& home);
  int cost(const Region& from, Value* v, int budget) const;
  Value* final_version_of(const Value* element) const;
  static bool kept_for_all_iterations(const Region& inner, const Region& home);
  bool may_be_copied(const Region& home, const Value* tensor) const;
  bool saved_outside(const Region& inner, const Value* x) const;
  void note_updates(const Block* block);
  Value* bwd(Region& r, Value* original);
  Value* in_iteration(const Region& r, Value* original) const;
  Region* home_of(Value* v) const;
  bool at_hand(const Region& r, const Value* v) const;
  Value* cell(Region& r, Value* c);
  Value* cell_or_zero(Region& r, Value* c);
  Value* zero(Region& r, Value* c);
  Value* as_marked(Region& r, const Value* c, Value* zero);
  Value* zero_like(Region& r, Value* forward_value);
  void set_cell(Region& r, Value* c, Value* v);
  void add_cell(Region& r, Value* c, Value* v, const ir::Location& loc);

  // Elements that are kept once for all iterations of a loop (unwind_rows.cpp).
  struct LoopInvariantReads {
    Region* loop;   ///< in which the element is invariant
    Region* row;    ///< a loop inside whose iterations read one each; null: there is one element
    Value* tensor;  ///< that the loop starts with
  };
  std::optional<LoopInvariantReads> loop_invariant_reads(Region& home, const Op& get) const;
  Value* kept_alike(Region& home, Value* v);
  static std::optional<IndexRange> part_read(const Op& get, const Op* loop);
  Parts parts_of(Region& around, Op* loop, Block* again);
  Part kept_part(Region& around, Op* loop, Value* array, const std::vector<IndexRange>& ranges);
  Value* collected(ir::Builder& b, Value* first, Value* n,
                   const std::function<Value*(ir::Builder&, Value*)>& read);
  static Value* new_array(ir::Builder& b, ir::Kind kind, Value* n);

  // Forward parts that run more than once (unwind_again.cpp).
  enum class Frames { kept, dropped };
  ir::Function* value_of(ir::Function* fwd);
  void fill_values();
  bool is_frame(const Op& op) const;
  void copy_ops(const Block* from, Block* to, Renaming& map, Frames frames);

  // Loops that keep some states instead of all frames (unwind_segments.cpp).
  struct Snapshots {
    std::vector<std::size_t> state;   ///< what is kept of the loop's state,
    std::vector<std::int64_t> tapes;  ///< and where
    std::int64_t position = 0;        ///< tape of the number of iterations before each
  };
  using State = std::vector<Value*>;
  std::optional<std::int64_t> segment_length(Region& r, const Op* loop);
  State reverse_in_segments(Region& r, Op* loop, Op* reverse, const State& carried, std::int64_t length);
  State reverse_in_memory(Region& r, Op* loop, Op* reverse, const State& carried,
                          const ir::LoopMemory& memory);
  struct IterationSaves {
    std::int64_t bytes = 0, tensors = 0, tapes = 0;
    bool open = false;  ///< more than is known here
    void add(const IterationSaves& inner, std::int64_t times) {
      bytes += times * inner.bytes, tensors += times * inner.tensors, tapes += inner.tapes,
          open |= inner.open;
    }
  };
  IterationSaves saves_of(const Block* body) const;
  std::pair<Value*, Value*> checkpoint_budget(ir::Builder& b, const Op* loop, const Snapshots& snapshots,
                                   const ir::LoopMemory& memory, bool online);
  Value* advance(ir::Builder& b, Value* iterations, Value* free, Value* leaf);
  void thin(ir::Builder& b, const Op* loop, const Snapshots& snapshots, Value* count);
  State starts_of(Region& r, const Op* loop);
  Snapshots snapshots_of(const Op* loop);
  static void push(ir::Builder& b, std::int64_t tape, Value* v);
  static Value* pop(ir::Builder& b, std::int64_t tape, const ir::Type& type);
  static void push_state(ir::Builder& b, const Snapshots& snapshots, const State& state);
  static State pop_state(ir::Builder& b, const Snapshots& snapshots, const Op* loop, const State& first,
                         Value* position);
  Op* copy_loop(const Op* loop, Block* to, const State& initial, Frames frames, Value* until,
                bool own_condition);
  void import_operands(Region& r, Op* construct);
  void drop_frames(Block* block);
  static void in_front_of(const Op* op, Block* block, const std::function<void()>& emit);
  State run_reverse(Op* reverse, Block* to, Value* start, const State& state);
  State place_loop(Op* loop, Block* to, const State& state, const std::function<Value*(ir::Builder&, Value* index)>& more);

  ForwardBackward& halves(ir::Function* f);
  ir::Builder into(Block* b, const ir::Location& loc) { return {module_, b, loc}; }

  ir::Function& unit_;
  ir::Module& module_;
  const bool automatic_;                             ///< long loops are cut into segments
  const MarkedCells marked_;                         ///< they begin as -0
  ir::PointerMap<Value, Value*> fwd_;                ///< original value -> forward value
  ir::PointerMap<Value, Value*> bwd_;                ///< original value of a P part -> backward value
  std::unordered_map<const Block*, Region*> homes_;  ///< forward block -> region
  std::unordered_map<const Block*, Value*> exits_;   ///< memo of exit_of
  std::unordered_set<const Value*> updated_;         ///< forward tensors with an element that is changed
  std::unordered_map<const Value*, std::vector<const Value*>> handed_on_;  ///< to loops and by yields
  mutable std::unordered_map<const Value*, Value*> left_behind_;           ///< memo
  ir::PointerMap<Value, Value*> likes_;             ///< cell -> the primal whose shape it has (original)
  std::unordered_map<Value*, Value*> value_cells_;  ///< cell written by ref_set -> forward value
  std::unordered_map<const ir::Function*, std::unique_ptr<ForwardBackward>> halves_;
  std::unordered_set<const ir::Function*> forward_halves_;
  std::unordered_map<ir::Function*, ir::Function*> values_;  ///< forward half -> the same without frames
  std::vector<ir::Function*> unfilled_;                      ///< forward halves whose copies are empty so far
  std::unordered_set<std::int64_t> frames_;                  ///< tapes that hold frames
  std::unordered_map<const Op*, const Value*> part_copies_;  ///< loops that keep a part of an array, and which array
  std::unordered_map<const Op*, std::vector<std::size_t>> side_results_;  ///< of branches: values of one side
  std::unordered_set<const Op*> parallel_;  ///< backward loops whose iterations hold forward parts
};

}  // namespace lantern::passes
