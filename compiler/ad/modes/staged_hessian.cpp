// The substitution of one operation, in entries that are values of the code.
#include "lantern/compiler/ad/modes/staged_hessian.hpp"

#include <algorithm>

#include "lantern/compiler/ad/modes/second_partial.hpp"

namespace lantern::core::ad {

namespace {

Datum times(const Datum& a, const Datum& b, const Location& loc) {
  return perform_broadcast({Opcode::mul_, 0, loc}, a, b);
}

}  // namespace

/// The product of derivatives by x and by y, in the shape of h[x, y].
Datum StagedHessian::product(Name x, Name y, const Datum& a, const Datum& b, const Location& loc) const {
  if (x == vector_ && y == vector_) return perform({Opcode::outer_, 0, loc}, {a, b});
  return times(a, b, loc);
}
/// The half of h[x, x] that is kept: see value_gradient_hessian.
Datum StagedHessian::kept(Name x, Name y, const Datum& d, const Location& loc) const {
  if (x != vector_ || y != vector_) return d;
  return times(Datum::number(0.5, ir::Type(d.type().element())), d, loc);
}

Datums StagedHessian::value_gradient_hessian(ir::Function& program, const Datums& arguments, std::size_t vector,
                                           const Location& loc) {
  begin();
  x_ = arguments[vector];
  Datums tagged = arguments;
  tagged[vector] = variable(x_);
  vector_ = variable_of(tagged[vector])->name;
  Datums out{both_parts(program, tagged, loc), {}, {}};
  out[1] = adjoint_or_zero(vector_, loc);
  // Of h[x, x] half is kept: the other half is its transpose.
  const Datum half = adjoint_or_zero(entry(vector_, vector_), loc);
  out[2] = perform({Opcode::add_, 0, loc}, {half, perform({Opcode::transpose_, 0, loc}, {half})});
  return out;
}

Datum StagedHessian::apply(const Operation& op, std::span<const Datum> operands) {
  const Step s = step(op, operands);
  if (!differentiable(s)) return s.y;
  const bool element = op.code == Opcode::get_ && operands.size() == 2;
  if (!element && (!ir::info(op.code).elementwise || !s.y.type().is_scalar()))
    raise_at(op.loc,
             "hessian<mode::reverse>: expected operations on scalars and elements of the argument, got " +
                 std::string(ir::info(op.code).name) + "; use hessian(f)");
  const Datum y = variable(s.y);
  const Name r = variable_of(y)->name;
  if (element) {
    record(operands, [this, i = s.primals[1], r, loc = op.loc] { undo_get(at(i), r, loc); });
    return y;
  }
  Partials p{{}, {}, {}, op.loc};
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const Variable* x = variable_of(operands[i]);
    if (!x || !carries_derivative(op, i, operands.size())) continue;
    places.push_back(i);
    p.by.push_back(x->name);
    p.first.push_back(partial_derivative(*ir::derivative(op.code, i, operands.size()), s.rule({})));
  }
  for (const std::size_t i : places) {
    p.second.emplace_back();
    for (std::size_t j = 0; j < places.size(); ++j)
      p.second.back().push_back(second_partial(op, s.primals, s.y, i, places[j], p.first[j]));
  }
  record(operands, [this, p = std::move(p), r] { undo(p, r); });
  return y;
}

Datums StagedHessian::follow(const std::shared_ptr<const Rule>& rule, const Datums& arguments,
                           const Location& loc) {
  std::vector<std::size_t> places;
  std::vector<Name> names;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const Variable* x = variable_of(arguments[i]);
    if (!x) continue;
    places.push_back(i);
    names.push_back(x->name);
  }
  const RulePartials all = partials_of(rule, primals(arguments), places, loc);
  const Datums out = results_of(all.values, [](std::size_t) { return true; });
  std::vector<std::pair<Partials, Name>> steps;
  for (const Datum& r : out)
    if (const Variable* y = variable_of(r)) {
      const std::size_t j = steps.size();
      steps.emplace_back(Partials{names, all.first[j], all.second[j], loc}, y->name);
    }
  record(arguments, [this, steps] {
    for (std::size_t j = steps.size(); j-- > 0;) undo(steps[j].first, steps[j].second);
  });
  return out;
}

// A function that calls itself has as many live variables as calls: it is one operation, whose derivatives
// are computed by forward over reverse mode.
Datums StagedHessian::call(ir::Function* callee, const Datums& arguments, std::int64_t, const Location& loc) {
  if (works_on_tape(*callee)) push(0, {}, loc);
  Active active;
  for (const Datum& d : arguments) active.push_back(is_active(d));
  const auto rule = std::make_shared<Rule>();
  rule->name = callee->name;
  rule->what = "a call of '" + callee->name + "'";
  rule->primal = [this, callee, loc](const Datums& in) { return staging_.call(callee, in, loc); };
  rule->forward = [run = rule->primal](const Datums& in) -> Rule::Split { return {run(in), in}; };
  rule->backward = [run = rule->primal, name = callee->name, active, loc](const Datums& in,
                                                                          const Datums& cotangents) {
    return vjp_of_all({name, run}, in, active, cotangents, loc);
  };
  return follow(rule, arguments, loc);
}

// With w = a[r] and u = h[r], taken out:
//   a[x]    += d op/dx w
//   h[x, v] += d op/dx u[v]                                      for v other than r, twice where v is x
//   h[x, y] += d op/dx d op/dy u[r] + d2 op/dx dy w
void StagedHessian::undo(const Partials& p, Name r) {
  const Datum w = take(r);
  const Row u = take_row(r);
  if (w.empty() && u.others.empty() && u.diagonal.empty()) return;
  const auto here = [this](const Datum& d) { return d.empty() ? d : at(d); };
  for (std::size_t i = 0; i < p.by.size(); ++i) {
    const Name x = p.by[i];
    const Datum first = here(p.first[i]);
    if (!w.empty()) add(x, times(first, w, p.loc), p.loc);
    for (const auto& [v, uv] : u.others) {
      const Datum term = product(x, v, first, uv, p.loc);
      add_entry(x, v, term, p.loc);
      if (x == v && x != vector_) add_entry(x, v, term, p.loc);
    }
    for (std::size_t j = 0; j < p.by.size(); ++j) {
      const Name y = p.by[j];
      if (x != y && j < i) continue;  // one entry for both orders
      if (!u.diagonal.empty())
        add_entry(x, y,
                  kept(x, y, times(product(x, y, first, here(p.first[j]), p.loc), u.diagonal, p.loc), p.loc),
                  p.loc);
      if (const Datum second = here(p.second[i][j]); !w.empty() && !second.empty())
        add_entry(x, y, kept(x, y, times(second, w, p.loc), p.loc), p.loc);
    }
  }
}

void StagedHessian::undo_get(const Datum& i, Name r, const Location& loc) {
  const Datum w = take(r);
  const Row u = take_row(r);
  const auto accumulate = [&](Name name, Opcode code, const Datums& what) {
    Datums operands{adjoint_or_zero(name, loc)};
    operands.insert(operands.end(), what.begin(), what.end());
    store_[name] = perform({code, 0, loc}, operands);
  };
  if (!w.empty()) accumulate(vector_, Opcode::add_at_, {i, w});
  for (const auto& [v, uv] : u.others) {
    if (v == vector_)
      accumulate(entry(v, v), Opcode::add_take_, {i, uv});
    else
      accumulate(entry(v, vector_), Opcode::add_at_, {i, uv});
  }
  if (!u.diagonal.empty())
    accumulate(entry(vector_, vector_), Opcode::add_at_,
               {i, i, times(Datum::number(0.5, u.diagonal.type()), u.diagonal, loc)});
}

void StagedHessian::move(Name from, const Datum& to, const Location& loc) {
  const Variable* v = variable_of(to);
  if (!v) {
    take(from);
    take_row(from);
    return;
  }
  undo({{v->name}, {Datum::number(1.0, to.type())}, {{Datum()}}, loc}, from);
}

StagedHessian::Row StagedHessian::take_row(Name r) {
  Row row;
  for (const auto& [names, own] : entries_) {
    if (names.first != r && names.second != r) continue;
    const Datum value = take(own);
    if (value.empty()) continue;
    if (names.first == names.second)
      row.diagonal = value;
    else
      row.others.emplace_back(names.first == r ? names.second : names.first, value);
  }
  return row;
}

TwoPass::Name StagedHessian::entry(Name x, Name y) {
  const Pair names = std::minmax(x, y);
  const auto found = entries_.find(names);
  if (found != entries_.end()) return found->second;
  const Name own = fresh_name();
  pairs_[own] = names;
  return entries_[names] = own;
}

void StagedHessian::add_entry(Name x, Name y, const Datum& v, const Location& loc) {
  add(entry(x, y), v, loc);
}

// ---- what passes through constructs ----

std::vector<TwoPass::Name> StagedHessian::passed(const std::vector<Name>& outs,
                                                 const std::vector<Name>& touched) {
  std::vector<Name> changed = TwoPass::passed(outs, touched), coupled = changed;
  for (const auto& [own, names] : pairs_) {
    if (!store_.contains(own)) continue;
    for (const auto& [one, other] : {names, Pair{names.second, names.first}})
      if (std::ranges::find(changed, one) != changed.end() &&
          std::ranges::find(coupled, other) == coupled.end())
        coupled.push_back(other);
  }
  std::vector<Name> all = changed;
  for (const Name x : changed)
    for (const Name v : coupled)
      if (const Name own = entry(x, v); std::ranges::find(all, own) == all.end()) all.push_back(own);
  return all;
}

bool StagedHessian::belongs(Name name, Name out) const {
  const auto found = pairs_.find(name);
  return name == out ||
         (found != pairs_.end() && (found->second.first == out || found->second.second == out));
}

bool StagedHessian::wanted(Name x) const {
  return std::ranges::any_of(store_, [&](const auto& entry) { return belongs(entry.first, x); });
}

Datum StagedHessian::zero_of(Name name, const Location& loc) {
  const auto found = pairs_.find(name);
  if (found == pairs_.end()) return TwoPass::zero_of(name, loc);
  const auto [x, y] = found->second;
  if (x != vector_ && y != vector_) return Datum::zero(ir::Type(x_.type().element()));
  if (x != y) return zeros_like(x_, loc);
  const Datum n = perform({Opcode::dim_, 0, loc}, {x_});
  return perform({Opcode::fill_, 0, loc}, {Datum::zero(ir::Type(x_.type().element())), n, n});
}

// ---- what it does not take ----

void StagedHessian::push(std::int64_t, const Datum&, const Location& loc) {
  raise_at(loc,
           "hessian<mode::reverse>: expected a program without derivatives inside, got one; use hessian(f)");
}
Datum StagedHessian::pop(std::int64_t tape, const ir::Type&, const Location& loc) {
  push(tape, {}, loc);
  return {};
}

}  // namespace lantern::core::ad
