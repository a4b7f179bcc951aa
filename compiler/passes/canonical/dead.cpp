// Dead code, over the whole module: first everything that matters is marked, from the effects and the results
// of the entry backwards; then the rest is swept out.
//
// Marking is by component. A result of a branch asks for what both sides yield there, state of a loop for its
// initial and its next value, a parameter for the arguments of the calls that matter; what only feeds itself
// is never asked for. The body of a continuation matters once the continuation does. What is done to a tape
// matters once a value popped from it does: nothing is saved that nothing reads.
//
// An operation that nothing needs the value of would still raise where shapes do not fit: a check takes its
// place. In continuation-passing style, where it cannot be moved out of loops, the operation itself stays for
// a while.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "lantern/compiler/passes/canonical/shape_checks.hpp"
#include "lantern/compiler/passes/canonical/simplify.hpp"
#include "lantern/compiler/passes/support/rewrite.hpp"
#include "lantern/ir/external.hpp"
#include "lantern/ir/pointer_map.hpp"

namespace lantern::passes {

namespace {

using ir::Effect;
using ir::Function;

/// True for what is done even if no result is used. (A call of an external function computes its results alone, unless
/// it is ordered.)
bool has_effect(const Op& op) {
  return ir::info(op.code).effect == Effect::effect && (!op.is(Opcode::external_) || ir::is_ordered_call(op));
}
/// True for an operation of the program, or of the forward part of a derivative, that raises where shapes do
/// not fit. (Adjoints have the shapes of their primals.)
bool may_not_fit(const Op& op) {
  return op.operands.size() > 1 && op.loc.part != ir::Part::backward && op.blocks.empty() &&
         !equal_sizes(op).empty();
}
bool writes_cell(const Op& op) { return op.is(Opcode::ref_set_, Opcode::ref_add_, Opcode::ref_acc_); }

struct Facts {
  bool effects = false;  ///< running it does more than compute its results
  bool fixed = false;    ///< others rely on its signature
  bool reached = false;
  std::vector<const Op*> calls;  ///< that matter
  std::vector<bool> results;     ///< that matter
};

/// What matters in a module.
class Liveness {
 public:
  /// `shapes`: what may raise for its shapes in continuation-passing style matters.
  Liveness(const ir::Module& module, bool shapes) : module_(module) {
    if (shapes)
      for (const Function* f : module.functions())
        if (!is_direct(*f)) indirect_.insert(f);
    find_facts();
    spread_effects();
    if (module.entry) {
      mark_reachable(module.entry);
    } else {
      for (const Function* f : module.functions()) mark_reachable(f);
    }
    work();
  }

  bool live(const Op* op) const { return ops_.contains(op); }
  bool live(const Value* v) const { return values_.contains(v); }
  const Facts& facts(const Function* f) const { return facts_.at(f); }
  bool keeps_parameter(const Function* f, std::size_t i) const {
    return facts(f).fixed || live(f->body->params[i]);
  }
  bool keeps_result(const Function* f, std::size_t i) const { return facts(f).fixed || facts(f).results[i]; }

 private:
  void find_facts() {
    std::size_t size = 0;
    for (const Function* f : module_.functions()) {
      Facts& facts = facts_[f];
      facts.results.resize(f->result_types.size());
      facts.effects = f->cps;  // it runs the rest of the program
      facts.fixed |= f->cps || f == module_.entry || !module_.entry;
      // Adjoint cells go with their primals: unwind relies on it.
      for (const Value* p : f->body->params) facts.fixed |= p->type.is_ref() || p->type.is_cont();
      ir::walk(f->body, [&](const Op* op) {
        ++size;
        const Effect effect = ir::info(op->code).effect;
        facts.effects |= has_effect(*op) || effect == Effect::tape || op->is(Opcode::jump_);
        facts.effects |= writes_cell(*op) && !op->operands[0]->def;
        if (ir::is_on_tape(*op))
          (op->is(Opcode::push_) ? tapes_[op->integer].pushed : tapes_[op->integer].popped) = true;
        if (op->callee) callers_[op->callee].push_back(f);
        if (op->is(Opcode::closure_)) facts_[op->callee].fixed = true;
      });
    }
    ops_.reserve(size);
    values_.reserve(size);
  }

  void spread_effects() {
    std::vector<const Function*> found;
    for (const auto& [f, facts] : facts_)
      if (facts.effects) found.push_back(f);
    while (!found.empty()) {
      const Function* f = found.back();
      found.pop_back();
      for (const Function* caller : callers_[f])
        if (!std::exchange(facts_[caller].effects, true)) found.push_back(caller);
    }
  }

  void work() {
    while (!op_work_.empty() || !value_work_.empty() || !block_work_.empty()) {
      if (!value_work_.empty()) {
        const Value* v = value_work_.back();
        value_work_.pop_back();
        follow(v);
      } else if (!op_work_.empty()) {
        const Op* op = op_work_.back();
        op_work_.pop_back();
        follow(op);
      } else {
        Block* block = block_work_.back();
        block_work_.pop_back();
        find_effects(block);
      }
    }
  }

  void need(const Value* v) {
    if (values_.insert(v)) value_work_.push_back(v);
  }
  void need(const Op* op) {
    if (ops_.insert(op)) op_work_.push_back(op);
  }
  void need_all(const std::vector<Value*>& values) {
    for (const Value* v : values) need(v);
  }

  /// Marks what a block does, other than in continuations.
  void find_effects(Block* block) {
    ir::walk(block, [&](Op* op) {
      if (op->is(Opcode::fun_)) return false;
      if (ir::is_on_tape(*op)) {
        Tape& tape = tapes_[op->integer];
        // A tape that others push to, or pop from, is theirs.
        if (tape.live || !tape.pushed || !tape.popped)
          need(op);
        else
          tape.ops.push_back(op);
      } else if (has_effect(*op) || op->is(Opcode::jump_)) {
        need(op);
      } else if (op->is(Opcode::call_)) {
        if (facts_[op->callee].effects) need(op);
      } else if (!indirect_.empty() && indirect_.contains(block->function) && may_not_fit(*op)) {
        need(op);
      } else if (writes_cell(*op)) {
        const Value* cell = op->operands[0];
        if (!cell->def || live(cell))
          need(op);
        else
          writes_[cell].push_back(op);
      }
      return true;
    });
  }

  void mark_reachable(const Function* f) {
    Facts& facts = facts_[f];
    if (std::exchange(facts.reached, true)) return;
    block_work_.push_back(f->body);
    if (facts.fixed) need_all(f->body->yields());
  }

  void follow(const Op* op) {
    if (const Op* owner = op->parent->parent) need(owner);
    switch (op->code) {
      case Opcode::branch_:
        return need(op->operands[0]);
      case Opcode::loop_:
        return need(op->blocks[0]->yields()[0]);
      case Opcode::fun_:
        return block_work_.push_back(op->blocks[0]);
      case Opcode::call_:
        return follow_call(op);
      case Opcode::closure_:
        mark_reachable(op->callee);
        break;
      default:
        break;
    }
    need_all(op->operands);
  }

  void follow_call(const Op* op) {
    mark_reachable(op->callee);
    Facts& facts = facts_[op->callee];
    facts.calls.push_back(op);
    for (std::size_t i = 0; i < op->operands.size(); ++i)
      if (facts.fixed || live(op->callee->body->params[i])) need(op->operands[i]);
  }

  void follow(const Value* v) {
    if (!v->def) return follow_parameter(v);
    const Op* op = v->def;
    need(op);
    switch (op->code) {
      case Opcode::branch_:
        for (Block* side : op->blocks) need(side->yields()[v->index]);
        return;
      case Opcode::loop_:
        return need_state(op, v->index);
      case Opcode::call_: {
        Facts& facts = facts_[op->callee];
        if (facts.results[v->index]) return;
        facts.results[v->index] = true;
        return need(op->callee->body->yields()[v->index]);
      }
      case Opcode::pop_: {
        Tape& tape = tapes_[op->integer];
        tape.live = true;
        for (const Op* o : std::exchange(tape.ops, {})) need(o);
        return;
      }
      default:
        break;
    }
    if (!v->type.is_ref()) return;
    const auto writes = writes_.find(v);
    if (writes == writes_.end()) return;
    for (const Op* write : writes->second) need(write);
    writes_.erase(writes);
  }

  void follow_parameter(const Value* v) {
    const Op* owner = v->block->parent;
    if (!owner) {
      for (const Op* call : facts_[v->block->function].calls) need(call->operands[v->index]);
    } else if (owner->is(Opcode::loop_)) {
      need_state(owner, v->index);
    }
  }

  void need_state(const Op* loop, std::size_t i) {
    need(loop);
    need(loop->results[i]);
    for (const Block* b : loop->blocks) need(b->params[i]);
    need(loop->operands[i]);
    need(loop->blocks[1]->yields()[i]);
  }

  struct Tape {
    bool pushed = false, popped = false;
    bool live = false;           ///< a value popped from it matters
    std::vector<const Op*> ops;  ///< as long as it is not
  };

  const ir::Module& module_;
  std::unordered_set<const Function*> indirect_;
  std::unordered_map<std::int64_t, Tape> tapes_;
  std::unordered_map<const Function*, Facts> facts_;
  std::unordered_map<const Function*, std::vector<const Function*>> callers_;
  ir::PointerSet<const Op> ops_;
  ir::PointerSet<const Value> values_;
  std::vector<const Op*> op_work_;
  std::vector<const Value*> value_work_;
  std::vector<Block*> block_work_;
  std::unordered_map<const Value*, std::vector<const Op*>> writes_;  ///< of cells that do not matter so far
};

/// Removes what does not matter.
class Sweep {
 public:
  Sweep(ir::Module& module, const Liveness& live) : module_(module), live_(live) {}

  bool run() {
    const std::vector<Function*> all = module_.functions();
    for (Function* f : all)
      if (live_.facts(f).reached) sweep(f);
    for (Function* f : all) {
      if (!live_.facts(f).reached) {
        module_.remove_function(f);
        changed_ = true;
        continue;
      }
      // Only now: calls in other functions were matched against the parameters as they were.
      const auto unused_parameter = [&](std::size_t i) { return !live_.keeps_parameter(f, i); };
      const auto unused_result = [&](std::size_t i) { return !live_.keeps_result(f, i); };
      remove(f->body->yields(), unused_result);
      remove(f->result_types, unused_result);
      remove_values(f->body->params, unused_parameter);
    }
    return changed_;
  }

 private:
  void sweep(Function* f) {
    std::vector<Block*> blocks{f->body};
    while (!blocks.empty()) {
      Block* block = blocks.back();
      blocks.pop_back();
      changed_ |= std::erase_if(block->ops,
                                [&](const Op* op) { return !op->is(Opcode::yield_) && !live_.live(op); }) > 0;
      for (Op* op : block->ops) {
        shrink(op);
        blocks.insert(blocks.end(), op->blocks.begin(), op->blocks.end());
      }
    }
  }

  void shrink(Op* op) {
    const auto unused_result = [&, results = op->results](std::size_t i) { return !live_.live(results[i]); };
    switch (op->code) {
      case Opcode::branch_:
        for (Block* side : op->blocks) remove(side->yields(), unused_result);
        return remove_values(op->results, unused_result);
      case Opcode::loop_:
        remove(op->operands, unused_result);
        remove(op->blocks[1]->yields(), unused_result);
        for (Block* b : op->blocks) remove_values(b->params, unused_result);
        return remove_values(op->results, unused_result);
      case Opcode::call_:
        remove(op->operands, [&](std::size_t i) { return !live_.keeps_parameter(op->callee, i); });
        return remove_values(op->results, [&](std::size_t i) { return !live_.keeps_result(op->callee, i); });
      default:
        return;
    }
  }

  template <class T, class Unused>
  void remove(std::vector<T>& list, Unused&& unused) {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (unused(i)) continue;
      if (kept != i) list[kept] = list[i];
      ++kept;
    }
    changed_ |= kept != list.size();
    list.resize(kept);
  }

  template <class Unused>
  void remove_values(std::vector<Value*>& list, Unused&& unused) {
    remove(list, unused);
    for (std::size_t i = 0; i < list.size(); ++i) list[i]->index = static_cast<std::uint32_t>(i);
  }

  ir::Module& module_;
  const Liveness& live_;
  bool changed_ = false;
};

}  // namespace

namespace {

/// Checks in place of operations that nothing needs.
bool keep_checks(ir::Module& module, const Liveness& live) {
  bool any = false;
  for (Function* f : module.functions()) {
    if (!live.facts(f).reached) continue;
    std::vector<Op*> dead;
    ir::walk(f->body, [&](Op* op) {
      if (!live.live(op) && may_not_fit(*op)) dead.push_back(op);
      return !op->is(Opcode::fun_) || live.live(op);
    });
    if (!dead.empty()) any |= keep_shape_checks(*f, dead);
  }
  return any;
}

}  // namespace

bool keep_shape_checks(ir::Module& module) { return keep_checks(module, Liveness(module, false)); }

bool eliminate_dead(ir::Module& module) {
  const Liveness live(module, true);
  if (keep_checks(module, live)) return Sweep(module, Liveness(module, true)).run();
  return Sweep(module, live).run();
}

}  // namespace lantern::passes
