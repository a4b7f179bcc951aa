// Innermost loops first: what is written out may leave the loop around an innermost one.
#include "lantern/compiler/passes/array/full_unrolling.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "lantern/compiler/passes/analysis/iterations.hpp"
#include "lantern/compiler/passes/analysis/loops.hpp"
#include "lantern/compiler/passes/canonical/simplify.hpp"
#include "lantern/compiler/passes/canonical/unroll.hpp"
#include "lantern/ir/clone.hpp"

namespace lantern::passes {

namespace {

constexpr std::int64_t most_unrolled = 8;
constexpr std::size_t most_unrolled_operations = 400;  ///< of all iterations together

/// The number of iterations, where loops of so few are written out and it is in a loop itself; else 0.
std::int64_t few_iterations(const Op* loop) {
  const auto iterations = known_trip_counts(loop);
  const bool few = iterations && *iterations >= 1 && *iterations <= most_unrolled && loop->integer == 0 &&
                   ends_by_comparison(loop) && !loops_around(loop->parent).empty();
  return few ? *iterations : 0;
}

/// The block that an operation comes to lie in when all loops of few iterations are written out.
const Block* block_without_loops(const Op* op) {
  const Block* b = op->parent;
  while (b->parent && b->parent->is(Opcode::loop_) && b == b->parent->blocks[1] &&
         few_iterations(b->parent) > 0)
    b = b->parent->parent;
  return b;
}

/// Tapes whose numbers are saved and taken in one iteration: loops that are written out need none.
std::set<std::int64_t> tapes_of_iterations(const ir::Module& module, const ir::Function& f) {
  std::map<std::int64_t, std::vector<const Op*>> all;
  std::set<std::int64_t> elsewhere, found;
  for (const ir::Function* g : module.functions())
    ir::walk(g->body, [&](const Op* op) {
      if (!ir::is_on_tape(*op)) return;
      if (g == &f)
        all[op->integer].push_back(op);
      else
        elsewhere.insert(op->integer);
    });
  for (const auto& [tape, ops] : all) {
    const Block* const block = block_without_loops(ops.front());
    const auto is_a = [](Opcode code) { return [code](const Op* op) { return op->is(code); }; };
    const bool inside =
        std::ranges::all_of(ops, [&](const Op* op) { return block_without_loops(op) == block; });
    if (inside && !elsewhere.contains(tape) && !loops_around(block).empty() && ops.front()->parent != block &&
        std::ranges::any_of(ops, is_a(Opcode::push_)) && std::ranges::any_of(ops, is_a(Opcode::pop_)))
      found.insert(tape);
  }
  return found;
}

/// How many iterations are written out; 0 where the loop stays.
std::int64_t iterations_to_write(Op* loop, const std::set<std::int64_t>& tapes) {
  const std::int64_t iterations = few_iterations(loop);
  if (iterations == 0) return 0;
  std::size_t size = 0;
  bool fits = true;
  ir::walk(loop->blocks[1], [&](const Op* op) {
    ++size;
    fits &= !op->is(Opcode::loop_, Opcode::call_) && (!ir::is_on_tape(*op) || tapes.contains(op->integer));
  });
  return fits && size * static_cast<std::size_t>(iterations) <= most_unrolled_operations ? iterations : 0;
}

/// Hands on what is pushed to a tape and popped in one block.
bool hand_on_taped(ir::Function& f, std::int64_t tape) {
  std::vector<Op*> ops, pushed;
  ir::walk(f.body, [&](Op* op) {
    if (ir::is_on_tape(*op) && op->integer == tape) ops.push_back(op);
  });
  if (ops.empty() ||
      std::ranges::any_of(ops, [&](const Op* op) { return op->parent != ops.front()->parent; }))
    return false;
  Renaming instead;
  for (Op* op : ops) {
    if (op->is(Opcode::push_)) {
      pushed.push_back(op);
      continue;
    }
    if (pushed.empty() || op->results.size() != pushed.back()->operands.size()) return false;
    for (std::size_t i = 0; i < op->results.size(); ++i) {
      Value* const v = ir::renamed(instead, pushed.back()->operands[i]);
      if (!(v->type == op->results[i]->type)) return false;
      instead[op->results[i]] = v;
    }
    pushed.pop_back();
  }
  if (!pushed.empty()) return false;
  ir::replace_uses(f.body, instead);
  erase(ops);
  return true;
}

/// True where an iteration computes a number from the one before in another way than a sum: a derivative would keep
/// one of each iteration.
bool carries_numbers(const Op* loop) {
  const Uses uses(loop);
  for (std::size_t i = 0; i < loop->operands.size(); ++i) {
    const Value* const state = loop->blocks[1]->params[i];
    if (!state->type.is_scalar() || !state->type.is_differentiable() || loop->blocks[1]->yields()[i] == state)
      continue;
    if (combination(uses, loop, i).combine != ir::Combine::sum) return true;
  }
  return false;
}

}  // namespace

void unroll_recurrences(Op* outermost) {
  Block* const body = outermost->blocks[1];
  for (bool any = true; any;) {
    any = false;
    for (Op* loop : loops_in(body)) {
      const std::int64_t iterations = iterations_to_write(loop, {});
      if (iterations == 0 || !carries_numbers(loop)) continue;
      ir::replace_uses(body, ir::pairs(loop->results, unrolled(loop, iterations)));
      erase({loop});
      any = true;
    }
  }
}

void full_unrolling(ir::Module& module) {
  for (ir::Function* f : module.functions()) {
    if (!is_direct(*f)) continue;
    const std::set<std::int64_t> tapes = tapes_of_iterations(module, *f);
    for (bool any = true; any;) {
      Renaming instead;
      std::vector<Op*> gone;
      for (Op* loop : loops_in(*f)) {
        const std::int64_t iterations = iterations_to_write(loop, tapes);
        if (iterations == 0) continue;
        instead.merge(ir::pairs(loop->results, unrolled(loop, iterations)));
        gone.push_back(loop);
      }
      any = !gone.empty();
      if (!any) break;
      ir::replace_uses(f->body, instead);
      erase(gone);
      simplify(module);  // numbers of iterations, and what depends on them, are known
    }
    bool handed_on = false;
    for (const std::int64_t tape : tapes) handed_on |= hand_on_taped(*f, tape);
    if (handed_on) simplify(module);
  }
}

}  // namespace lantern::passes
