// The substitution of one operation, in entries that are values of the code.
#include "lantern/compiler/ad/modes/staged_hessian.hpp"

#include <algorithm>

namespace lantern::core::ad {

namespace {

Datum times(const Datum& a, const Datum& b, const Location& loc) {
  return perform_broadcast({Opcode::mul_, 0, loc}, a, b);
}

}  // namespace

/// The product of derivatives by x and by y, in the shape of h[x, y].
Datum StagedHessian::product(Name x, Name y, const Datum& a, const Datum& b, const Location& loc) const {
  if (is_halved(x, y)) return perform({Opcode::outer_, 0, loc}, {a, b});
  return times(a, b, loc);
}
Datum StagedHessian::kept(Name x, Name y, const Datum& d, const Location& loc) const {
  if (!is_halved(x, y)) return d;
  return times(Datum::number(0.5, ir::Type(d.type().element())), d, loc);
}

Datums StagedHessian::value_gradient_hessian(const Unit& unit, const Location& loc) {
  begin();
  Datums tagged = unit.arguments;
  x_ = std::exchange(tagged[0], variable(tagged[0]));
  vector_ = variable_of(tagged[0])->name;
  Datums out{both_parts(unit.primal, tagged, loc), {}, {}};
  out[1] = adjoint_or_zero(vector_, loc);
  const Datum half = adjoint_or_zero(entry(vector_, vector_), loc);
  out[2] = perform({Opcode::add_, 0, loc}, {half, perform({Opcode::transpose_, 0, loc}, {half})});
  return out;
}

TwoPass::Update StagedHessian::update(Step s, Name r) {
  const Operation& op = s.op;
  if (op.code == Opcode::get_ && s.operands.size() == 2)
    return [this, i = s.primals[1], r, loc = op.loc] { undo_get(at(i), r, loc); };
  if (!ir::info(op.code).elementwise || !s.y.type().is_scalar())
    raise_at(op.loc,
             "hessian<mode::reverse>: expected operations on scalars and elements of the argument, got " +
                 std::string(ir::info(op.code).name) + "; use hessian(f)");
  std::vector<std::optional<Name>> by(s.operands.size());
  for (std::size_t i = 0; i < by.size(); ++i)
    if (const Variable* x = receiver(s, i)) by[i] = x->name;
  return [this, p = partials_of(op, s.primals, s.y, by), r] { substitute(*this, p, r); };
}

Datums StagedHessian::follow(const std::shared_ptr<const Rule>& rule, const Datums& arguments,
                           const Location& loc) {
  std::vector<std::size_t> places;
  Names names;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const Variable* x = variable_of(arguments[i]);
    if (!x) continue;
    places.push_back(i);
    names.push_back(x->name);
  }
  const RulePartials all = partials_of(rule, primals(arguments), places, loc);
  const Datums out = results_of(all.values);
  std::vector<std::pair<Partials, Name>> steps;
  for (const Datum& r : out)
    if (const Variable* y = variable_of(r)) {
      const std::size_t j = steps.size();
      steps.emplace_back(Partials{names, all.first[j], all.second[j], loc}, y->name);
    }
  record(arguments, [this, steps] {
    for (std::size_t j = steps.size(); j-- > 0;) substitute(*this, steps[j].first, steps[j].second);
  });
  return out;
}

// A function that calls itself has as many live variables as calls: it is one operation, whose derivatives
// are computed by forward over reverse mode.
Datums StagedHessian::call(ir::Function* callee, const Datums& arguments, std::int64_t, const Location& loc) {
  if (works_on_tape(*callee)) push(0, {}, loc);
  const auto run = [this, callee, loc](const Datums& in) { return staging_.call(callee, in, loc); };
  return follow(rule_of({callee->name, run}, "a call of '" + callee->name + "'", active_of(arguments), loc), arguments,
                loc);
}

void StagedHessian::undo_get(const Datum& i, Name r, const Location& loc) {
  const Datum w = take(r);
  const HessianRow u = take_row(r);
  const auto accumulate = [&](Name name, Opcode code, const Datums& what) {
    store_[name] = perform({code, 0, loc}, joined({adjoint_or_zero(name, loc)}, what));
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
  substitute(*this, {{v->name}, {Datum::number(1.0, to.type())}, {{Datum()}}, loc}, from);
}

HessianRow StagedHessian::take_row(Name r) {
  HessianRow row;
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

Name StagedHessian::entry(Name x, Name y) {
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

TwoPass::Names StagedHessian::passed(const Names& outs, const Names& touched) {
  const Names changed = TwoPass::passed(outs, touched);
  Names coupled = changed, all = changed;
  for (const auto& [own, names] : pairs_) {
    if (!store_.contains(own)) continue;
    for (const auto& [one, other] : {names, Pair{names.second, names.first}})
      if (has(changed, one)) include(coupled, other);
  }
  for (const Name x : changed)
    for (const Name v : coupled) include(all, entry(x, v));
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
