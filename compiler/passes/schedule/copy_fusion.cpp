// A nest, the one tensor that it updates, and what that was before.
#include "lantern/compiler/passes/schedule/copy_fusion.hpp"

#include <algorithm>
#include <optional>
#include <unordered_set>
#include <vector>

#include "lantern/compiler/passes/analysis/index_form.hpp"
#include "lantern/compiler/passes/analysis/loop_state.hpp"
#include "lantern/compiler/passes/analysis/loops.hpp"
#include "lantern/compiler/passes/array/dead_fills.hpp"
#include "lantern/compiler/passes/canonical/simplify.hpp"
#include "lantern/compiler/passes/schedule/element_nests.hpp"
#include "lantern/compiler/passes/schedule/equal_numbers.hpp"
#include "lantern/compiler/passes/schedule/loop_order.hpp"
#include "lantern/compiler/passes/support/rewrite.hpp"
#include "lantern/ir/op.hpp"

namespace lantern::passes {

namespace {

using ir::Builder;
using ir::Combine;

/// The size of a tensor in a dimension. Where a loop hands a tensor on in one size, whatever it does to it, that is it.
IndexForm steady_size(const Value* tensor, std::size_t dimension, int depth = 4) {
  const IndexForm size = size_form(tensor, dimension);
  const auto unknowns = size.unknowns();
  if (depth == 0 || unknowns.size() != 1 || !unknowns[0].is_size() || size != IndexForm::of(unknowns[0])) return size;
  const Value* const v = unknowns[0].value;
  const Op* const loop = v->def ? nullptr : v->block->parent;
  if (!loop || !loop->is(Opcode::loop_) || v->block != loop->blocks[1]) return size;
  const auto at = static_cast<std::size_t>(unknowns[0].dimension);
  const IndexForm next = size_form(v->block->ops.back()->operands[v->index], at);
  const IndexForm first = steady_size(loop->operands[v->index], at, depth - 1);
  return made_outside(next, v->block) && next == first ? first : size;
}

/// Integers that may be computed for any index.
bool harmless(const Op& op) {
  if (op.is(Opcode::constant_, Opcode::dim_)) return true;
  return ir::info(op.code).elementwise && op.results.size() == 1 && op.result()->type == ir::I64 &&
         !op.is(Opcode::div_, Opcode::rem_);
}

class CopyNest {
 public:
  /// `all`: the uses in the function, before any nest was changed.
  CopyNest(const Uses& all, Op* outermost, std::size_t state)
      : all_(all), uses_(outermost), outermost_(outermost), state_(state) {}

  /// True where it was changed.
  bool run() {
    if (!follow() || !ranges() || !worth()) return false;
    extend();
    return true;
  }

 private:
  struct Level {
    Op* loop = nullptr;
    CountedLoop count;
    std::size_t dimension = 0;   ///< that its index goes through
    std::int64_t shift = 0;      ///< from its index to that of the element
    std::int64_t first = 0;      ///< element
    std::int64_t left = 0;       ///< elements behind the last one
    IndexForm size;
  };

  /// One loop in the other, down to one update of the element of all indices; nothing else is made.
  bool follow() {
    Op* loop = outermost_;
    std::size_t state = state_;
    for (;;) {
      if (!ir::is_parallel(*loop) || loop->operands.size() != 2 || loop->integer != 0) return false;
      const auto count = counted(loop);
      if (!count || count->index == state || ir::combine(*loop, state) != Combine::element) return false;
      Block* const body = loop->blocks[1];
      const auto& uses = uses_.of(body->params[state]);
      if (!uses_.of(loop->blocks[0]->params[state]).empty() || uses.size() != 1) return false;
      levels_.push_back({.loop = loop, .count = *count, .size = {}});
      const auto [op, operand] = uses[0];
      if (op->parent != body) return false;
      if (op->is(Opcode::set_) && operand == 0) {
        update_ = op;
        const auto& next = uses_.of(op->result());
        return next.size() == 1 && next[0].op == body->ops.back() && next[0].operand == state && places();
      }
      if (!op->is(Opcode::loop_)) return false;
      for (const Op* other : body->ops)
        if (other != op && !harmless(*other) && !other->is(Opcode::yield_)) return false;
      const auto& next = uses_.of(op->results[operand]);
      if (next.size() != 1 || next[0].op != body->ops.back() || next[0].operand != state) return false;
      state = operand;
      loop = op;
    }
  }

  bool places() {
    const auto rank = static_cast<std::size_t>(update_->operands[0]->type.rank());
    if (rank != levels_.size()) return false;
    for (Level& level : levels_) {
      const Value* const index = level.loop->blocks[1]->params[level.count.index];
      const auto from = update_->operands.begin() + 1, to = from + static_cast<std::ptrdiff_t>(rank);
      const auto shift = [&](const Value* place) { return (index_form(place) - index_form(index)).number(); };
      const auto at = std::find_if(from, to, [&](const Value* place) { return shift(place).has_value(); });
      if (at == to) return false;
      level.dimension = static_cast<std::size_t>(at - from);
      level.shift = *shift(*at);
    }
    return true;
  }

  /// Where in the tensor the box lies.
  bool ranges() {
    const Value* const old = outermost_->operands[state_];
    bool part = false;
    for (Level& level : levels_) {
      const Op* const first = constant(level.loop->operands[level.count.index]);
      level.size = steady_size(old, level.dimension);
      const auto left = (level.size - index_form(level.count.bound) - IndexForm(level.shift)).number();
      if (!first || first->integer + level.shift < 0 || !left || *left < 0 ||
          !made_outside(level.size, outermost_->blocks[1]))
        return false;
      level.first = first->integer + level.shift;
      level.left = *left;
      part |= level.first > 0 || level.left > 0;
    }
    return part;
  }

  /// Whether its start would be copied, or is filled for it.
  bool worth() {
    Value* const old = outermost_->operands[state_];
    fill_ = filled(old);
    if (fill_) return fill_->fill ? !is_undefined(fill_->fill->operands[0]) : true;
    if (!old->def && !old->block->parent) return true;  // an argument
    if (!old->def ? old->block != outermost_->parent : old->def->parent != outermost_->parent) return true;
    const auto& ops = outermost_->parent->ops;
    const auto place = std::ranges::find(ops, outermost_);
    const std::unordered_set<const Op*> later(place + 1, ops.end());
    // Nests that were changed before this one read it no later than they did.
    return std::ranges::any_of(all_.of(old), [&](const ir::Use& use) {
      if (use.op == outermost_ || use.op->is(Opcode::dim_)) return false;
      const Op* const at = ir::holder_in(outermost_->parent, use.op);
      return at == outermost_ || later.contains(at);
    });
  }
  static bool is_undefined(const Value* v) { return v->def && v->def->is(Opcode::undef_); }

  void extend() {
    Value* const old = outermost_->operands[state_];
    Builder before = Builder::before(outermost_);
    std::vector<Value*> sizes(levels_.size());
    for (const Level& level : levels_) sizes[level.dimension] = materialise(before, level.size);
    Value* other = nullptr;
    if (fill_) {
      outermost_->operands[state_] = uninitialised_like(before, old);
      if (!fill_->zeros) other = fill_->fill->operands[0];
    } else {
      outermost_->operands[state_] = before.uninitialised(old->type, sizes);
    }

    for (const Level& level : levels_)
      if (level.shift != 0) count_by_elements(level);
    Block* const body = levels_.back().loop->blocks[1];
    std::vector<Op*> inside;
    for (Op* op : body->ops) {
      const bool needs = std::ranges::any_of(op->operands, [&](const Value* v) { return std::ranges::find(inside, v->def) != inside.end(); });
      if ((needs || !harmless(*op)) && op != update_ && !op->is(Opcode::yield_)) inside.push_back(op);
    }
    Builder b = Builder::before(update_);
    Value* guard = nullptr;
    const auto also = [&](Value* condition) { guard = guard ? b.land({guard, condition}) : condition; };
    for (const Level& level : levels_) {
      Value* const index = level.loop->blocks[1]->params[level.count.index];
      if (level.first > 0) also(b.le({b.integer(level.first), index}));
      if (level.left == 0) continue;
      Value* const bound = made_here(b, level.count.bound);
      also(b.lt({index, level.shift == 0 ? bound : b.add({bound, b.integer(level.shift)})}));
    }
    Value*& element = update_->operands.back();
    Op* const choice = b.branch(guard, {element->type});
    Builder in(b.module(), choice->blocks[0]);
    for (Op* op : inside) {
      std::erase(body->ops, op);
      in.take(op);
    }
    in.yield({element});
    Builder out(b.module(), choice->blocks[1], update_->loc);
    if (!other && fill_) other = out.number(0, element->type);
    if (!other) {
      std::vector<Value*> at{old};
      at.insert(at.end(), update_->operands.begin() + 1, update_->operands.end() - 1);
      other = out.emit(Opcode::get_, at);
    }
    out.yield({other});
    element = choice->result();

    for (const Level& level : levels_) {
      level.loop->operands[level.count.index] = Builder::before(level.loop).integer(0);
      Op* const test = level.loop->blocks[0]->ops.back()->operands[0]->def;
      test->operands[1] = sizes[level.dimension];
    }
  }

  /// The loop's index becomes that of the element; what asked for its own has that less the shift.
  void count_by_elements(const Level& level) {
    Block* const body = level.loop->blocks[1];
    Value* const index = body->params[level.count.index];
    const Op* const next = body->ops.back()->operands[level.count.index]->def;
    Builder b = Builder::before(body->ops.front());
    Value* const own = b.sub({index, b.integer(level.shift)});
    Value* const own_next = b.add({own, b.integer(1)});
    ir::walk(body, [&](Op* op) {
      if (op == next || op == own->def || op == own_next->def) return;
      for (Value*& v : op->operands) {
        if (v == index) v = own;
        if (v == next->result() && op != body->ops.back()) v = own_next;
      }
    });
    update_->operands[1 + level.dimension] = index;
  }

  const Uses& all_;
  const Uses uses_;
  Op* outermost_;
  std::size_t state_;
  std::vector<Level> levels_;
  Op* update_ = nullptr;
  std::optional<Filled> fill_;
};

/// What a tensor holds throughout, as a number that is made in front of an operation.
Value* content(const Filled& fill, const ir::Type& element, Op* before) {
  Builder b = Builder::before(before);
  if (fill.zeros || !fill.fill) return b.number(0, element);
  Value* const value = fill.fill->operands[0];
  const Op* const number = constant(value);
  return number ? value : nullptr;
}

/// Kernels read no element of a tensor that holds one number throughout: as it is filled, or as a loop begins with it.
bool read_fills(ir::Function& f) {
  bool any = false;
  std::vector<std::pair<Op*, Value*>> reads;
  ir::walk(f.body, [&](Op* op) {
    if (!op->is(Opcode::get_) || op->result()->type.is_vector()) return;
    Value* tensor = op->operands[0];
    // The state of loops at the start of their iterations, where each iteration has elements of its own.
    while (!tensor->def && tensor->block->parent && tensor->block->parent->is(Opcode::loop_) &&
           tensor->block == tensor->block->parent->blocks[1] && ir::is_parallel(*tensor->block->parent) &&
           ir::combine(*tensor->block->parent, tensor->index) == Combine::element)
      tensor = tensor->block->parent->operands[tensor->index];
    if (!tensor->def || (tensor == op->operands[0] && op->parent == tensor->def->parent)) return;
    if (!filled(tensor) || !in_range(*op)) return;
    reads.emplace_back(op, tensor);
  });
  ir::Renaming names;
  for (const auto& [op, tensor] : reads) {
    const auto fill = filled(tensor);
    Value* const value = content(*fill, op->result()->type, op);
    if (!value) continue;
    names[op->result()] = value;
    any = true;
  }
  if (any) ir::replace_uses(f.body, names);
  return any;
}

/// Nothing is added to an element where that is 0: callers of backward parts begin their adjoints with zeros.
bool drop_zeros(ir::Function& f) {
  ir::Renaming names;
  ir::walk(f.body, [&](const Op* op) {
    if (!op->is(Opcode::add_at_) || !is_zero(op->operands.back()) || !in_range(*op)) return;
    names[op->result()] = op->operands[0];
  });
  ir::replace_uses(f.body, names);
  return !names.empty();
}

/// A kernel of rows whose iterations each work on a row of their own of a filled tensor.
class RowFill {
 public:
  RowFill(Op* loop, std::size_t state, const EqualNumbers& equal) : loop_(loop), state_(state), equal_(equal), inside_(loop) {}

  /// The iterations fill their rows themselves; true where they did not before.
  bool run() {
    Value* const start = loop_->operands[state_];
    const auto count = counted(loop_);
    fill_ = filled(start);
    if (!fill_ || !count || count->down || only_loop(loop_->blocks[1])) return false;
    const Op* const first = constant(count->first);
    if (!first || first->integer != 0 || !equal_(index_form(count->bound), size_form(start, 0))) return false;
    if (ir::combine(*loop_, state_) != Combine::element || !own_rows(count->number)) return false;
    Block* const body = loop_->blocks[1];
    Value* const number = content(*fill_, ir::Type(start->type.element()), body->ops.front());
    if (!number) return false;
    Builder before = Builder::before(loop_);
    before.loc = loop_->loc;
    std::vector<Value*> sizes;
    for (std::size_t d = 1; d < static_cast<std::size_t>(start->type.rank()); ++d)
      sizes.push_back(materialise(before, size_form(start, d)));
    loop_->operands[state_] = uninitialised_like(before, start);
    Builder b = Builder::before(body->ops.front());
    b.loc = loop_->loc;
    LoopValues at{count->number};
    Value* const value = made_here(b, number);
    Value* const made = build_element_nest(b, {body->params[state_]}, sizes, at, [&](Builder& in, const LoopValues& now) {
      std::vector<Value*> operands{now[0]};
      operands.insert(operands.end(), at.begin(), at.end());
      operands.push_back(value);
      return LoopValues{in.emit(Opcode::set_, operands)};
    })[0];
    for (const ir::Use& use : inside_.of(body->params[state_])) use.op->operands[use.operand] = made;
    return true;
  }

 private:
  /// All that is read and written is of the iteration's row; and a loop inside goes through it.
  bool own_rows(const Value* row) const {
    const auto use = state_use(inside_, loop_, state_);
    if (!use || use->whole || use->sum || use->extreme || use->updates.empty()) return false;
    bool through = false;
    for (const Op* op : use->accesses()) {
      if (op->operands[1] != row) return false;
      const Op* const around = op->parent->parent;
      through |= around != loop_ && around->parent == loop_->blocks[1] && around->is(Opcode::loop_) && ir::is_parallel(*around);
    }
    return through;
  }

  Op* loop_;
  std::size_t state_;
  const EqualNumbers& equal_;
  Uses inside_;
  std::optional<Filled> fill_;
};

bool run_on(ir::Function& f) {
  std::vector<Op*> nests;
  ir::walk(f.body, [&](Op* op) {
    if (!op->is(Opcode::loop_) || !ir::is_parallel(*op)) return true;
    nests.push_back(op);
    return false;
  });
  const Uses all(f);
  bool any = false;
  for (Op* loop : nests)
    for (std::size_t state = 0; state < loop->operands.size(); ++state)
      if (loop->operands.size() == 2 && loop->operands[state]->type.is_tensor())
        any |= CopyNest(all, loop, state).run();
  return any;
}

}  // namespace

void copy_fusion(ir::Module& module) {
  bool any = false;
  for (ir::Function* f : module.functions())
    if (is_direct(*f)) {
      any |= read_fills(*f);
      any |= drop_zeros(*f);
    }
  if (any) {
    simplify(module);
    dead_fills(module);
  }
  any = false;
  for (ir::Function* f : module.functions())
    if (is_direct(*f)) any |= run_on(*f);
  if (any) simplify(module);
}

void row_fills(ir::Module& module) {
  const bool any = in_direct_style(module, [](ir::Function& f) {
    bool filled_there = false;
    for (Block* block : host_blocks(f)) {
      EqualNumbers equal;
      for (Op* op : std::vector<Op*>(block->ops)) {
        equal.note(*op);
        for (std::size_t state = 0; op->is(Opcode::loop_) && ir::is_parallel(*op) && state < op->operands.size(); ++state)
          if (op->operands[state]->type.is_tensor()) filled_there |= RowFill(op, state, equal).run();
      }
    }
    return filled_there;
  });
  if (any) simplify(module);
}

}  // namespace lantern::passes
