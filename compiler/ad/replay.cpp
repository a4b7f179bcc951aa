// Replay of direct-style graphs.
#include "lantern/compiler/ad/replay.hpp"

#include <algorithm>
#include <unordered_set>

#include "lantern/compiler/ad/custom_rule.hpp"
#include "lantern/compiler/ad/staged_rule.hpp"
#include "lantern/compiler/passes/direct/tail_calls.hpp"
#include "lantern/compiler/passes/direct/unwind.hpp"
#include "lantern/compiler/staging/control_flow.hpp"
#include "lantern/compiler/staging/external.hpp"
#include "lantern/ir/checkpoint.hpp"
#include "lantern/ir/external.hpp"
#include "lantern/ir/error.hpp"

namespace lantern::core::ad {

namespace {

void push_onto(Staging& s, std::int64_t tape, const Datum& value, const Location& loc) {
  s.builder(loc).op(Opcode::push_, {s.use(value, loc)})->integer = tape;
}
Datum pop_from(Staging& s, std::int64_t tape, const ir::Type& type, const Location& loc) {
  ir::Op* const op = s.builder(loc).op(Opcode::pop_, {}, {type});
  op->integer = tape;
  return Datum::node(op->result());
}

}  // namespace

std::string specialisation(const ir::Function& f, const Active& active) {
  std::string key = f.name + ":";
  for (const bool a : active) key += a ? '1' : '0';
  return key;
}

Active StagedMode::active_of(const Datums& data) const {
  Active active;
  for (const Datum& d : data) active.push_back(is_active(d));
  return active;
}

void StagedMode::onto(std::int64_t tape, const Datum& value, const Location& loc) {
  push_onto(staging_, tape, value, loc);
}
Datum StagedMode::from(std::int64_t tape, const ir::Type& type, const Location& loc) {
  return pop_from(staging_, tape, type, loc);
}
std::int64_t StagedMode::beside(std::int64_t tape, std::size_t number) {
  const auto [it, fresh] = tapes_.try_emplace({tape, number}, 0);
  if (fresh) it->second = staging_.module().new_tape();
  return it->second;
}

Datums StagedMode::parameters_of(const ir::Function& made, const ir::Function& callee, const Active& active,
                                 std::size_t more,
                                 ir::FunctionRef<Datum(const Datum&, const Datums&)> number) const {
  Datums out;
  auto next = made.body->params.begin();
  for (std::size_t i = 0; i < active.size(); ++i) {
    (*next)->name = callee.body->params[i]->name;
    out.push_back(Datum::node(*next++));
    if (!active[i]) continue;
    Datums with;
    while (with.size() < more) with.push_back(Datum::node(*next++));
    out.back() = number(out.back(), with);
  }
  return out;
}

Datums Replay::run(ir::Function& f, const Datums& arguments) { return run_block(f.body, arguments); }

Datum Replay::value(const ir::Value* v) const {
  const auto it = env_.find(v);
  if (it == env_.end()) throw InternalError("replay: a value without a definition");
  return primal_only_ && mode_ ? mode_->mode().primal(it->second) : it->second;
}

Datums Replay::values(const std::vector<ir::Value*>& list) const {
  Datums out;
  out.reserve(list.size());
  for (const ir::Value* v : list) out.push_back(value(v));
  return out;
}

namespace {

Datums stripped(const Datums& data) {
  Datums out;
  for (const Datum& d : data) out.push_back(strip(d));
  return out;
}

}  // namespace

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

Location Replay::place(const ir::Op* op) const {
  Location loc = op->loc;
  if (mode_ && mode_->part() != ir::Part::plain) loc.part = mode_->part();
  return loc;
}

bool Replay::active(ir::Op* op) const {
  if (!mode_ || primal_only_) return false;
  // What is pushed here is popped elsewhere, with its derivative.
  if (std::ranges::any_of(op->blocks, on_tape) || (op->callee && works_on_tape(*op->callee))) return true;
  bool enters = false;
  const auto look = [&](const ir::Op* o) {
    for (const ir::Value* v : o->operands) {
      const auto it = env_.find(v);
      enters |= it != env_.end() && mode_->is_active(it->second);
    }
  };
  look(op);
  for (ir::Block* b : op->blocks) ir::walk(b, look);
  const auto floats = [](const ir::Value* r) { return r->type.is_differentiable(); };
  return enters && std::ranges::any_of(op->results, floats);
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
      return give({Datum::node(staging_.builder(place(op)).undef(op->result()->type))});
    case Opcode::branch_: return give(run_branch(op));
    case Opcode::loop_: return give(run_loop(op));
    case Opcode::call_: return give(run_call(op));
    case Opcode::check_: {
      std::vector<ir::Value*> operands;
      for (ir::Value* v : op->operands) operands.push_back(staging_.use(strip(value(v)), place(op)));
      ir::Op* const check = staging_.builder(place(op)).op(Opcode::check_, std::move(operands));
      check->text = op->text;
      check->integer = op->integer;
      return;
    }
    case Opcode::external_: return give(run_external(op));
    case Opcode::print_: return print(value(op->operands[0]), op->text, place(op));
    case Opcode::push_:
      if (mode_) return mode_->push(op->integer, value(op->operands[0]), place(op));
      return push_onto(staging_, op->integer, value(op->operands[0]), place(op));
    case Opcode::pop_:
      return give({mode_ ? mode_->pop(op->integer, op->result()->type, place(op))
                         : pop_from(staging_, op->integer, op->result()->type, place(op))});
    default: {
      const Datums operands = values(op->operands);
      const bool has = op->code == Opcode::dim_ || op->code == Opcode::tree_value_ || op->code == Opcode::cast_ ||
                       ir::is_einsum(op->code);
      const std::int64_t attribute = has ? op->integer : 0;
      return give({perform({op->code, attribute, place(op), op->result()->type.dims(), op->text}, operands)});
    }
  }
}

Datums Replay::run_external(ir::Op* op) {
  if (active(op)) detail::no_derivative(ir::parse_prototype(op->text).name, place(op));
  ir::Op* const again = staging_.builder(place(op)).op(
      Opcode::external_, staging_.use(stripped(values(op->operands)), place(op)), ir::types_of(op->results));
  again->text = staging_.module().intern(op->text);
  again->integer = op->integer;
  Datums out;
  for (ir::Value* v : again->results) out.push_back(Datum::node(v));
  return out;
}

Datums Replay::run_branch(ir::Op* op) {
  const Datum condition = value(op->operands[0]);
  const auto then = [this, op] { return run_block(op->blocks[0], {}); };
  const auto otherwise = [this, op] { return run_block(op->blocks[1], {}); };
  const Datum& c = strip(condition);
  if (c.is_literal()) return c.b() ? then() : otherwise();
  if (active(op)) return mode_->branch(c, then, otherwise, ir::types_of(op->results), place(op));
  const Meanwhile on_primals(primal_only_, true);
  return detail::branch(c, then, otherwise, place(op));
}

Datums Replay::run_loop(ir::Op* op) {
  const Datums initial = values(op->operands);
  // A condition looks at primals only: nothing it computes reaches a derivative.
  const auto condition = [this, op](const Datums& state) {
    const Meanwhile on_primals(primal_only_, true);
    return run_block(op->blocks[0], state)[0];
  };
  const auto body = [this, op](const Datums& state) { return run_block(op->blocks[1], state); };
  if (active(op)) {
    if (op->integer != 0 && mode_->bounds_by_rule()) return run_bounded_loop(op, initial);
    if (mode_->is_backward())
      if (const auto extreme = extreme_loop(op)) return run_extreme_loop(op, *extreme, initial, condition, body);
    std::vector<ir::Type> types = ir::types_of(op->blocks[1]->params);
    if (!mode_->is_backward()) return run_forward_loop(op, initial, std::move(types), condition, body);
    return mode_->loop(initial, types, condition, body, op->integer, place(op));
  }
  const Meanwhile on_primals(primal_only_, true);
  return detail::loop(stripped(initial), condition, body, place(op), op->integer);
}

namespace {

/// Whether blocks are computed in a few operations that do nothing else.
bool is_plain(const ir::Block& block) {
  return block.ops.size() <= 8 && std::ranges::all_of(block.ops, [](const ir::Op* op) {
    return op->is(Opcode::yield_) || (op->blocks.empty() && ir::info(op->code).effect == ir::Effect::none);
  });
}

}  // namespace

// A state that depends on nothing active has no tangent; a tangent that is the number 0 is another thing. Of a state that
// has one in some iterations a condition says in which.
Datums Replay::run_forward_loop(ir::Op* op, Datums initial, std::vector<ir::Type> types,
                                const StagedMode::Condition& condition, const StagedMode::Body& body) {
  const auto outside = [this](const ir::Value* v) {
    const auto found = env_.find(v);
    if (found == env_.end() || !mode_->is_active(found->second)) return Flows::never;
    return mode_->flow_of(found->second).empty() ? Flows::always : Flows::perhaps;
  };
  const std::vector<Flows> flows = Activity(outside, mode_->functions()).states(*op);
  for (std::size_t i = 0; i < flows.size(); ++i) {
    if (flows[i] == Flows::never) types[i] = ir::I64;  // a type without derivatives
    if (flows[i] == Flows::always || !mode_->flow_of(initial[i]).empty()) continue;
    initial[i] = mode_->with_flow(initial[i], Datum::integer(1, ir::Bool));
  }
  Datums out = mode_->loop(initial, types, condition, body, op->integer, place(op));
  // After a first iteration there is one.
  if (!std::ranges::count(flows, Flows::entered) || !is_plain(*op->blocks[0])) return out;
  const Datum starts = strip(condition(initial));
  for (std::size_t i = 0; i < flows.size(); ++i) {
    if (flows[i] != Flows::entered || mode_->flow_of(out[i]).empty()) continue;
    const Datum before = mode_->flow_of(initial[i]);
    const bool surely = starts.is_literal() && starts.b();
    out[i] = mode_->with_flow(out[i], surely ? Datum() : perform({Opcode::lor_, 0, place(op)}, {before, starts}));
  }
  return out;
}

/// What the blocks of a construct use and do not define, in order.
std::vector<const ir::Value*> Replay::used_from_outside(ir::Op* op) const {
  std::unordered_set<const ir::Value*> inside;
  std::vector<const ir::Value*> outside;
  const auto define = [&](const auto& values) { inside.insert(values.begin(), values.end()); };
  const auto each = [&](const auto& look) {
    for (ir::Block* block : op->blocks) ir::walk(block, look);
  };
  for (const ir::Block* block : op->blocks) define(block->params);
  each([&](const ir::Op* o) {
    define(o->results);
    for (const ir::Block* block : o->blocks) define(block->params);
  });
  each([&](const ir::Op* o) {
    for (const ir::Value* v : o->operands)
      if (inside.insert(v).second) outside.push_back(v);
  });
  return outside;
}

/// The loop as a function of its initial state and of what it uses from outside, and the derivative of that.
/// Literals stay literals.
Datums Replay::run_bounded_loop(ir::Op* op, const Datums& initial) {
  std::vector<const ir::Value*> names(op->operands.begin(), op->operands.end());
  Datums arguments = initial;
  std::vector<std::pair<const ir::Value*, Datum>> literals;
  for (std::size_t i = 0; i < initial.size(); ++i)
    if (initial[i].is_literal()) literals.emplace_back(op->operands[i], initial[i]);
  for (const ir::Value* v : used_from_outside(op)) {
    const Datum d = value(v);
    if (d.is_literal()) {
      literals.emplace_back(v, d);
      continue;
    }
    names.push_back(v);
    arguments.push_back(d);
  }
  const auto run = [&staging = staging_, op, names, literals](const Datums& in) {
    Replay again(staging, nullptr);
    for (std::size_t i = 0; i < names.size(); ++i) again.env_[names[i]] = in[i];
    for (const auto& [v, d] : literals) again.env_[v] = d;
    return again.run_loop(op);
  };
  const auto rule = rule_of({"loop", run}, "a loop", mode_->active_of(arguments), place(op));
  return mode_->mode().follow(rule, arguments, place(op));
}

namespace {

constexpr std::size_t inline_limit = 400;

/// Of a function that calls others and is called from several places: each of these would get all of them.
constexpr std::size_t shared_limit = 80;

/// An operation on tensors becomes a nest of loops, in several widths of vectors.
constexpr std::size_t tensor_weight = 40;

}  // namespace

bool StagedMode::has_several_calls(const ir::Function& callee) {
  if (calls_.empty())
    for (const ir::Function* f : staging_.module().functions())
      ir::walk(f->body, [&](const ir::Op* op) {
        if (op->callee) ++calls_[op->callee];
      });
  const auto found = calls_.find(&callee);
  return found != calls_.end() && found->second > 1;
}

/// Its operations, and what the calls in it bring that are run in place in turn.
StagedMode::Brought StagedMode::brought_by(const ir::Function& callee) {
  const auto known = brought_.find(&callee);
  if (known != brought_.end()) return known->second;
  Brought all;
  if (!ir::callees(callee.body).contains(&callee)) {
    all.operations = ir::size(callee);
    bool calls = false;
    ir::walk(callee.body, [&](const ir::Op* op) {
      const bool loops = !op->results.empty() && op->result()->type.is_tensor() &&
                         (ir::info(op->code).elementwise || ir::info(op->code).in_notation());
      if (loops) all.operations += tensor_weight;
      if (!op->is(Opcode::call_) || ir::is_checkpointed(*op) || staging_.rules.contains(op->callee)) return;
      const Brought inner = brought_by(*op->callee);
      if (!inner.is_small) return;
      calls = true;
      all.operations += inner.operations;
    });
    all.is_shared = calls && has_several_calls(callee);
    all.is_small = all.operations <= (all.is_shared ? shared_limit : inline_limit);
  }
  return brought_[&callee] = all;
}

/// Of shared functions one function takes in no more than one that is not shared may have.
bool Replay::runs_in_place(const ir::Function& callee) {
  const StagedMode::Brought all = mode_->brought_by(callee);
  if (!all.is_small || !all.is_shared) return all.is_small;
  if (brought_ + all.operations > inline_limit) return false;
  brought_ += all.operations;
  return true;
}

Datums Replay::run_call(ir::Op* op) {
  const Datums arguments = values(op->operands);
  const auto rule = staging_.rules.find(op->callee);
  if (rule != staging_.rules.end() && active(op)) return rule->second->follow(*mode_, arguments, op->loc);
  if (active(op)) {
    passes::unwind(*op->callee);
    passes::tail_calls(*op->callee);
    if (!ir::is_checkpointed(*op) && runs_in_place(*op->callee)) return run(*op->callee, arguments);
  }
  if (active(op)) return mode_->call(op->callee, arguments, op->integer, place(op));
  Datums results = staging_.call(op->callee, stripped(arguments), place(op));
  staging_.block()->ops.back()->integer = op->integer;
  return results;
}

}  // namespace lantern::core::ad
