// What is common to derivatives while staging.
#include "lantern/compiler/ad/unit.hpp"

#include "lantern/compiler/passes/canonical/fixed_arrays.hpp"
#include "lantern/compiler/staging/requirement.hpp"

namespace lantern::core::ad {

Datums derivative_unit(Staging& s, const std::string& prefix, const Program& program, const Datums& arguments,
                       const Active& active, Beside what, const Datums& further, const Location& loc,
                       ir::FunctionRef<Datums(const Unit&)> derive) {
  Staging::Attempt attempt(s);
  Datums operands = s.nodes(arguments, loc);
  const StagedFunction& staged = s.stage(program.name, types_of(operands), nullptr, program.run, loc);
  ir::walk(staged.function->body, [&](ir::Op* op) {
    const StagedFunction* callee = op->callee ? s.find(op->callee) : nullptr;
    if (callee && callee->open)
      raise_at(loc,
               "the derivative of '" + program.name + "' needs '" + op->callee->name +
                   "', which is still being defined: the order of the derivative would depend on run time");
  });
  passes::fixed_arrays(*staged.function);
  Unit unit{*staged.function, active, {}, {}};
  for (ir::Value* v : staged.captured) {
    operands.push_back(Datum::node(s.use(Datum::node(v), loc)));
    unit.active.push_back(false);
  }
  operands.insert(operands.end(), further.begin(), further.end());

  std::vector<ir::Type> params = unit.primal.parameter_types();
  const std::size_t own = params.size();
  if (what == Beside::arguments)
    for (std::size_t i = 0; i < own; ++i)
      if (unit.active[i]) params.push_back(params[i]);
  if (what == Beside::results)
    for (const ir::Type& t : unit.primal.result_types)
      if (t.is_differentiable()) params.push_back(t);
  ir::Function* const f = s.module().add_function(prefix + "_" + unit.primal.name, params, {});
  f->loc = unit.primal.loc;
  {
    const Staging::Scope scope(s, f);
    for (std::size_t i = 0; i < params.size(); ++i) {
      ir::Value* const p = f->body->params[i];
      if (i < own) p->name = unit.primal.body->params[i]->name;
      (i < own ? unit.arguments : unit.beside).push_back(Datum::node(p));
    }
    std::vector<ir::Value*> results = s.use(derive(unit), loc);
    f->result_types = ir::types_of(results);
    s.builder(loc).yield(std::move(results));
  }
  Datums out = s.call(f, operands, loc);
  attempt.keep();
  return out;
}

void require_like(const ir::Type& value, const ir::Type& derivative, const char* what, const Location& loc) {
  if (ir::compatible(value, derivative)) return;
  raise_at(loc, std::string(what) + ": expected the type of what it belongs to, " + value.str() + ", got " +
                    derivative.str());
}

void require_sizes(const Datum& value, const Datum& derivative, const char* what, const Location& loc) {
  detail::require_same_sizes(strip(value), strip(derivative), 0,
                             std::string(what) + " has other sizes than what it belongs to", loc);
}

}  // namespace lantern::core::ad
