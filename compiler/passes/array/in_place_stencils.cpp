// Reads of what a loop started from become reads of its state.
#include "lantern/compiler/passes/array/in_place_stencils.hpp"

#include <algorithm>
#include <ranges>

#include "lantern/compiler/passes/analysis/index_form.hpp"
#include "lantern/compiler/passes/analysis/loop_state.hpp"
#include "lantern/compiler/passes/analysis/def_chain.hpp"

namespace lantern::passes {

namespace {

/// The operation of a block that another one is, or is in.
std::ptrdiff_t position(const Block* body, const Op* op) {
  while (op->parent != body) op = op->parent->parent;
  return std::ranges::find(body->ops, op) - body->ops.begin();
}

void in_place_stencils(const Op* loop, std::size_t state) {
  const Block* const body = loop->blocks[1];
  const Value* const start = loop->operands[state];
  if (!start->type.is_tensor() || start->def || !start->block->parent ||
      !start->block->parent->is(Opcode::loop_) || std::ranges::count(loop->operands, start) != 1 ||
      Uses(loop->blocks[0]).count(start) > 0)
    return;
  const Uses uses(loop);
  const auto use = state_use(uses, loop, state);
  if (!use || use->whole || use->extreme || use->updates.empty()) return;

  // The reads of the start: all of them before the first update.
  std::ptrdiff_t first = position(body, use->updates.front());
  for (const Op* update : use->updates) first = std::min(first, position(body, update));
  std::vector<Op*> reads;
  for (const auto& [op, operand] : uses.of(start)) {
    if (op->is(Opcode::dim_)) continue;
    if (!op->is(Opcode::get_) || operand != 0 || position(body, op) >= first) return;
    reads.push_back(op);
  }
  if (reads.empty()) return;

  // An index that differs from iteration to iteration, in the same place everywhere.
  std::vector<const Op*> accesses = use->accesses();
  accesses.insert(accesses.end(), reads.begin(), reads.end());
  for (std::size_t d = 1; d <= static_cast<std::size_t>(start->type.rank()); ++d) {
    const Value* const index = reads.front()->operands[d];
    const bool counts = !index->def && index->block == body && index->type.is_integer() &&
                        step_of(loop, index->index).value_or(0) != 0;
    if (!counts || !std::ranges::all_of(accesses, [&](const Op* op) { return op->operands[d] == index; }))
      continue;
    for (Op* read : reads) read->operands[0] = body->params[state];
    return;
  }
}

/// Reads of what a loop started from, each where the iteration, or one of a loop inside, has changed nothing yet.
class InPlaceRestoration {
 public:
  InPlaceRestoration(Op* loop, std::size_t state, const Uses& all)
      : loop_(loop), state_(state), start_(loop->operands[state]), all_(all) {}

  void run() {
    if (!start_->type.is_tensor() || (!start_->def && !start_->block->parent)) return;
    std::vector<Op*> reads;
    for (const auto& [op, operand] : all_.of(start_)) {
      if ((op == loop_ && operand == state_) || op->is(Opcode::dim_)) continue;
      if (!op->is(Opcode::get_) || !made_in(op->result(), loop_->blocks[1])) return;
      reads.push_back(op);
    }
    if (reads.empty() || !versions_.collect_defs(loop_, state_) || versions_.writes.empty()) return;
    std::vector<Value*> now;
    for (const Op* read : reads) {
      now.push_back(at_start_of_iteration(*read));
      if (!now.back()) return;
    }
    for (std::size_t i = 0; i < reads.size(); ++i) reads[i]->operands[0] = now[i];
    const bool unchanged = std::ranges::all_of(reads, [&](const Op* read) {
      return std::ranges::all_of(versions_.writes,
                                 [&](const Op* w) { return is_independent_of(*read, *w, loop_, Iteration::earlier); });
    });
    for (Op* read : reads)
      if (!unchanged) read->operands[0] = start_;
  }

 private:
  /// The tensor as the iteration finds it that reads it; null where it may have been changed in the iteration.
  Value* at_start_of_iteration(const Op& read) const {
    const Block* const body = read.parent;
    if (!body->parent || !body->parent->is(Opcode::loop_)) return nullptr;
    Value* tensor = nullptr;
    for (Value* p : body->params)
      if (versions_.values.contains(p)) tensor = p;
    for (const Op* op : body->ops) {
      if (op == &read) return tensor;
      if (std::ranges::any_of(op->results, [&](const Value* r) { return versions_.values.contains(r); }))
        return nullptr;
    }
    return nullptr;
  }

  Op* loop_;
  std::size_t state_;
  Value* start_;
  const Uses& all_;
  DefChain versions_;
};

}  // namespace

void in_place_stencils(ir::Module& module) {
  for (ir::Function* f : module.functions()) {
    if (!is_direct(*f)) continue;
    const Uses uses(*f);
    for (Op* loop : loops_in(*f))
      for (std::size_t i = 0; i < loop->operands.size(); ++i)
        if (loop->integer == 0) InPlaceRestoration(loop, i, uses).run();
  }
}

void in_place_stencils(Op* loop) {
  std::vector<Op*> loops{loop};
  for (const Block* b : loop->blocks)
    ir::walk(const_cast<Block*>(b), [&](Op* op) {
      if (op->is(Opcode::loop_)) loops.push_back(op);
    });
  for (Op* inner : std::views::reverse(loops))  // inner ones first
    for (std::size_t i = 0; i < inner->operands.size(); ++i) in_place_stencils(inner, i);
}

}  // namespace lantern::passes
