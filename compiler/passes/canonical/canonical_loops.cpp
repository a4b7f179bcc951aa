// Conditions of loops, and loops that count down.
#include "lantern/compiler/passes/canonical/canonical_loops.hpp"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <ranges>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "lantern/compiler/passes/analysis/index_form.hpp"
#include "lantern/compiler/passes/analysis/loops.hpp"
#include "lantern/compiler/passes/support/rewrite.hpp"
#include "lantern/ir/integers.hpp"

namespace lantern::passes {

namespace {

using UseCounts = std::unordered_map<const Value*, std::size_t>;

/// A loop, or a continuation that a block makes and then jumps to, so that it is entered at least once.
class Loop {
  static constexpr std::int64_t largest_step = 1 << 20;

 public:
  /// `uses`: of continuations.
  Loop(ir::Module& module, Op* op, const UseCounts& uses)
      : module_(module), op_(op), head_(op->blocks[0]), uses_(uses) {}

  /// Whether it decides at the end of its head, with nothing but pure operations before.
  bool known(const Op* entry) {
    entry_ = entry;
    if (op_->is(Opcode::loop_)) {
      body_ = op_->blocks[1];
      decision_ = head_->ops.back();
      return true;
    }
    const auto at = std::ranges::find_if(head_->ops, [](const Op* o) {
      return !o->blocks.empty() || ir::info(o->code).effect != ir::Effect::none;
    });
    if (at == head_->ops.end() || !(*at)->is(Opcode::branch_)) return false;
    decision_ = *at;
    body_ = decision_->blocks[0];
    return true;
  }

  /// Moves what is invariant in front of the loop; constants that it uses are made there anew.
  void move_invariants() {
    std::unordered_set<const Op*> same;
    ir::Builder before = ir::Builder::before(op_);
    Renaming names;
    for (Op* op : head_->ops) {
      if (op == decision_) break;
      if (op->is(Opcode::constant_) || ir::info(op->code).effect != ir::Effect::none || op->results.empty() ||
          !op->blocks.empty() || op->callee)
        continue;
      if (!std::ranges::all_of(op->operands, [&](const Value* v) {
            return invariant(v) || (v->def && same.contains(v->def));
          }))
        continue;
      same.insert(op);
      for (Value*& v : op->operands)
        if (v->block == head_ && constant(v)) v = ir::clone_over(before, *v->def, {}, names)->result();
      before.take(op);
    }
    std::erase_if(head_->ops, [&](const Op* op) { return same.contains(op); });
  }

  /// i + k < n becomes i < max(n, first + k) - k, which is n - k where there is an iteration, and does not wrap
  /// where n is less than anything; the same for i - k, for at most, and for what falls. Sizes are not that
  /// small.
  void isolate() {
    Op* const test = decision_->operands[0]->def;
    if (!test || test->parent != head_ || !test->is(Opcode::lt_, Opcode::le_) ||
        test->operands[0]->type != ir::I64)
      return;
    const std::size_t side = invariant(test->operands[0]) ? 1 : 0;
    Value *const bound = test->operands[1 - side], *const moving = test->operands[side];
    const Op* const op = moving->def;
    if (!invariant(bound) || invariant(moving) || !op || op->parent != head_) return;
    const bool plus = op->is(Opcode::add_);
    if (!plus && !op->is(Opcode::sub_)) return;
    const std::size_t at = plus && invariant(op->operands[0]) ? 1 : 0;
    Value *const number = op->operands[at], *const k = op->operands[1 - at];
    if (!invariant(k) || number->def || number->block != head_) return;
    Value* const first = start_of(number->index);
    if (!made_before(first)) return;
    in_front([&](ir::Builder& b) {
      const auto here = [&](Value* v) { return made_here(b, v); };
      const auto sum = [&](Value* x, Value* y, bool add) {
        const Op *c = constant(x), *d = constant(y);
        if (add && c && c->integer == 0) return here(y);
        if (c && d) {
          const ir::Wrapping p(c->integer), q(d->integer);
          return b.integer(std::int64_t(add ? p + q : p - q));
        }
        return b.emit(add ? Opcode::add_ : Opcode::sub_, {here(x), here(y)});
      };
      Value* end = bound;
      if (!(never_negative(index_form(bound), *op_) && never_negative(index_form(k), *op_))) {
        Value* edge = sum(first, k, plus);
        if (test->is(Opcode::le_)) edge = sum(edge, b.integer(1), side == 1);
        end = b.emit(side == 0 ? Opcode::imax_ : Opcode::imin_, {here(bound), edge});
      }
      test->operands[1 - side] = sum(end, k, !plus);
    });
    test->operands[side] = number;
  }

  /// i <= n becomes i < n + 1, and n <= i becomes n - 1 < i.
  void make_strict() {
    Op* const test = decision_->operands[0]->def;
    if (!test || test->parent != head_ || !test->is(Opcode::le_) || test->operands[0]->type != ir::I64)
      return;
    for (const std::size_t side : {std::size_t{1}, std::size_t{0}}) {
      Value* const bound = test->operands[side];
      if (!invariant(bound)) continue;
      using limits = std::numeric_limits<std::int64_t>;
      if (const Op* c = constant(bound); c && c->integer == (side == 1 ? limits::max() : limits::min()))
        return;
      in_front([&](ir::Builder& b) {
        const std::int64_t step = side == 1 ? 1 : -1;
        const Op* c = constant(bound);
        test->operands[side] = c ? b.integer(c->integer + step) : b.add({bound, b.integer(step)});
      });
      test->code = Opcode::lt_;
      return;
    }
  }

  /// A loop that counts down, or by steps, or in 32 bits, counts iterations instead, and its number follows from
  /// theirs.
  void count_iterations() {
    Op* const test = decision_->operands[0]->def;
    const bool narrow = test && !test->operands.empty() && test->operands[0]->type == ir::I32;
    const bool reaches = narrow && test->is(Opcode::le_);  // in 64 bits the bound may be one further on
    if (!test || test->parent != head_ || !(test->is(Opcode::lt_) || reaches)) return;
    const bool falls = invariant(test->operands[0]);
    Value *const bound = test->operands[falls ? 0 : 1], *const number = test->operands[falls ? 1 : 0];
    if (number->def || number->block != head_ || !number->type.is_integer() || !invariant(bound)) return;
    const std::size_t at = number->index;
    Value* const in_body = op_->is(Opcode::loop_) ? body_->params[at] : number;
    std::vector<Op*> again;
    std::int64_t step = 0;
    if (!find_next(at, in_body, again, step) || (falls ? step >= 0 : step <= (narrow ? 0 : 1))) return;
    Value* const first = start_of(at);
    if (!made_before(first)) return;

    Value *start = nullptr, *iterations = nullptr;
    in_front([&](ir::Builder& b) {
      start = b.integer(0);
      const auto wide = [&](Value* v) {
        if (const Op* c = constant(v); c && (narrow || v == bound)) return b.integer(c->integer);
        return narrow ? b.emit(Opcode::cast_, {v}, static_cast<std::int64_t>(ir::Kind::i64)) : v;
      };
      Value *const high = wide(falls ? first : bound), *const low = wide(falls ? bound : first);
      iterations = narrow ? b.sub({high, low}) : iterations_between(b, low, high);
      if (reaches) iterations = b.add({iterations, b.integer(1)});
      if (std::abs(step) == 1) return;
      iterations = b.add({iterations, b.integer(std::abs(step) - 1)});
      iterations = b.div({iterations, b.integer(std::abs(step))});
    });
    Value* const count = module_.add_param(head_, ir::I64);
    Value* const body_count = op_->is(Opcode::loop_) ? module_.add_param(body_, ir::I64) : count;
    if (op_->is(Opcode::loop_)) {
      op_->operands.push_back(start);
      module_.add_result(op_, ir::I64);
    } else {
      std::vector<ir::Type> types = op_->result()->type.parts();
      types.push_back(ir::I64);
      op_->result()->type = ir::Type::cont(std::move(types));
      const_cast<Op*>(entry_)->operands.push_back(start);
    }
    for (Op* end : again) {
      ir::Builder b = ir::Builder::before(end, {});
      end->operands.push_back(b.add({body_count, b.integer(1)}));
    }
    test->code = Opcode::lt_;
    test->operands = {count, iterations};

    // In the body the number is first + step * iteration.
    ir::Builder b = ir::Builder::before(body_->ops.front(), {});
    Value* way =
        narrow ? b.emit(Opcode::cast_, {body_count}, static_cast<std::int64_t>(ir::Kind::i32)) : body_count;
    if (std::abs(step) != 1) way = b.mul({way, b.integer(std::abs(step), number->type)});
    Value* const own = b.emit(falls ? Opcode::sub_ : Opcode::add_, {first, way});
    own->name = in_body->name;
    ir::walk(body_, [&](Op* op) {
      if (op == own->def || counts_.contains(op)) return;
      std::ranges::replace(op->operands, in_body, own);
    });
  }

 private:
  bool invariant(const Value* v) const { return v->block != head_ || constant(v); }

  /// The operations that lead to the next iteration, if each adds the same constant to the number.
  bool find_next(std::size_t at, const Value* number, std::vector<Op*>& again, std::int64_t& step) {
    const auto steps = [&](const Value* v) {
      Op* const op = v->def;
      if (!op || !op->is(Opcode::sub_, Opcode::add_) || op->operands[0] != number) return false;
      const Op* by = constant(op->operands[1]);
      if (!by || by->integer > largest_step || by->integer < -largest_step) return false;
      const std::int64_t here = op->is(Opcode::sub_) ? -by->integer : by->integer;
      counts_.insert(op);
      return std::exchange(step, here) == here || again.empty();
    };
    if (op_->is(Opcode::loop_)) {
      Op* const end = body_->ops.back();
      if (!steps(end->operands[at])) return false;
      again.push_back(end);
      return true;
    }
    // Only jumps know the continuation: the first, and those of iterations.
    bool all = true;
    ir::walk(body_, [&](Op* op) {
      if (!op->is(Opcode::jump_) || op->operands[0] != op_->result()) return;
      all &= steps(op->operands[1 + at]);
      again.push_back(op);
    });
    return all && !again.empty() && uses_.at(op_->result()) == again.size() + 1;
  }

  /// What a piece of state is before the first iteration.
  Value* start_of(std::size_t at) const {
    return op_->is(Opcode::loop_) ? op_->operands[at] : entry_->operands[1 + at];
  }

  bool made_before(const Value* v) const {
    if (v->block != op_->parent || !v->def) return true;
    const std::vector<Op*>& ops = op_->parent->ops;
    return std::ranges::find(ops, v->def) < std::ranges::find(ops, op_);
  }

  void in_front(auto&& emit) {
    ir::Builder b = ir::Builder::before(op_);
    emit(b);
  }

  ir::Module& module_;
  Op* op_;
  Block* head_;
  const UseCounts& uses_;
  Block* body_ = nullptr;
  Op* decision_ = nullptr;
  const Op* entry_ = nullptr;
  std::unordered_set<const Op*> counts_;
};

/// Loops, and jumps that enter continuations: inner ones first.
void make_canonical(ir::Module& module, const std::vector<Op*>& found, const UseCounts& uses) {
  for (Op* op : found | std::views::reverse) {
    Op* const owner = op->is(Opcode::loop_) ? op : op->operands[0]->def;
    if (!owner || owner->parent != op->parent || !owner->is(Opcode::loop_, Opcode::fun_)) continue;
    Loop loop(module, owner, uses);
    if (!loop.known(op)) continue;
    loop.move_invariants();
    loop.isolate();
    loop.make_strict();
    loop.count_iterations();
  }
}

}  // namespace

void canonical_loops(ir::Module& module) {
  for (ir::Function* f : module.functions()) {
    std::vector<Op*> found;
    UseCounts uses;
    ir::walk(f->body, [&](Op* op) {
      for (const Value* v : op->operands)
        if (v->type.is_cont()) ++uses[v];
      if (op->is(Opcode::loop_, Opcode::jump_)) found.push_back(op);
    });
    make_canonical(module, found, uses);
  }
}

void canonical_loops(ir::Module& module, Op* outermost) {
  std::vector<Op*> found = loops_in(outermost->blocks[1]);
  found.insert(found.begin(), outermost);
  make_canonical(module, found, {});
}

}  // namespace lantern::passes
