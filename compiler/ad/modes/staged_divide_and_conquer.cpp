// Which loops keep states instead of a tape, and which calls their arguments instead of frames.
#include "lantern/compiler/ad/modes/staged_divide_and_conquer.hpp"

#include "lantern/ir/checkpoint.hpp"

namespace lantern::core::ad {

namespace {

/// The calls on one path through the block that may lead to a call of f; more than one is two.
int calls_back(const ir::Block& block, const ir::Function& f) {
  int calls = 0;
  for (const ir::Op* op : block.ops) {
    if (op->callee && (op->callee == &f || ir::callees(op->callee->body).contains(&f))) ++calls;
    if (op->is(Opcode::branch_))
      calls += std::max(calls_back(*op->blocks[0], f), calls_back(*op->blocks[1], f));
    else
      for (const ir::Block* inside : op->blocks) calls += 2 * calls_back(*inside, f);
  }
  return std::min(calls, 2);
}

}  // namespace

Datums StagedDivideAndConquer::loop(const Datums& initial, const std::vector<ir::Type>& state,
                                  const Condition& condition, const Body& body, std::int64_t attribute,
                                  const Location& loc) {
  constexpr ir::LoopMemory states{0, 32};
  return StagedReverse::loop(initial, state, condition, body, attribute != 0 ? attribute : states.attribute(),
                             loc);
}

// In continuation-passing style what follows a loop lies in the other branch of its header.
void StagedDivideAndConquer::keep_all() {
  const ir::Block* block = staging_.block();
  while (const ir::Op* op = block->parent) {
    ir::Op* around = op->parent->parent;
    const bool header = op->is(Opcode::branch_) && around && around->is(Opcode::fun_) && around->integer != 0;
    if (header && block == op->blocks[0]) around->integer = 0;
    block = header ? around->parent : op->parent;
  }
}

Datums StagedDivideAndConquer::call(ir::Function* callee, const Datums& arguments, std::int64_t attribute,
                                  const Location& loc) {
  const bool tape = works_on_tape(*callee);
  if (tape) keep_all();
  // A chain of calls, one in the other, is as deep on the stack as its frames are many; run again at every
  // depth it would take quadratic time.
  const bool chain = calls_back(*callee->body, *callee) == 1;
  return StagedReverse::call(callee, arguments, tape || chain ? attribute : ir::checkpointed, loc);
}

void StagedDivideAndConquer::push(std::int64_t tape, const Datum& value, const Location& loc) {
  keep_all();
  StagedReverse::push(tape, value, loc);
}

Datum StagedDivideAndConquer::pop(std::int64_t tape, const ir::Type& type, const Location& loc) {
  keep_all();
  return StagedReverse::pop(tape, type, loc);
}

}  // namespace lantern::core::ad
