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

Datum narrowed(const Datum& t, const ir::Type& declared, const Location& loc) {
  Datum same = Datum::integer(1, ir::Bool);
  Datums sizes, wanted = {Datum::zero(ir::Type(declared.element()))};
  std::vector<std::int64_t> shape;
  for (int d = 0; d < declared.rank(); ++d) {
    const std::int64_t size = declared.dims()[static_cast<std::size_t>(d)];
    sizes.push_back(dimension_of(t, d, loc));
    wanted.push_back(size == ir::dynamic ? sizes.back() : Datum::integer(size, ir::I64));
    shape.push_back(wanted.back().is_literal() ? wanted.back().i() : ir::dynamic);
    if (size == ir::dynamic || sizes.back().is_literal()) continue;  // types that differ are no matter of run time
    const Datum equal = perform({Opcode::eq_, 0, loc}, {sizes.back(), wanted.back()});
    same = same.is_literal() ? equal : perform({Opcode::land_, 0, loc}, {same, equal});
  }
  Staging* s = context().staging;
  if (!s) raise_at(loc, "a staged value is used while nothing is being staged");
  std::vector<ir::Value*> operands{s->use(same, loc)};
  for (const Datum& n : sizes) operands.push_back(s->use(n, loc));
  for (auto n = wanted.begin() + 1; n != wanted.end(); ++n) operands.push_back(s->use(*n, loc));
  ir::Op* const check = s->builder(loc).op(Opcode::check_, std::move(operands));
  check->text = s->module().intern("a tensor declared as " + declared.str());
  check->integer = declared.rank();
  return perform({Opcode::reshape_, 0, loc}, {t, perform({Opcode::fill_, 0, loc, shape}, wanted)});
}

}  // namespace lantern::core::detail
