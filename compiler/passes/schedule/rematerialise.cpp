// Nests from the first to the last, so that what a nest reads of another one is what that one reads when its
// turn comes.
#include "lantern/compiler/passes/schedule/rematerialise.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "lantern/compiler/passes/analysis/index_form.hpp"
#include "lantern/compiler/passes/analysis/iterations.hpp"
#include "lantern/compiler/passes/analysis/loops.hpp"
#include "lantern/compiler/passes/canonical/simplify.hpp"
#include "lantern/compiler/passes/schedule/equal_numbers.hpp"
#include "lantern/compiler/passes/schedule/loop_order.hpp"
#include "lantern/compiler/passes/schedule/views.hpp"
#include "lantern/compiler/passes/support/rewrite.hpp"
#include "lantern/ir/clone.hpp"

namespace lantern::passes {

namespace {

using ir::Builder;
using ir::Combine;

/// What computing an element again may cost, an addition being 1: loading it takes a GPU about as long.
constexpr std::int64_t most_work = 60;
/// Kernels that compute the elements of one nest again, and values that a kernel is given, whose bytes are
/// bounded.
constexpr std::size_t most_readers = 4, most_given = 48;

/// Where an operation lies within one of a block.
Op* ancestor_in(Op* op, const Block* block) {
  while (op && op->parent != block) op = op->parent->parent;
  return op;
}

/// The loops around an operation, up to one of them, the innermost first, and their counters; nothing where
/// one is not parallel or does not count up, or where it is a condition's operation.
std::optional<std::vector<const Value*>> counters_around(const Op* op, const Op* outermost) {
  std::vector<const Value*> all;
  for (const Op* at = op; at != outermost;) {
    const Block* const block = at->parent;
    at = block->parent;
    if (!at) return {};
    if (!at->is(Opcode::loop_)) continue;
    const auto count = counted(at);
    if (!count || block != at->blocks[1]) return {};
    all.push_back(count->number);
  }
  return all;
}

/// Each of the counters is one of the indices of an access, and each index is one of them.
bool goes_through(const Op& access, const std::vector<const Value*>& counters) {
  const auto first = access.operands.begin() + 1, last = first + access.operands[0]->type.rank();
  return static_cast<std::size_t>(last - first) == counters.size() &&
         std::ranges::all_of(counters, [&](const Value* c) { return std::count(first, last, c) == 1; });
}

/// A perfect nest. Each iteration stores one element of each result, and no two iterations store the same
/// one. What it reads of the tensor that it updates is that element, as it was.
class Producer {
 public:
  /// `all`: the uses in the function, before any nest went. What goes into a kernel uses nothing that the
  /// kernel makes, nor what is made after it: the uses of a later nest's results are as they were.
  Producer(const Uses& all, Op* outermost, const EqualNumbers& equal, BlockDoings& doings)
      : all_(all),
        uses_(outermost),
        block_(outermost->parent),
        outermost_(outermost),
        equal_(equal),
        doings_(doings) {}

  /// True where its readers do its work now.
  bool run() {
    if (!follow() || !all_readers() || !undisturbed() || !worth()) return false;
    for (const Read& read : reads_) compute(read);
    release();
    return true;
  }

 private:
  struct Result {
    std::size_t state = 0;       ///< of the outermost loop
    const Op* update = nullptr;  ///< of the element
  };
  struct Read {
    Op* get;
    Op* kernel;
    const Result* of;
  };

  /// Down the nest to the updates.
  bool follow() {
    std::vector<std::size_t> states;
    for (std::size_t i = 0; i < outermost_->operands.size(); ++i)
      if (outermost_->operands[i]->type.is_tensor()) states.push_back(i);
    const std::vector<std::size_t> outer = states;
    for (Op* loop = outermost_;;) {
      const auto count = counted(loop);
      if (!ir::is_parallel(*loop) || !count || loop->integer != 0 ||
          loop->operands.size() != states.size() + 1)
        return false;
      Block* const body = loop->blocks[1];
      counters_.push_back(count->number);
      if (std::ranges::none_of(body->ops, [](const Op* op) { return op->is(Opcode::loop_); }))
        for (std::size_t i = 0; i < states.size(); ++i)
          starts_[body->params[states[i]]] = outermost_->operands[outer[i]];
      Op* inner = nullptr;
      for (Op* op : body->ops) {
        if (op->is(Opcode::loop_)) {
          if (inner) return false;
          inner = op;
        } else if (!op->is(Opcode::yield_, Opcode::set_) && !pure(*op)) {
          return false;
        }
      }
      std::vector<std::size_t> next;
      for (const std::size_t state : states) {
        const Value* const param = body->params[state];
        if (ir::combine(*loop, state) != Combine::element ||
            !uses_.of(loop->blocks[0]->params[state]).empty())
          return false;
        const std::size_t outermost =
            outer[static_cast<std::size_t>(std::ranges::find(states, state) - states.begin())];
        std::vector<ir::Use> uses;
        for (const ir::Use& use : uses_.of(param))
          if (inner || use.operand != 0 || !starts_.contains(param) || !use.op->is(Opcode::get_))
            uses.push_back(use);
        if (uses.size() != 1) return false;
        Op* const op = uses[0].op;
        const Value* made = nullptr;
        if (op == inner) {
          next.push_back(uses[0].operand);
          made = op->results[uses[0].operand];
        } else if (!inner && op->parent == body && op->is(Opcode::set_) && uses[0].operand == 0) {
          results_.push_back({outermost, op});
          if (!own_reads(*op, param)) return false;
          made = op->result();
        } else {
          return false;
        }
        const auto& handed = uses_.of(made);
        if (handed.size() != 1 || handed[0].op != body->ops.back() || handed[0].operand != state)
          return false;
      }
      if (!inner) break;
      states = next;
      loop = inner;
    }
    return !results_.empty() && std::ranges::all_of(results_, [&](const Result& r) {
      if (!goes_through(*r.update, counters_)) return false;
      for (std::size_t d = 0; d < counters_.size(); ++d)
        if (start_of_run(r.update->operands[1 + d], size_form(outermost_->operands[r.state], d), equal_) != 0)
          return false;
      return true;
    });
  }

  /// All that is read of a state is the element that its update replaces.
  bool own_reads(const Op& update, const Value* param) const {
    return std::ranges::all_of(uses_.of(param), [&](const ir::Use& use) {
      return use.op == &update ||
             (use.op->is(Opcode::get_) && std::equal(update.operands.begin() + 1, update.operands.end() - 1,
                                                     use.op->operands.begin() + 1, use.op->operands.end()));
    });
  }
  /// The tensor that is read, as it is before the nest.
  Value* source(const Op& load) const {
    const auto start = starts_.find(load.operands[0]);
    return start == starts_.end() ? load.operands[0] : start->second;
  }
  bool is_own(const Op& load) const { return starts_.contains(load.operands[0]); }

  bool inside(const Value* v) const { return made_in(v, outermost_->blocks[1]); }

  /// An operation that may be done anywhere behind what it needs. What is read of tensors is noted.
  bool pure(Op& op) {
    if (op.is(Opcode::get_)) {
      if ((inside(op.operands[0]) && !is_own(op)) || op.result()->type.is_vector()) return false;
      if (is_own(op)) {  // at the indices of the update
        loads_.push_back(&op);
        return true;
      }
      for (std::size_t d = 0; d < static_cast<std::size_t>(op.operands[0]->type.rank()); ++d) {
        const Value* const index = op.operands[1 + d];
        const bool counts = std::ranges::find(counters_, index) != counters_.end();
        if ((!counts || start_of_run(index, size_form(op.operands[0], d), equal_) != 0) && !in_range(op, d))
          return false;
      }
      loads_.push_back(&op);
      return true;
    }
    if (op.results.size() != 1 || !op.blocks.empty() || op.result()->type.is_tensor() ||
        op.result()->type.is_vector())
      return false;
    if (op.is(Opcode::constant_, Opcode::cast_)) return true;
    if (op.is(Opcode::dim_)) return !inside(op.operands[0]);
    return ir::info(op.code).elementwise && !ir::divides_integers(op);
  }

  /// All that uses the results reads their elements in kernels, or asks for their shapes.
  bool all_readers() {
    if (!all_.of(counter_result()).empty()) return false;
    for (const Result& result : results_) {
      std::vector<const Value*> names{outermost_->results[result.state]};
      for (std::size_t i = 0; i < names.size(); ++i)
        for (const auto& [op, operand] : all_.of(names[i])) {
          const bool view = op->is(Opcode::reshape_) && operand == 0;
          if (op->is(Opcode::dim_, Opcode::reshape_)) {
            if (i == 0) shapes_.push_back({op, operand, result.state});
            if (view && op->parent != block_) return false;
            if (view) names.push_back(op->result());
          } else if (!op->is(Opcode::get_) || operand != 0 || !reads_elements(*op, result)) {
            return false;
          }
        }
    }
    return !reads_.empty();
  }
  const Value* counter_result() const { return outermost_->results[counters_.front()->index]; }

  bool reads_elements(Op& get, const Result& result) {
    Op* const kernel = ancestor_in(&get, block_);
    if (!kernel || kernel == outermost_ || !kernel->is(Opcode::loop_) || !ir::is_parallel(*kernel))
      return false;
    auto counters = counters_around(&get, kernel);
    if (!counters) return false;
    if (!goes_through(get, *counters)) return false;
    // A view has the sizes of what is made.
    const Value* const made = outermost_->results[result.state];
    if (get.operands[0]->type.rank() != made->type.rank()) return false;
    for (std::size_t d = 0; d < counters_.size(); ++d) {
      const IndexForm size = size_form(outermost_->operands[result.state], d);
      if (get.operands[0] != made && !equal_(size_form(get.operands[0], d), size)) return false;
      if (start_of_run(get.operands[1 + d], size, equal_) != 0 && !in_range(get, d)) return false;
    }
    reads_.push_back({&get, kernel, &result});
    return true;
  }

  /// What the nest reads is still there for the readers, and no reader updates it.
  bool undisturbed() const {
    std::unordered_set<const Value*> read;
    for (const Op* load : loads_)
      if (!is_own(*load)) read.insert(viewed(source(*load)));
    for (const Value* v : outermost_->operands)
      if (v->type.is_tensor() && read.contains(viewed(v))) return false;
    for (const Op* load : loads_) read.insert(viewed(source(*load)));
    std::unordered_set<const Op*> kernels;
    for (const Read& r : reads_) kernels.insert(r.kernel);
    const auto& ops = block_->ops;
    for (auto it = std::ranges::find(ops, outermost_) + 1; it != ops.end() && !kernels.empty(); ++it) {
      const Doings& d = doings_.of(*it);  // a kernel that elements were put into updates what it did
      for (const std::vector<const Value*>* tensors : {&d.updated, &d.called})
        for (const Value* v : *tensors)
          if (read.contains(v)) return false;
      kernels.erase(*it);
    }
    return kernels.empty();
  }

  /// Elements that are moved, before and after, in units of the nest's iterations; and what is computed.
  bool worth() const {
    std::map<const Op*, std::set<const Value*>> large_loads;  // of each reader, what it would have to load
    std::map<const Op*, std::set<const Result*>> loaded;
    const auto is_large = [&](const Op* load) { return goes_through(*load, counters_); };
    std::set<const Value*> own;
    std::map<const Op*, std::set<const Op*>>
        moved_loads;  // at places that are computed: no other load has the same
    std::size_t moved = 0;
    for (const Op* load : loads_) {
      if (is_large(load)) own.insert(viewed(source(*load)));
      moved += at_computed_place(*load);
    }
    for (const Read& r : reads_) {
      loaded[r.kernel].insert(r.of);
      for (const Op* load : needs(*r.of)) {
        if (is_large(load)) large_loads[r.kernel].insert(viewed(source(*load)));
        if (at_computed_place(*load)) moved_loads[r.kernel].insert(load);
      }
    }
    if (loaded.size() > most_readers) return false;
    std::size_t before = own.size() + moved + results_.size(), after = 0;
    for (auto& [kernel, results] : loaded) {
      before += results.size();
      std::unordered_set<const Value*> there, given(kernel->operands.begin(), kernel->operands.end());
      std::unordered_set<const Op*> replaced;
      for (const Read& r : reads_) replaced.insert(r.get);
      ir::walk(kernel->blocks[1], [&, &k = kernel](const Op* op) {
        for (const Value* v : op->operands)
          if (!v->def || !v->def->is(Opcode::constant_)) given.insert(v);
        if (!op->is(Opcode::get_) || replaced.contains(op)) return;
        if (const auto counters = counters_around(op, k); counters && goes_through(*op, *counters))
          there.insert(viewed(op->operands[0]));
      });
      std::size_t outside = 0;
      for (const Value* v : given) outside += !ancestor_of(v, kernel);
      if (outside + 2 * loads_.size() > most_given) return false;
      for (const Value* v : large_loads[kernel]) after += !there.contains(v);
      after += moved_loads[kernel].size();
    }
    return after < before && std::ranges::all_of(results_, [&](const Result& r) {
             std::int64_t work = 0;
             for (const Op* op : needed(r)) work += op->is(Opcode::get_) ? 0 : weight(*op);
             return work <= most_work;
           });
  }
  /// True where an index is a number that the nest makes of its counters.
  bool at_computed_place(const Op& load) const {
    const auto first = load.operands.begin() + 1;
    return std::any_of(first, first + load.operands[0]->type.rank(), [&](const Value* index) {
      return inside(index) && std::ranges::find(counters_, index) == counters_.end();
    });
  }
  static bool ancestor_of(const Value* v, const Op* kernel) {
    for (const Block* b = v->block; b; b = b->parent ? b->parent->parent : nullptr)
      if (b->parent == kernel) return true;
    return false;
  }

  /// The operations of the nest that a result needs.
  std::vector<const Op*> needed(const Result& r) const {
    std::vector<const Op*> all;
    std::unordered_set<const Value*> seen;
    std::vector<const Value*> rest{r.update->operands.back()};
    while (!rest.empty()) {
      const Value* const v = rest.back();
      rest.pop_back();
      if (!v->def || !inside(v) || !seen.insert(v).second) continue;
      all.push_back(v->def);
      rest.insert(rest.end(), v->def->operands.begin(), v->def->operands.end());
    }
    return all;
  }
  std::vector<const Op*> needs(const Result& r) const {
    std::vector<const Op*> all = needed(r);
    std::erase_if(all, [](const Op* op) { return !op->is(Opcode::get_); });
    return all;
  }

  /// Computes an element where it was read.
  void compute(const Read& read) {
    Builder b = Builder::before(read.get);
    ir::Renaming names;
    for (std::size_t d = 0; d < counters_.size(); ++d)
      names[read.of->update->operands[1 + d]] = read.get->operands[1 + d];
    std::vector<const Op*> ops = needed(*read.of);
    std::unordered_set<const Op*> wanted(ops.begin(), ops.end());
    ir::walk(outermost_->blocks[1], [&](const Op* op) {  // in their order
      if (!wanted.contains(op)) return;
      std::vector<Value*> operands;
      for (Value* v : op->operands) operands.push_back(ir::renamed(names, v));
      if (op->is(Opcode::get_)) operands[0] = source(*op);
      ir::clone_over(b, *op, std::move(operands), names);
    });
    ir::replace_uses(read.kernel->blocks[1], read.get->result(),
                     ir::renamed(names, read.of->update->operands.back()));
    erase({read.get});
  }

  /// Its shapes, and views whose shapes are asked for, are those of what the nest began with.
  void release() {
    for (const auto& [op, operand, state] : shapes_) op->operands[operand] = outermost_->operands[state];
    erase({outermost_});
  }

  struct Shape {
    Op* op;
    std::size_t operand, state;
  };

  const Uses& all_;
  const Uses uses_;  ///< inside
  Block* block_;
  Op* outermost_;
  const EqualNumbers& equal_;
  BlockDoings& doings_;
  std::vector<const Value*> counters_;  ///< the outermost first
  std::unordered_map<const Value*, Value*>
      starts_;  ///< by the states of the innermost loop: what they begin with
  std::vector<Result> results_;
  std::vector<const Op*> loads_;
  std::vector<Read> reads_;
  std::vector<Shape> shapes_;
};

}  // namespace

void rematerialise(ir::Module& module) {
  bool any = false;
  const TapeUses tapes = tape_uses(module);
  for (ir::Function* f : module.functions()) {
    if (!is_direct(*f)) continue;
    const Uses all(*f);
    for (Block* block : host_blocks(*f)) {
      BlockDoings doings;
      EqualNumbers equal;
      equal.note_saved(tapes, block);
      for (Op* op : std::vector<Op*>(block->ops)) {
        equal.note(*op);  // what a later check says is not known yet
        if (op->is(Opcode::loop_) && ir::is_parallel(*op)) any |= Producer(all, op, equal, doings).run();
      }
    }
  }
  if (any) simplify(module);
}

}  // namespace lantern::passes
