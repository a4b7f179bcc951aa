// Conditions, checked now or by the compiled program.
#include "lantern/compiler/staging/requirement.hpp"

#include "lantern/compiler/staging/caller.hpp"
#include "lantern/compiler/staging/staging.hpp"

namespace lantern::core::detail {

namespace {

/// The message with the numbers that are available in the places of {}; of the others {} stays, and they are `later`.
std::string told(const std::string& message, std::span<const Datum> numbers, Datums& later) {
  std::string all;
  std::size_t from = 0;
  for (const Datum& n : numbers) {
    const std::size_t at = message.find("{}", from);
    if (at == std::string::npos) break;
    all.append(message, from, at - from);
    from = at + 2;
    const Datum& value = strip(n);
    all += value.is_literal() ? std::to_string(value.i()) : "{}";
    if (!value.is_literal()) later.push_back(value);
  }
  return all.append(message, from, message.npos);
}

}  // namespace

void require(const Datum& condition, const std::string& wording, const Location& loc, std::span<const Datum> numbers) {
  const Datum& c = strip(condition);
  if (c.is_literal() && c.b()) return;
  Datums later;
  const std::string message = told(wording, numbers, later);
  if (c.is_literal()) raise_at(loc, message);
  Staging* s = context().staging;
  if (!s) raise_at(loc, "a staged value is used while nothing is being staged");
  const std::string where = Caller::place(loc).str();
  std::vector<ir::Value*> operands{s->use(c, loc)};
  for (const Datum& n : later) operands.push_back(s->use(n, loc));
  s->builder(loc).op(Opcode::check_, std::move(operands))->text =
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
