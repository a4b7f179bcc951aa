// Constructs of the staged modes without continuations: each is mirrored.
#include <algorithm>

#include "lantern/compiler/ad/modes/two_pass.hpp"
#include "lantern/compiler/passes/unwind.hpp"
#include "lantern/compiler/staging/control_flow.hpp"
#include "lantern/ir/error.hpp"

namespace lantern::core::ad {

namespace {

template <class T>
std::vector<T> joined(std::vector<T> a, const std::vector<T>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

Datums range_of(const Datums& data, std::size_t from, std::size_t to) {
  return {data.begin() + static_cast<long>(from), data.begin() + static_cast<long>(to)};
}

}  // namespace

TwoPass::Region* TwoPass::open(Region* parent) {
  Region& r = regions_.emplace_back();
  r.parent = parent;
  r.forward = staging_.block();
  homes_[r.forward] = &r;
  return &r;
}

Datums TwoPass::inside(Region*& region, const std::function<Datums()>& body) {
  region = open(region_);
  Region* const saved = std::exchange(region_, region);
  Datums results = body();
  for (const Datum& d : results) touch(d);  // the backward block adds the results' cotangents
  region_ = saved;
  return results;
}

Datums TwoPass::results_of(const Datums& values, const std::function<bool(std::size_t)>& active) {
  Datums out;
  for (std::size_t i = 0; i < values.size(); ++i)
    out.push_back(values[i].type().is_differentiable() && active(i) ? variable(values[i]) : values[i]);
  return out;
}

bool TwoPass::any_wanted(const Datums& results) const {
  return std::ranges::any_of(names_of(results), [this](Name x) { return wanted(x); });
}

std::vector<TwoPass::Name> TwoPass::names_of(const Datums& data, std::vector<Name> touched) const {
  for (const Datum& d : data)
    if (const Variable* v = variable_of(d); v && std::ranges::find(touched, v->name) == touched.end())
      touched.push_back(v->name);
  return touched;
}

Datums TwoPass::mirrored(Region& r, const std::vector<Name>& names, const Datums& in,
                       const std::vector<Name>& left, const Datums& outs, const Datums& exits,
                       const Datums& entries, const Location& loc) {
  return linear(
      in,
      [&](const Datums& adjoints_in) {
        const Store saved = std::exchange(store_, {});
        r.backward = staging_.block();
        r.popped.clear();
        for (std::size_t i = 0; i < names.size(); ++i) store_[names[i]] = adjoints_in[i];
        for (std::size_t i = 0; i < outs.size(); ++i) move(variable_of(outs[i])->name, exits[i], loc);
        for (std::size_t i = r.tape.size(); i-- > 0;) r.tape[i]();
        for (std::size_t i = 0; i < entries.size(); ++i) move(variable_of(entries[i])->name, outs[i], loc);
        const Datums out = adjoints(left, loc);
        store_ = saved;
        return out;
      },
      loc);
}

Datums TwoPass::branch(const Datum& condition, const Thunk& then, const Thunk& otherwise,
                     const std::vector<ir::Type>& results, const Location& loc) {
  Region* sides[2];
  Datums outs[2];
  const auto run = [&](std::size_t i, const Thunk& side) {
    return [&, i] { return primals(outs[i] = inside(sides[i], side)); };
  };
  const Datums values = detail::branch(condition, run(0, then), run(1, otherwise), loc);
  const auto active = [&](std::size_t i) { return is_active(outs[0][i]) || is_active(outs[1][i]); };
  const Datums out = results_of(values, active);
  Datums variables, exits[2];
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (!variable_of(out[i])) continue;
    variables.push_back(out[i]);
    for (std::size_t s = 0; s < 2; ++s) exits[s].push_back(outs[s][i]);
  }

  record({},
         [this, condition, loc, variables, first = sides[0], second = sides[1], a = exits[0], b = exits[1]] {
           if (!first->on_tape && !second->on_tape && !any_wanted(variables)) return;
           std::vector<Name> touched = first->touched;
           for (const Name x : second->touched)
             if (std::ranges::find(touched, x) == touched.end()) touched.push_back(x);
           const std::vector<Name> results_names = names_of(variables);
           const std::vector<Name> names = passed(results_names, touched);
           std::vector<Name> left;
           for (const Name x : names)
             if (std::ranges::none_of(results_names, [&](Name r) { return belongs(x, r); }))
               left.push_back(x);
           const Datums before = adjoints(names, loc);
           const Datums after = detail::branch(
               at(condition), [&] { return mirrored(*first, names, before, left, variables, a, {}, loc); },
               [&] { return mirrored(*second, names, before, left, variables, b, {}, loc); }, loc);
           for (const Name x : names) take(x);
           for (std::size_t i = 0; i < left.size(); ++i) store_[left[i]] = after[i];
         });
  return out;
}

// The backward loop makes as many trips; the cotangents of the state go from trip to trip.
Datums TwoPass::loop(const Datums& initial, const std::vector<ir::Type>& state, const Condition& condition,
                   const Body& body, std::int64_t /*attribute*/, const Location& loc) {
  const auto plus_one = [loc](const Datum& n, std::int64_t by) {
    return perform({Opcode::add_, 0, loc}, {n, Datum::integer(by, ir::I64)});
  };
  Region* trip = nullptr;
  Datums params, outs;
  const Datums counted = detail::loop(
      joined({Datum::integer(0, ir::I64)}, primals(initial)),
      [&](const Datums& s) { return condition(range_of(s, 1, s.size())); },
      [&](const Datums& s) {
        outs = inside(trip, [&] {
          params = results_of(range_of(s, 1, s.size()), [](std::size_t) { return true; });
          return body(params);
        });
        return joined({plus_one(s[0], 1)}, primals(outs));
      },
      loc);
  const Datums out = results_of(range_of(counted, 1, counted.size()), [](std::size_t) { return true; });
  Datums variables, exits, entries, starts;
  for (std::size_t i = 0; i < state.size(); ++i) {
    if (!state[i].is_differentiable()) continue;
    variables.push_back(out[i]);
    exits.push_back(outs[i]);
    entries.push_back(params[i]);
    starts.push_back(initial[i]);
  }

  record(initial, [this, trip, variables, exits, entries, starts, loc, plus_one, trips = counted[0]] {
    if (!trip->on_tape && !any_wanted(variables)) return;
    const std::vector<Name> names = passed(names_of(variables), trip->touched);
    const Datums after = detail::loop(
        joined({at(trips)}, adjoints(names, loc)),
        [&](const Datums& s) {
          return perform({Opcode::lt_, 0, loc}, {Datum::integer(0, ir::I64), s[0]});
        },
        [&](const Datums& s) {
          return joined({plus_one(s[0], -1)}, mirrored(*trip, names, range_of(s, 1, s.size()), names,
                                                       variables, exits, entries, loc));
        },
        loc);
    for (std::size_t i = 0; i < names.size(); ++i) store_[names[i]] = after[1 + i];
    for (std::size_t i = 0; i < variables.size(); ++i) move(variable_of(variables[i])->name, starts[i], loc);
  });
  return out;
}

// A function becomes two: forward, and from the results' cotangents and the arguments' adjoints so far to the
// arguments' adjoints.
Datums TwoPass::call(ir::Function* callee, const Datums& arguments, std::int64_t attribute, const Location& loc) {
  Active active;
  for (const Datum& d : arguments) active.push_back(is_active(d));
  const Halves both = halves(callee, active);
  if (both.on_tape) mark_tape();
  const bool twice = runs_again(attribute);
  const Datums in = primals(arguments);
  const Datums values = staging_.call(twice ? callee : both.forward, in, loc);
  const Datums out = results_of(values, [](std::size_t) { return true; });
  record(arguments, [this, out, arguments, in, both, twice, loc] {
    if (!both.on_tape && !any_wanted(out)) return;
    Datums operands = adjoints(names_of(out), loc);
    for (const Name x : names_of(out)) take(x);
    if (twice) {
      Datums here;
      for (const Datum& d : in) here.push_back(at(d));
      staging_.call(both.forward, here, loc);
    }
    std::vector<Name> names;
    std::vector<bool> first;
    for (const Datum& d : arguments) {
      const Variable* v = variable_of(d);
      if (!v) continue;
      first.push_back(std::ranges::find(names, v->name) == names.end());
      names.push_back(v->name);
      if (first.back())
        operands.push_back(adjoint_or_zero(v->name, loc));
      else
        operands.push_back(d.type().is_scalar() ? Datum::zero(d.type()) : zeros_like(at(v->primal), loc));
    }
    const Datums after = staging_.call(both.backward, operands, loc);
    for (std::size_t i = 0; i < names.size(); ++i)
      if (first[i])
        store_[names[i]] = after[i];
      else
        add(names[i], after[i], loc);
  });
  return out;
}

Datums TwoPass::follow(const std::shared_ptr<const Rule>& rule, const Datums& arguments, const Location& loc) {
  const Datums in = primals(arguments);
  const auto [values, residuals] = rule->forward(in);
  const Datums out = results_of(values, [](std::size_t) { return true; });
  record(arguments, [this, rule, arguments, in, out, residuals, loc] {
    if (!any_wanted(out)) return;
    const std::vector<Name> names = names_of(out);
    const Datums cotangents = adjoints(names, loc);
    for (const Name x : names) take(x);
    const auto here = [this](const Datums& data) {
      Datums there;
      for (const Datum& d : data) there.push_back(at(d));
      return there;
    };
    const Datums given = rule->backward(here(residuals), cotangents);
    require_derivatives(*rule, here(in), given, "argument", loc);
    std::size_t next = 0;
    for (const Datum& d : arguments) {
      if (!d.type().is_differentiable()) continue;
      if (const Variable* x = variable_of(d)) add(x->name, given[next], loc);
      ++next;
    }
  });
  return out;
}

TwoPass::Halves& TwoPass::halves(ir::Function* callee, const Active& active) {
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
  const Halves result = both;
  const Location loc = callee->loc;

  Region* const outer = std::exchange(region_, nullptr);
  const Store saved = std::exchange(store_, {});
  Region* body = nullptr;
  Datums arguments, results;
  std::vector<Name> names;
  {
    const Staging::Scope scope(staging_, result.forward);
    results = inside(body, [&] {
      for (std::size_t i = 0; i < active.size(); ++i) {
        ir::Value* p = result.forward->body->params[i];
        p->name = callee->body->params[i]->name;
        arguments.push_back(active[i] ? variable(Datum::node(p)) : Datum::node(p));
        if (active[i]) names.push_back(variable_of(arguments.back())->name);
      }
      return Replay(staging_, this).run(*callee, arguments);
    });
    staging_.builder(loc).yield(staging_.use(primals(results), loc));
  }
  {
    const Staging::Scope scope(staging_, result.backward);
    body->backward = staging_.block();
    const std::vector<ir::Value*>& given = result.backward->body->params;
    for (std::size_t i = 0; i < names.size(); ++i) store_[names[i]] = Datum::node(given[in.size() + i]);
    std::size_t next = 0;
    for (const Datum& r : results) {
      if (!r.type().is_differentiable()) continue;
      const Datum g = Datum::node(given[next++]);
      if (const Variable* v = variable_of(r)) add(v->name, g, loc);
    }
    for (std::size_t i = body->tape.size(); i-- > 0;) body->tape[i]();
    const Datums after = adjoints(names, loc);
    staging_.builder(loc).yield(staging_.use(after, loc));
  }
  region_ = outer;
  store_ = saved;
  Halves& made = halves_[key];
  made.on_tape = body->on_tape;
  return made;
}

void TwoPass::mark_tape() {
  for (Region* r = region_; r; r = r->parent) r->on_tape = true;
}

std::int64_t TwoPass::adjoint_tape(std::int64_t tape) {
  const auto [it, fresh] = tapes_.try_emplace(tape, 0);
  if (fresh) it->second = staging_.module().new_tape();
  return it->second;
}

// The reverse of a push is a pop of the adjoint tape, and the reverse of a pop a push.
void TwoPass::push(std::int64_t tape, const Datum& value, const Location& loc) {
  staging_.builder(loc).op(Opcode::push_, {staging_.use(primal(value), loc)})->integer = tape;
  mark_tape();
  if (!value.type().is_differentiable()) return;
  record(std::span(&value, 1), [this, value, tape, loc] {
    ir::Op* d = staging_.builder(loc).op(Opcode::pop_, {}, {value.type()});
    d->integer = adjoint_tape(tape);
    if (const Variable* v = variable_of(value)) add(v->name, Datum::node(d->result()), loc);
  });
}

Datum TwoPass::pop(std::int64_t tape, const ir::Type& type, const Location& loc) {
  ir::Op* op = staging_.builder(loc).op(Opcode::pop_, {}, {type});
  op->integer = tape;
  mark_tape();
  const Datum popped = Datum::node(op->result());
  if (!type.is_differentiable()) return popped;
  const Datum v = variable(popped);
  record({}, [this, v, tape, loc] {
    const Name x = variable_of(v)->name;
    staging_.builder(loc).op(Opcode::push_, {staging_.use(adjoint_or_zero(x, loc), loc)})->integer =
        adjoint_tape(tape);
    take(x);
  });
  return v;
}

}  // namespace lantern::core::ad
