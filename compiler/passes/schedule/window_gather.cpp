// A nest is understood first, then written anew.
#include "lantern/compiler/passes/schedule/window_gather.hpp"

#include <algorithm>
#include <optional>
#include <vector>

#include "lantern/compiler/passes/analysis/index_form.hpp"
#include "lantern/compiler/passes/analysis/index_ranges.hpp"
#include "lantern/compiler/passes/analysis/iterations.hpp"
#include "lantern/compiler/passes/analysis/live_uses.hpp"
#include "lantern/compiler/passes/analysis/loops.hpp"
#include "lantern/compiler/passes/canonical/simplify.hpp"
#include "lantern/compiler/passes/schedule/element_nests.hpp"
#include "lantern/compiler/passes/schedule/loop_order.hpp"
#include "lantern/compiler/passes/support/build_loop.hpp"
#include "lantern/compiler/passes/support/remarks.hpp"
#include "lantern/compiler/passes/support/rewrite.hpp"

namespace lantern::passes {

namespace {

using ir::Builder;
using ir::Combine;

/// Windows that hold an element, at most, and what a window's computation weighs.
constexpr std::int64_t most_windows = 16, heaviest = 400;

/// A nest over windows.
class Windows {
 public:
  Windows(Op* nest, const Uses& uses, const IndexRanges& ranges)
      : nest_(nest), uses_(uses), ranges_(ranges) {}

  /// True where it was changed.
  bool run() {
    if (!follow() || !places() || !worth()) return false;
    write();
    return true;
  }

 private:
  /// A loop of the nest: its index is `stride` times in dimension `dimension`, with a number added.
  struct Level {
    Op* loop = nullptr;
    CountedLoop count;
    std::size_t dimension = 0;
    std::int64_t stride = 1, first = 0, last = 0;  ///< the least number that is added, and the largest
  };
  struct Update {
    Op* op = nullptr;
    std::vector<std::int64_t> offsets;  ///< by level
  };

  const Level& of_dimension(std::size_t d) const { return *std::ranges::find(levels_, d, &Level::dimension); }

  /// A perfect nest whose innermost body adds to one tensor. Nothing in the nest reads that tensor.
  bool follow() {
    Op* loop = nest_;
    for (;; loop = only_loop(loop->blocks[1])) {
      if (!loop || !ir::is_parallel(*loop) || loop->operands.size() != 2 || loop->integer != 0) return false;
      const auto count = counted(loop);
      if (!count || count->down) return false;
      const std::size_t state = 1 - count->index;
      const Op* const first = constant(count->first);
      Value* const inside = loop->blocks[1]->params[state];
      if (!first || first->integer != 0 || !inside->type.is_tensor() || !inside->type.is_float_element() ||
          (ir::combine(*loop, state) != Combine::element && ir::combine(*loop, state) != Combine::sum) ||
          !(constant(count->bound) || ir::visible_from(count->bound, nest_->parent)) ||
          !uses_.of(loop->blocks[0]->params[state]).empty() || !uses_.of(loop->results[count->index]).empty())
        return false;
      levels_.push_back({.loop = loop, .count = *count});
      const Op* const user = uses_.only_user(inside);
      if (!user) return false;
      if (user->is(Opcode::add_at_)) return additions(inside, state);
      const Op* const next = only_loop(loop->blocks[1]);
      if (user != next ||
          loop->blocks[1]->ops.back()->operands[state] != next->results[uses_.of(inside)[0].operand])
        return false;
    }
  }

  bool additions(Value* inside, std::size_t state) {
    const Block* const body = levels_.back().loop->blocks[1];
    for (Value* v = inside;;) {
      Op* const user = uses_.only_user(v);
      if (!user || user->parent != body) return false;
      if (user->is(Opcode::yield_)) break;
      if (!user->is(Opcode::add_at_) || user->operands[0] != v) return false;
      updates_.push_back({.op = user, .offsets = {}});
      v = user->result();
      if (body->ops.back()->operands[state] == v && uses_.once(v)) break;
    }
    return std::ranges::all_of(body->ops, [&](const Op* op) {
      return op->is(Opcode::yield_) || op->is(Opcode::get_) || op->is(Opcode::add_at_) ||
             (only_computes(*op) && op->blocks.empty() && !divides_integers(*op));
    });
  }

  /// Where each addition goes.
  bool places() {
    const auto rank = static_cast<std::size_t>(nest_->operands[1 - levels_[0].count.index]->type.rank());
    if (rank != levels_.size()) return false;
    for (Update& u : updates_) u.offsets.resize(levels_.size());
    for (std::size_t d = 0; d < rank; ++d) {
      Level* level = nullptr;
      for (Update& u : updates_) {
        if (!ranges_.of(*u.op, d + 1).is_inside()) return false;
        const IndexForm form = index_form(u.op->operands[d + 1]);
        const auto at = std::ranges::find_if(
            levels_, [&](const Level& l) { return form.split(l.count.number)->coefficient != IndexForm(); });
        if (at == levels_.end() || (level && level != &*at)) return false;
        const auto split = form.split(at->count.number);
        const auto stride = split->coefficient.number(), offset = split->rest.number();
        if (!stride || *stride < 1 || !offset || *offset < 0) return false;
        if (!level) {
          if (std::ranges::find(taken_, &*at) != taken_.end()) return false;
          taken_.push_back(level = &*at);
          level->dimension = d;
          level->stride = *stride;
          level->first = level->last = *offset;
        }
        if (*stride != level->stride) return false;
        level->first = std::min(level->first, *offset);
        level->last = std::max(level->last, *offset);
        u.offsets[static_cast<std::size_t>(at - levels_.begin())] = *offset;
      }
    }
    for (std::size_t i = 0; i < updates_.size(); ++i)
      for (std::size_t k = 0; k < i; ++k)
        if (updates_[i].offsets == updates_[k].offsets) return false;
    return true;
  }

  /// The level's index is that of an element.
  static bool is_plain(const Level& l) { return l.stride == 1 && l.first == 0 && l.last == 0; }

  bool worth() const {
    const auto from = filled(nest_->operands[1 - levels_[0].count.index]);
    if (!from || !(from->zeros || from->zero)) return false;
    std::int64_t windows = 1;
    for (const Level& l : levels_) windows *= (l.last - l.first) / l.stride + 1;
    return std::ranges::any_of(levels_, [](const Level& l) { return l.stride > 1 || l.last > l.first; }) &&
           windows <= most_windows && weight(levels_.back().loop->blocks[1]) <= heaviest &&
           plain_ones_cover();
  }
  /// Where an index is an element's, the loop goes through all of the dimension.
  bool plain_ones_cover() const {
    const Value* const start = nest_->operands[1 - levels_[0].count.index];
    return std::ranges::all_of(levels_, [&](const Level& l) {
      return !is_plain(l) || index_form(l.count.bound) == size_form(start, l.dimension);
    });
  }

  void write() {
    const std::size_t state = 1 - levels_[0].count.index;
    Value* const start = nest_->operands[state];
    Builder b = Builder::before(nest_);
    b.loc = nest_->loc;
    std::vector<Value*> sizes;
    for (std::size_t d = 0; d < levels_.size(); ++d) sizes.push_back(materialise(b, size_form(start, d)));
    LoopValues element;
    Value* const made = build_element_nest(b, {uninitialised_like(b, start)}, sizes, element, [&](Builder& in, const LoopValues& now) {
      names_.clear();
      std::vector<Value*> operands{now[0]};
      operands.insert(operands.end(), element.begin(), element.end());
      operands.push_back(sum(in, 0, in.number(0, ir::Type(start->type.element())), element));
      return LoopValues{in.emit(Opcode::set_, operands)};
    })[0];
    made->name = nest_->results[state]->name;
    ir::replace_uses(nest_->parent->function->body, nest_->results[state], made);
    std::erase(nest_->parent->ops, nest_);
    remark("window_gather", nest_->loc, "goes through the elements of its windows");
  }

  /// Adds to a sum what windows give to an element, from the loops of a level on.
  Value* sum(Builder& b, std::size_t l, Value* before, const std::vector<Value*>& element) {
    if (l == levels_.size()) return b.emit(Opcode::add_, {before, given(b, element)});
    const Level& level = levels_[l];
    Value* const e = element[level.dimension];
    const Value* const index = level.count.number;
    const auto copy_level = [&](Builder& in) {
      for (const Op* op : level.loop->blocks[1]->ops) {
        const bool left_out = op->is(Opcode::yield_) || op->is(Opcode::loop_) || op->is(Opcode::add_at_);
        if (!left_out) ir::clone(in, *op, names_);
      }
    };
    if (is_plain(level)) {
      names_[index] = e;
      copy_level(b);
      return sum(b, l + 1, before, element);
    }
    Value* const stride = b.integer(level.stride);
    const auto divided = [&](std::int64_t plus) {
      Value* const n = plus == 0 ? e : b.emit(Opcode::add_, {e, b.integer(plus)});
      return level.stride == 1 ? n : b.emit(Opcode::div_, {n, stride});
    };
    Value* const first = b.emit(Opcode::imax_, {divided(level.stride - 1 - level.last), b.integer(0)});
    Value* const bound = b.emit(Opcode::imin_, {b.emit(Opcode::add_, {divided(-level.first), b.integer(1)}),
                                                made_here(b, level.count.bound)});
    return build_for(b, first, bound, before, [&](Builder& in, Value* i, Value* so_far) {
      names_[index] = i;
      copy_level(in);
      return sum(in, l + 1, so_far, element);
    });
  }

  /// What a window gives to an element in it: -0 adds nothing to any sum.
  Value* given(Builder& b, const std::vector<Value*>& element) {
    Value* amount = b.number(-0.0, updates_[0].op->operands.back()->type);
    std::vector<Value*> offsets(levels_.size());
    for (std::size_t l = 0; l < levels_.size(); ++l) {
      if (is_plain(levels_[l])) continue;
      Value* const i = ir::renamed(names_, const_cast<Value*>(levels_[l].count.number));
      Value* const from =
          levels_[l].stride == 1 ? i : b.emit(Opcode::mul_, {i, b.integer(levels_[l].stride)});
      offsets[l] = b.emit(Opcode::sub_, {element[levels_[l].dimension], from});
    }
    for (const Update& u : updates_) {
      Value* here = nullptr;
      for (std::size_t l = 0; l < levels_.size(); ++l) {
        if (!offsets[l]) continue;
        Value* const same = b.emit(Opcode::eq_, {offsets[l], b.integer(u.offsets[l])});
        here = here ? b.emit(Opcode::land_, {here, same}) : same;
      }
      amount = b.emit(Opcode::select_, {here, ir::renamed(names_, u.op->operands.back()), amount});
    }
    return amount;
  }

  Op* nest_;
  const Uses& uses_;
  const IndexRanges& ranges_;
  std::vector<Level> levels_;
  std::vector<const Level*> taken_;
  std::vector<Update> updates_;
  ir::Renaming names_;
};

}  // namespace

void window_gather(ir::Module& module) {
  const bool any = in_direct_style(module, [&](ir::Function& f) {
    const LiveUses live(f);
    const IndexRanges ranges(f, live);
    const Uses uses(f);
    bool changed = false;
    for (Block* block : host_blocks(f))
      for (Op* op : std::vector<Op*>(block->ops))
        if (op->is(Opcode::loop_)) changed |= Windows(op, uses, ranges).run();
    return changed;
  });
  if (any) simplify(module);
}

}  // namespace lantern::passes
