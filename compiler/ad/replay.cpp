// Replay of direct-style graphs.
#include "lantern/compiler/ad/replay.hpp"

#include <algorithm>
#include <unordered_set>

#include "lantern/compiler/ad/program.hpp"
#include "lantern/compiler/ad/staged_rule.hpp"
#include "lantern/compiler/passes/tail_calls.hpp"
#include "lantern/compiler/passes/unwind.hpp"
#include "lantern/compiler/staging/control_flow.hpp"
#include "lantern/ir/checkpoint.hpp"
#include "lantern/ir/error.hpp"

namespace lantern::core::ad {

Datums Replay::run(ir::Function& f, const Datums& arguments) { return run_block(f.body, arguments); }

Datum Replay::value(const ir::Value* v) const {
  const auto it = env_.find(v);
  if (it == env_.end()) throw InternalError("replay: a value without a definition");
  return primal_only_ && mode_ ? mode_->primal_of(it->second) : it->second;
}

Datums Replay::values(const std::vector<ir::Value*>& list) const {
  Datums out;
  out.reserve(list.size());
  for (const ir::Value* v : list) out.push_back(value(v));
  return out;
}

/// What is computed again keeps the user's name for it.
void Replay::keep_name(const ir::Value* from, const Datum& to) {
  const Datum& primal = strip(to);
  if (from->name && primal.is_node() && !primal.node()->name)
    primal.node()->name = staging_.module().intern(from->name);
}

Datums Replay::run_block(ir::Block* block, const Datums& arguments) {
  for (std::size_t i = 0; i < block->params.size(); ++i) {
    env_[block->params[i]] = arguments[i];
    keep_name(block->params[i], arguments[i]);
  }
  for (ir::Op* op : block->ops) {
    if (op->code == Opcode::yield_) return values(op->operands);
    run_op(op);
  }
  throw InternalError("replay: a block without yield");
}

namespace {

/// Whether any of the functions, or one that they call, works on a tape.
bool use_tape(std::vector<const ir::Function*> todo) {
  std::vector<const ir::Function*> seen = todo;
  while (!todo.empty()) {
    const ir::Function* at = todo.back();
    todo.pop_back();
    bool found = false;
    ir::walk(at->body, [&](ir::Op* o) {
      found |= o->code == Opcode::push_ || o->code == Opcode::pop_;
      if (o->callee && std::find(seen.begin(), seen.end(), o->callee) == seen.end()) {
        seen.push_back(o->callee);
        todo.push_back(o->callee);
      }
    });
    if (found) return true;
  }
  return false;
}

}  // namespace

Location Replay::place(const ir::Op* op) const {
  Location loc = op->loc;
  if (mode_ && mode_->part() != ir::Part::plain) loc.part = mode_->part();
  return loc;
}
std::string specialisation(const ir::Function& f, const std::vector<bool>& active) {
  std::string key = f.name + ":";
  for (const bool a : active) key += a ? '1' : '0';
  return key;
}

bool works_on_tape(const ir::Function& f) { return use_tape({&f}); }

bool Replay::active(ir::Op* op) const {
  if (!mode_ || primal_only_) return false;
  bool enters = false, tape = false;
  std::vector<const ir::Function*> callees;
  const auto look = [&](const ir::Op* o) {
    tape |= o->code == Opcode::push_ || o->code == Opcode::pop_;
    if (o->callee) callees.push_back(o->callee);
    for (const ir::Value* v : o->operands) {
      const auto it = env_.find(v);
      enters |= it != env_.end() && mode_->is_active(it->second);
    }
  };
  look(op);
  for (ir::Block* b : op->blocks) ir::walk(b, [&](ir::Op* o) { look(o); });
  // What is pushed here is popped elsewhere, with its derivative.
  if (tape || use_tape(std::move(callees))) return true;
  bool leaves = false;
  for (const ir::Value* r : op->results) leaves |= r->type.is_differentiable();
  return enters && leaves;
}

void Replay::run_op(ir::Op* op) {
  const auto give = [&](const Datums& results) {
    for (std::size_t i = 0; i < op->results.size(); ++i) {
      env_[op->results[i]] = results[i];
      keep_name(op->results[i], results[i]);
    }
  };
  switch (op->code) {
    case Opcode::constant_: {
      const ir::Type& type = op->result()->type;
      return give({type.is_float_element() ? Datum::number(op->number, type) : Datum::integer(op->integer, type)});
    }
    case Opcode::undef_:
      return give({Datum::node(staging_.builder(place(op)).op(Opcode::undef_, {}, {op->result()->type})->result())});
    case Opcode::branch_: return give(run_branch(op));
    case Opcode::loop_: return give(run_loop(op));
    case Opcode::call_: return give(run_call(op));
    case Opcode::check_: {
      const auto v = staging_.use(strip(value(op->operands[0])), place(op));
      staging_.builder(place(op)).op(Opcode::check_, {v})->text = op->text;
      return;
    }
    case Opcode::print_: return print(value(op->operands[0]), op->text, place(op));
    case Opcode::push_:
      if (mode_) return mode_->push(op->integer, value(op->operands[0]), place(op));
      staging_.builder(place(op)).op(Opcode::push_, {staging_.use(value(op->operands[0]), place(op))})->integer =
          op->integer;
      return;
    case Opcode::pop_: {
      if (mode_) return give({mode_->pop(op->integer, op->result()->type, place(op))});
      ir::Op* pop = staging_.builder(place(op)).op(Opcode::pop_, {}, {op->result()->type});
      pop->integer = op->integer;
      return give({Datum::node(pop->result())});
    }
    default: {
      const Datums operands = values(op->operands);
      const std::int64_t attribute =
          op->code == Opcode::dim_ || op->code == Opcode::tree_value_ || op->code == Opcode::cast_ ? op->integer : 0;
      return give({perform({op->code, attribute, place(op), op->result()->type.dims(), op->text}, operands)});
    }
  }
}

Datums Replay::run_branch(ir::Op* op) {
  const Datum condition = value(op->operands[0]);
  const auto then = [this, op] { return run_block(op->blocks[0], {}); };
  const auto otherwise = [this, op] { return run_block(op->blocks[1], {}); };
  const Datum& c = strip(condition);
  if (c.is_literal()) return c.b() ? then() : otherwise();
  if (active(op)) {
    std::vector<ir::Type> types;
    for (const ir::Value* r : op->results) types.push_back(r->type);
    return mode_->branch(c, then, otherwise, types, place(op));
  }
  const bool saved = std::exchange(primal_only_, true);
  Datums results = detail::branch(c, then, otherwise, place(op));
  primal_only_ = saved;
  return results;
}

Datums Replay::run_loop(ir::Op* op) {
  const Datums initial = values(op->operands);
  // A condition looks at primals only: nothing it computes reaches a derivative.
  const auto condition = [this, op](const Datums& state) {
    const bool saved = std::exchange(primal_only_, true);
    const Datums c = run_block(op->blocks[0], state);
    primal_only_ = saved;
    return c[0];
  };
  const auto body = [this, op](const Datums& state) { return run_block(op->blocks[1], state); };
  if (active(op)) {
    if (op->integer != 0 && mode_->bounds_by_rule()) return run_bounded_loop(op, initial);
    std::vector<ir::Type> types;
    for (const ir::Value* p : op->blocks[1]->params) types.push_back(p->type);
    return mode_->loop(initial, types, condition, body, op->integer, place(op));
  }
  const bool saved = std::exchange(primal_only_, true);
  Datums primals;
  for (const Datum& d : initial) primals.push_back(strip(d));
  Datums results = detail::loop(std::move(primals), condition, body, place(op), op->integer);
  primal_only_ = saved;
  return results;
}

/// The loop as a function of its initial state and of what it uses from outside, and the derivative of that.
Datums Replay::run_bounded_loop(ir::Op* op, const Datums& initial) {
  std::unordered_set<const ir::Value*> inside;
  std::vector<const ir::Value*> outside;
  Datums arguments = initial;
  std::unordered_map<const ir::Value*, Datum> literals;
  for (const ir::Block* block : op->blocks) inside.insert(block->params.begin(), block->params.end());
  const auto each = [&](const auto& look) {
    for (ir::Block* block : op->blocks) ir::walk(block, look);
  };
  each([&](const ir::Op* o) {
    inside.insert(o->results.begin(), o->results.end());
    for (const ir::Block* block : o->blocks) inside.insert(block->params.begin(), block->params.end());
  });
  each([&](const ir::Op* o) {
    for (const ir::Value* v : o->operands)
      if (inside.insert(v).second) {
        const Datum d = value(v);
        if (d.is_literal()) {
          literals.emplace(v, d);
          continue;
        }
        outside.push_back(v);
        arguments.push_back(d);
      }
  });
  for (std::size_t i = 0; i < initial.size(); ++i)
    if (initial[i].is_literal()) literals.emplace(op->operands[i], initial[i]);
  const auto run = [&staging = staging_, op, outside, literals](const Datums& in) {
    Replay again(staging, nullptr);
    const std::size_t state = op->operands.size();
    for (std::size_t i = 0; i < state; ++i) again.env_[op->operands[i]] = in[i];
    for (std::size_t i = 0; i < outside.size(); ++i) again.env_[outside[i]] = in[state + i];
    for (const auto& [v, d] : literals) again.env_[v] = d;
    return again.run_loop(op);
  };
  Active active;
  for (const Datum& d : arguments) active.push_back(mode_->is_active(d));
  const auto rule = std::make_shared<Rule>();
  rule->name = "loop";
  rule->what = "a loop";
  rule->primal = run;
  rule->forward = [run](const Datums& in) -> Rule::Split { return {run(in), in}; };
  rule->backward = [run, active, loc = place(op)](const Datums& in, const Datums& cotangents) {
    return vjp_of_all({"loop", run}, in, active, cotangents, loc);
  };
  return dynamic_cast<RuleFollowing&>(mode_->mode()).follow(rule, arguments, place(op));
}

namespace {

constexpr std::size_t inline_limit = 400;

/// A function worth running in place: small, and not recursive.
bool inlinable(ir::Function* f) {
  if (ir::size(*f) > inline_limit) return false;
  std::vector<const ir::Function*> todo{f}, seen;
  bool recursive = false;
  while (!todo.empty() && !recursive) {
    const ir::Function* at = todo.back();
    todo.pop_back();
    ir::walk(at->body, [&](ir::Op* o) {
      if (!o->callee) return;
      recursive |= o->callee == f;
      if (std::find(seen.begin(), seen.end(), o->callee) != seen.end()) return;
      seen.push_back(o->callee);
      todo.push_back(o->callee);
    });
  }
  return !recursive;
}

}  // namespace

Datums Replay::run_call(ir::Op* op) {
  const Datums arguments = values(op->operands);
  const auto rule = staging_.rules.find(op->callee);
  if (rule != staging_.rules.end() && active(op)) return rule->second->follow(*mode_, arguments, op->loc);
  if (active(op)) {
    passes::unwind(*op->callee);
    passes::tail_calls(*op->callee);
    if (!ir::is_checkpointed(*op) && inlinable(op->callee)) return run(*op->callee, arguments);
  }
  if (active(op)) return mode_->call(op->callee, arguments, op->integer, place(op));
  Datums primals;
  for (const Datum& d : arguments) primals.push_back(strip(d));
  Datums results = staging_.call(op->callee, primals, place(op));
  staging_.block()->ops.back()->integer = op->integer;
  return results;
}

}  // namespace lantern::core::ad
