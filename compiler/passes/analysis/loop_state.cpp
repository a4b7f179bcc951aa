// Following a piece of state.
#include "lantern/compiler/passes/analysis/loop_state.hpp"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "lantern/compiler/passes/analysis/lanes.hpp"
#include "lantern/compiler/passes/analysis/offset.hpp"
#include "lantern/ir/shape.hpp"

namespace lantern::passes {

namespace {

/// What AND and OR become, where there is nothing to compute for the second truth: a branch on the first, one
/// side of which is that truth, the other a constant.
std::optional<Opcode> conjunction_or_disjunction(const Op& branch) {
  if (branch.results.size() != 1 || !(branch.result()->type == ir::Bool)) return {};
  const Value* sides[2] = {};
  for (std::size_t i = 0; i < 2; ++i) {
    const Block* side = branch.blocks[i];
    if (std::ranges::any_of(side->ops,
                            [](const Op* op) { return !op->is(Opcode::constant_, Opcode::yield_); }))
      return {};
    sides[i] = side->ops.back()->operands[0];
  }
  const Op *yes = constant(sides[0]), *no = constant(sides[1]);
  if (yes && yes->integer != 0) return Opcode::lor_;
  if (no && no->integer == 0) return Opcode::land_;
  return {};
}

class Path {
 public:
  Path(const Uses& uses, LoopStateSummary& found) : uses_(uses), found_(found) {}

  /// From a value to the yield of a block; which operand of it that is, or nothing. `noted`: the value is
  /// among those found.
  std::optional<std::size_t> run(Value* v, const Block* block, bool noted = false) {
    for (;;) {
      if (!std::exchange(noted, false)) found_.values.push_back(v);
      const ir::Use* use = nullptr;
      const Op* holder = nullptr;
      for (const ir::Use& u : uses_.of(v)) {
        const Op* const top = ir::holder_in(block, u.op);
        if (!top || asks_for_shape(*u.op)) continue;  // the other side of a branch
        if (u.op->is(Opcode::get_) && u.operand == 0) {
          if (seen_.insert(u.op).second) found_.reads.push_back(u.op);
          continue;
        }
        if (use && (top != holder || u.op == holder || use->op == holder)) return {};
        use = &u;
        holder = top;
      }
      if (!use) return {};
      if (holder != use->op) {
        v = through_branch(v, *holder);
      } else if (use->op->is(Opcode::yield_)) {
        return use->operand;
      } else {
        v = use->op->is(Opcode::loop_) ? through_loop(*use->op, use->operand)
                                       : updated(v, *use->op, use->operand);
      }
      if (!v) return {};
    }
  }

 private:
  static bool asks_for_shape(const Op& op) { return op.is(Opcode::dim_, Opcode::zeros_like_); }

  Value* through_branch(Value* v, const Op& branch) {
    if (!branch.is(Opcode::branch_)) return nullptr;
    const auto one = run(v, branch.blocks[0], true), other = run(v, branch.blocks[1], true);
    return one && one == other ? branch.results[*one] : nullptr;
  }

  Value* through_loop(const Op& loop, std::size_t state) {
    if (!uses_.of(loop.blocks[0]->params[state]).empty()) return nullptr;
    return run(loop.blocks[1]->params[state], loop.blocks[1]) == state ? loop.results[state] : nullptr;
  }

  Value* updated(const Value* v, const Op& op, std::size_t operand) {
    switch (op.code) {
      case Opcode::add_:
      case Opcode::sub_:
        if ((op.is(Opcode::sub_) && operand != 0) || !(op.result()->type == v->type)) return nullptr;
        found_.whole |= v->type.is_tensor();
        found_.sum = true;
        found_.ordered_sum |= is_ordered_sum(op);
        break;
      case Opcode::max_:
      case Opcode::min_:
      case Opcode::imax_:
      case Opcode::imin_:
      case Opcode::land_:
      case Opcode::lor_:
        if (!takes(op.code)) return nullptr;
        break;
      case Opcode::branch_: {
        const auto logic = conjunction_or_disjunction(op);
        if (!logic || !takes(*logic)) return nullptr;
        break;
      }
      case Opcode::set_:
      case Opcode::add_at_:
        if (operand != 0) return nullptr;
        found_.updates.push_back(&op);
        break;
      default:
        if (operand != 0 || !ir::updates_first(op)) return nullptr;
        found_.whole = true;
        break;
    }
    return op.result();
  }

  bool takes(Opcode extreme) {
    return found_.extreme.value_or(extreme) == extreme && (found_.extreme = extreme, true);
  }

  const Uses& uses_;
  LoopStateSummary& found_;
  std::unordered_set<const Op*> seen_;  ///< reads
};

void note_sums(const Uses& uses, LoopStateSummary& found) {
  std::size_t sums = 0;
  for (const Op* op : found.updates) {
    if (op->is(Opcode::add_at_)) continue;
    if (!op->is(Opcode::set_) || !read_of_own_element(uses, *op)) return;
    found.ordered_sum |= is_ordered_sum(*op->operands.back()->def);
    ++sums;
  }
  found.is_read_modify_write_sum = sums > 0 && sums == found.reads.size();
}

}  // namespace

const Op* read_of_own_element(const Uses& uses, const Op& set) {
  constexpr int longest = 16;
  std::vector<const Value*> parts{set.operands.back()};
  for (int looked = 0; !parts.empty() && looked < longest; ++looked) {
    const Op* const op = parts.back()->def;
    parts.pop_back();
    if (!op || !uses.once(op->result())) continue;
    if (op->is(Opcode::get_) && looked > 0 && op->operands[0] == set.operands[0] && same_element(*op, set))
      return op;
    if (op->is(Opcode::sub_)) parts.push_back(op->operands[0]);
    if (op->is(Opcode::add_)) parts.insert(parts.end(), op->operands.rbegin(), op->operands.rend());
  }
  return nullptr;
}

bool LoopStateSummary::is_pure_accumulation() const {
  return !extreme && reads.empty() &&
         std::ranges::all_of(updates, [](const Op* op) { return op->is(Opcode::add_at_); });
}

bool LoopStateSummary::only_summed() const { return is_pure_accumulation() || (!extreme && is_read_modify_write_sum); }

bool LoopStateSummary::only_extreme() const {
  return extreme && !whole && !sum && reads.empty() && updates.empty();
}

bool LoopStateSummary::is_straight(const Op* loop) const {
  return !whole && std::all_of(values.begin() + 1, values.end(), [&](const Value* v) {
    return v->def && v->def->parent == loop->blocks[1] && is_write(*v->def);
  });
}

bool LoopStateSummary::only_read() const { return !extreme && !whole && !sum && updates.empty(); }

std::vector<const Op*> LoopStateSummary::accesses() const {
  std::vector<const Op*> all = reads;
  all.insert(all.end(), updates.begin(), updates.end());
  return all;
}

std::optional<LoopStateSummary> state_use(const Uses& uses, const Op* loop, std::size_t state) {
  LoopStateSummary found;
  if (!uses.of(loop->blocks[0]->params[state]).empty()) return {};
  if (Path(uses, found).run(loop->blocks[1]->params[state], loop->blocks[1]) != state) return {};
  if (!found.reads.empty()) note_sums(uses, found);
  return found;
}

}  // namespace lantern::passes
