// Operations of the staged modes without continuations: recorded forward, staged backward.
#include "lantern/compiler/ad/modes/two_pass.hpp"

#include <algorithm>

#include "lantern/ir/error.hpp"

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
  void add(const Datum& v, const Location& loc) override {
    value_ = value_.empty() ? v : perform({Opcode::add_, 0, loc}, {value_, v});
  }
  void accumulate(Opcode op, const Datums& arguments, const Location& loc) override {
    Datums operands{get(loc)};
    operands.insert(operands.end(), arguments.begin(), arguments.end());
    value_ = perform({op, 0, loc}, operands);
  }
  Datum get(const Location&) override { return value_.empty() ? zero_() : value_; }
  bool touched() const override { return !value_.empty(); }

 private:
  Datum& value_;
  std::function<Datum()> zero_;
};

}  // namespace

Datums TwoPass::gradient(ir::Function& program, const Datums& arguments, const Active& active, bool value,
                       const Location& loc) {
  begin();
  Datums tagged = arguments, inputs;
  for (std::size_t i = 0; i < tagged.size(); ++i)
    if (active[i]) inputs.push_back(tagged[i] = variable(arguments[i]));
  const Datum y = both_parts(program, tagged, loc);
  Datums out;
  if (value) out.push_back(y);
  for (const Datum& x : inputs) out.push_back(adjoint_or_zero(variable_of(x)->name, loc));
  return out;
}

void TwoPass::begin() {
  region_ = open(nullptr);
  region_->backward = region_->forward;  // both parts in one block: they see the same values
}

Datum TwoPass::both_parts(ir::Function& program, const Datums& arguments, const Location& loc) {
  const Datums results = Replay(staging_, this).run(program, arguments);
  require_scalar(types_of(results), loc);
  if (const Variable* z = variable_of(results[0])) add(z->name, Datum::number(1.0, results[0].type()), loc);
  for (std::size_t i = region_->tape.size(); i-- > 0;) region_->tape[i]();
  return primal(results[0]);
}

// ---- variables

TwoPass::Variable* TwoPass::variable_of(const Datum& d) const {
  if (!d.is_tagged()) return nullptr;
  auto* box = static_cast<TaggedBox*>(d.box());
  return box->mode.get() == this ? static_cast<Variable*>(box) : nullptr;
}

const Datum& TwoPass::primal(const Datum& d) const {
  const Variable* v = variable_of(d);
  return v ? v->primal : d;
}

Datums TwoPass::primals(const Datums& data) const {
  Datums out;
  for (const Datum& d : data) out.push_back(primal(d));
  return out;
}

Datum TwoPass::variable(const Datum& primal) {
  known_.push_back({region_, primal});
  return Datum::boxed(new Variable(*this, primal, known_.size() - 1), primal.type());
}

// ---- forward

TwoPass::Step TwoPass::step(const Operation& op, std::span<const Datum> operands) const {
  Step s{op, Datums(operands.begin(), operands.end()), {}, {}};
  for (const Datum& d : operands) s.primals.push_back(primal(d));
  s.y = perform(op, s.primals);
  return s;
}

bool TwoPass::differentiable(const Step& s) const {
  if (!s.y.type().is_differentiable()) return false;
  for (std::size_t i = 0; i < s.operands.size(); ++i)
    if (variable_of(s.operands[i]) && carries_derivative(s.op, i, s.operands.size())) return true;
  return false;
}

void TwoPass::touch(const Datum& d) {
  const Variable* v = variable_of(d);
  if (!v) return;
  for (Region* r = region_; r && r != known_[v->name].home; r = r->parent)
    if (std::ranges::find(r->touched, v->name) == r->touched.end()) r->touched.push_back(v->name);
}

void TwoPass::record(std::span<const Datum> uses, Update update) {
  for (const Datum& d : uses) touch(d);
  region_->tape.push_back(std::move(update));
}

// ---- backward

void TwoPass::add(Name x, const Datum& g, const Location& loc) {
  Datum& entry = store_[x];
  entry = entry.empty() ? g : perform({Opcode::add_, 0, loc}, {entry, g});
}

Datum TwoPass::take(Name x) {
  const auto entry = store_.extract(x);
  return entry.empty() ? Datum() : entry.mapped();
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

std::vector<TwoPass::Name> TwoPass::passed(const std::vector<Name>& outs, const std::vector<Name>& touched) {
  std::vector<Name> names = outs;
  names.insert(names.end(), touched.begin(), touched.end());
  return names;
}

Datums TwoPass::adjoints(const std::vector<Name>& names, const Location& loc) {
  Datums out;
  for (const Name x : names) out.push_back(adjoint_or_zero(x, loc));
  return out;
}

TwoPass::Step TwoPass::rule_at(const Step& s, std::size_t i) {
  const ir::Formula& f = *ir::derivative(s.op.code, i, s.operands.size());
  Step here = s;
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
  const Variable* x = variable_of(s.operands[i]);
  if (!x || !carries_derivative(s.op, i, s.operands.size())) return;
  Datum& adjoint = store_[x->name];
  adjoint = received(std::exchange(adjoint, {}), s, i, g);
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

/// Whether a value is a short computation from values of enclosing regions: rather than saved at every trip,
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
