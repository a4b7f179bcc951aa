// Comparisons are saved instead of the numbers that they compare.
#include "lantern/compiler/passes/direct/tape_narrowing.hpp"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "lantern/compiler/passes/support/rewrite.hpp"

namespace lantern::passes {

namespace {

/// Where values go to and come from a tape.
struct Sites {
  std::vector<Op*> pushes, pops;
};

bool compares(const Op& op) { return op.is(Opcode::eq_, Opcode::ne_, Opcode::lt_, Opcode::le_); }
bool is_logic(const Op& op) { return op.is(Opcode::land_, Opcode::lor_, Opcode::lnot_); }

/// What one block pops, in the form that its forward part can compute.
class Narrowing {
 public:
  Narrowing(ir::Module& module, const ir::Function& function, const std::map<std::int64_t, Sites>& tapes,
            Block* block)
      : module_(module), uses_(function), block_(block) {
    std::size_t run = 0;
    bool popped = false;
    for (Op* op : block->ops) {
      if (!op->is(Opcode::push_, Opcode::pop_)) continue;
      const auto at = tapes.find(op->integer);
      if (at == tapes.end() || at->second.pops[0]->parent != block) continue;
      if (op->is(Opcode::push_)) {
        if (popped) ++run;
        popped = false;
        continue;
      }
      popped = true;
      candidates_[op->result()] = {&at->second, run};
    }
  }

  void run() {
    drop_candidates_with_other_uses();
    if (candidates_.empty()) return;
    group();
    for (const auto& [group, numbers] : groups_) narrow(group.first, numbers);
  }

 private:
  using Blocks = std::vector<Block*>;
  /// `run`: of pops between which the block saves none of these numbers.
  struct Candidate {
    const Sites* sites;
    std::size_t run;
  };
  /// The numbers of one group are saved in the same blocks, all of them before the first is popped.
  using Group = std::pair<Blocks, std::size_t>;

  /// Requires that comparisons with constants, with each other, and with what the forward part sees are all
  /// that a number is used for.
  void drop_candidates_with_other_uses() {
    for (bool changed = true; changed;) {
      changed = false;
      std::erase_if(candidates_, [&](const auto& candidate) {
        const std::span<const ir::Use> uses = uses_.of(candidate.first);
        const bool fits = !uses.empty() && std::ranges::all_of(uses, [&](const ir::Use& use) {
          return use.op->parent == block_ && compares(*use.op) &&
                 std::ranges::all_of(use.op->operands, [&](const Value* x) {
                   return constant(x) || is_candidate_beside(x, candidate.second) ||
                          is_visible(x, *candidate.second.sites);
                 });
        });
        changed |= !fits;
        return !fits;
      });
    }
  }

  static Blocks blocks_of(const Sites& sites) {
    Blocks blocks;
    for (const Op* push : sites.pushes) blocks.push_back(push->parent);
    return blocks;
  }
  static Group group_of(const Candidate& candidate) { return {blocks_of(*candidate.sites), candidate.run}; }
  bool is_candidate_beside(const Value* x, const Candidate& candidate) const {
    const auto other = candidates_.find(const_cast<Value*>(x));
    return other != candidates_.end() && group_of(other->second) == group_of(candidate);
  }
  /// True for a value that is there wherever the number is saved: defined around each push, and before it.
  bool is_visible(const Value* x, const Sites& sites) {
    return std::ranges::all_of(sites.pushes, [&](const Op* push) {
      if (!ir::visible_from(x, push->parent)) return false;
      if (!x->def) return true;
      const Op* around = push;
      while (around->parent != x->def->parent) around = around->parent->parent;
      return position(x->def) < position(around);
    });
  }
  std::size_t position(const Op* op) {
    auto& positions = positions_[op->parent];
    if (positions.empty())
      for (const Op* each : op->parent->ops) positions.emplace(each, positions.size());
    return positions.at(op);
  }

  void group() {
    for (Op* op : block_->ops)  // in order, so that what is made is the same at each run
      if (op->is(Opcode::pop_))
        if (const auto found = candidates_.find(op->result()); found != candidates_.end())
          numbers_of(group_of(found->second)).push_back(op->result());
  }

  std::vector<Value*>& numbers_of(const Group& group) {
    for (auto& [at, numbers] : groups_)
      if (at == group) return numbers;
    return groups_.emplace_back(group, std::vector<Value*>()).second;
  }

  /// The comparisons of a group's numbers, and what logic makes of these alone, in order.
  std::vector<Op*> conditions_of(const std::vector<Value*>& numbers) const {
    std::unordered_set<const Value*> made(numbers.begin(), numbers.end());
    std::vector<Op*> conditions;
    for (Op* op : block_->ops) {
      const auto is_made = [&](const Value* x) { return made.contains(x); };
      const bool is_condition = compares(*op) ? std::ranges::any_of(op->operands, is_made)
                                              : is_logic(*op) && std::ranges::all_of(op->operands, is_made);
      if (!is_condition) continue;
      made.insert(op->result());
      conditions.push_back(op);
    }
    return conditions;
  }

  /// True for a condition that follows from saved ones: its operands do, or it denies a saved one.
  bool follows(const Op& op, const std::vector<Op*>& conditions,
               const std::unordered_set<const Op*>& saved) const {
    if (saved.contains(&op)) return true;
    if (compares(op)) return op.is(Opcode::ne_) && denied(op, conditions, saved);
    return std::ranges::all_of(op.operands,
                               [&](const Value* x) { return follows(*x->def, conditions, saved); });
  }
  /// The saved equality of the same operands.
  static Op* denied(const Op& op, const std::vector<Op*>& conditions,
                    const std::unordered_set<const Op*>& saved) {
    const auto at = std::ranges::find_if(conditions, [&](const Op* other) {
      return other->is(Opcode::eq_) && saved.contains(other) && other->operands == op.operands;
    });
    return at == conditions.end() ? nullptr : *at;
  }

  /// Those that other operations use, without those that follow from the rest.
  std::unordered_set<const Op*> to_save(const std::vector<Op*>& conditions) const {
    const std::unordered_set<const Op*> all(conditions.begin(), conditions.end());
    std::unordered_set<const Op*> saved;
    for (const Op* op : conditions)
      if (std::ranges::any_of(uses_.of(op->result()),
                              [&](const ir::Use& use) { return !all.contains(use.op); }))
        saved.insert(op);
    for (auto op = conditions.rbegin(); op != conditions.rend(); ++op)
      if (saved.erase(*op) != 0 && !follows(**op, conditions, saved)) saved.insert(*op);
    return saved;
  }

  void narrow(const Blocks& blocks, const std::vector<Value*>& numbers) {
    const std::vector<Op*> conditions = conditions_of(numbers);
    const std::unordered_set<const Op*> saved = to_save(conditions);
    std::size_t bytes = 0;
    for (const Value* v : numbers) bytes += v->type.kind() == ir::Kind::f32 ? 4 : 8;
    if (saved.size() >= bytes) return;

    for (std::size_t site = 0; site < blocks.size(); ++site) save_at(site, numbers, conditions, saved);
    std::unordered_set<const Op*> gone;
    for (const Value* v : numbers) gone.insert(v->def);
    for (Op* op : conditions) {
      if (saved.contains(op)) continue;
      if (!follows(*op, conditions, saved))
        gone.insert(op);
      else if (const Op* const equal = compares(*op) ? denied(*op, conditions, saved) : nullptr) {
        op->code = Opcode::lnot_;
        op->operands = {equal->result()};
      }
    }
    std::vector<Op*> pops;
    for (auto op = conditions.rbegin(); op != conditions.rend(); ++op) {
      if (!saved.contains(*op)) continue;
      pops.push_back(*op);
      (*op)->code = Opcode::pop_;
      (*op)->operands.clear();
      (*op)->integer = tapes_.at(*op);
    }
    // The pops stand where the numbers were popped.
    const auto first = std::ranges::find_if(block_->ops, [&](const Op* op) { return gone.contains(op); });
    std::vector<Op*> ops(block_->ops.begin(), first);
    ops.insert(ops.end(), pops.begin(), pops.end());
    for (auto op = first; op != block_->ops.end(); ++op)
      if (!gone.contains(*op) && !saved.contains(*op)) ops.push_back(*op);
    block_->ops = std::move(ops);
  }

  /// Computes the conditions where a forward part saved the numbers, and saves what is to be saved.
  void save_at(std::size_t site, const std::vector<Value*>& numbers, const std::vector<Op*>& conditions,
               const std::unordered_set<const Op*>& saved) {
    std::unordered_map<const Value*, Value*> here;
    std::vector<Op*> old;
    for (Value* v : numbers) {
      Op* const push = candidates_.at(v).sites->pushes[site];
      here[v] = push->operands[0];
      old.push_back(push);
    }
    Block* const block = old.front()->parent;
    Op* const last = *std::ranges::find_if(block->ops.rbegin(), block->ops.rend(),
                                           [&](Op* op) { return std::ranges::find(old, op) != old.end(); });
    ir::Builder b = ir::Builder::before(last);
    std::vector<Value*> outcomes;
    for (const Op* op : conditions) {
      std::vector<Value*> operands;
      for (Value* x : op->operands) {
        const auto found = here.find(x);
        operands.push_back(found != here.end() ? found->second : made_here(b, x));
      }
      here[op->result()] = b.emit(op->code, operands);
      if (saved.contains(op)) outcomes.push_back(here[op->result()]);
    }
    std::size_t next = 0;
    for (const Op* op : conditions) {
      if (!saved.contains(op)) continue;
      const auto [tape, added] = tapes_.try_emplace(op, 0);
      if (added) tape->second = module_.new_tape();
      b.op(Opcode::push_, {outcomes[next++]})->integer = tape->second;
    }
    erase(old);
  }

  ir::Module& module_;
  const ir::Uses uses_;
  Block* block_;
  std::unordered_map<Value*, Candidate> candidates_;
  std::vector<std::pair<Group, std::vector<Value*>>> groups_;
  std::unordered_map<const Op*, std::int64_t> tapes_;
  std::unordered_map<const Block*, std::unordered_map<const Op*, std::size_t>> positions_;  ///< before what is made here
};

/// The one value that a tape holds, where it is made once in a call, before all that is popped; or null.
Value* only_value(const Sites& sites) {
  if (sites.pushes.empty() || sites.pops.empty()) return nullptr;
  Value* const v = sites.pushes[0]->operands[0];
  const auto same = [&](const Op* push) { return push->operands.size() == 1 && push->operands[0] == v; };
  if (!v->type.is_scalar() || !std::ranges::all_of(sites.pushes, same)) return nullptr;
  for (const Op* around = v->block->parent; around; around = around->parent->parent)
    if (!around->is(Opcode::branch_)) return nullptr;
  const auto sees = [&](const Op* pop) {
    if (pop->results.size() != 1 || pop->result()->type != v->type || !ir::visible_from(v, pop->parent)) return false;
    const Op* around = pop;
    while (around->parent != v->block) around = around->parent->parent;
    const auto& ops = v->block->ops;
    return !v->def || std::ranges::find(ops, v->def) < std::ranges::find(ops, around);
  };
  return std::ranges::all_of(sites.pops, sees) ? v : nullptr;
}

/// Takes tapes away that hold one value throughout.
void drop_known(std::map<std::int64_t, Sites>& tapes, const std::unordered_map<const Op*, ir::Function*>& function_of) {
  std::unordered_map<ir::Function*, ir::Renaming> names;
  std::vector<Op*> gone;
  std::erase_if(tapes, [&](const auto& tape) {
    Value* const v = only_value(tape.second);
    if (!v) return false;
    for (Op* pop : tape.second.pops) names[function_of.at(pop)][pop->result()] = v;
    for (const auto& list : {tape.second.pushes, tape.second.pops}) gone.insert(gone.end(), list.begin(), list.end());
    return true;
  });
  for (const auto& [f, by] : names) ir::replace_uses(f->body, by);
  erase(gone);
}

}  // namespace

void tape_narrowing(ir::Module& module) {
  std::map<std::int64_t, Sites> tapes;
  std::unordered_map<const Op*, ir::Function*> function_of;
  for (ir::Function* f : module.functions())
    ir::walk(f->body, [&](Op* op) {
      if (op->is(Opcode::push_)) tapes[op->integer].pushes.push_back(op);
      if (!op->is(Opcode::pop_)) return;
      tapes[op->integer].pops.push_back(op);
      function_of[op] = f;
    });
  drop_known(tapes, function_of);
  // One pop, so that all that is known of the numbers is in one block.
  std::erase_if(tapes, [](const auto& tape) {
    const Sites& sites = tape.second;
    return sites.pops.size() != 1 || sites.pushes.empty() || !sites.pops[0]->result()->type.is_scalar() ||
           !sites.pops[0]->result()->type.is_float_element() || sites.pops[0]->results.size() != 1;
  });
  std::vector<std::pair<Block*, ir::Function*>> blocks;
  for (const auto& [number, sites] : tapes) {
    const std::pair at{sites.pops[0]->parent, function_of.at(sites.pops[0])};
    if (std::ranges::find(blocks, at) == blocks.end()) blocks.push_back(at);
  }
  for (const auto& [block, function] : blocks) Narrowing(module, *function, tapes, block).run();
}

}  // namespace lantern::passes
