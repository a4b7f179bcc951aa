// Rewriting a function in one walk: values give way to others, blocks are spliced into the code around them.
#pragma once

#include <vector>

#include "lantern/ir/graph.hpp"
#include "lantern/ir/pointer_map.hpp"
#include "lantern/ir/uses.hpp"

namespace lantern::passes {

using ir::Block;
using ir::Op;
using ir::Opcode;
using ir::Renaming;
using ir::Uses;
using ir::Value;
using ir::divides_integers;
using ir::is_access;
using ir::is_on_tape;
using ir::is_pure;
using ir::is_write;
using ir::keeps_order;

/// True where `a` knows every dimension that `b` knows, so that a value of type `a` may represent one of `b`
/// and no run-time check of a size is lost.
bool refines(const ir::Type& a, const ir::Type& b);

/// True for two constants of one type with the same bits.
bool same_constant(const Op& a, const Op& b);

/// The constant that defines a value, or null.
inline Op* constant(const Value* v) { return v->def && v->def->is(Opcode::constant_) ? v->def : nullptr; }
/// A constant once more, where the one there is may not be visible; another value itself.
inline Value* made_here(ir::Builder& b, Value* v) { return constant(v) ? b.again(*constant(v)) : v; }
/// A floating number, or a tensor of them, that is 0 or -0 everywhere: what adds nothing.
inline bool is_zero(const Value* v) {
  const Op* op = v->def;
  if (op && op->is(Opcode::zeros_like_)) return true;
  if (op && op->is(Opcode::fill_, Opcode::broadcast_)) op = op->operands[0]->def;
  return op && op->is(Opcode::constant_) && op->number == 0 && op->result()->type.is_float_element();
}

/// Takes operations out of the blocks that they are in.
void erase(const std::vector<Op*>& ops);
/// Takes a result that nothing uses out of a branch.
void remove_result(Op* branch, std::size_t result);

/// True where a function makes, takes and calls no continuations.
bool is_direct(const ir::Function& f);
/// Runs on each function of a module that is in direct style; true where one of these calls gives true.
template <class Run>
bool in_direct_style(ir::Module& module, Run&& run) {
  bool any = false;
  for (ir::Function* f : module.functions())
    if (is_direct(*f)) any |= run(*f);
  return any;
}

/// Walks a function in order and rebuilds its blocks, without recursion and in linear time.
///
/// Definitions come before uses, so that a replacement decided at a definition reaches all uses in the same
/// walk. A pass decides in `enter`, with the operands already replaced.
class Rewriter {
 public:
  explicit Rewriter(ir::Function& function) : function_(function) {}
  virtual ~Rewriter() = default;
  Rewriter(const Rewriter&) = delete;
  Rewriter& operator=(const Rewriter&) = delete;

  /// True if anything changed.
  bool run();

 protected:
  enum class Action { keep, drop };

  /// Decides about an operation before its blocks are walked.
  virtual Action enter(Op* op) = 0;
  /// The blocks of a kept operation have been walked.
  virtual void leave(Op*) {}
  virtual void block_opened(Block*) {}
  virtual void block_closed(Block*) {}

  /// Uses of `from` met from now on become uses of `to`, which takes over the user's name if it has none.
  void replace(Value* from, Value* to);
  Value* now(Value* v) const;
  /// Puts the operations of `body` where the current operation is, which is to be dropped. What the body
  /// yields replaces the results of `results_of`, if given.
  void splice(Block* body, const Op* results_of);
  /// The block that the current operation goes into.
  Block* here() const { return stack_.back().into; }
  ir::Module& module() const { return *function_.module; }
  ir::Function& function() const { return function_; }
  void note_change() { changed_ = true; }

 private:
  struct Frame {
    Block* into = nullptr;
    std::vector<Op*> ops;  ///< still to be visited, from `next` on
    std::size_t next = 0;
    Op* owner = nullptr;  ///< the operation whose block this is
    std::size_t which = 0;
    bool spliced = false;
    const Op* results_of = nullptr;
  };

  void step();
  void open(Op* owner, std::size_t which, Block* block);
  void close();

  ir::Function& function_;
  std::vector<Frame> stack_;
  ir::PointerMap<Value, Value*> replaced_;
  bool changed_ = false;
};

}  // namespace lantern::passes
