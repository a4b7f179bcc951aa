// Inlining: the entry takes over a function it only forwards to; a function called once moves to its call.
#include <unordered_map>
#include <unordered_set>

#include "lantern/compiler/passes/canonical/inline.hpp"
#include "lantern/compiler/passes/canonical/simplify.hpp"
#include "lantern/compiler/passes/support/rewrite.hpp"

namespace lantern::passes {

namespace {

using ir::Function;

/// How often each function is referred to by functions that the entry reaches, and one of the places.
struct References {
  struct To {
    std::size_t count = 0;
    const Op* op = nullptr;
    Function* from = nullptr;
  };
  std::unordered_map<const Function*, To> to;
  std::vector<Function*> reached;

  explicit References(Function* entry) {
    std::unordered_set<const Function*> seen{entry};
    reached.push_back(entry);
    for (std::size_t i = 0; i < reached.size(); ++i)
      ir::walk(reached[i]->body, [&, from = reached[i]](Op* op) {
        if (!op->callee) return;
        To& r = to[op->callee];
        ++r.count;
        r.op = op;
        r.from = from;
        if (seen.insert(op->callee).second) reached.push_back(op->callee);
      });
  }
};

/// The function that the entry hands its parameters to and whose results it returns, or null.
Function* forwarded_to(const Function& entry) {
  const std::vector<Op*>& ops = entry.body->ops;
  if (ops.size() != 2 || !ops[0]->is(Opcode::call_) || ops[1]->operands != ops[0]->results) return nullptr;
  Function* callee = ops[0]->callee;
  const bool same = callee != &entry && !callee->cps && ops[0]->operands == entry.body->params &&
                    callee->parameter_types() == entry.parameter_types() &&
                    callee->result_types == entry.result_types;
  return same ? callee : nullptr;
}

/// The entry keeps its identity and name, and gets the body of the function it forwards to.
bool forward_entry(ir::Module& module) {
  Function* entry = module.entry;
  Function* callee = forwarded_to(*entry);
  if (!callee || References(entry).to.contains(entry)) return false;
  for (std::size_t i = 0; i < entry->body->params.size(); ++i)
    if (const char* name = entry->body->params[i]->name) callee->body->params[i]->name = name;
  if (!entry->loc.known()) entry->loc = callee->loc;
  entry->body = callee->body;
  entry->body->function = entry;
  ir::walk(entry->body, [&](Op* op) {
    for (Block* b : op->blocks) b->function = entry;
  });
  module.remove_function(callee);
  for (const Function* f : module.functions())
    ir::walk(f->body, [&](Op* op) {
      if (op->callee == callee) op->callee = entry;
    });
  return true;
}

class Inlining : public Rewriter {
 public:
  Inlining(Function& function, const std::unordered_set<const Op*>& calls)
      : Rewriter(function), calls_(calls) {}

 private:
  Action enter(Op* op) override {
    if (!calls_.contains(op)) return Action::keep;
    Block* body = op->callee->body;
    for (std::size_t i = 0; i < op->operands.size(); ++i) replace(body->params[i], op->operands[i]);
    splice(body, op);
    return Action::drop;
  }

  const std::unordered_set<const Op*>& calls_;
};

}  // namespace

bool types_allow_inlining(const Op& call) {
  const Function& f = *call.callee;
  for (std::size_t i = 0; i < call.operands.size(); ++i)
    if (!refines(call.operands[i]->type, f.body->params[i]->type)) return false;
  for (std::size_t i = 0; i < call.results.size(); ++i)
    if (!refines(f.body->yields()[i]->type, call.results[i]->type)) return false;
  return true;
}

bool inline_calls(ir::Module& module) {
  if (!module.entry) return false;
  bool changed = false;
  while (forward_entry(module)) changed = true;

  // What is reached and called once is not recursive: its only call lies on the way from the entry.
  const References references(module.entry);
  std::unordered_set<const Op*> calls;
  std::unordered_set<const Function*> moved;
  std::unordered_map<const Function*, bool> direct;
  const auto known_direct = [&](const Function* f) {
    const auto [it, added] = direct.try_emplace(f, false);
    if (added) it->second = is_direct(*f);
    return it->second;
  };
  for (const auto& [f, to] : references.to) {
    if (to.count != 1 || f == module.entry || !to.op->is(Opcode::call_)) continue;
    if (!known_direct(f) || !known_direct(to.from) || !types_allow_inlining(*to.op)) continue;
    calls.insert(to.op);
    moved.insert(f);
  }
  if (moved.empty()) return changed;
  // Each body moves once: a moved function's own calls are met where it has gone.
  for (Function* f : references.reached)
    if (!moved.contains(f)) Inlining(*f, calls).run();
  // What nothing reaches may call what has moved.
  const std::unordered_set<const Function*> reached(references.reached.begin(), references.reached.end());
  const std::vector<Function*> all = module.functions();
  for (Function* f : all)
    if (moved.contains(f) || !reached.contains(f)) module.remove_function(f);
  return true;
}

}  // namespace lantern::passes
