// Control flow, functions and tapes in reverse mode, over the graph.
#include "lantern/compiler/ad/staged_reverse.hpp"

#include "lantern/compiler/passes/direct/unwind.hpp"

namespace lantern::core::ad {

Datums StagedReverse::vjp(const Unit& unit, const Datums& seeds, bool values, const Location& loc) {
  std::vector<CellPtr> cells;
  const Datums tagged = with_active(unit.arguments, unit.active, [&](const Datum& x) {
    return variable(x, cells.emplace_back(staged_cell(x.node(), loc)));
  });
  // The values leave the continuation through cells of their own.
  std::vector<ir::Value*> slots;
  if (values)
    for (const ir::Type& t : unit.primal.result_types)
      slots.push_back(staging_.builder(loc).op(Opcode::slot_, {}, {ir::Type::ref(t)})->result());
  run([&] {
    const Datums out = Replay(staging_, this).run(unit.primal, tagged);
    const Datums floats = floating(out);
    for (std::size_t i = 0; i < unit.beside.size(); ++i)
      require_sizes(primal(floats[i]), seeds[i], "vjp: a cotangent", loc);
    for (std::size_t i = 0; i < slots.size(); ++i)
      staging_.builder(loc).op(Opcode::ref_set_, {slots[i], staging_.use(primal(out[i]), loc)});
    staging_.builder(loc).op(Opcode::halt_, {});
    for (std::size_t i = 0; i < floats.size(); ++i)
      if (Variable* v = variable_of(floats[i])) v->cell->add(seeds[i], loc);
  });
  Datums out;
  for (ir::Value* slot : slots) out.push_back(StagedCell(slot).get(loc));
  for (const CellPtr& c : cells) out.push_back(c->get(loc));
  return out;
}

Datums StagedReverse::gradient(const Unit& unit, bool value, const Location& loc) {
  return vjp(unit, {Datum::number(1.0, unit.primal.result_types[0])}, value, loc);
}

CellPtr StagedReverse::make_cell(const Datum& primal, const Location& loc) {
  return staged_cell(staging_.use(primal, loc), loc);
}

std::vector<ir::Type> StagedReverse::lifted_types(const std::vector<ir::Type>& types) {
  std::vector<ir::Type> out;
  for (const ir::Type& t : types) {
    out.push_back(t);
    if (t.is_differentiable()) out.push_back(ir::Type::ref(t));
  }
  return out;
}

void StagedReverse::lift(const Datum& d, std::vector<ir::Value*>& out, const Location& loc) {
  ir::Value* p = staging_.use(primal(d), loc);
  out.push_back(p);
  if (!p->type.is_differentiable()) return;
  const Variable* v = variable_of(d);
  out.push_back(v ? static_cast<StagedCell&>(*v->cell).ref() : staged_cell(p, loc)->ref());
}

std::vector<ir::Value*> StagedReverse::lift(const Datums& data, const Location& loc) {
  std::vector<ir::Value*> out;
  for (const Datum& d : data) lift(d, out, loc);
  return out;
}

Datums StagedReverse::variables(const std::vector<ir::Value*>& params, const std::vector<ir::Type>& types) {
  Datums out;
  std::size_t at = 0;
  for (const ir::Type& t : types) {
    const Datum p = Datum::node(params[at++]);
    out.push_back(t.is_differentiable() ? variable(p, std::make_shared<StagedCell>(params[at++])) : p);
  }
  return out;
}

void StagedReverse::jump(ir::Value* continuation, const Datums& results, const Location& loc) {
  std::vector<ir::Value*> operands = lift(results, loc);
  operands.insert(operands.begin(), continuation);
  staging_.builder(loc).op(Opcode::jump_, std::move(operands));
}

ir::Op* StagedReverse::continuation(const char* name, const std::vector<ir::Type>& types, const Location& loc) {
  return staging_.builder(loc).fun(lifted_types(types), name);
}

void StagedReverse::inside(ir::Block* block, const Location& loc, ir::FunctionRef<void()> f) {
  ir::Block* const saved = staging_.block();
  staging_.set_block(block);
  f();
  staging_.builder(loc).yield({});
  staging_.set_block(saved);
}

// Paper 4.2:  shift { k => val k1 = fun(k); if (c) reset(k1(a)) else reset(k1(b)) }
// The branches are staged first, against k1 declared; the user's own stack is resumed last, as the body of k1.
Datums StagedReverse::branch(const Datum& condition, const Thunk& then, const Thunk& otherwise,
                           const std::vector<ir::Type>& results, const Location& loc) {
  ir::Value* c = staging_.use(condition, loc);
  return shift<Datums>(prompt_, [this, c, then, otherwise, results, loc](auto k) {
    ir::Op* k1 = continuation("k", results, loc);
    ir::Op* op = staging_.builder(loc).branch(c, {});
    const Thunk* sides[] = {&then, &otherwise};
    for (std::size_t i = 0; i < 2; ++i)
      inside(op->blocks[i], loc, [&] { run([&] { jump(k1->result(), (*sides[i])(), loc); }); });
    inside(k1->blocks[0], loc, [&] { k(variables(k1->blocks[0]->params, results)); });
  });
}

// Paper 4.3:  shift { k => def loop = fun { x => if (c(x)) reset(loop(b(x))) else reset(k(x)) }; loop(init) }
Datums StagedReverse::loop(const Datums& initial, const std::vector<ir::Type>& state, const Condition& condition,
                         const Body& body, std::int64_t attribute, const Location& loc) {
  return shift<Datums>(prompt_, [this, initial, state, condition, body, attribute, loc](auto k) {
    ir::Op* loop = continuation("loop", state, loc);
    loop->integer = attribute;
    jump(loop->result(), initial, loc);
    ir::Block* header = loop->blocks[0];
    const Datums now = variables(header->params, state);
    ir::Op* op = nullptr;
    inside(header, loc, [&] {
      op = staging_.builder(loc).branch(staging_.use(condition(now), loc), {});
      inside(op->blocks[0], loc, [&] { run([&] { jump(loop->result(), body(now), loc); }); });
    });
    inside(op->blocks[1], loc, [&] { k(now); });
  });
}

// Paper 4.4: a function takes its continuation as a parameter.
Datums StagedReverse::call(ir::Function* callee, const Datums& arguments, std::int64_t attribute,
                         const Location& loc) {
  const Active active = active_of(arguments);
  ir::Function* f = instance(callee, active);
  return shift<Datums>(prompt_, [this, f, callee, arguments, active, attribute, loc](auto k) {
    const std::vector<ir::Type> results = callee->result_types;
    ir::Op* kont = continuation("k", results, loc);
    std::vector<ir::Value*> operands;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      if (active[i]) lift(arguments[i], operands, loc);
      else operands.push_back(staging_.use(arguments[i], loc));
    }
    operands.push_back(kont->result());
    ir::Op* op = staging_.builder(loc).op(Opcode::call_, std::move(operands));
    op->callee = f;
    op->integer = attribute;
    inside(kont->blocks[0], loc, [&] { k(variables(kont->blocks[0]->params, results)); });
  });
}

ir::Function* StagedReverse::instance(ir::Function* callee, const Active& active) {
  const std::string key = specialisation(*callee, active);
  const auto found = instances_.find(key);
  if (found != instances_.end()) return found->second;
  passes::unwind(*callee);

  std::vector<ir::Type> params;
  for (std::size_t i = 0; i < active.size(); ++i) {
    const ir::Type& t = callee->body->params[i]->type;
    params.push_back(t);
    if (active[i]) params.push_back(ir::Type::ref(t));
  }
  params.push_back(ir::Type::cont(lifted_types(callee->result_types)));
  ir::Function* f = staging_.module().add_function(callee->name + "_rev", params, {});
  f->cps = true;
  f->loc = callee->loc;
  instances_.emplace(key, f);

  const Staging::Scope scope(staging_, f);
  const Datums arguments = parameters_of(*f, *callee, active, 1, [this](const Datum& p, const Datums& adjoint) {
    return variable(p, std::make_shared<StagedCell>(adjoint[0].node()));
  });
  ir::Value* kont = f->body->params.back();
  kont->name = "k";
  inside(f->body, callee->loc, [&] {
    run([&] { jump(kont, Replay(staging_, this).run(*callee, arguments), callee->loc); });
  });
  return f;
}

// The reverse of a push is a pop of the adjoint tape, and the reverse of a pop a push.
void StagedReverse::push(std::int64_t tape, const Datum& value, const Location& loc) {
  onto(tape, primal(value), loc);
  if (!value.type().is_differentiable()) return;
  shift<void>(prompt_, [this, tape, value, loc](auto k) {
    k();
    const Datum d = from(beside(tape), value.type(), loc);
    if (Variable* v = variable_of(value)) v->cell->add(d, loc);
  });
}

Datum StagedReverse::pop(std::int64_t tape, const ir::Type& type, const Location& loc) {
  const Datum v = from(tape, type, loc);
  if (!type.is_differentiable()) return v;
  return shift<Datum>(prompt_, [this, tape, v, loc](auto k) {
    const CellPtr adjoint = make_cell(v, loc);
    k(variable(v, adjoint));
    onto(beside(tape), adjoint->get(loc), loc);
  });
}

std::shared_ptr<StagedReverse> make_staged_reverse(Staging& staging, std::uint64_t tag) {
  return std::make_shared<StagedReverse>(staging, tag);
}

}  // namespace lantern::core::ad
