// Loops that follow one another over the same iterations.
#include "lantern/compiler/passes/array/loop_fusion.hpp"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "lantern/compiler/passes/analysis/index_form.hpp"
#include "lantern/compiler/passes/analysis/loop_state.hpp"
#include "lantern/compiler/passes/analysis/iterations.hpp"
#include "lantern/compiler/passes/array/iteration_cloner.hpp"
#include "lantern/compiler/passes/canonical/simplify.hpp"

namespace lantern::passes {

namespace {

/// Operations between two loops that are looked at: loops with more between them are not fused.
constexpr int most_looked_at = 2000;
/// The operations of a joined body, which are more than registers hold long before; compilers take more than
/// proportional time for longer ones.
constexpr std::size_t longest_body = 400;

/// False for a loop of which no index can be out of range, so that it may run behind a check.
bool may_fail(const Op* loop) {
  bool may = false;
  for (Block* b : loop->blocks)
    ir::walk(b, [&](const Op* op) {
      if (is_access(*op))
        may |= !in_range(*op);
      else
        may |= !ir::info(op->code).elementwise && !op->is(Opcode::constant_, Opcode::yield_);
      may |= divides_integers(*op);
    });
  return may;
}

bool same_iterations(const IterationRange& a, const IterationRange& b) {
  return a.first == b.first && a.last == b.last && a.ahead == b.ahead;
}

/// Everything done to a piece of a loop's state happens at elements whose index number `at` is the iteration's; or
/// all changes do.
bool own_elements(const Uses& uses, const Op* loop, std::size_t state, const Value* iteration, std::size_t at,
                  bool reads) {
  const auto use = state_use(uses, loop, state);
  if (!use || use->whole || use->extreme || use->sum) return false;
  const auto own = [&](const Op* op) { return op->operands[1 + at] == iteration; };
  return std::ranges::all_of(use->updates, own) && (!reads || std::ranges::all_of(use->reads, own));
}

/// What is known of loops' independence; what two independent loops become is independent too.
class Independence {
 public:
  bool of(const Op* loop) {
    const auto [it, added] = known_.try_emplace(loop, false);
    if (added) it->second = is_doall(loop);
    return it->second;
  }

 private:
  std::unordered_map<const Op*, bool> known_;
};

/// Who asks for the values of a block, below it too; kept up to date where loops are joined.
class UseMap {
 public:
  explicit UseMap(Block* block) {
    ir::walk(block, [&](Op* op) {
      for (std::size_t i = 0; i < op->operands.size(); ++i) add(op, i);
    });
  }

  void add(Op* op, std::size_t operand) { all_[op->operands[operand]].push_back({op, operand}); }
  void leave_out(const Op* op) { gone_.insert(op); }
  void replace(const Value* v, Value* by) {
    const auto found = all_.find(v);
    if (found == all_.end()) return;
    for (const auto& [op, operand] : std::exchange(found->second, {})) {
      if (!asks(op, operand, v)) continue;
      op->operands[operand] = by;
      add(op, operand);
    }
  }
  std::size_t count(const Value* v) const {
    const auto found = all_.find(v);
    if (found == all_.end()) return 0;
    return static_cast<std::size_t>(std::ranges::count_if(
        found->second, [&](const auto& use) { return asks(use.first, use.second, v); }));
  }

 private:
  /// Not any more, where it has been joined or renamed.
  bool asks(const Op* op, std::size_t operand, const Value* v) const {
    return operand < op->operands.size() && op->operands[operand] == v && !gone_.contains(op);
  }

  std::unordered_map<const Value*, std::vector<std::pair<Op*, std::size_t>>> all_;
  std::unordered_set<const Op*> gone_;
};

class Fusion {
 public:
  Fusion(ir::Module& module, Independence& independent, UseMap& askers, Op* first, Op* second)
      : module_(module),
        independent_(independent),
        askers_(askers),
        a_(first),
        b_(second),
        in_a_(*iteration_range(first)),
        in_b_(*iteration_range(second)) {}

  bool run() {
    if (!may_join()) return false;
    join();
    return true;
  }

 private:
  Block* body(Op* loop) const { return loop->blocks[1]; }
  bool may_join() {
    if (body(a_)->ops.size() + body(b_)->ops.size() > longest_body) return false;
    if (independent_.of(a_) != independent_.of(b_)) return false;
    const Uses in_a(a_), in_b(b_);
    bool related = false;
    for (std::size_t i = 0; i < a_->results.size(); ++i) {
      if (i == in_a_.index) continue;
      const Value* r = a_->result(i);
      if (std::ranges::count(b_->operands, r) > 1) return false;
      const auto state = std::ranges::find(b_->operands, r);
      const bool handed_on = state != b_->operands.end();
      if (!handed_on && in_b.of(r).empty()) continue;
      related = true;
      if (!r->type.is_tensor() || (handed_on && used_elsewhere(r))) return false;
      const std::size_t j = static_cast<std::size_t>(state - b_->operands.begin());
      bool own = false;
      for (std::size_t at = 0; at < static_cast<std::size_t>(r->type.rank()) && !own; ++at)
        own = own_elements(in_a, a_, i, in_a_.number, at, handed_on) &&
              (handed_on ? in_b.of(r).empty() && in_b.of(b_->blocks[0]->params[j]).empty() &&
                               own_elements(in_b, b_, j, in_b_.number, at, true)
                         : only_reads(in_b, r, at));
      if (!own) return false;
    }
    return related && undisturbed(in_a) && tapes_independent();
  }

  /// Whether something besides the second loop asks for a result of the first: it would find it updated.
  bool used_elsewhere(const Value* r) const { return askers_.count(r) > 1; }

  bool only_reads(const Uses& uses, const Value* r, std::size_t at) const {
    return std::ranges::all_of(uses.of(r), [&](const ir::Use& use) {
      return use.op->is(Opcode::dim_, Opcode::zeros_like_) ||
             (use.op->is(Opcode::get_) && use.operand == 0 && use.op->operands[1 + at] == in_b_.number);
    });
  }

  /// The first loop may run as late as the second: nothing between them asks for what it makes or updates
  /// what it reads, nor does the second loop.
  bool undisturbed(const Uses& in_a) const {
    const std::unordered_set<const Value*> made(a_->results.begin(), a_->results.end());
    const auto reads = [&](const Value* v) { return v->type.is_tensor() && !in_a.of(v).empty(); };
    for (const Value* v : b_->operands)
      if (reads(v)) return false;
    const auto& ops = a_->parent->ops;
    const bool fails = may_fail(a_);
    int looked = 0;
    for (auto it = std::ranges::find(ops, a_) + 1; *it != b_; ++it) {
      bool disturbs = false;
      const auto look = [&](const Op* op) {
        disturbs |= (op->is(Opcode::check_) ? fails : keeps_order(*op)) || is_on_tape(*op) ||
                    ++looked > most_looked_at;
        const bool updates = is_write(*op) || op->is(Opcode::loop_);
        for (const Value* v : op->operands) disturbs |= made.contains(v) || (updates && reads(v));
      };
      look(*it);
      for (Block* b : (*it)->blocks) ir::walk(b, look);
      if (disturbs) return false;
    }
    return true;
  }

  /// No tape that both use: what one pushes would come between what the other does. And nothing else that
  /// keeps its order.
  bool tapes_independent() const {
    std::unordered_set<std::int64_t> tapes[2];
    bool ordered = false;
    for (int k = 0; k < 2; ++k)
      ir::walk(body(k ? b_ : a_), [&](const Op* op) {
        if (is_on_tape(*op))
          tapes[k].insert(op->integer);
        else
          ordered |= keeps_order(*op);
      });
    return !ordered && std::ranges::none_of(tapes[0], [&](std::int64_t t) { return tapes[1].contains(t); });
  }

  void join() {
    Block *from = body(a_), *to = body(b_);
    const Op* yield = from->ops.back();
    Renaming in_first, in_second, outside;
    in_first[from->params[in_a_.index]] = to->params[in_b_.index];
    outside[a_->result(in_a_.index)] = b_->result(in_b_.index);
    if (in_a_.number->def) in_second[in_b_.number] = in_a_.number;
    const auto second_yield = to->ops.back();
    for (std::size_t i = 0; i < a_->results.size(); ++i) {
      if (i == in_a_.index) continue;
      const auto state = std::ranges::find(b_->operands, a_->result(i));
      if (state != b_->operands.end()) {
        const auto j = static_cast<std::size_t>(state - b_->operands.begin());
        in_first[from->params[i]] = to->params[j];
        in_second[to->params[j]] = yield->operands[i];
        *state = a_->operands[i];
        askers_.add(b_, j);
      } else {
        b_->operands.push_back(a_->operands[i]);
        askers_.add(b_, b_->operands.size() - 1);
        module_.add_param(b_->blocks[0], a_->blocks[0]->params[i]->type);
        in_first[from->params[i]] = module_.add_param(to, from->params[i]->type, from->params[i]->name);
        second_yield->operands.push_back(yield->operands[i]);
        in_second[a_->result(i)] = yield->operands[i];
        outside[a_->result(i)] = module_.add_result(b_, a_->result(i)->type, a_->result(i)->name);
      }
    }
    // A state that is handed on as it came, or is another's value, is renamed twice.
    for (auto& [v, by] : in_second) by = ir::renamed(in_first, by);
    const std::size_t own = second_yield->operands.size();
    ir::rename(to, in_second);
    ir::rename(from, in_first);
    for (std::size_t k = 0; k < own; ++k)
      second_yield->operands[k] = ir::renamed(in_first, second_yield->operands[k]);
    from->ops.pop_back();
    ir::Builder::before(to->ops.front()).take(std::exchange(from->ops, {}));
    std::erase(a_->parent->ops, a_);
    askers_.leave_out(a_);
    askers_.leave_out(yield);
    for (const auto& [v, by] : outside) askers_.replace(v, by);
  }

  ir::Module& module_;
  Independence& independent_;
  UseMap& askers_;
  Op *a_, *b_;
  IterationRange in_a_, in_b_;
};

/// The loops of the same block whose results a loop asks for, the nearest first.
std::vector<Op*> asked_for(const Op* loop) {
  std::vector<Op*> found;
  const auto look = [&](const Op* op) {
    for (const Value* v : op->operands)
      if (v->def && v->def->is(Opcode::loop_) && v->def->parent == loop->parent && v->def != loop &&
          std::ranges::find(found, v->def) == found.end())
        found.push_back(v->def);
  };
  look(loop);
  for (Block* b : loop->blocks) ir::walk(b, look);
  return found;
}

/// Fuses loops of a block until none is left that can be, then those of the blocks in it, in whose loops there is more now;
/// true if there were any.
bool fuse_in(ir::Module& module, Block* block) {
  bool any = false;
  if (std::ranges::count_if(block->ops, [](const Op* op) { return op->is(Opcode::loop_); }) > 1) {
    Independence independent;
    UseMap askers(block);
    const std::vector<Op*> ops = block->ops;
    for (Op* second : ops) {
      if (!second->is(Opcode::loop_) || !iteration_range(second)) continue;
      const auto join_one = [&] {
        return std::ranges::any_of(asked_for(second), [&](Op* first) {
          const auto a = iteration_range(first), b = iteration_range(second);
          return a && same_iterations(*a, *b) &&
                 Fusion(module, independent, askers, first, second).run();
        });
      };
      while (join_one()) any = true;
    }
  }
  for (Op* op : block->ops)
    for (Block* inner : op->blocks) any |= fuse_in(module, inner);
  return any;
}

}  // namespace

void loop_fusion(ir::Module& module) {
  if (in_direct_style(module, [&](ir::Function& f) { return fuse_in(module, f.body); })) simplify(module);
}

}  // namespace lantern::passes
