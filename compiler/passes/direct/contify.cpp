// Eta reduction of continuations, and inlining of those that are called once.
#include "lantern/compiler/passes/direct/contify.hpp"

#include <unordered_map>

#include "lantern/compiler/passes/support/rewrite.hpp"

namespace lantern::passes {

namespace {

/// A continuation that only calls another one is that other one.
class Eta : public Rewriter {
 public:
  using Rewriter::Rewriter;

 private:
  Action enter(Op* op) override {
    if (!op->is(Opcode::fun_)) return Action::keep;
    Value* target = forwards_to(*op);
    if (!target) return Action::keep;
    replace(op->result(), target);
    return Action::drop;
  }

  Value* forwards_to(const Op& fun) const {
    const Block* body = fun.blocks[0];
    if (body->ops.size() != 2 || !body->ops[0]->is(Opcode::jump_)) return nullptr;
    const std::vector<Value*>& operands = body->ops[0]->operands;
    if (operands.size() != body->params.size() + 1) return nullptr;
    for (std::size_t i = 0; i < body->params.size(); ++i)
      if (operands[i + 1] != body->params[i]) return nullptr;
    Value* target = now(operands[0]);
    const bool outer = target->block != body && target != fun.result();
    return outer && target->type == fun.result()->type ? target : nullptr;
  }
};

/// The jumps that are the only use of a continuation of this function.
std::unordered_map<const Value*, const Op*> single_jumps(const ir::Function& function) {
  struct Use {
    int count = 0;
    const Op* jump = nullptr;
  };
  std::unordered_map<const Value*, Use> uses;
  ir::walk(function.body, [&](const Op* op) {
    if (op->is(Opcode::fun_)) uses.try_emplace(op->result());
    for (std::size_t i = 0; i < op->operands.size(); ++i) {
      const Value* v = op->operands[i];
      if (!v->type.is_cont() || !v->def || !v->def->is(Opcode::fun_)) continue;
      Use& use = uses[v];
      ++use.count;
      use.jump = op->is(Opcode::jump_) && i == 0 ? op : nullptr;
    }
  });
  std::unordered_map<const Value*, const Op*> single;
  for (const auto& [fun, use] : uses) {
    if (use.count == 0) single.emplace(fun, nullptr);
    if (use.count != 1 || !use.jump) continue;
    bool fits = true;
    const std::vector<Value*>& params = fun->def->blocks[0]->params;
    for (std::size_t i = 0; i < params.size(); ++i)
      fits &= params[i]->type.is_tensor() ? refines(use.jump->operands[i + 1]->type, params[i]->type)
                                          : use.jump->operands[i + 1]->type == params[i]->type;
    if (fits) single.emplace(fun, use.jump);
  }
  return single;
}

/// Moves continuations to the only jump that calls them. One whose only jump is in its own body is never met:
/// it was never called.
class Beta : public Rewriter {
 public:
  explicit Beta(ir::Function& function) : Rewriter(function), single_(single_jumps(function)) {}

 private:
  Action enter(Op* op) override {
    if (op->is(Opcode::fun_)) return single_.contains(op->result()) ? Action::drop : Action::keep;
    if (!op->is(Opcode::jump_)) return Action::keep;
    const auto it = single_.find(op->operands[0]);
    if (it == single_.end() || it->second != op) return Action::keep;
    Block* body = op->operands[0]->def->blocks[0];
    for (std::size_t i = 0; i < body->params.size(); ++i) replace(body->params[i], op->operands[i + 1]);
    splice(body, nullptr);
    return Action::drop;
  }

  const std::unordered_map<const Value*, const Op*> single_;
};

}  // namespace

bool contify(ir::Function& function) {
  // What beta leaves behind may be the body of an eta, and the other way round.
  constexpr int most_rounds = 12;
  bool changed = false;
  for (int round = 0; round < most_rounds; ++round) {
    bool again = Eta(function).run();
    again |= Beta(function).run();
    changed |= again;
    if (!again) break;
  }
  return changed;
}

void contify(ir::Module& module) {
  for (ir::Function* f : module.functions()) contify(*f);
}

}  // namespace lantern::passes
