// What a loop's state goes through in an iteration, and what else an iteration does.
#include "lantern/compiler/passes/schedule/parallel.hpp"

#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "lantern/compiler/passes/analysis/dependence_reason.hpp"
#include "lantern/compiler/passes/analysis/lanes.hpp"
#include "lantern/compiler/passes/analysis/iterations.hpp"
#include "lantern/compiler/passes/support/remarks.hpp"
#include "lantern/compiler/passes/support/rewrite.hpp"
#include "lantern/ir/external.hpp"
#include "lantern/ir/prototype.hpp"
#include "lantern/ir/recursion.hpp"

namespace lantern::passes {

namespace {

using ir::Combine;

std::string at_line(const Op& op) { return op.loc.known() ? " at line " + std::to_string(op.loc.line) : ""; }

/// One loop, and what it says if it is parallel.
class Iterations {
 public:
  Iterations(Op* loop, bool reassociate) : loop_(loop), uses_(loop), reassociate_(reassociate) {}

  /// Empty, or why iterations need the order: what one of them needs of the one before.
  std::string dependence() {
    const auto count = counted(loop_);
    if (!count || !ends_by_comparison(loop_))
      return "it does not count by ones to a bound, or something else may end it, such as break";
    for (const Value* p : loop_->blocks[1]->params) {
      const std::size_t i = p->index;
      if (i == count->index) {
        combine_.push_back(Combine::index);
      } else if (p->type == ir::I64 && step_of(loop_, i)) {
        combine_.push_back(Combine::counter);
      } else {
        const Combination c = combination(uses_, loop_, i);
        if (c.combine == Combine::none) return why_dependent(uses_, loop_, i);
        if (c.combine == Combine::sum && c.use->ordered_sum && !reassociate_) return kept_in_order(loop_, i);
        combine_.push_back(c.combine);
      }
    }
    return {};
  }

  void mark() {
    for (Value* p : loop_->blocks[1]->params) p->combine = combine_[p->index];
  }

 private:
  Op* loop_;
  Uses uses_;
  bool reassociate_;
  std::vector<Combine> combine_;
};

/// What operations do beside computing, here and in functions that are called.
class IterationEffects {
 public:
  explicit IterationEffects(const ir::Module& module) : tapes_(tape_uses(module)), recursive_(ir::recursive_functions(module)) {}

  /// Empty, or what an iteration does that is to be done in order, or by one thread.
  std::string of(Block* body) const {
    std::string found;
    std::unordered_map<std::int64_t, std::size_t> tapes;
    const auto look = [&](const Op* op, bool called) {
      if (!found.empty()) return;
      for (const Value* v : op->operands)
        if (v->type.is_ref() || v->type.is_cont()) found = "it works on cells or continuations";
      if (op->is(Opcode::print_)) found = "it prints" + at_line(*op) + ", which is to be in order";
      if (ir::is_ordered_call(*op))
        found = "it calls '" + ir::parse_prototype(op->text).name + "'" + at_line(*op) + ", which is to be in order";
      else if (op->is(Opcode::external_) && !ir::may_run_in_threads(*op))
        found = "the external function '" + ir::parse_prototype(op->text).name + "'" + at_line(*op) +
                " may not be called from two threads at once: say {.threads = true} where it may";
      if (is_on_tape(*op)) {
        ++tapes[op->integer];
        if (called)
          found = "a function that it calls keeps values for later; without FUN they may lie by iterations";
      }
      if (op->callee && recursive_.contains(op->callee))
        found = "it calls '" + op->callee->name + "'" + at_line(*op) +
                ", which calls itself and needs a stack that threads have not";
    };
    ir::walk(body, [&](const Op* op) { look(op, false); });
    for (const ir::Function* f : ir::callees(body)) ir::walk(f->body, [&](const Op* op) { look(op, true); });
    for (const auto& [tape, n] : tapes)
      if (tapes_.at(tape).size() != n && found.empty())
        found = "what it keeps for later is used by other code";
    return found;
  }

 private:
  TapeUses tapes_;
  std::unordered_set<const ir::Function*> recursive_;
};

}  // namespace

void parallel(ir::Module& module, bool reassociate) {
  const IterationEffects effects(module);
  for (ir::Function* f : module.functions()) {
    if (!is_direct(*f)) continue;
    for (Op* loop : loops_in(*f)) {
      Iterations iterations(loop, reassociate);
      std::string why = iterations.dependence();
      if (why.empty()) why = effects.of(loop->blocks[1]);
      if (why.empty()) iterations.mark();
      remark("parallel", loop->loc,
             why.empty() ? "is parallel: its iterations may run in any order" : "is not parallel: " + why);
    }
  }
}

}  // namespace lantern::passes
