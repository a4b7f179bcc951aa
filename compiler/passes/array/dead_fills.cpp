// Which loops, and which calls, write all of a tensor before anything reads it.
#include "lantern/compiler/passes/array/dead_fills.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "lantern/compiler/passes/analysis/index_form.hpp"
#include "lantern/compiler/passes/analysis/loops.hpp"
#include "lantern/compiler/passes/analysis/offset.hpp"
#include "lantern/compiler/passes/canonical/simplify.hpp"
#include "lantern/ir/external.hpp"

namespace lantern::passes {

namespace {

/// The updates that a loop, with the loops in it, makes to one of its tensors in every iteration; and those of the loops
/// behind it that alone get the tensor, one from the other.
class Writes {
 public:
  Writes(const Op* loop, std::size_t state, const Filled& filled, const Uses& all)
      : uses_(loop), outermost_(loop), filled_(filled) {
    for (std::size_t d = 0; d < static_cast<std::size_t>(loop->operands[state]->type.rank()); ++d)
      sizes_.push_back(size_form(loop->operands[state], d));
    for (understood_ = collect(loop, state); understood_ && !covered_; understood_ = collect(outermost_, state)) {
      const auto& next = all.of(outermost_->results[state]);
      if (next.size() != 1 || !next[0].op->is(Opcode::loop_) || next[0].op->parent != loop->parent) return;
      uses_ = Uses(outermost_ = next[0].op);
      state = next[0].operand;
    }
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
    bounds_[iterations->number] = index_form(iterations->bound);
    if (!covered_) partial_.insert(iterations->number);
    const Op* last = nullptr;  // the update before, whose element may be read again
    for (const Value* v = body->params[state];;) {
      std::optional<ir::Use> next;
      for (const ir::Use& use : uses_.of(v)) {
        if (last && use.operand == 0 && use.op->is(Opcode::get_) && same_element(*use.op, *last)) continue;
        if (covered_ && use.operand == 0 && is_written(*use.op)) continue;
        if (next || use.op->parent != body) return false;
        next = use;
      }
      if (!next) return false;
      const auto [op, operand] = *next;
      last = nullptr;
      if (op->is(Opcode::yield_)) {
        bounds_.erase(iterations->number);
        return operand == state;
      }
      if (operand == 0 && is_write(*op)) {
        if (op->is(Opcode::add_at_)) sums_.push_back(op);
        once_ &= note(*op);
        v = op->result();
        last = op;
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
    std::map<const Value*, std::size_t> loops;
    std::optional<Range> range;
    std::size_t along = 0;  ///< the dimension of the range
    for (std::size_t i = 0; i < sizes_.size(); ++i) {
      auto places = places_of(index_form(set.operands[i + 1]), i, loops);
      if (!places) return false;
      if (places->begin == IndexForm() && places->end == sizes_[i] && places->of_loop) continue;
      if (range || !never_negative(places->end - places->begin, *outermost_)) return false;
      range = std::move(places);
      along = i;
    }
    if (loops.size() != bounds_.size()) return false;
    for (const auto& [counter, dimension] : loops)
      if (!range || dimension != along)
        consistent_ &= dimensions_.try_emplace(counter, dimension).first->second == dimension;
    // Elements are distinguished by their range alone.
    if (!range) {
      covered_ = true;
      return std::exchange(all_at_once_, true) ? false : ranges_.empty();
    }
    const bool first = !all_at_once_ && (ranges_.empty() || (ranges_.size() == 1 && ranges_.contains(along)));
    auto& ranges = ranges_[along];
    const bool fresh = std::ranges::all_of(ranges, [&](const Range& r) {
      return never_negative(r.begin - range->end, *outermost_) || never_negative(range->begin - r.end, *outermost_);
    });
    ranges.push_back(*range);
    IndexForm at;  // up to where they follow each other
    for (std::size_t left = ranges.size(); left > 0; --left) {
      const auto next = std::ranges::find_if(ranges, [&](const Range& r) { return r.begin == at && r.end != at; });
      if (next != ranges.end()) at = next->end;
    }
    covered_ |= at == sizes_[along];
    return first && fresh;
  }

  /// Once all is covered: a read of what is written by then, which is what belongs to the iterations that the loops around
  /// are in, of those that began before.
  bool is_written(const Op& op) const {
    return op.is(Opcode::get_) && consistent_ && std::ranges::all_of(bounds_, [&](const auto& loop) {
             const auto at = dimensions_.find(loop.first);
             return !partial_.contains(loop.first) || (at != dimensions_.end() && index_form(op.operands[at->second + 1]) == index_form(loop.first));
           });
  }

  /// Places in a dimension: one, or those of a loop with the same added to each.
  struct Range {
    IndexForm begin, end;
    bool of_loop = false;
  };
  std::optional<Range> places_of(const IndexForm& index, std::size_t dimension,
                                 std::map<const Value*, std::size_t>& loops) const {
    const Block* const body = outermost_->blocks[1];
    if (made_outside(index, body)) return Range{index, index + IndexForm(1)};
    for (const auto& [counter, size] : bounds_) {
      const IndexForm begin = index - index_form(counter);
      if (made_outside(begin, body) && made_outside(size, body) && loops.try_emplace(counter, dimension).second)
        return Range{begin, begin + size, true};
    }
    return {};
  }

  Uses uses_;
  const Op* outermost_;
  Filled filled_;
  std::vector<IndexForm> sizes_;
  std::map<const Value*, IndexForm> bounds_;          ///< of the loops around what is looked at, by index
  std::set<const Value*> partial_;                    ///< of loops that begin before all is covered
  std::map<std::size_t, std::vector<Range>> ranges_;  ///< by dimension: what is written for all others
  std::map<const Value*, std::size_t> dimensions_;    ///< by index of a loop: the dimension that the loop covers
  std::vector<Op*> sums_;
  bool all_at_once_ = false;  ///< all elements were written at once
  bool understood_ = false, covered_ = false, once_ = true, consistent_ = true;
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
      ir::Builder b = ir::Builder::before(loop, start->def->loc);
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
    std::optional<Uses> uses;
    for (Op* loop : loops)
      for (std::size_t i = 0; i < loop->operands.size(); ++i) {
        const Value* start = loop->operands[i];
        const auto fill = filled(start);
        if (!fill) continue;
        if (!uses) uses.emplace(*f);
        Writes writes(loop, i, *fill, *uses);
        if (!writes.cover_all()) continue;
        writes.set_sums();
        ir::Builder b = ir::Builder::before(loop, start->def->loc);
        loop->operands[i] = uninitialised_like(b, start);
        any = true;
      }
    any |= own_starts(*f, loops);
    any |= own_results(*f);
  }
  if (any) eliminate_dead(module);
}

}  // namespace lantern::passes
