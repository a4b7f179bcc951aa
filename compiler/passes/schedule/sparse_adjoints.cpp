// One adjoint of one loop body at a time.
#include "lantern/compiler/passes/schedule/sparse_adjoints.hpp"

#include <algorithm>
#include <cmath>
#include <ranges>
#include <unordered_set>

#include "lantern/compiler/passes/analysis/iterations.hpp"
#include "lantern/compiler/passes/support/remarks.hpp"
#include "lantern/ir/clone.hpp"

namespace lantern::passes {

namespace {

constexpr std::size_t most_conditions = 3;    ///< numbers that are compared with zero in each iteration
constexpr std::size_t fewest_operations = 8;  ///< below a branch: fewer are no dearer than the branch

/// A number, or one in each lane.
bool is_number(const Value* v) { return v->type.is_scalar() && v->type.is_float_element(); }

/// The constant that a number is, in each lane.
const Op* constant_in_lanes(const Value* v) {
  return constant(v->def && v->def->is(Opcode::lane_splat_) ? v->def->operands[0] : v);
}

bool is_zero_number(const Value* v) {
  const Op* const c = is_number(v) ? constant_in_lanes(v) : nullptr;
  return c && is_zero(c->result());
}

bool is_plus_zero(const Value* v) { return is_zero_number(v) && !std::signbit(constant_in_lanes(v)->number); }

bool is_finite(const Value* v) {
  const Op* const c = is_number(v) ? constant_in_lanes(v) : nullptr;
  return c && std::isfinite(c->number);
}

/// Whether a tensor of adjoints comes from zeros to which a few elements were added before a loop around the one that is
/// looked at: those that choices send on stay few. Back to that loop, what other loops add is left out of account.
class SparseStart {
 public:
  explicit SparseStart(const Op* loop) : loop_(loop) {}

  bool of(const Value* v, bool around = false, bool seeded = false) {
    for (; budget_ > 0; --budget_) {
      if (!v->def) {
        const Op* const owner = v->block->parent;
        if (!owner || !owner->is(Opcode::loop_)) return false;
        around |= owner != loop_;
        v = owner->operands[v->index];
        continue;
      }
      const Op& op = *v->def;
      if (op.is(Opcode::branch_)) {
        const Value *const yes = op.blocks[0]->yields()[v->index], *const no = op.blocks[1]->yields()[v->index];
        if (around && of(yes, around, seeded)) return true;
        v = !around && yes->block != op.blocks[0] ? yes : no;
      } else if (op.is(Opcode::loop_) && !around) {
        v = op.operands[v->index];
      } else if (op.is(Opcode::add_at_, Opcode::set_)) {
        seeded |= around;
        v = op.operands[0];
      } else {
        return seeded && (op.is(Opcode::zeros_like_) || (op.is(Opcode::fill_) && is_zero_number(op.operands[0])));
      }
    }
    return false;
  }

 private:
  const Op* loop_;
  int budget_ = 200;
};

Value* differs_from_zero(ir::Builder& b, Value* v) {
  Value* zero = b.number(0, ir::Type(v->type.kind()));
  if (v->type.is_vector()) zero = b.emit(Opcode::lane_splat_, {zero}, v->type.lanes());
  return b.emit(Opcode::ne_, {v, zero});
}

class AdjointGuard {
 public:
  AdjointGuard(Op* loop, Op* adjoint)
      : loop_(loop), body_(loop->blocks[1]), adjoint_(adjoint), uses_(body_), zeros_{adjoint->result()} {}

  bool run() {
    const auto first = std::ranges::find(body_->ops, adjoint_) + 1;
    for (auto it = first; it + 1 != body_->ops.end(); ++it) {
      visit(*it);
      if (conditions_.size() >= most_conditions) return false;
    }
    find_moved({first, body_->ops.end() - 1});
    if (moved_.size() < fewest_operations || !chooses()) return false;
    move();
    remark("sparse_adjoints", adjoint_->loc, "an iteration whose adjoint is zero is skipped");
    return true;
  }

 private:
  /// Notes what is zero, or leaves what it updates as it is, where the adjoint and the conditions are zero.
  void visit(Op* op, bool may_ask = true) {
    if (op->is(Opcode::branch_)) return visit_branch(*op);
    if (op->is(Opcode::loop_)) return visit_loop(*op);
    if (op->results.size() != 1) return;
    Value* const v = op->result();
    if (is_update_of_zero(*op)) {
      unchanged_[v] = op->operands[0];
    } else if (is_number(v) && is_always_zero(*op)) {
      zeros_.insert(v);
    } else if (is_number(v) && op->is(Opcode::add_, Opcode::sub_) && zeros_.contains(op->operands[1])) {
      unchanged_[v] = op->operands[0];
    } else if (is_number(v) && op->is(Opcode::add_) && zeros_.contains(op->operands[0])) {
      unchanged_[v] = op->operands[1];
    } else if (may_ask && op->is(Opcode::mul_) && is_number(v) &&
               (zero(op->operands[0]) || zero(op->operands[1]))) {
      conditions_.push_back(op);  // 0 * inf is none
      zeros_.insert(v);
    }
  }

  /// Both sides give zero, or what they began with.
  void visit_branch(const Op& branch) {
    for (const Block* side : branch.blocks)
      for (Op* op : side->ops) visit(op, false);
    for (std::size_t i = 0; i < branch.results.size(); ++i) {
      Value *const yes = branch.blocks[0]->yields()[i], *const no = branch.blocks[1]->yields()[i];
      if (zero(yes) && zero(no))
        zeros_.insert(branch.results[i]);
      else if (is_update(branch.results[i]) && start_of(yes) == start_of(no))
        unchanged_[branch.results[i]] = start_of(yes);
    }
  }

  /// By induction over the iterations; an assumption that fails takes back all that was seen in the body.
  void visit_loop(const Op& loop) {
    const Block* const body = loop.blocks[1];
    const auto zeros = zeros_;
    const auto unchanged = unchanged_;
    const std::size_t states = loop.operands.size();
    std::vector<bool> is_zero_state(states), is_same_state(states);
    for (std::size_t i = 0; i < states; ++i) {
      is_zero_state[i] = zero(loop.operands[i]);
      is_same_state[i] = is_update(loop.results[i]);
      if (is_zero_state[i]) zeros_.insert(body->params[i]);
    }
    for (Op* op : body->ops) visit(op, false);
    bool holds = true;
    for (std::size_t i = 0; i < states; ++i) {
      Value* const next = body->ops.back()->operands[i];
      if (is_zero_state[i]) holds &= zero(next);
      if (is_same_state[i]) is_same_state[i] = start_of(next) == body->params[i];
    }
    zeros_ = zeros;
    unchanged_ = unchanged;
    if (!holds) return;
    for (std::size_t i = 0; i < states; ++i) {
      if (is_zero_state[i]) zeros_.insert(loop.results[i]);
      if (is_same_state[i] && !is_zero_state[i]) unchanged_[loop.results[i]] = loop.operands[i];
    }
  }

  static bool is_update(const Value* v) { return v->type.is_tensor() || is_number(v); }
  /// What a value is where nothing is added to it.
  Value* start_of(Value* v) const {
    for (auto it = unchanged_.find(v); it != unchanged_.end(); it = unchanged_.find(v)) v = it->second;
    return v;
  }

  bool zero(const Value* v) const { return zeros_.contains(v) || is_zero_number(v); }

  bool is_always_zero(const Op& op) const {
    const auto operand = [&](std::size_t i) { return op.operands[i]; };
    if (op.is(Opcode::neg_)) return zeros_.contains(operand(0));
    // x + 0 is there to tell something from nothing, which is -0 (direct/flow.hpp).
    if (op.is(Opcode::add_) && (is_plus_zero(operand(0)) || is_plus_zero(operand(1)))) return false;
    if (op.is(Opcode::add_, Opcode::sub_)) return zero(operand(0)) && zero(operand(1));
    if (op.is(Opcode::select_)) return zero(operand(1)) && zero(operand(2));
    if (op.is(Opcode::mul_))
      return (zeros_.contains(operand(0)) && is_finite(operand(1))) ||
             (zeros_.contains(operand(1)) && is_finite(operand(0)));
    return false;
  }

  /// A sum of zero, or zero where the adjoint has been read.
  bool is_update_of_zero(const Op& op) const {
    if (!op.operands.empty() && op.operands[0]->type.is_tensor() && is_number(op.operands.back())) {
      if (op.is(Opcode::add_at_))
        return op.loc.part == ir::Part::backward && zeros_.contains(op.operands.back());
      if (op.is(Opcode::set_))
        return zero(op.operands.back()) && op.operands[0] == adjoint_->operands[0] &&
               std::equal(op.operands.begin() + 1, op.operands.end() - 1, adjoint_->operands.begin() + 1,
                          adjoint_->operands.end());
    }
    return false;
  }

  /// True for an operation that does nothing but give a value, and may run in fewer iterations.
  static bool may_move(const Op& op) {
    return op.blocks.empty() && op.results.size() == 1 &&
           (op.is(Opcode::get_) ||
            (ir::info(op.code).elementwise && ir::info(op.code).effect == ir::Effect::none));
  }

  /// From the last operation up: updates that change nothing, and what serves only these. What an iteration
  /// hands on and nothing below the branch makes is as it was before.
  void find_moved(std::vector<Op*> after) {
    const std::unordered_set<const Op*> asked(conditions_.begin(), conditions_.end());
    const Op* const end = body_->ops.back();
    for (Op* op : after | std::views::reverse) {
      if (op->results.size() != 1 || !op->blocks.empty()) continue;
      const bool update = unchanged_.contains(op->result());
      if (asked.contains(op) || (!update && !may_move(*op))) continue;
      const auto& uses = uses_.of(op->result());
      // What a moved update begins with is needed where that is skipped, too.
      const bool starts_update = !update && std::ranges::any_of(uses, [&](const ir::Use& use) {
        if (!moved_.contains(use.op)) return false;
        const auto begins = unchanged_.find(use.op->result());
        return begins != unchanged_.end() && begins->second == op->result();
      });
      const bool served = std::ranges::all_of(
          uses, [&](const ir::Use& use) { return moved_.contains(use.op) || (update && use.op == end); });
      if (served && !starts_update && !uses.empty()) moved_.insert(op);
    }
    for (Op* op : after)
      if (moved_.contains(op)) order_.push_back(op);
  }

  /// Whether an adjoint flows to where a choice sends it.
  bool chooses() const {
    std::size_t sums = 0, choices = 0;
    for (const Op* op : order_) {
      sums += op->is(Opcode::add_at_);
      choices += op->is(Opcode::select_) && zeros_.contains(op->result()) &&
                 (is_zero_number(op->operands[1]) || is_zero_number(op->operands[2]));
    }
    return sums > 0 && choices > 0;
  }

  void move() {
    std::erase_if(body_->ops, [&](const Op* op) { return moved_.contains(op); });
    Op* const end = body_->ops.back();
    body_->ops.pop_back();
    ir::Builder b(*body_->function->module, body_, adjoint_->loc);
    Value* any = differs_from_zero(b, adjoint_->result());
    for (const Op* op : conditions_) any = b.emit(Opcode::lor_, {any, differs_from_zero(b, op->result())});
    if (any->type.is_vector()) any = b.emit(Opcode::lane_any_, {any});
    std::vector<std::size_t> places;
    std::vector<ir::Type> types;
    std::vector<Value*> changed, same;
    for (std::size_t i = 0; i < end->operands.size(); ++i) {
      Value* v = end->operands[i];
      if (!v->def || !moved_.contains(v->def)) continue;
      changed.push_back(v);
      while (v->def && moved_.contains(v->def)) v = unchanged_.at(v);
      same.push_back(v);
      places.push_back(i);
      types.push_back(v->type);
    }
    Op* const branch = b.branch(any, types);
    ir::Builder some(b.module(), branch->blocks[0], b.loc), none(b.module(), branch->blocks[1], b.loc);
    some.take(order_);
    some.yield(changed);
    none.yield(same);
    for (std::size_t k = 0; k < places.size(); ++k) end->operands[places[k]] = branch->results[k];
    body_->ops.push_back(end);
  }

  Op* loop_;
  Block* body_;
  Op* adjoint_;
  Uses uses_;
  std::unordered_set<const Value*> zeros_;
  std::unordered_map<const Value*, Value*> unchanged_;  ///< what an update gives, and what it updates
  std::vector<Op*> conditions_;
  std::unordered_set<const Op*> moved_;
  std::vector<Op*> order_;
};

/// The reads of adjoints that an iteration hands on, in order.
std::vector<Op*> adjoints_in(const Op* loop) {
  std::vector<Op*> all;
  const Block* const body = loop->blocks[1];
  for (Op* op : body->ops)
    if (op->is(Opcode::get_) && op->loc.part == ir::Part::backward && is_number(op->result()) &&
        std::ranges::find(body->params, op->operands[0]) != body->params.end())
      all.push_back(op);
  return all;
}

}  // namespace

void sparse_adjoints(ir::Module& module) {
  for (ir::Function* f : module.functions()) {
    if (!is_direct(*f)) continue;
    for (Op* loop : loops_in(*f)) {
      const std::vector<Op*> adjoints = adjoints_in(loop);
      if (adjoints.empty() || is_doall(loop)) continue;
      for (Op* adjoint : adjoints) {
        // A branch in lanes costs more where blocks differ.
        if (adjoint->result()->type.is_vector() && !SparseStart(loop).of(adjoint->operands[0])) continue;
        if (AdjointGuard(loop, adjoint).run()) break;
      }
    }
  }
}

}  // namespace lantern::passes
