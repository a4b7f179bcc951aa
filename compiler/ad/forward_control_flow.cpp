// Control flow, functions and tapes in forward modes, over the graph.
#include "lantern/compiler/ad/forward_control_flow.hpp"

#include "lantern/compiler/passes/direct/unwind.hpp"
#include "lantern/compiler/staging/control_flow.hpp"

namespace lantern::core::ad {

namespace {

/// Conditions are kept of numbers.
bool has_flow(const ir::Type& t) { return t.is_scalar() && t.is_differentiable(); }

}  // namespace

Datums ForwardControlFlow::split(const Datums& data, const std::vector<ir::Type>& types, const Location& loc) const {
  Datums out;
  for (std::size_t i = 0; i < data.size(); ++i) {
    out.push_back(mode().primal(data[i]));
    if (!types[i].is_differentiable()) continue;
    for (Datum& d : companions_of(data[i], loc)) out.push_back(std::move(d));
  }
  return out;
}

Datums ForwardControlFlow::join(const Datums& data, const std::vector<ir::Type>& types) {
  Datums out;
  std::size_t at = 0;
  for (const ir::Type& t : types) {
    out.push_back(data[at++]);
    if (!t.is_differentiable()) continue;
    out.back() = with(out.back(), slice(data, at, at + companions_));
    at += companions_;
  }
  return out;
}

Datums ForwardControlFlow::branch(const Datum& condition, const Thunk& then, const Thunk& otherwise,
                                  const std::vector<ir::Type>& results, const Location& loc) {
  std::vector<bool> some(results.size(), false);
  Datums all = detail::branch(
      condition, [&] { return split_side(then(), results, some, loc); },
      [&] { return split_side(otherwise(), results, some, loc); }, loc);
  Datums flows;
  for (std::size_t i = results.size(); i-- > 0;) {
    if (!has_flow(results[i])) continue;
    flows.push_back(all.back());
    all.pop_back();
  }
  Datums out = join(all, results);
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (!has_flow(results[i])) continue;
    if (some[i]) out[i] = with_flow(out[i], flows.back());
    flows.pop_back();
  }
  return out;
}

// The data of one side of a branch, split, and a condition for each result that may have one: true where this side has
// none. `some` marks the results for which it has one.
Datums ForwardControlFlow::split_side(const Datums& data, const std::vector<ir::Type>& types, std::vector<bool>& some,
                                      const Location& loc) const {
  Datums out = split(data, types, loc);
  for (std::size_t i = 0; i < data.size(); ++i) {
    if (!has_flow(types[i])) continue;
    const Datum flow = flow_of(data[i]);
    if (!flow.empty()) some[i] = true;
    out.push_back(flow.empty() ? Datum::integer(1, ir::Bool) : flow);
  }
  return out;
}

Datums ForwardControlFlow::loop(const Datums& initial, const std::vector<ir::Type>& state, const Condition& condition,
                    const Body& body, std::int64_t attribute, const Location& loc) {
  return join(detail::loop(
                  split(initial, state, loc), [&](const Datums& s) { return condition(join(s, state)); },
                  [&](const Datums& s) { return split(body(join(s, state)), state, loc); }, loc, attribute),
              state);
}

Datums ForwardControlFlow::call(ir::Function* callee, const Datums& arguments, std::int64_t attribute,
                    const Location& loc) {
  Datums operands;
  for (const Datum& d : arguments) {
    operands.push_back(mode().primal(d));
    if (is_active(d)) operands = joined(std::move(operands), companions_of(d, loc));
  }
  const Datums results = staging_.call(instance(callee, active_of(arguments)), operands, loc);
  staging_.block()->ops.back()->integer = attribute;
  return join(results, callee->result_types);
}

ir::Function* ForwardControlFlow::instance(ir::Function* callee, const Active& active) {
  const std::string key = specialisation(*callee, active);
  const auto found = instances_.find(key);
  if (found != instances_.end()) return found->second;
  passes::unwind(*callee);

  const std::size_t all = 1 + companions_;
  std::vector<ir::Type> params, results;
  for (std::size_t i = 0; i < active.size(); ++i)
    params.insert(params.end(), active[i] ? all : 1, callee->body->params[i]->type);
  for (const ir::Type& t : callee->result_types)
    results.insert(results.end(), t.is_differentiable() ? all : 1, t);
  ir::Function* f = staging_.module().add_function(callee->name + suffix_, params, results);
  f->loc = callee->loc;
  instances_.emplace(key, f);

  const Staging::Scope scope(staging_, f);
  const Datums arguments = parameters_of(*f, *callee, active, companions_, [this](const Datum& p, const Datums& more) {
    return with(p, more);
  });
  const Datums values =
      split(Replay(staging_, this).run(*callee, arguments), callee->result_types, callee->loc);
  staging_.builder(callee->loc).yield(staging_.use(values, callee->loc));
  return f;
}

void ForwardControlFlow::push(std::int64_t tape, const Datum& value, const Location& loc) {
  onto(tape, mode().primal(value), loc);
  if (!value.type().is_differentiable()) return;
  const Datums companions = companions_of(value, loc);
  for (std::size_t k = 0; k < companions.size(); ++k) onto(beside(tape, k), companions[k], loc);
}

Datum ForwardControlFlow::pop(std::int64_t tape, const ir::Type& type, const Location& loc) {
  const Datum v = from(tape, type, loc);
  if (!type.is_differentiable()) return v;
  Datums companions;
  for (std::size_t k = 0; k < companions_; ++k) companions.push_back(from(beside(tape, k), type, loc));
  return with(v, companions);
}

}  // namespace lantern::core::ad
