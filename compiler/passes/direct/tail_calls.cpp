// Tail calls of a function to itself as iterations of a loop.
#include "lantern/compiler/passes/direct/tail_calls.hpp"

#include <algorithm>
#include <utility>

#include "lantern/compiler/passes/support/rewrite.hpp"
#include "lantern/ir/checkpoint.hpp"

namespace lantern::passes {

namespace {

class TailCalls {
 public:
  explicit TailCalls(ir::Function& f) : f_(f), module_(*f.module) {}

  bool run() {
    if (!is_direct(f_)) return false;
    for (const ir::Type& t : f_.result_types)
      if (!t.is_scalar()) return false;
    find_leaves();
    std::size_t calls = 0;
    ir::walk(f_.body, [&](const Op* op) { calls += op->callee == &f_; });
    if (calls == 0 || calls != self_calls_ || !types_stay()) return false;
    make_loop();
    return true;
  }

 private:
  /// What is before the yield and gives all that is yielded, or null.
  Op* last(Block* block) const {
    if (block->ops.size() < 2) return nullptr;
    Op* op = block->ops[block->ops.size() - 2];
    return !op->results.empty() && op->results == block->yields() ? op : nullptr;
  }
  bool is_self_call(const Op* op) const {
    return op && op->is(Opcode::call_) && op->callee == &f_ && !ir::is_checkpointed(*op);
  }

  /// The blocks in tail position: they end with a self-call, a branch, or results.
  void find_leaves() {
    std::vector<Block*> todo{f_.body};
    while (!todo.empty()) {
      Block* block = todo.back();
      todo.pop_back();
      tail_.push_back(block);
      Op* op = last(block);
      self_calls_ += is_self_call(op);
      if (op && op->is(Opcode::branch_)) todo.insert(todo.end(), op->blocks.begin(), op->blocks.end());
    }
  }

  /// A loop's state has one type; sizes that calls change would need a check that a call makes.
  bool types_stay() const {
    for (Block* block : tail_)
      if (const Op* op = last(block); is_self_call(op))
        for (std::size_t i = 0; i < op->operands.size(); ++i)
          if (!(op->operands[i]->type == f_.body->params[i]->type)) return false;
    return true;
  }

  bool changes(std::size_t parameter) const {
    return std::ranges::any_of(tail_, [&](Block* block) {
      const Op* op = last(block);
      return is_self_call(op) && op->operands[parameter] != f_.body->params[parameter];
    });
  }

  void make_loop() {
    Block* const iteration = f_.body;
    Block* const outer = module_.new_block(nullptr, &f_);
    ir::Builder b(module_, outer, f_.loc);
    std::vector<Value*> initial{b.boolean(true)};
    std::vector<std::size_t> changing;
    const std::vector<Value*> params = std::exchange(iteration->params, {});
    Renaming inside;
    for (std::size_t i = 0; i < params.size(); ++i) {
      params[i]->block = outer;
      outer->params.push_back(params[i]);
    }
    // Decided before anything moves.
    f_.body = outer;
    for (std::size_t i = 0; i < params.size(); ++i)
      if (changes(i)) changing.push_back(i);
    for (const std::size_t i : changing) initial.push_back(params[i]);
    for (const ir::Type& t : f_.result_types) initial.push_back(b.zero(t));

    Op* loop = module_.new_op(Opcode::loop_, outer);
    loop->loc = f_.loc;
    loop->operands = initial;
    Block* const test = module_.new_block(loop, &f_);
    loop->blocks = {test, iteration};
    iteration->parent = loop;
    for (const Value* v : initial) {
      module_.add_param(test, v->type);
      module_.add_param(iteration, v->type);
    }
    ir::Builder(module_, test).yield({test->params[0]});
    for (std::size_t k = 0; k < changing.size(); ++k) {
      iteration->params[1 + k]->name = params[changing[k]]->name;
      inside[params[changing[k]]] = iteration->params[1 + k];
    }
    ir::replace_uses(iteration, inside);
    const std::size_t values = initial.size();
    // Sides before the branch around them: in the order found, the other way round.
    for (std::size_t i = tail_.size(); i-- > 0;) end_iteration(tail_[i], iteration, changing, values);

    outer->ops.push_back(loop);
    for (const Value* v : initial) module_.add_result(loop, v->type);
    const std::vector<Value*> results(loop->results.end() - static_cast<long>(f_.result_types.size()),
                                      loop->results.end());
    b.yield(results);
  }

  /// Lets a block in tail position yield the next state of the loop.
  void end_iteration(Block* block, const Block* iteration, const std::vector<std::size_t>& changing,
                std::size_t values) {
    Op* op = last(block);
    const std::vector<Value*> yielded = block->yields();
    const ir::Location loc = block->ops.back()->loc;
    block->ops.pop_back();
    ir::Builder b(module_, block, loc);
    if (op && op->is(Opcode::branch_)) {
      op->results.clear();
      for (std::size_t i = 0; i < values; ++i) module_.add_result(op, iteration->params[i]->type);
      return b.yield(op->results);
    }
    const bool again = is_self_call(op);
    if (again) block->ops.pop_back();
    std::vector<Value*> next{b.boolean(again)};
    for (std::size_t k = 0; k < changing.size(); ++k)
      next.push_back(again ? op->operands[changing[k]] : iteration->params[1 + k]);
    for (std::size_t i = 1 + changing.size(); i < values; ++i)
      next.push_back(again ? iteration->params[i] : yielded[i - 1 - changing.size()]);
    b.yield(next);
  }

  ir::Function& f_;
  ir::Module& module_;
  std::vector<Block*> tail_;
  std::size_t self_calls_ = 0;
};

}  // namespace

bool tail_calls(ir::Function& f) { return TailCalls(f).run(); }

}  // namespace lantern::passes
