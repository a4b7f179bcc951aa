// Conditions, checked now or by the compiled program.
#include "lantern/compiler/staging/requirement.hpp"

#include "lantern/compiler/staging/staging.hpp"

namespace lantern::core::detail {

void require(const Datum& condition, const std::string& message, const Location& loc) {
  const Datum& c = strip(condition);
  if (c.is_literal()) {
    if (!c.b()) raise_at(loc, message);
    return;
  }
  Staging* s = context().staging;
  if (!s) raise_at(loc, "a staged value is used while nothing is being staged");
  const std::string where = loc.str();
  ir::Value* v = s->use(c, loc);
  s->builder(loc).op(Opcode::check_, {v})->text =
      s->module().intern(where.empty() ? message : where + ": error: " + message);
}

void require_same_sizes(const Datum& a, const Datum& b, int from, const std::string& message,
                        const Location& loc) {
  for (int k = from; k < a.type().rank(); ++k)
    require(perform({Opcode::eq_, 0, loc}, {dimension_of(a, k, loc), dimension_of(b, k, loc)}), message, loc);
}

}  // namespace lantern::core::detail
