// Operations of the staged modes without continuations: recorded forward, staged backward.
#include "lantern/compiler/ad/modes/two_pass.hpp"

#include <algorithm>

#include "lantern/compiler/ad/double_step.hpp"

namespace lantern::core::ad {

namespace {

bool mentions(const ir::Formula& f, char variable) {
  if (f.kind == ir::Formula::Kind::variable) return f.variable == variable;
  return std::ranges::any_of(f.arguments, [&](const ir::Formula& a) { return mentions(a, variable); });
}

bool mentions_index(const ir::Formula& f) {
  if (f.kind == ir::Formula::Kind::index) return true;
  return std::ranges::any_of(f.arguments, mentions_index);
}

/// A cell in the store: the adjoint of one variable.
class StoreCell : public Cell {
 public:
  StoreCell(Datum& value, std::function<Datum()> zero) : value_(value), zero_(std::move(zero)) {}
  void add(const Datum& v, const Location& loc) override { value_ = sum(value_, v, loc); }
  void accumulate(const Operation& op, const Datums& arguments) override {
    value_ = perform(op, joined({get(op.loc)}, arguments));
  }
  Datum get(const Location&) override { return value_.empty() ? zero_() : value_; }
  bool touched() const override { return !value_.empty(); }

 private:
  Datum& value_;
  std::function<Datum()> zero_;
};

}  // namespace

Datums TwoPass::gradient(const Unit& unit, bool value, const Location& loc) {
  begin();
  const Datums tagged =
      with_active(unit.arguments, unit.active, [this](const Datum& x) { return variable(x); });
  const Datum y = both_parts(unit.primal, tagged, loc);
  const Datums inputs = adjoints(names_of(tagged), loc);
  return value ? joined({y}, inputs) : inputs;
}

void TwoPass::begin() {
  region_ = open(nullptr);
  region_->backward = region_->forward;  // both parts in one block: they see the same values
}

Datum TwoPass::both_parts(ir::Function& program, const Datums& arguments, const Location& loc) {
  const Datums results = Replay(staging_, this).run(program, arguments);
  if (const Variable* z = variable_of(results[0])) add(z->name, Datum::number(1.0, results[0].type()), loc);
  region_->play();
  return primal(results[0]);
}

// ---- variables

Datum TwoPass::variable(const Datum& primal) {
  known_.push_back({region_, primal});
  return make_number<Variable>(primal, known_.size() - 1);
}

bool TwoPass::has(const Names& names, Name x) { return std::ranges::find(names, x) != names.end(); }
void TwoPass::include(Names& names, Name x) {
  if (!has(names, x)) names.push_back(x);
}

TwoPass::Names TwoPass::names_of(const Datums& data) const {
  Names names;
  for (const Datum& d : data)
    if (const Variable* v = variable_of(d)) include(names, v->name);
  return names;
}

// ---- forward

Datum TwoPass::apply(const Operation& op, std::span<const Datum> operands) {
  Step s{op, Datums(operands.begin(), operands.end()), primals(operands), {}};
  s.y = perform(op, s.primals);
  bool any = false;
  for (std::size_t i = 0; i < operands.size(); ++i) any |= receiver(s, i) != nullptr;
  if (!any || !s.y.type().is_differentiable()) return s.y;
  Datum r = variable(s.y);
  record(operands, update(std::move(s), variable_of(r)->name));
  return r;
}

const TwoPass::Variable* TwoPass::receiver(const Step& s, std::size_t i) const {
  return carries_derivative(s.op, i, s.operands.size()) ? variable_of(s.operands[i]) : nullptr;
}

Datums TwoPass::results_of(const Datums& values, const std::function<bool(std::size_t)>& active) {
  Datums out;
  for (std::size_t i = 0; i < values.size(); ++i)
    out.push_back(values[i].type().is_differentiable() && (!active || active(i)) ? variable(values[i]) : values[i]);
  return out;
}

void TwoPass::touch(const Datum& d) {
  const Variable* v = variable_of(d);
  if (!v) return;
  for (Region* r = region_; r && r != known_[v->name].home; r = r->parent) include(r->touched, v->name);
}

void TwoPass::record(std::span<const Datum> uses, Update update) {
  for (const Datum& d : uses) touch(d);
  region_->tape.push_back(std::move(update));
}

void TwoPass::Region::play() const {
  for (std::size_t i = tape.size(); i-- > 0;) tape[i]();
}

// ---- backward

void TwoPass::add(Name x, const Datum& g, const Location& loc) {
  Datum& entry = store_[x];
  entry = sum(entry, g, loc);
}

Datum TwoPass::take(Name x) {
  const auto entry = store_.extract(x);
  return entry.empty() ? Datum() : entry.mapped();
}

Datums TwoPass::take(const Names& names, const Location& loc) {
  Datums out = adjoints(names, loc);
  for (const Name x : names) take(x);
  return out;
}

Datum TwoPass::adjoint_or_zero(Name x, const Location& loc) {
  const auto entry = store_.find(x);
  if (entry != store_.end()) return entry->second;
  return zero_of(x, loc);
}

Datum TwoPass::zero_of(Name x, const Location& loc) {
  const Datum& like = known_[x].primal;
  return like.type().is_scalar() ? Datum::zero(like.type()) : zeros_like(at(like), loc);
}

void TwoPass::move(Name from, const Datum& to, const Location& loc) {
  const Datum g = take(from);
  const Variable* v = variable_of(to);
  if (v && !g.empty()) add(v->name, g, loc);
}

TwoPass::Names TwoPass::passed(const Names& outs, const Names& touched) { return joined(outs, touched); }

Datums TwoPass::adjoints(const Names& names, const Location& loc) {
  Datums out;
  for (const Name x : names) out.push_back(adjoint_or_zero(x, loc));
  return out;
}

Datums TwoPass::alone(const Names& names, std::span<const Datum> adjoints_in, const Names& left, const Location& loc,
                      const std::function<void()>& run) {
  Store outer = std::exchange(store_, {});
  for (std::size_t i = 0; i < names.size(); ++i) store_[names[i]] = adjoints_in[i];
  run();
  Datums out = adjoints(left, loc);
  store_ = std::move(outer);
  return out;
}

TwoPass::Step TwoPass::rule_at(const Step& s, std::size_t i) {
  Step here = s;
  if (ir::info(s.op.code).in_notation()) {
    for (const std::size_t j : read_by_adjoint(s.op, s.primals, i)) here.primals[j] = at(s.primals[j]);
    return here;
  }
  const ir::Formula& f = *ir::derivative(s.op.code, i, s.operands.size());
  const bool indices = mentions_index(f);
  for (std::size_t j = 0; j < here.primals.size(); ++j)
    if ((j < 3 && mentions(f, "xyz"[j])) || (indices && j > 0)) here.primals[j] = at(s.primals[j]);
  if (mentions(f, 'r')) here.y = at(s.y);
  return here;
}

Datum TwoPass::received(const Datum& before, const Step& s, std::size_t i, const Datum& g) {
  const Step here = rule_at(s, i);
  Datum adjoint = before;
  StoreCell cell(adjoint, [&] { return zeros_like(at(s.primals[i]), s.op.loc); });
  propagate(i, here.rule(g), cell);
  return adjoint;
}

void TwoPass::propagate_to(const Step& s, std::size_t i, const Datum& g) {
  const Variable* x = receiver(s, i);
  if (!x) return;
  Datum& adjoint = store_[x->name];
  adjoint = received(std::exchange(adjoint, {}), s, i, g);
}

void TwoPass::propagate_all(const Step& s, const Datum& g) {
  backward_order(s.op.code, s.operands.size(), [&](std::size_t i) { propagate_to(s, i, g); });
}

Datums TwoPass::linear(const Datums& in, const std::function<Datums(const Datums&)>& body, const Location&) {
  return body(in);
}

// ---- values of the forward part

TwoPass::Region* TwoPass::home_of(const ir::Value* v) const {
  const auto found = homes_.find(v->block);
  return found == homes_.end() ? nullptr : found->second;
}

Datum TwoPass::at(const Datum& forward) { return forward.is_node() ? at(forward.node()) : forward; }

Datums TwoPass::at(const Datums& forward) {
  Datums out;
  for (const Datum& d : forward) out.push_back(at(d));
  return out;
}

/// Whether a value is a short computation from values of enclosing regions: rather than saved at every iteration,
/// it is computed again.
bool TwoPass::invariant(const ir::Value* v, const Region* home, int budget) const {
  if (home_of(v) != home) return true;
  if (!v->def) return false;
  if (v->def->is(Opcode::constant_)) return true;
  if (!ir::info(v->def->code).elementwise || !v->type.is_scalar() || budget == 0) return false;
  return std::ranges::all_of(v->def->operands,
                             [&](const ir::Value* x) { return invariant(x, home, budget - 1); });
}

Datum TwoPass::again(ir::Value* v, const Region* home) {
  const ir::Op* op = v->def;
  if (home_of(v) != home) return at(v);
  if (op->is(Opcode::constant_))
    return v->type.is_float_element() ? Datum::number(op->number, v->type)
                                      : Datum::integer(op->integer, v->type);
  Datums operands;
  for (ir::Value* x : op->operands) operands.push_back(again(x, home));
  return perform({op->code, op->is(Opcode::cast_) ? op->integer : 0, op->loc}, operands);
}

Datum TwoPass::at(ir::Value* v) {
  Region* const home = home_of(v);
  if (!home || home->backward == home->forward) return Datum::node(v);
  if (const auto found = home->popped.find(v); found != home->popped.end()) return found->second;
  if (invariant(v, home, 3)) return again(v, home);
  ir::Module& module = staging_.module();
  auto [tape, fresh] = home->pushed.try_emplace(v, 0);
  if (fresh) {
    tape->second = module.new_tape();
    ir::Op* push = module.new_op(Opcode::push_, home->forward);
    push->operands = {v};
    push->integer = tape->second;
    home->forward->ops.insert(home->forward->ops.end() - 1, push);
  }
  ir::Op* pop = module.new_op(Opcode::pop_, home->backward);
  pop->integer = tape->second;
  module.add_result(pop, v->type, v->name);
  home->backward->ops.insert(home->backward->ops.begin(), pop);
  return home->popped[v] = Datum::node(pop->result());
}

}  // namespace lantern::core::ad
