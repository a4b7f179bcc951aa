// Tables of what does not change from iteration to iteration.
#include "lantern/compiler/passes/array/invariant_tables.hpp"

#include <algorithm>
#include <unordered_set>

#include "lantern/compiler/passes/analysis/loops.hpp"
#include "lantern/compiler/passes/canonical/simplify.hpp"
#include "lantern/compiler/passes/support/memory.hpp"
#include "lantern/compiler/passes/support/build_loop.hpp"
#include "lantern/ir/library_function.hpp"

namespace lantern::passes {

namespace {

constexpr std::size_t most_dimensions = 3;

/// True for functions that cost more than a read of memory.
bool is_expensive(const Op& op) { return ir::is_library_function(op.code) && op.result()->type.is_scalar(); }

/// A loop around what moves.
struct Around {
  Op* loop;
  Value* first;
  Value* bound;
  const Value* index;  ///< in the body
};

class InvariantTable {
 public:
  InvariantTable(ir::Module& module, Op* op) : module_(module), op_(op) {}

  /// Finds how far out the operation goes: the loop before which it is computed, null where it stays.
  Op* find() {
    collect_loops();
    out_ = 0;
    for (std::size_t n = 1; n <= loops_.size(); ++n)
      if (may_leave(n)) out_ = n;
    if (out_ == 0) return nullptr;
    may_leave(out_);  // what it collects
    return loops_[out_ - 1].loop;
  }

  /// True where the table is known to hold no more than a tensor that is read for it, or little: the elements
  /// of one tensor are read at all of the table's indices, each along a dimension of its own.
  bool is_small() const {
    double known = 1;
    for (const std::size_t i : used_) {
      const auto iterations = constant_trip_count(loops_[i].loop);
      known *= iterations ? static_cast<double>(*iterations) : least_memory + 1;
    }
    return known <= least_memory ||
           std::ranges::any_of(tree_, [&](const Op* op) { return reads_each_once(*op); });
  }

  /// How many numbers it holds, computed before the loop.
  Value* numbers(ir::Builder& b) {
    std::vector<Value*> sizes;
    for (const std::size_t i : used_) {
      Value* const bound = made_here(b, loops_[i].bound);
      sizes.push_back(b.imax({bound, b.integer(0, bound->type)}));
    }
    return elements_of_sizes(b, sizes);
  }

  void move() { build(out_); }

 private:
  /// The counted loops around, from the inside, as long as nothing decides whether an iteration computes the value.
  void collect_loops() {
    for (Block* b = op_->parent; b->parent && b->parent->is(Opcode::loop_) && b == b->parent->blocks[1];
         b = b->parent->parent) {
      Op* loop = b->parent;
      const auto count = counted(loop);
      if (!count) return;
      // A constant bound may be in the condition.
      loops_.push_back({loop, count->first, count->bound, count->number});
    }
  }

  bool reads_each_once(const Op& op) const {
    if (!op.is(Opcode::get_)) return false;
    std::unordered_set<std::size_t> met;
    for (std::size_t d = 1; d < op.operands.size(); ++d)
      for (const std::size_t i : used_)
        if (moves_along(op.operands[d], loops_[i].index)) met.insert(i);
    return met.size() == used_.size();
  }

  /// The index itself, or with something added that does not change.
  bool moves_along(const Value* v, const Value* index) const {
    if (v == index) return true;
    if (!v->def || !v->def->is(Opcode::add_, Opcode::sub_)) return false;
    const Value *x = v->def->operands[0], *y = v->def->operands[1];
    const Op* const loop = loops_[out_ - 1].loop;
    return (x == index && outside(y, loop)) || (y == index && outside(x, loop));
  }

  bool outside(const Value* v, const Op* loop) const {
    return constant(v) || ir::visible_from(v, loop->parent);
  }

  /// Whether the value can be computed before the n-th loop around it.
  bool may_leave(std::size_t n) {
    const Op* loop = loops_[n - 1].loop;
    if (loop->integer != 0) return false;  // a bound on memory
    for (std::size_t i = 0; i < n; ++i)
      if (!outside(loops_[i].first, loop) || !outside(loops_[i].bound, loop)) return false;
    used_.clear();
    reads_ = false;
    tree_.clear();
    std::vector<const Value*> todo(op_->operands.begin(), op_->operands.end());
    while (!todo.empty()) {
      const Value* v = todo.back();
      todo.pop_back();
      if (outside(v, loop)) continue;
      if (!v->def) {
        const auto at = std::find_if(loops_.begin(), loops_.begin() + static_cast<std::ptrdiff_t>(n) - 1,
                                     [&](const Around& a) { return a.index == v; });
        if (at == loops_.begin() + static_cast<std::ptrdiff_t>(n) - 1) return false;
        used_.insert(static_cast<std::size_t>(at - loops_.begin()));
        continue;
      }
      const Op* def = v->def;
      if (!may_move(*def) || tree_.size() > 64) return false;
      reads_ |= may_fail(*def);
      if (!tree_.insert(def).second) continue;
      todo.insert(todo.end(), def->operands.begin(), def->operands.end());
    }
    if (used_.size() > most_dimensions) return false;
    // Tables count from zero, and something is gained.
    std::int64_t times = 1;
    for (std::size_t i = 0; i < n; ++i) {
      const Op* first = constant(loops_[i].first);
      if (used_.contains(i) && (!first || first->integer != 0)) return false;
      if (!used_.contains(i)) times *= constant_trip_count(loops_[i].loop).value_or(1000);
    }
    return times > 2;
  }

  /// Reads outside a tensor and divides by zero where the program would not get to it.
  static bool may_fail(const Op& op) {
    return op.is(Opcode::get_) || divides_integers(op);
  }

  static bool may_move(const Op& op) {
    if (!op.blocks.empty() || op.results.size() != 1 || !op.result()->type.is_scalar()) return false;
    if (op.is(Opcode::get_, Opcode::cast_, Opcode::dim_)) return true;
    return op.code < Opcode::cast_;  // the scalar operations
  }

  void build(std::size_t n) {
    Op* const loop = loops_[n - 1].loop;
    Block* const scratch = module_.new_block(loop->parent->parent, loop->parent->function);
    ir::Builder b(module_, scratch, op_->loc);
    // Elements are read only where the program reads them: if all the other loops make an iteration.
    Value* some = nullptr;
    for (std::size_t i = 0; i < n && reads_; ++i) {
      if (used_.contains(i) || constant_trip_count(loops_[i].loop)) continue;
      Value* one = b.lt({made_here(b, loops_[i].first), made_here(b, loops_[i].bound)});
      some = some ? b.land({some, one}) : one;
    }
    Value* replacement = nullptr;
    if (used_.empty()) {
      const ir::Type& type = op_->result()->type;
      const auto computed = [&](ir::Builder& to) { return clone(to, op_->result(), loop, {}); };
      replacement = some ? build_branch(b, some, type, computed, [&](ir::Builder& no) { return no.number(0.0, type); })
                         : computed(b);
    } else {
      // From the outermost loop in.
      std::vector<std::size_t> order(used_.begin(), used_.end());
      std::ranges::sort(order, std::greater<>());
      std::vector<Value*> sizes;
      for (const std::size_t i : order) {
        Value* bound = made_here(b, loops_[i].bound);
        if (some) bound = b.select({some, bound, b.integer(0, bound->type)});
        sizes.push_back(b.imax({bound, b.integer(0, bound->type)}));
      }
      std::vector<Value*> fill{b.number(0.0, op_->result()->type)};
      fill.insert(fill.end(), sizes.begin(), sizes.end());
      Value* const table = build_nest(
          b, b.emit(Opcode::fill_, fill), order.size(),
          [&](ir::Builder&, std::span<Value* const> at) { return sizes[at.size()]; },
          [&](ir::Builder& inside, Value* now, std::span<Value* const> at) {
            Indices indices;
            for (std::size_t d = 0; d < at.size(); ++d) indices.emplace_back(loops_[order[d]].index, at[d]);
            std::vector<Value*> set{now};
            set.insert(set.end(), at.begin(), at.end());
            set.push_back(clone(inside, op_->result(), loop, indices));
            return inside.emit(Opcode::set_, set);
          });
      // The read, where the operation stood.
      std::vector<Value*> get{table};
      for (const std::size_t i : order) get.push_back(const_cast<Value*>(loops_[i].index));
      replacement = ir::Builder::before(op_).emit(Opcode::get_, get);
      replacement->name = op_->result()->name;
    }
    ir::replace_uses(op_->parent, op_->result(), replacement);
    put_before(scratch, loop);
  }

  using Indices = std::vector<std::pair<const Value*, Value*>>;

  /// The value as computed before `outermost`, with indices in place of the inner loops'.
  Value* clone(ir::Builder& b, const Value* v, const Op* outermost, const Indices& at) {
    Renaming copies(at.begin(), at.end());
    const auto inside = [&](const Value* x) { return !ir::visible_from(x, outermost->parent); };
    return ir::clone_value(b, const_cast<Value*>(v), inside, copies);
  }

  ir::Module& module_;
  Op* op_;
  std::vector<Around> loops_;             ///< from the inside
  std::size_t out_ = 0;                   ///< so many of them the operation leaves
  std::unordered_set<std::size_t> used_;  ///< of these, whose indices the value depends on
  std::unordered_set<const Op*> tree_;
  bool reads_ = false;
};

}  // namespace

namespace {

/// Tables whose size only the running program knows: one condition for all of a loop.
void move_where_affordable(ir::Module& module, Op* loop, const std::vector<Op*>& ops) {
  Block* const scratch = module.new_block(loop->parent->parent, loop->parent->function);
  ir::Builder b(module, scratch, loop->loc);
  Value* all = nullptr;
  for (Op* op : ops) {
    InvariantTable table(module, op);
    table.find();
    Value* const n = table.numbers(b);
    all = all ? b.add({all, n}) : n;
  }
  Value* const condition = may_take(b, all, loop);
  put_before(scratch, loop);
  keep_alternative(module, loop, condition);
  for (Op* op : ops) {
    InvariantTable table(module, op);
    if (table.find() == loop) table.move();
  }
}

}  // namespace

void invariant_tables(ir::Module& module) {
  bool any = false;
  for (ir::Function* f : module.functions()) {
    if (!is_direct(*f)) continue;
    std::vector<Op*> found, loops;
    ir::walk(f->body, [&](Op* op) {
      if (is_expensive(*op)) found.push_back(op);
    });
    std::unordered_map<Op*, std::vector<Op*>> large;
    for (Op* op : found) {
      InvariantTable table(module, op);
      Op* const loop = table.find();
      if (!loop) continue;
      any = true;
      if (table.is_small()) {
        table.move();
      } else {
        if (large[loop].empty()) loops.push_back(loop);
        large[loop].push_back(op);
      }
    }
    for (Op* loop : loops) move_where_affordable(module, loop, large[loop]);
  }
  if (any) eliminate_dead(module);
}

}  // namespace lantern::passes
