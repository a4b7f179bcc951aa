// Which loops keep states instead of a tape.
#include "lantern/compiler/ad/modes/staged_divide_and_conquer.hpp"

#include "lantern/ir/checkpoint.hpp"

namespace lantern::ad {

Data StagedDivideAndConquer::loop(const Data& initial, const std::vector<ir::Type>& state,
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

Data StagedDivideAndConquer::call(ir::Function* callee, const Data& arguments, std::int64_t attribute,
                                  const Location& loc) {
  if (works_on_tape(*callee)) keep_all();
  return StagedReverse::call(callee, arguments, attribute, loc);
}

void StagedDivideAndConquer::push(std::int64_t tape, const Datum& value, const Location& loc) {
  keep_all();
  StagedReverse::push(tape, value, loc);
}

Datum StagedDivideAndConquer::pop(std::int64_t tape, const ir::Type& type, const Location& loc) {
  keep_all();
  return StagedReverse::pop(tape, type, loc);
}

}  // namespace lantern::ad
