// The one-pass transformation to continuation-passing style, with a list of what is still to be written in
// place of recursion: the rest of a program lies as deep as it has constructs.
#include "lantern/compiler/passes/direct/cps.hpp"

#include <functional>

#include "lantern/compiler/passes/support/rewrite.hpp"

namespace lantern::passes {

namespace {

using Values = std::vector<Value*>;

class ToCps {
 public:
  /// `direct`: the functions that are, or will be, in continuation-passing style, and were not.
  ToCps(ir::Function& f, const std::unordered_set<const ir::Function*>& direct)
      : function_(f), module_(*f.module), direct_(direct) {}

  void run() {
    const Block& from = *function_.body;
    Block* const body = module_.new_block(nullptr, &function_);
    for (const Value* p : from.params) names_[p] = module_.add_param(body, p->type, p->name);
    ir::Builder b = builder(body);
    if (&function_ == module_.entry) {
      Values slots, results;
      for (const ir::Type& t : function_.result_types)
        slots.push_back(b.op(Opcode::slot_, {}, {ir::Type::ref(t)})->result());
      write(b, {body, &from, 0, [slots](ir::Builder& end, const Values& values) {
                  for (std::size_t i = 0; i < slots.size(); ++i)
                    end.op(Opcode::ref_set_, {slots[i], values[i]});
                  end.op(Opcode::halt_, {});
                }});
      for (std::size_t i = 0; i < slots.size(); ++i)
        results.push_back(b.op(Opcode::ref_get_, {slots[i]}, {function_.result_types[i]})->result());
      b.yield(std::move(results));
    } else {
      Value* const k = module_.add_param(body, ir::Type::cont(function_.result_types), "k");
      write(b, {body, &from, 0, jump_to(k)});
      b.yield({});
      function_.cps = true;
      function_.result_types.clear();
    }
    while (!todo_.empty()) {
      const Rest rest = std::move(todo_.back());
      todo_.pop_back();
      ir::Builder at = builder(rest.into);
      write(at, rest);
      at.yield({});
    }
    function_.body = body;
  }

 private:
  /// What becomes of the values that a block yields; ends the code in continuation-passing style.
  using Finish = std::function<void(ir::Builder&, const Values&)>;
  /// Operations of `from`, from number `at` on, to be written into a block, which is then without its yield.
  struct Rest {
    Block* into;
    const Block* from;
    std::size_t at;
    Finish finish;
  };

  ir::Builder builder(Block* block) const { return {module_, block, function_.loc}; }
  Value* now(Value* v) const {
    const auto it = names_.find(v);
    return it == names_.end() ? v : it->second;
  }
  Values now(const Values& values) const {
    Values out;
    for (Value* v : values) out.push_back(now(v));
    return out;
  }
  static Finish jump_to(Value* k) {
    return [k](ir::Builder& b, const Values& values) {
      Values operands = values;
      operands.insert(operands.begin(), k);
      b.op(Opcode::jump_, std::move(operands));
    };
  }
  /// A continuation whose parameters are what the operation gives.
  ir::Op* continuation(ir::Builder& b, const Op& op, const char* name) {
    ir::Op* const fun = b.fun(ir::types_of(op.results), name);
    for (std::size_t i = 0; i < op.results.size(); ++i) {
      Value* const p = fun->blocks[0]->params[i];
      p->name = op.results[i]->name;
      names_[op.results[i]] = p;
    }
    return fun;
  }

  void write(ir::Builder& b, const Rest& rest) {
    for (std::size_t i = rest.at; i < rest.from->ops.size(); ++i) {
      const Op& op = *rest.from->ops[i];
      b.loc = op.loc;
      const Rest after{nullptr, rest.from, i + 1, rest.finish};
      if (op.is(Opcode::yield_))
        rest.finish(b, now(op.operands));
      else if (op.is(Opcode::branch_))
        branch(b, op, after);
      else if (op.is(Opcode::loop_))
        loop(b, op, after);
      else if (op.is(Opcode::call_) && direct_.contains(op.callee))
        call(b, op, after);
      else {
        ir::clone(b, op, names_);
        continue;
      }
      return;
    }
  }

  void branch(ir::Builder& b, const Op& op, Rest after) {
    Op* const k = continuation(b, op, "k");
    Op* const made = b.branch(now(op.operands[0]), {});
    for (std::size_t side = 0; side < 2; ++side)
      todo_.push_back({made->blocks[side], op.blocks[side], 0, jump_to(k->result())});
    after.into = k->blocks[0];
    todo_.push_back(std::move(after));
  }

  void loop(ir::Builder& b, const Op& op, Rest after) {
    Op* const made = continuation(b, op, "loop");
    made->integer = op.integer;
    Values operands = now(op.operands);
    operands.insert(operands.begin(), made->result());
    b.op(Opcode::jump_, std::move(operands));
    const Values state = made->blocks[0]->params;
    for (const Block* block : op.blocks)
      for (std::size_t i = 0; i < state.size(); ++i) names_[block->params[i]] = state[i];
    ir::Builder header = builder(made->blocks[0]);
    Op* const test = header.branch(ir::clone(header, *op.blocks[0], names_)[0], {});
    header.yield({});
    todo_.push_back({test->blocks[0], op.blocks[1], 0, jump_to(made->result())});
    after.into = test->blocks[1];
    todo_.push_back(std::move(after));
  }

  void call(ir::Builder& b, const Op& op, Rest after) {
    Op* const k = continuation(b, op, "k");
    Values operands = now(op.operands);
    operands.push_back(k->result());
    Op* const made = b.op(Opcode::call_, std::move(operands));
    made->callee = op.callee;
    made->integer = op.integer;
    after.into = k->blocks[0];
    todo_.push_back(std::move(after));
  }

  ir::Function& function_;
  ir::Module& module_;
  const std::unordered_set<const ir::Function*>& direct_;
  Renaming names_;
  std::vector<Rest> todo_;
};

}  // namespace

void to_cps(ir::Module& module) {
  std::vector<ir::Function*> direct;
  for (ir::Function* f : module.functions())
    if (is_direct(*f)) direct.push_back(f);
  std::unordered_set<const ir::Function*> called(direct.begin(), direct.end());
  called.erase(module.entry);
  for (ir::Function* f : direct) ToCps(*f, called).run();
}

}  // namespace lantern::passes
