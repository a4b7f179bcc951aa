// Control flow, functions and tapes in forward mode, over the graph.
#include "lantern/compiler/ad/staged_forward.hpp"

#include "lantern/compiler/passes/unwind.hpp"
#include "lantern/compiler/staging/control_flow.hpp"

namespace lantern::ad {

Data StagedForward::split(const Data& data, const std::vector<ir::Type>& types, const Location& loc) const {
  Data out;
  for (std::size_t i = 0; i < data.size(); ++i) {
    out.push_back(primal(data[i]));
    if (types[i].is_differentiable()) out.push_back(tangent_of(data[i], loc));
  }
  return out;
}

Data StagedForward::join(const Data& data, const std::vector<ir::Type>& types) {
  Data out;
  std::size_t at = 0;
  for (const ir::Type& t : types) {
    const Datum& p = data[at++];
    out.push_back(t.is_differentiable() ? dual(p, data[at++]) : p);
  }
  return out;
}

Data StagedForward::branch(const Datum& condition, const Thunk& then, const Thunk& otherwise,
                           const std::vector<ir::Type>& results, const Location& loc) {
  return join(detail::branch(
                  condition, [&] { return split(then(), results, loc); },
                  [&] { return split(otherwise(), results, loc); }, loc),
              results);
}

Data StagedForward::loop(const Data& initial, const std::vector<ir::Type>& state, const Condition& condition,
                         const Body& body, std::int64_t attribute, const Location& loc) {
  return join(detail::loop(
                  split(initial, state, loc), [&](const Data& s) { return condition(join(s, state)); },
                  [&](const Data& s) { return split(body(join(s, state)), state, loc); }, loc, attribute),
              state);
}

Data StagedForward::call(ir::Function* callee, const Data& arguments, std::int64_t attribute,
                         const Location& loc) {
  std::vector<bool> active;
  Data operands;
  for (const Datum& d : arguments) {
    active.push_back(is_active(d));
    operands.push_back(primal(d));
    if (active.back()) operands.push_back(tangent_of(d, loc));
  }
  const Data results = staging_.call(instance(callee, active), operands, loc);
  staging_.block()->ops.back()->integer = attribute;
  return join(results, callee->result_types);
}

ir::Function* StagedForward::instance(ir::Function* callee, const std::vector<bool>& active) {
  std::string key = callee->name + ":";  // f1 with an active argument is not f with two
  for (bool a : active) key += a ? '1' : '0';
  const auto found = instances_.find(key);
  if (found != instances_.end()) return found->second;
  passes::unwind(*callee);

  std::vector<ir::Type> params, results;
  for (std::size_t i = 0; i < active.size(); ++i)
    params.insert(params.end(), active[i] ? 2 : 1, callee->body->params[i]->type);
  for (const ir::Type& t : callee->result_types) results.insert(results.end(), t.is_differentiable() ? 2 : 1, t);
  ir::Function* f = staging_.module().add_function(callee->name + "_fwd", params, results);
  f->loc = callee->loc;
  instances_.emplace(key, f);

  const Staging::Scope scope(staging_, f);
  Data arguments;
  std::size_t at = 0;
  for (std::size_t i = 0; i < active.size(); ++i) {
    ir::Value* p = f->body->params[at++];
    p->name = callee->body->params[i]->name;
    arguments.push_back(active[i] ? dual(Datum::node(p), Datum::node(f->body->params[at++])) : Datum::node(p));
  }
  const Data values = split(Replay(staging_, this).run(*callee, arguments), callee->result_types, callee->loc);
  staging_.builder(callee->loc).yield(staging_.use(values, callee->loc));
  return f;
}

std::int64_t StagedForward::tangent_tape(std::int64_t tape) {
  const auto [it, fresh] = tapes_.try_emplace(tape, 0);
  if (fresh) it->second = staging_.module().new_tape();
  return it->second;
}

void StagedForward::push(std::int64_t tape, const Datum& value, const Location& loc) {
  const auto emit = [&](const Datum& v, std::int64_t to) {
    staging_.builder(loc).op(Opcode::push_, {staging_.use(v, loc)})->integer = to;
  };
  emit(primal(value), tape);
  if (value.type().is_differentiable()) emit(tangent_of(value, loc), tangent_tape(tape));
}

Datum StagedForward::pop(std::int64_t tape, const ir::Type& type, const Location& loc) {
  const auto emit = [&](std::int64_t from) {
    ir::Op* op = staging_.builder(loc).op(Opcode::pop_, {}, {type});
    op->integer = from;
    return Datum::node(op->result());
  };
  const Datum v = emit(tape);
  return type.is_differentiable() ? dual(v, emit(tangent_tape(tape))) : v;
}

}  // namespace lantern::ad
