// Random programs over arrays, for passes that must know which memory is shared.
#pragma once

#include <random>

#include "lantern/ir/graph.hpp"

namespace lantern::ir::test {

/// Programs over vectors of four elements with bounded loops, views, branches, calls and tapes.
class RandomArrays {
 public:
  RandomArrays(Module& m, unsigned seed) : module_(m), random_(seed) {
    for (int i = 0; i < 2; ++i) helpers_.push_back(function("g"));
    m.entry = function("f");
  }

 private:
  const Type vector_ = Type::tensor(Kind::f64, {4});

  int below(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
  Value* pick() {
    // Recent values more often: chains of updates.
    const std::size_t n = seen_.size();
    return below(2) ? seen_[n - 1 - random_() % std::min<std::size_t>(n, 3)] : seen_[random_() % n];
  }

  Function* function(const char* name) {
    Function* f = module_.add_function(name, {vector_, vector_, I64}, {vector_, vector_});
    seen_ = {f->body->params[0], f->body->params[1]};
    Builder b(module_, f->body);
    ops(b, 3, f->body->params[2]);
    b.yield({pick(), pick()});
    return f;
  }

  void ops(Builder& b, int depth, Value* iteration) {
    for (int n = 2 + below(5); n > 0; --n) op(b, depth, iteration);
  }

  void op(Builder& b, int depth, Value* iteration) {
    Value* i = b.integer(below(4));
    Value* x = b.number(below(100));
    switch (below(depth > 0 ? 13 : 10)) {
      case 0:
      case 1:
        return see(b.emit(Opcode::set_, {pick(), i, x}));
      case 2:
      case 3: {
        Value* t = pick();
        return see(b.emit(Opcode::add_at_, {t, i, b.emit(Opcode::get_, {pick(), i})}));
      }
      case 4:
        return see(b.emit(Opcode::add_, {pick(), pick()}));
      case 5:
        return see(b.emit(Opcode::neg_, {pick()}));
      case 6:
        return see(b.emit(Opcode::reshape_, {pick(), pick()}));
      case 7:
        return see(b.emit(Opcode::zeros_like_, {pick()}));
      case 8: {
        b.op(Opcode::push_, {pick()})->integer = module_.new_tape();
        const std::int64_t tape = module_.tapes() - 1;
        op(b, 0, iteration);
        Op* pop = b.op(Opcode::pop_, {}, {vector_});
        pop->integer = tape;
        return see(pop->result());
      }
      case 9: {
        if (helpers_.size() < 2) return;
        Op* call = b.call(helpers_[random_() % 2], {pick(), pick(), i});
        for (Value* v : call->results) see(v);
        return;
      }
      case 10:
      case 11: {
        Op* branch = b.branch(b.emit(Opcode::lt_, {iteration, i}), {vector_, vector_});
        for (Block* side : branch->blocks) scoped(side, depth, iteration);
        for (Value* v : branch->results) see(v);
        return;
      }
      default: {
        Op* loop = b.op(Opcode::loop_, {pick(), pick(), b.integer(0)}, {vector_, vector_, I64});
        for (int k = 0; k < 2; ++k) {
          Block* block = module_.new_block(loop, b.block()->function);
          loop->blocks.push_back(block);
          for (const Type& t : {vector_, vector_, I64}) module_.add_param(block, t);
        }
        Builder head(module_, loop->blocks[0]);
        head.yield({head.emit(Opcode::lt_, {loop->blocks[0]->params[2], head.integer(3)})});
        scoped(loop->blocks[1], depth, loop->blocks[1]->params[2]);
        see(loop->results[0]);
        see(loop->results[1]);
      }
    }
  }

  void scoped(Block* block, int depth, Value* iteration) {
    const std::size_t n = seen_.size();
    const bool loop = !block->params.empty();
    if (loop) seen_.insert(seen_.end(), block->params.begin(), block->params.begin() + 2);
    Builder b(module_, block);
    ops(b, depth - 1, iteration);
    std::vector<Value*> values{pick(), pick()};
    if (loop) values.push_back(b.emit(Opcode::add_, {block->params[2], b.integer(1)}));
    b.yield(values);
    seen_.resize(n);
  }

  void see(Value* v) { seen_.push_back(v); }

  Module& module_;
  std::mt19937 random_;
  std::vector<Value*> seen_;
  std::vector<Function*> helpers_;
};

}  // namespace lantern::ir::test
