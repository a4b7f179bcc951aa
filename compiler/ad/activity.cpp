// Activity of loops and functions.
#include "lantern/compiler/ad/activity.hpp"

#include <algorithm>

#include "lantern/compiler/ad/op_derivative.hpp"
#include "lantern/compiler/passes/direct/tail_calls.hpp"
#include "lantern/compiler/passes/direct/unwind.hpp"
#include "lantern/ir/external.hpp"

namespace lantern::core::ad {

namespace {

bool makes_ordered_calls(const ir::Function& f) {
  bool any = false;
  const auto look = [&](const ir::Op* op) { any |= ir::is_ordered_call(*op); };
  ir::walk(f.body, look);
  for (const ir::Function* callee : ir::callees(f.body)) ir::walk(callee->body, look);
  return any;
}

/// What is popped or comes from another process, here or in a function, has its derivative.
bool brings_derivatives(const ir::Op& op) {
  return op.is(Opcode::pop_) || ir::is_ordered_call(op) ||
         (op.callee && (works_on_tape(*op.callee) || makes_ordered_calls(*op.callee)));
}

}  // namespace

bool on_tape(ir::Block* block) {
  bool found = false;
  const auto look = [&](const ir::Op* o) { found |= o->is(Opcode::push_) || o->is(Opcode::pop_); };
  ir::walk(block, look);
  for (const ir::Function* f : ir::callees(block))
    if (!found) ir::walk(f->body, look);
  return found;
}
bool works_on_tape(const ir::Function& f) { return on_tape(f.body); }

Flows Activity::at(const ir::Value* v) const {
  if (!some_.contains(v)) return outside_(v);
  return perhaps_.contains(v) ? Flows::perhaps : Flows::always;
}

void Activity::note_active(const ir::Op& op) {
  const auto brings = [&](const ir::Op* o) {
    return brings_derivatives(*o) || std::ranges::any_of(o->operands, [&](const ir::Value* v) { return is_active(v); });
  };
  bool any = brings(&op);
  for (ir::Block* b : op.blocks) ir::walk(b, [&](const ir::Op* o) { any |= brings(o); });
  if (!any) return;
  some_.insert(op.results.begin(), op.results.end());
  for (const ir::Block* b : op.blocks) some_.insert(b->params.begin(), b->params.end());
}

// As the mode does it (op_derivative.cpp, forward_control_flow.cpp): conditions are kept of numbers alone where control
// flow or a call gives them.
void Activity::note_flows(const ir::Op& op) {
  const auto note = [&](const ir::Value* v, bool always) {
    if (!always && v->type.is_differentiable()) perhaps_.insert(v);
  };
  const auto always = [&](const ir::Value* v) { return v->type.is_tensor() || at(v) == Flows::always; };
  switch (op.code) {
    case Opcode::loop_: {
      ir::Block& body = *op.blocks[1];
      for (std::size_t i = 0; i < op.operands.size(); ++i) {
        const bool all = always(op.operands[i]) && always(body.yields()[i]);
        note(body.params[i], all);
        note(op.results[i], all);
      }
      return;
    }
    case Opcode::branch_:
      for (std::size_t i = 0; i < op.results.size(); ++i)
        note(op.results[i], always(op.blocks[0]->yields()[i]) && always(op.blocks[1]->yields()[i]));
      return;
    case Opcode::call_: {
      std::vector<Flows> given;
      for (const ir::Value* v : op.operands) given.push_back(at(v));
      const std::vector<Flows> all = functions_.results(*op.callee, given);
      for (std::size_t i = 0; i < op.results.size(); ++i)
        note(op.results[i], op.results[i]->type.is_tensor() || all[i] == Flows::always);
      return;
    }
    case Opcode::select_:
      return note(op.result(), at(op.operands[1]) == Flows::always && at(op.operands[2]) == Flows::always);
    default: {
      if (!ir::info(op.code).elementwise) return;
      bool surely = false;
      for (std::size_t i = 0; i < op.operands.size(); ++i) {
        const ir::Formula* f = ir::derivative(op.code, i, op.operands.size());
        surely |= f && !f->is_number(0) && !chooses(*f) && at(op.operands[i]) == Flows::always;
      }
      note(op.result(), surely || (op.is(Opcode::cast_) && at(op.operands[0]) == Flows::always));
    }
  }
}

void Activity::solve(ir::Block* block, const ir::Op* loop) {
  const auto until_known = [&](const std::unordered_set<const ir::Value*>& set, const auto& note) {
    for (std::size_t known = set.size() + 1; known != set.size();) {
      known = set.size();
      ir::walk(block, [&](const ir::Op* op) { note(*op); });
      if (loop) note(*loop);
    }
  };
  until_known(some_, [&](const ir::Op& op) {
    if (&op != loop) return note_active(op);
    for (std::size_t i = 0; i < op.operands.size(); ++i)
      if (is_active(op.operands[i]) || is_active(block->yields()[i])) some_.insert(block->params[i]);
  });
  until_known(perhaps_, [&](const ir::Op& op) { note_flows(op); });
}

std::vector<Flows> Activity::states(ir::Op& loop) {
  ir::Block* const body = loop.blocks[1];
  solve(body, &loop);
  std::vector<Flows> all;
  for (std::size_t i = 0; i < body->params.size(); ++i) {
    const Flows inside = at(body->params[i]);
    all.push_back(inside == Flows::perhaps && at(body->yields()[i]) == Flows::always ? Flows::entered : inside);
  }
  return all;
}

std::vector<Flows> Activity::results(ir::Function& f, const std::vector<Flows>& parameters) {
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (parameters[i] == Flows::never) continue;
    some_.insert(f.body->params[i]);
    if (parameters[i] != Flows::always) perhaps_.insert(f.body->params[i]);
  }
  solve(f.body, nullptr);
  std::vector<Flows> all;
  for (const ir::Value* v : f.body->yields()) all.push_back(at(v));
  return all;
}

std::vector<Flows> FunctionActivity::results(ir::Function& f, const std::vector<Flows>& parameters) {
  std::vector<Flows> all(f.result_types.size(), Flows::always);
  if (has_rule_(&f) || works_on_tape(f)) return all;
  std::string key = std::to_string(reinterpret_cast<std::uintptr_t>(&f)) + ":";
  for (const Flows p : parameters) key += static_cast<char>('0' + static_cast<int>(p));
  const auto [place, fresh] = places_.try_emplace(key, known_.size());
  if (fresh) known_.push_back({&f, parameters, std::move(all)});
  const std::size_t at = place->second;
  if (!fresh || working_) return known_[at].results;
  working_ = true;
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t i = at; i < known_.size(); ++i) {
      ir::Function& one = *known_[i].function;
      passes::unwind(one);
      passes::tail_calls(one);
      const auto nowhere = [](const ir::Value*) { return Flows::never; };
      const std::vector<Flows> given = known_[i].parameters;
      std::vector<Flows> now = Activity(nowhere, *this).results(one, given);
      changed |= now != known_[i].results;
      known_[i].results = std::move(now);
    }
  }
  working_ = false;
  return known_[at].results;
}

}  // namespace lantern::core::ad
