// Control flow, functions and tapes in forward modes, over the graph.
#include "lantern/compiler/ad/forward_control_flow.hpp"

#include <algorithm>

#include "lantern/compiler/passes/direct/unwind.hpp"
#include "lantern/compiler/staging/control_flow.hpp"

namespace lantern::core::ad {

namespace {

/// Conditions are kept of numbers.
bool has_flow(const ir::Type& t) { return t.is_scalar() && t.is_differentiable(); }

}  // namespace

ForwardControlFlow::Conditional ForwardControlFlow::conditional(const Datums& data,
                                                              const std::vector<ir::Type>& types) const {
  Conditional kept;
  for (std::size_t i = 0; i < data.size(); ++i) kept.push_back(has_flow(types[i]) && !flow_of(data[i]).empty());
  return kept;
}

Datums ForwardControlFlow::split(const Datums& data, const std::vector<ir::Type>& types, const Conditional& kept,
                                 const Location& loc) const {
  Datums out;
  for (std::size_t i = 0; i < data.size(); ++i) {
    out.push_back(mode().primal(data[i]));
    if (!types[i].is_differentiable()) continue;
    for (Datum& d : companions_of(data[i], loc)) out.push_back(std::move(d));
  }
  for (std::size_t i = 0; i < data.size(); ++i) {
    if (!kept[i]) continue;
    const Datum flow = flow_of(data[i]);
    out.push_back(flow.empty() ? Datum::integer(1, ir::Bool) : flow);
  }
  return out;
}

Datums ForwardControlFlow::join(const Datums& data, const std::vector<ir::Type>& types, const Conditional& kept) {
  Datums out;
  std::size_t at = 0;
  for (const ir::Type& t : types) {
    out.push_back(data[at++]);
    if (!t.is_differentiable()) continue;
    out.back() = with(out.back(), slice(data, at, at + companions_));
    at += companions_;
  }
  for (std::size_t i = 0; i < out.size(); ++i)
    if (kept[i]) out[i] = with_flow(out[i], data[at++]);
  return out;
}

Datums ForwardControlFlow::branch(const Datum& condition, const Thunk& then, const Thunk& otherwise,
                                  const std::vector<ir::Type>& results, const Location& loc) {
  Conditional all, some(results.size(), false);
  for (const ir::Type& t : results) all.push_back(has_flow(t));
  const auto side = [&](const Thunk& run) {
    const Datums data = run();
    const Conditional own = conditional(data, results);
    for (std::size_t i = 0; i < own.size(); ++i)
      if (own[i]) some[i] = true;
    return split(data, results, all, loc);
  };
  Datums data = detail::branch(condition, [&] { return side(then); }, [&] { return side(otherwise); }, loc);
  Datums flows = slice(data, data.size() - static_cast<std::size_t>(std::ranges::count(all, true)), data.size());
  data.resize(data.size() - flows.size());
  for (std::size_t i = 0, at = 0; i < all.size(); ++i) {
    if (!all[i]) continue;
    if (some[i]) data.push_back(flows[at]);
    ++at;
  }
  return join(data, results, some);
}

Datums ForwardControlFlow::loop(const Datums& initial, const std::vector<ir::Type>& state, const Condition& condition,
                    const Body& body, std::int64_t attribute, const Location& loc) {
  const Conditional kept = conditional(initial, state);
  return join(detail::loop(
                  split(initial, state, kept, loc), [&](const Datums& s) { return condition(join(s, state, kept)); },
                  [&](const Datums& s) { return split(body(join(s, state, kept)), state, kept, loc); }, loc, attribute),
              state, kept);
}

Datums ForwardControlFlow::call(ir::Function* callee, const Datums& arguments, std::int64_t attribute,
                    const Location& loc) {
  const Active active = active_of(arguments);
  Conditional given;
  Datums operands, conditions;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    operands.push_back(mode().primal(arguments[i]));
    const Datum flow = active[i] && arguments[i].type().is_scalar() ? flow_of(arguments[i]) : Datum();
    given.push_back(!flow.empty());
    if (given[i]) conditions.push_back(flow);
    if (active[i]) operands = joined(std::move(operands), companions_of(arguments[i], loc));
  }
  const Instance made = instance(callee, active, given);
  const Datums results = staging_.call(made.function, joined(operands, conditions), loc);
  staging_.block()->ops.back()->integer = attribute;
  return join(results, callee->result_types, made.kept);
}

ForwardControlFlow::Instance ForwardControlFlow::instance(ir::Function* callee, const Active& active,
                                                          const Conditional& given) {
  const std::string key = specialisation(*callee, active) + specialisation(*callee, given);
  const auto found = instances_.find(key);
  if (found != instances_.end()) return found->second;
  passes::unwind(*callee);

  Instance made{nullptr, Conditional(callee->result_types.size(), false)};
  if (!flow_of(Datum::number(0, ir::F64)).empty()) {
    std::vector<Flows> flows;
    for (std::size_t i = 0; i < active.size(); ++i)
      flows.push_back(!active[i] ? Flows::never : given[i] ? Flows::perhaps : Flows::always);
    const std::vector<Flows> known = functions().results(*callee, flows);
    for (std::size_t i = 0; i < known.size(); ++i)
      made.kept[i] = has_flow(callee->result_types[i]) && known[i] != Flows::always;
  }
  const std::size_t all = 1 + companions_;
  std::vector<ir::Type> params, results;
  for (std::size_t i = 0; i < active.size(); ++i)
    params.insert(params.end(), active[i] ? all : 1, callee->body->params[i]->type);
  const std::size_t conditions = params.size();
  params.insert(params.end(), static_cast<std::size_t>(std::ranges::count(given, true)), ir::Bool);
  for (const ir::Type& t : callee->result_types)
    results.insert(results.end(), t.is_differentiable() ? all : 1, t);
  results.insert(results.end(), static_cast<std::size_t>(std::ranges::count(made.kept, true)), ir::Bool);
  ir::Function* f = made.function = staging_.module().add_function(callee->name + suffix_, params, results);
  f->loc = callee->loc;
  instances_.emplace(key, made);

  const Staging::Scope scope(staging_, f);
  Datums arguments = parameters_of(*f, *callee, active, companions_, [this](const Datum& p, const Datums& more) {
    return with(p, more);
  });
  for (std::size_t i = 0, at = conditions; i < given.size(); ++i)
    if (given[i]) arguments[i] = with_flow(arguments[i], Datum::node(f->body->params[at++]));
  const Datums values =
      split(Replay(staging_, this).run(*callee, arguments), callee->result_types, made.kept, callee->loc);
  staging_.builder(callee->loc).yield(staging_.use(values, callee->loc));
  return made;
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
