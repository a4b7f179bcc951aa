// Staging of derivative units.
#include "lantern/compiler/ad/unit.hpp"

#include "lantern/compiler/staging/requirement.hpp"
#include "lantern/ir/error.hpp"

namespace lantern::core::ad {

Unit stage_unit(Staging& s, const Program& program, const Datums& arguments, const Active& active,
                const Location& loc) {
  Datums nodes;
  std::vector<ir::Type> types;
  for (ir::Value* v : s.use(arguments, loc)) {
    nodes.push_back(Datum::node(v));
    types.push_back(v->type);
  }
  StagedFunction& f = s.stage(program.name, types, nullptr, program.run, loc);
  ir::walk(f.function->body, [&](ir::Op* op) {
    const StagedFunction* callee = op->callee ? s.find(op->callee) : nullptr;
    if (callee && callee->open)
      raise_at(loc,
               "the derivative of '" + program.name + "' needs '" + op->callee->name +
                   "', which is still being defined: the order of the derivative would depend on run time");
  });
  Unit unit{&f, std::move(nodes), active};
  for (ir::Value* v : f.captured) {
    unit.arguments.push_back(Datum::node(s.use(Datum::node(v), loc)));
    unit.active.push_back(false);
  }
  return unit;
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
