// Constructs of the staged modes without continuations: each is mirrored.
#include <algorithm>

#include "lantern/compiler/ad/modes/two_pass.hpp"
#include "lantern/compiler/passes/direct/unwind.hpp"
#include "lantern/compiler/staging/control_flow.hpp"

namespace lantern::core::ad {

TwoPass::Region* TwoPass::open(Region* parent) {
  Region& r = regions_.emplace_back();
  r.parent = parent;
  r.forward = staging_.block();
  homes_[r.forward] = &r;
  return &r;
}

Datums TwoPass::inside(Region*& region, ir::FunctionRef<Datums()> body) {
  region = open(region_);
  const Meanwhile here(region_, region);
  Datums results = body();
  for (const Datum& d : results) touch(d);  // the backward block adds the results' cotangents
  return results;
}

bool TwoPass::any_wanted(const Datums& results) const {
  return std::ranges::any_of(names_of(results), [this](Name x) { return wanted(x); });
}

// What the results have moves to what the region gave for them, and in the end what is there at its start moves to
// the results: those of the iteration before.
Datums TwoPass::mirrored(const Part& part, const Names& names, const Datums& in, const Names& left,
                         const Location& loc) {
  const auto body = [&](const Datums& adjoints_in) {
    return alone(names, adjoints_in, left, loc, [&] {
      part.region->backward = staging_.block();
      part.region->popped.clear();
      for (std::size_t i = 0; i < part.outs.size(); ++i) move(variable_of(part.outs[i])->name, part.exits[i], loc);
      part.region->play();
      for (std::size_t i = 0; i < part.entries.size(); ++i)
        move(variable_of(part.entries[i])->name, part.outs[i], loc);
    });
  };
  return linear(in, body, loc);
}

// ---- branches

Datums TwoPass::branch(const Datum& condition, const Thunk& then, const Thunk& otherwise,
                     const std::vector<ir::Type>& results, const Location& loc) {
  Part parts[2];
  Datums outs[2];
  const auto run = [&](std::size_t i, const Thunk& side) {
    return [&, i] { return primals(outs[i] = inside(parts[i].region, side)); };
  };
  const Datums values = detail::branch(condition, run(0, then), run(1, otherwise), loc);
  const auto active = [&](std::size_t i) { return is_active(outs[0][i]) || is_active(outs[1][i]); };
  const Datums out = results_of(values, active);
  for (std::size_t i = 0; i < results.size(); ++i)
    if (variable_of(out[i]))
      for (std::size_t s = 0; s < 2; ++s) {
        parts[s].outs.push_back(out[i]);
        parts[s].exits.push_back(outs[s][i]);
      }
  record({}, [this, condition, first = parts[0], second = parts[1], loc] {
    reverse_branch(condition, first, second, loc);
  });
  return out;
}

void TwoPass::reverse_branch(const Datum& condition, const Part& then, const Part& otherwise, const Location& loc) {
  if (!then.region->on_tape && !otherwise.region->on_tape && !any_wanted(then.outs)) return;
  Names touched = then.region->touched, left;
  for (const Name x : otherwise.region->touched) include(touched, x);
  const Names outs = names_of(then.outs), names = passed(outs, touched);
  for (const Name x : names)
    if (std::ranges::none_of(outs, [&](Name r) { return belongs(x, r); })) left.push_back(x);
  const Datums before = take(names, loc);
  const Datums after = detail::branch(
      at(condition), [&] { return mirrored(then, names, before, left, loc); },
      [&] { return mirrored(otherwise, names, before, left, loc); }, loc);
  for (std::size_t i = 0; i < left.size(); ++i) store_[left[i]] = after[i];
}

// ---- loops

namespace {

Datum plus(const Datum& n, std::int64_t by, const Location& loc) {
  return perform({Opcode::add_, 0, loc}, {n, Datum::integer(by, ir::I64)});
}
Datums rest(const Datums& state) { return slice(state, 1, state.size()); }

}  // namespace

// The iterations are counted. The backward part saves values of the iterations where it turns out to need them: the loop stays
// as it is.
Datums TwoPass::loop(const Datums& initial, const std::vector<ir::Type>& state, const Condition& condition,
                   const Body& body, std::int64_t /*attribute*/, const Location& loc) {
  Part iteration;
  Datums params, outs, starts;
  Meanwhile kept(staging_.keeps_loops, true);
  const Datums counted = detail::loop(
      joined({Datum::integer(0, ir::I64)}, primals(initial)), [&](const Datums& s) { return condition(rest(s)); },
      [&](const Datums& s) {
        outs = inside(iteration.region, [&] { return body(params = results_of(rest(s))); });
        return joined({plus(s[0], 1, loc)}, primals(outs));
      },
      loc);
  const Datums out = results_of(rest(counted));
  for (std::size_t i = 0; i < state.size(); ++i) {
    if (!state[i].is_differentiable()) continue;
    iteration.outs.push_back(out[i]);
    iteration.exits.push_back(outs[i]);
    iteration.entries.push_back(params[i]);
    starts.push_back(initial[i]);
  }
  record(initial, [this, iterations = counted[0], iteration, starts, loc] { reverse_loop(iterations, iteration, starts, loc); });
  return out;
}

// The backward loop makes as many iterations; the cotangents of the state go from iteration to iteration.
void TwoPass::reverse_loop(const Datum& iterations, const Part& iteration, const Datums& starts, const Location& loc) {
  if (!iteration.region->on_tape && !any_wanted(iteration.outs)) return;
  const Names names = passed(names_of(iteration.outs), iteration.region->touched);
  const Datums after = detail::loop(
      joined({at(iterations)}, adjoints(names, loc)),
      [&](const Datums& s) {
        return perform({Opcode::lt_, 0, loc}, {Datum::integer(0, ir::I64), s[0]});
      },
      [&](const Datums& s) {
        return joined({plus(s[0], -1, loc)}, mirrored(iteration, names, rest(s), names, loc));
      },
      loc);
  for (std::size_t i = 0; i < names.size(); ++i) store_[names[i]] = after[1 + i];
  for (std::size_t i = 0; i < starts.size(); ++i) move(variable_of(iteration.outs[i])->name, starts[i], loc);
}

// ---- functions

// A function becomes two: forward, and from the results' cotangents and the arguments' adjoints so far to the
// arguments' adjoints.
Datums TwoPass::call(ir::Function* callee, const Datums& arguments, std::int64_t attribute, const Location& loc) {
  const Halves both = halves(callee, active_of(arguments));
  if (both.on_tape) mark_tape();
  const bool twice = runs_again(attribute);
  const Datums out = results_of(staging_.call(twice ? callee : both.forward, primals(arguments), loc));
  record(arguments, [this, both, twice, arguments, out, loc] { reverse_call(both, twice, arguments, out, loc); });
  return out;
}

void TwoPass::reverse_call(const Halves& both, bool twice, const Datums& arguments, const Datums& outs,
                           const Location& loc) {
  if (!both.on_tape && !any_wanted(outs)) return;
  Datums operands = take(names_of(outs), loc);
  if (twice) staging_.call(both.forward, at(primals(arguments)), loc);
  Names names;
  for (const Datum& d : arguments) {
    const Variable* v = variable_of(d);
    if (!v) continue;
    names.push_back(v->name);
    operands.push_back(adjoint_or_zero(v->name, loc));
    take(v->name);  // an argument that comes again starts from zero
  }
  const Datums after = staging_.call(both.backward, operands, loc);
  for (std::size_t i = 0; i < names.size(); ++i) add(names[i], after[i], loc);
}

const TwoPass::Halves& TwoPass::halves(ir::Function* callee, const Active& active) {
  const std::string key = specialisation(*callee, active);
  const auto found = halves_.find(key);
  if (found != halves_.end()) return found->second;
  passes::unwind(*callee);

  const std::vector<ir::Type> params = callee->parameter_types();
  std::vector<ir::Type> in, out;
  for (const ir::Type& t : callee->result_types)
    if (t.is_differentiable()) in.push_back(t);
  for (std::size_t i = 0; i < params.size(); ++i)
    if (active[i]) out.push_back(params[i]);
  Halves& both = halves_[key];
  both.forward = staging_.module().add_function(callee->name + "_fwd", params, callee->result_types);
  both.backward = staging_.module().add_function(callee->name + "_bwd", joined(in, out), out);
  both.forward->loc = both.backward->loc = callee->loc;
  both.on_tape = true;  // a call of itself cannot know
  const Meanwhile nowhere(region_, static_cast<Region*>(nullptr));
  stage_halves(both, *callee, active);
  return both;
}

void TwoPass::stage_halves(Halves& both, ir::Function& callee, const Active& active) {
  const Location loc = callee.loc;
  Region* body = nullptr;
  Names names;
  Datums results;
  {
    const Staging::Scope scope(staging_, both.forward);
    results = inside(body, [&] {
      const Datums arguments = parameters_of(*both.forward, callee, active, 0,
                                             [this](const Datum& p, const Datums&) { return variable(p); });
      names = names_of(arguments);
      return Replay(staging_, this).run(callee, arguments);
    });
    staging_.builder(loc).yield(staging_.use(primals(results), loc));
  }
  const Staging::Scope scope(staging_, both.backward);
  body->backward = staging_.block();
  Datums given;
  for (ir::Value* p : both.backward->body->params) given.push_back(Datum::node(p));
  const Datums floats = floating(results);
  const Datums after = alone(names, std::span(given).subspan(floats.size()), names, loc, [&] {
    for (std::size_t i = 0; i < floats.size(); ++i)
      if (const Variable* v = variable_of(floats[i])) add(v->name, given[i], loc);
    body->play();
  });
  staging_.builder(loc).yield(staging_.use(after, loc));
  both.on_tape = body->on_tape;
}

Datums TwoPass::follow(const std::shared_ptr<const Rule>& rule, const Datums& arguments, const Location& loc) {
  const Datums in = primals(arguments);
  const auto [values, residuals] = rule->forward(in);
  const Datums out = results_of(values);
  record(arguments, [this, rule, arguments, in, out, residuals, loc] {
    if (!rule->ordered && !any_wanted(out)) return;
    const Datums cotangents = take(names_of(out), loc);
    const Datums given = rule->backward(at(residuals), cotangents);
    require_derivatives(*rule, at(in), given, "argument", loc);
    const Datums floats = floating(arguments);
    for (std::size_t i = 0; i < floats.size(); ++i)
      if (const Variable* x = variable_of(floats[i])) add(x->name, given[i], loc);
  });
  return out;
}

// ---- tapes

void TwoPass::mark_tape() {
  for (Region* r = region_; r; r = r->parent) r->on_tape = true;
}

// The reverse of a push is a pop of the adjoint tape, and the reverse of a pop a push.
void TwoPass::push(std::int64_t tape, const Datum& value, const Location& loc) {
  onto(tape, primal(value), loc);
  mark_tape();
  if (!value.type().is_differentiable()) return;
  record(std::span(&value, 1), [this, value, tape, loc] {
    const Datum d = from(beside(tape), value.type(), loc);
    if (const Variable* v = variable_of(value)) add(v->name, d, loc);
  });
}

Datum TwoPass::pop(std::int64_t tape, const ir::Type& type, const Location& loc) {
  const Datum popped = from(tape, type, loc);
  mark_tape();
  if (!type.is_differentiable()) return popped;
  const Datum v = variable(popped);
  record({}, [this, x = variable_of(v)->name, tape, loc] {
    onto(beside(tape), adjoint_or_zero(x, loc), loc);
    take(x);
  });
  return v;
}

}  // namespace lantern::core::ad
