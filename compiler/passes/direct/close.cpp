// Closure conversion, innermost continuation first: each is free of others by the time it is converted.
#include "lantern/compiler/passes/direct/close.hpp"

#include <string>
#include <unordered_set>
#include <vector>

#include "lantern/ir/uses.hpp"

namespace lantern::passes {

namespace {

using ir::Block;
using ir::Function;
using ir::Op;
using ir::Opcode;
using ir::Renaming;
using ir::Value;

/// What the body of a continuation uses of the world around it, in order of first use.
struct Captures {
  std::vector<Value*> values;
  std::vector<Op*> constants;
  bool itself = false;
};

Captures captures(Op* fun) {
  Block* body = fun->blocks[0];
  std::unordered_set<const Block*> inside{body};
  std::unordered_set<const Value*> seen;
  Captures found;
  ir::walk(body, [&](Op* op) {
    inside.insert(op->blocks.begin(), op->blocks.end());
    for (Value* v : op->operands) {
      if (inside.contains(v->block) || !seen.insert(v).second) continue;
      if (v == fun->result())
        found.itself = true;
      else if (v->def && v->def->is(Opcode::constant_))
        found.constants.push_back(v->def);
      else
        found.values.push_back(v);
    }
  });
  return found;
}

void make_closure(Op* op, Function* callee, const std::vector<Value*>& captured) {
  op->code = Opcode::closure_;
  op->callee = callee;
  op->operands = captured;
  op->blocks.clear();
}

class Closing {
 public:
  explicit Closing(ir::Module& module) : module_(module) {}

  void convert(Op* fun, Function* home) {
    const Captures found = captures(fun);
    Block* body = fun->blocks[0];
    Function* f = module_.add_function(name(fun, home), {}, {});
    f->loc = fun->loc;

    Renaming inner;
    std::vector<Value*> parameters;
    for (Value* v : found.values) {
      Value* p = module_.new_value(v->type);
      p->block = body;
      p->name = v->name;
      parameters.push_back(p);
      inner[v] = p;
    }
    // The function takes over the block; captured values come before the continuation's own parameters.
    body->params.insert(body->params.begin(), parameters.begin(), parameters.end());
    for (std::size_t i = 0; i < body->params.size(); ++i)
      body->params[i]->index = static_cast<std::uint32_t>(i);

    body->parent = nullptr;
    body->function = f;
    f->body = body;
    ir::walk(body, [&](const Op* op) {
      for (Block* b : op->blocks) b->function = f;
    });
    ir::Builder first = ir::Builder::before(body->ops.front());
    for (const Op* constant : found.constants) ir::clone_over(first, *constant, {}, inner);
    if (found.itself) {
      first.loc = fun->loc;
      Op* again = first.op(Opcode::closure_, {});
      make_closure(again, f, parameters);
      inner[fun->result()] = module_.add_result(again, fun->result()->type, fun->result()->name);
    }
    ir::replace_uses(body, inner);
    make_closure(fun, f, found.values);
  }

 private:
  /// Names are made unique here: the module compares each new one with all others.
  std::string name(const Op* fun, const Function* home) {
    const char* own = fun->result()->name;
    return home->name + "_" + (own ? own : "k") + std::to_string(++made_);
  }

  ir::Module& module_;
  std::size_t made_ = 0;
};

}  // namespace

void close(ir::Module& module) {
  Closing closing(module);
  const std::vector<Function*> functions = module.functions();  // those made on the way are closed
  for (Function* f : functions) {
    std::vector<Op*> funs;
    ir::walk(f->body, [&](Op* op) {
      if (op->is(Opcode::fun_)) funs.push_back(op);
    });
    // A walk meets what is outside before what is inside.
    for (std::size_t i = funs.size(); i-- > 0;) closing.convert(funs[i], f);
  }
}

}  // namespace lantern::passes
