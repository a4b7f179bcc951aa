// The sign of a distance between two accesses is tried: the loop is put behind the condition and asked again.
#include "lantern/compiler/passes/array/loop_versioning.hpp"

#include <algorithm>

#include "lantern/compiler/passes/analysis/index_form.hpp"
#include "lantern/compiler/passes/analysis/iterations.hpp"
#include "lantern/compiler/passes/support/memory.hpp"
#include "lantern/ir/uses.hpp"

namespace lantern::passes {

namespace {

constexpr std::size_t most_versioned = 60;  ///< operations of a body
constexpr std::size_t most_tried = 4;

bool is_versionable(const Op* loop) {
  if (loop->integer != 0 || !counter_of(loop)) return false;
  std::size_t size = 0;
  bool simple = true;
  ir::walk(loop->blocks[1], [&](const Op* op) {
    ++size;
    simple &= op->is(Opcode::yield_) || is_pure(*op);
  });
  return simple && size <= most_versioned;
}

/// The first piece of state that keeps the iterations from running in lanes; `any`: whether there is one.
struct Obstacle {
  bool any = false;
  std::optional<LoopStateSummary> use;  ///< of a tensor's elements
};
Obstacle obstacle(const Op* loop) {
  const Uses uses(loop);
  for (std::size_t i = 0; i < loop->operands.size(); ++i) {
    if (step_of(loop, i)) continue;
    auto [combine, use] = combination(uses, loop, i);
    if (combine != ir::Combine::none || (use && is_lexically_forward(*use, loop))) continue;
    if (!loop->operands[i]->type.is_tensor() || !use || use->whole || use->extreme || use->sum) use.reset();
    return {true, std::move(use)};
  }
  return {};
}

/// Loop-invariant numbers that are the distance of two accesses, or part of it.
std::vector<IndexForm> distances(const LoopStateSummary& use, const Op* loop) {
  const Value* const counter = counter_of(loop)->index;
  std::vector<IndexForm> found;
  const auto add = [&](const IndexForm& f) {
    if (found.size() < most_tried && std::ranges::find(found, f) == found.end() && !never_negative(f, *loop))
      found.push_back(f);
  };
  for (const Op* update : use.updates)
    for (const Op* other : use.accesses())
      for (std::size_t d = 1; d <= static_cast<std::size_t>(update->operands[0]->type.rank()); ++d) {
        const IndexForm f = index_form(other->operands[d]) - index_form(update->operands[d]);
        const auto s = f.split(counter);
        if (f.number() || !s || s->coefficient.number() != 0 || !made_outside(f, loop->blocks[1])) continue;
        for (const Unknown& u : f.unknowns())
          if (!u.is_size()) add(IndexForm::of(u));
        add(f);
      }
  return found;
}

/// The results of a branch with a loop on the first side and a copy on the other, if that makes the first independent.
std::vector<Value*> versioned(ir::Module& module, Op* loop) {
  if (!is_versionable(loop)) return {};
  const Obstacle before = obstacle(loop);
  if (!before.use) return {};
  Block* const around = loop->parent;
  const std::vector<Op*> ops = around->ops;
  for (const IndexForm& distance : distances(*before.use, loop)) {
    ir::Builder b = ir::Builder::before(loop);
    Value* const condition = b.le({b.integer(0), materialise(b, distance)});
    // Behind the condition for a moment: what does it say about the loop?
    Op* const branch = b.branch(condition, {});
    std::erase(around->ops, loop);
    ir::Builder(module, branch->blocks[0]).take(loop);
    const bool helps = !obstacle(loop).any;
    ir::Builder::before(branch).take(loop);
    std::erase(around->ops, branch);
    if (helps) return keep_alternative(module, loop, condition)->results;
    around->ops = ops;
  }
  return {};
}

}  // namespace

std::vector<Value*> loop_versioning(ir::Module& module, Op* loop, std::vector<Value*> results) {
  const std::vector<Op*> loops = loops_in(loop->blocks[1]);
  for (Op* inner : loops) versioned(module, inner);
  if (!loops.empty() || results != loop->results) return results;
  const std::vector<Value*> now = versioned(module, loop);
  return now.empty() ? results : now;
}

}  // namespace lantern::passes
