// Checkpointing without annotations, staged: which loops keep states instead of a tape, and which calls their
// arguments instead of frames.
#include "lantern/compiler/ad/staged_reverse.hpp"
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

/// Reverse mode in which every loop keeps a number of states that does not depend on its iterations, and computes
/// the rest again (Griewank and Walther, "Algorithm 799: revolve", for counting loops; thinned out as they
/// run where the number of iterations does not show beforehand). A loop's state is its continuation, which can be
/// called again. With 32 states each of 10^6 iterations is computed at most 6 more times, each of 10^9 at most 10
/// more. Calls keep their arguments: of a recursion that branches, a call at depth d is computed at most d +
/// 1 more times, and what is kept grows as the depth. One that calls itself once a time keeps its frames, as
/// many as it has on the stack; so do functions and loops of an inner derivative, whose tapes others read.
class StagedDivideAndConquer : public StagedReverse {
 public:
  using StagedReverse::StagedReverse;
  const char* name() const override { return "divide-and-conquer reverse mode"; }

  Datums loop(const Datums& initial, const std::vector<ir::Type>& state, const Condition& condition,
              const Body& body, std::int64_t attribute, const Location& loc) override {
    constexpr ir::LoopMemory states{0, 32};
    const std::int64_t bounded = attribute != 0 ? attribute : states.attribute();
    return StagedReverse::loop(initial, state, condition, body, bounded, loc);
  }

  // A chain of calls, one in the other, is as deep on the stack as its frames are many; run again at every
  // depth it would take quadratic time.
  Datums call(ir::Function* callee, const Datums& arguments, std::int64_t attribute, const Location& loc) override {
    const bool tape = works_on_tape(*callee);
    if (tape) keep_all();
    const bool chain = calls_back(*callee->body, *callee) == 1;
    return StagedReverse::call(callee, arguments, tape || chain ? attribute : ir::checkpointed, loc);
  }

  void push(std::int64_t tape, const Datum& value, const Location& loc) override {
    keep_all();
    StagedReverse::push(tape, value, loc);
  }
  Datum pop(std::int64_t tape, const ir::Type& type, const Location& loc) override {
    keep_all();
    return StagedReverse::pop(tape, type, loc);
  }

 private:
  /// The loops around the current block cannot be run again. In continuation-passing style what follows a loop lies
  /// in the other branch of its header.
  void keep_all() {
    const ir::Block* block = staging_.block();
    while (const ir::Op* op = block->parent) {
      ir::Op* around = op->parent->parent;
      const bool header = op->is(Opcode::branch_) && around && around->is(Opcode::fun_) && around->integer != 0;
      if (header && block == op->blocks[0]) around->integer = 0;
      block = header ? around->parent : op->parent;
    }
  }
};

}  // namespace

std::shared_ptr<StagedReverse> make_staged_divide_and_conquer(Staging& staging, std::uint64_t tag) {
  return std::make_shared<StagedDivideAndConquer>(staging, tag);
}

}  // namespace lantern::core::ad
