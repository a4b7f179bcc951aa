// Which loops, and which calls, write all of a tensor before anything reads it.
#include "lantern/compiler/passes/array/dead_fills.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "lantern/compiler/passes/analysis/loops.hpp"
#include "lantern/compiler/passes/analysis/offset.hpp"
#include "lantern/compiler/passes/canonical/simplify.hpp"
#include "lantern/ir/external.hpp"

namespace lantern::passes {

namespace {

/// True where an integer is the size of a filled tensor in one dimension.
bool is_size(const Value* n, const Filled& f, std::size_t dimension) {
  if (f.fill) return same_number(n, f.fill->operands[1 + dimension]);
  const std::int64_t known = f.like->type.dims()[dimension];
  if (known != ir::dynamic) return constant(n) && constant(n)->integer == known;
  return n->def && n->def->is(Opcode::dim_) && n->def->operands[0] == f.like &&
         n->def->integer == static_cast<std::int64_t>(dimension);
}
std::optional<std::int64_t> constant_size(const Filled& f, std::size_t dimension) {
  if (f.fill) {
    const Op* size = constant(f.fill->operands[1 + dimension]);
    return size ? std::optional(size->integer) : std::nullopt;
  }
  const std::int64_t known = f.like->type.dims()[dimension];
  return known != ir::dynamic ? std::optional(known) : std::nullopt;
}

/// The updates that a loop, with the loops in it, makes to one of its tensors in every iteration.
class Writes {
 public:
  Writes(const Op* loop, std::size_t state, const Filled& filled) : uses_(loop), filled_(filled) {
    understood_ = collect(loop, state);
  }

  /// True where they leave no element as it was, and nothing else uses the tensor meanwhile.
  bool cover_all() const { return understood_ && covered_ && (sums_.empty() || (filled_.zero && once_)); }
  /// Where every element is written once, what is added to a zero is the element.
  void set_sums() {
    for (Op* op : sums_) op->code = Opcode::set_;
  }

 private:
  bool collect(const Op* loop, std::size_t state) {
    const Block* body = loop->blocks[1];
    if (!uses_.of(loop->blocks[0]->params[state]).empty()) return false;
    const auto iterations = normalized_range(loop);
    if (!iterations) return false;
    bounds_[iterations->index] = iterations->size;
    for (const Value* v = body->params[state];;) {
      const auto& all = uses_.of(v);
      if (all.size() != 1 || all[0].op->parent != body) return false;
      const auto [op, operand] = all[0];
      if (op->is(Opcode::yield_)) {
        bounds_.erase(iterations->index);
        return operand == state;
      }
      if (operand == 0 && (op->is(Opcode::set_) || op->is(Opcode::add_at_))) {
        if (op->is(Opcode::add_at_)) sums_.push_back(op);
        once_ &= note(*op);
        v = op->result();
      } else if (op->is(Opcode::loop_) && collect(op, operand)) {
        v = op->results[operand];
      } else {
        return false;
      }
    }
  }

  /// One update. The loops around it run over whole dimensions, all of them: or where one makes no iteration,
  /// elements would be left. True if it is the first of its elements.
  bool note(const Op& set) {
    std::set<const Value*> loops;
    std::optional<Range> range;
    std::size_t along = 0;  ///< the dimension of the range
    const auto rank = static_cast<std::size_t>(set.operands[0]->type.rank());
    for (std::size_t i = 0; i < rank; ++i) {
      const Value* index = set.operands[i + 1];
      const auto bound = bounds_.find(index);
      if (bound != bounds_.end() && is_size(bound->second, filled_, i) && loops.insert(index).second)
        continue;
      const auto size = constant_size(filled_, i);
      if (range || !size || !(range = range_of(index, *size, loops))) return false;
      along = i;
    }
    if (loops.size() != bounds_.size()) return false;
    // Elements are distinguished by their range alone.
    if (!range) {
      covered_ = true;
      return std::exchange(all_at_once_, true) ? false : ranges_.empty();
    }
    const bool first = !all_at_once_ && (ranges_.empty() || (ranges_.size() == 1 && ranges_.contains(along)));
    auto& ranges = ranges_[along];
    const bool fresh = std::ranges::none_of(
        ranges, [&](const Range& r) { return r.begin < range->end && range->begin < r.end; });
    if (!fresh) return false;
    ranges.push_back(*range);
    std::int64_t elements = 0;
    for (const Range& r : ranges) elements += r.end - r.begin;
    covered_ |= elements == range->size;
    return first;
  }

  /// Places in a dimension of constant size: one, or those of a loop, all of them with one constant added.
  struct Range {
    std::int64_t begin, end, size;
  };
  std::optional<Range> range_of(const Value* index, std::int64_t size, std::set<const Value*>& loops) const {
    const Offset at = offset(index);
    const auto by = static_cast<std::int64_t>(at.by);
    Range r{by, by + 1, size};
    if (at.base) {
      const auto bound = bounds_.find(at.base);
      if (bound == bounds_.end() || !constant(bound->second) || !loops.insert(at.base).second) return {};
      r.end = by + constant(bound->second)->integer;
    }
    if (r.begin < 0 || r.end > size || r.end <= r.begin) return {};
    return r;
  }

  Uses uses_;
  Filled filled_;
  std::map<const Value*, const Value*> bounds_;       ///< of the loops around what is looked at, by index
  std::map<std::size_t, std::vector<Range>> ranges_;  ///< by dimension: what is written for all others
  std::vector<Op*> sums_;
  bool all_at_once_ = false;  ///< all elements were written at once
  bool understood_ = false, covered_ = false, once_ = true;
};

/// Gives each loop a filled tensor of its own to start from: one that several share would be filled once and
/// then copied for each.
bool own_starts(const ir::Function& f, const std::vector<Op*>& loops) {
  const Uses uses(f);
  std::unordered_map<const Value*, std::size_t> left;
  bool any = false;
  for (Op* loop : loops)
    for (Value*& start : loop->operands) {
      const auto from = filled(start);
      if (!from) continue;
      if (std::size_t& others = left.try_emplace(start, uses.count(start)).first->second; others-- <= 1)
        continue;
      ir::Builder b = ir::Builder::before(loop);
      b.loc = start->def->loc;
      std::vector<Value*> operands{const_cast<Value*>(from->like)};
      if (from->fill) {
        operands = from->fill->operands;
        const ir::Type element(start->type.element());
        if (start->def->is(Opcode::zeros_like_))
          operands[0] = b.op(Opcode::constant_, {}, {element})->result();
      }
      const Op* const copy =
          b.op(from->fill ? Opcode::fill_ : Opcode::zeros_like_, std::move(operands), {start->type});
      copy->result()->name = start->name;
      start = copy->result();
      any = true;
    }
  return any;
}

/// A tensor that a call writes from end to end starts without values. Each call gets a tensor of its own: calls that
/// share one would have copies.
bool own_results(const ir::Function& f) {
  std::vector<Op*> calls;
  ir::walk(f.body, [&](Op* op) {
    if (ir::writes_last(*op) && filled(op->operands.back())) calls.push_back(op);
  });
  for (Op* op : calls) {
    ir::Builder b = ir::Builder::before(op);
    b.loc = op->loc;
    op->operands.back() = uninitialised_like(b, op->operands.back());
  }
  return !calls.empty();
}

}  // namespace

void dead_fills(ir::Module& module) {
  bool any = false;
  for (ir::Function* f : module.functions()) {
    if (!is_direct(*f)) continue;
    const std::vector<Op*> loops = loops_in(*f);
    for (Op* loop : loops)
      for (std::size_t i = 0; i < loop->operands.size(); ++i) {
        const Value* start = loop->operands[i];
        const auto fill = filled(start);
        if (!fill) continue;
        Writes writes(loop, i, *fill);
        if (!writes.cover_all()) continue;
        writes.set_sums();
        ir::Builder b = ir::Builder::before(loop);
        b.loc = start->def->loc;
        loop->operands[i] = uninitialised_like(b, start);
        any = true;
      }
    any |= own_starts(*f, loops);
    any |= own_results(*f);
  }
  if (any) eliminate_dead(module);
}

}  // namespace lantern::passes
