// Callees first, then the tapes of what was expanded.
#include "lantern/compiler/passes/direct/inline_expansion.hpp"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "lantern/compiler/passes/canonical/inline.hpp"
#include "lantern/compiler/passes/canonical/simplify.hpp"
#include "lantern/compiler/passes/support/rewrite.hpp"

namespace lantern::passes {

namespace {

using ir::Function;

/// Operations of a function with all that is put into it, at most.
constexpr std::size_t longest = 50000;

std::size_t operations(const Function& f) {
  std::size_t n = 0;
  ir::walk(f.body, [&](const Op*) { ++n; });
  return n;
}

bool works_on_tensors(const Function& f) {
  const auto any = [](const std::vector<Value*>& values) {
    return std::ranges::any_of(values, [](const Value* v) { return v->type.is_tensor(); });
  };
  return any(f.body->params) || any(f.body->yields());
}

/// What the entry reaches, callees before their callers; functions that are recursive, or call one that is,
/// are left out.
std::vector<Function*> callees_first(const ir::Module& module) {
  std::vector<Function*> reached{module.entry}, order;
  std::unordered_map<Function*, std::size_t> waits_for;
  std::unordered_map<Function*, std::vector<Function*>> callers;
  std::unordered_set<const Function*> seen{module.entry};
  for (std::size_t i = 0; i < reached.size(); ++i) {
    Function* const f = reached[i];
    std::unordered_set<const Function*> own;
    ir::walk(f->body, [&](const Op* op) {
      if (!op->callee || !own.insert(op->callee).second) return;
      callers[op->callee].push_back(f);
      if (seen.insert(op->callee).second) reached.push_back(op->callee);
    });
    waits_for[f] = own.size();
  }
  for (Function* f : reached)
    if (waits_for[f] == 0) order.push_back(f);
  for (std::size_t i = 0; i < order.size(); ++i)
    for (Function* caller : callers[order[i]])
      if (--waits_for[caller] == 0) order.push_back(caller);
  return order;
}

/// The calls of one function's straight-line code.
class CallExpansion {
 public:
  explicit CallExpansion(Function& f) : function_(f) {}

  bool run(const std::unordered_set<const Function*>& whole) {
    std::vector<const Op*> calls;
    std::size_t sum = operations(function_);
    for (const Op* op : function_.body->ops) {
      if (!op->is(Opcode::call_) || !whole.contains(op->callee) || !works_on_tensors(*op->callee) ||
          !types_allow_inlining(*op))
        continue;
      calls.push_back(op);
      sum += operations(*op->callee);
    }
    if (calls.empty() || sum > longest) return false;
    std::vector<Op*> ops = std::move(function_.body->ops);
    function_.body->ops.clear();
    ir::Builder b(*function_.module, function_.body);
    ir::Renaming results;
    std::size_t next = 0;
    for (Op* op : ops) {
      for (Value*& v : op->operands) v = ir::renamed(results, v);
      for (Block* inner : op->blocks) ir::rename(inner, results);
      if (next == calls.size() || op != calls[next]) {
        function_.body->ops.push_back(op);
        continue;
      }
      ++next;
      ir::Renaming names;
      const Block& body = *op->callee->body;
      for (std::size_t i = 0; i < op->operands.size(); ++i) names[body.params[i]] = op->operands[i];
      const std::vector<Value*> made = ir::clone(b, body, names);
      for (std::size_t i = 0; i < made.size(); ++i) {
        if (op->result(i)->name) made[i]->name = op->result(i)->name;
        results[op->result(i)] = made[i];
      }
    }
    return true;
  }

 private:
  Function& function_;
};

/// What is pushed to a tape and popped in one block, and nowhere else, is handed on as a value.
class TapesAsValues {
 public:
  explicit TapesAsValues(const ir::Module& module) {
    for (const Function* f : module.functions())
      ir::walk(f->body, [&](Op* op) {
        if (ir::is_on_tape(*op)) all_[op->integer].push_back(op);
      });
  }

  void run(Function& f) {
    ir::Renaming values;
    std::vector<Op*> done;
    for (const auto& [tape, ops] : all_)
      if (std::ranges::all_of(ops, [&](const Op* op) { return op->parent == f.body; }))
        match(ops, values, done);
    if (done.empty()) return;
    erase(done);
    ir::replace_uses(f.body, values);
  }

 private:
  /// The last value that was pushed is popped first.
  static void match(const std::vector<Op*>& ops, ir::Renaming& values, std::vector<Op*>& done) {
    std::vector<const Op*> pushed;
    std::vector<std::pair<Value*, Value*>> pairs;
    for (const Op* op : ops) {
      if (op->is(Opcode::push_)) {
        pushed.push_back(op);
        continue;
      }
      if (!op->is(Opcode::pop_) || pushed.empty() || pushed.back()->operands.size() != op->results.size())
        return;
      for (std::size_t i = 0; i < op->results.size(); ++i) {
        if (!refines(pushed.back()->operands[i]->type, op->result(i)->type)) return;
        pairs.emplace_back(op->result(i), pushed.back()->operands[i]);
      }
      pushed.pop_back();
    }
    for (const auto& [popped, value] : pairs) values[popped] = value;
    done.insert(done.end(), ops.begin(), ops.end());
  }

  std::unordered_map<std::int64_t, std::vector<Op*>> all_;
};

}  // namespace

void inline_expansion(ir::Module& module) {
  if (!module.entry) return;
  const std::vector<Function*> order = callees_first(module);
  std::unordered_set<const Function*> whole;
  std::vector<Function*> longer;
  for (Function* f : order) {
    if (!is_direct(*f)) continue;
    if (CallExpansion(*f).run(whole)) longer.push_back(f);
    whole.insert(f);
  }
  if (longer.empty()) return;
  eliminate_dead(module);  // functions that nothing calls any more have tapes, too
  TapesAsValues tapes(module);
  for (Function* f : module.functions())
    if (std::ranges::find(longer, f) != longer.end()) tapes.run(*f);
  simplify(module);
}

}  // namespace lantern::passes
