// vjp and jvp over flattened programs, eager and staged.
#include "lantern/compiler/ad/program.hpp"

#include <algorithm>

#include "lantern/compiler/ad/forward.hpp"
#include "lantern/compiler/ad/reverse.hpp"
#include "lantern/compiler/ad/staged_forward.hpp"
#include "lantern/compiler/ad/staged_reverse.hpp"
#include "lantern/compiler/ad/unit.hpp"
#include "lantern/compiler/staging/control_flow.hpp"
#include "lantern/compiler/staging/staging.hpp"

namespace lantern::core::ad {

namespace {

void require_seeds(const std::vector<ir::Type>& results, const Datums& seeds, const Location& loc) {
  std::size_t at = 0;
  for (const ir::Type& t : results) {
    if (!t.is_differentiable()) continue;
    if (at == seeds.size()) raise_at(loc, "vjp: expected a cotangent for every floating result");
    require_like(t, seeds[at++].type(), "vjp: a cotangent", loc);
  }
  if (at != seeds.size()) raise_at(loc, "vjp: expected one cotangent for every floating result");
}

Datums eager_vjp(const Program& program, const Datums& arguments, const Active& active, const Datums* seeds,
               bool values, const Location& loc) {
  const Evaluation evaluation;
  const auto mode = std::make_shared<Reverse>(fresh_number());
  const Ending ending{*mode};
  std::vector<CellPtr> cells;
  const Datums tagged = with_active(arguments, active, [&](const Datum& x) {
    return mode->variable(x, cells.emplace_back(eager_cell(x)));
  });
  Datums out;
  mode->run([&] {
    const Datums results = program.run(tagged);
    if (seeds) require_seeds(types_of(results), *seeds, loc);
    else require_scalar(types_of(results), loc);
    std::size_t at = 0;
    for (const Datum& r : results) {
      if (values) out.push_back(mode->primal(r));
      if (!r.type().is_differentiable()) continue;
      const Datum seed = seeds ? (*seeds)[at++] : Datum::number(1.0, r.type());
      require_sizes(r, seed, "vjp: a cotangent", loc);
      if (Variable* v = mode->variable_of(r)) v->cell->add(seed, loc);
    }
  });
  for (const CellPtr& c : cells) out.push_back(c->get(loc));
  return out;
}

/// Values, then tangents.
Datums parts_of(const Forward& mode, const Datums& results, const Location& loc) {
  Datums tangents;
  for (const Datum& r : results)
    if (r.type().is_differentiable()) tangents.push_back(mode.tangent_of(r, loc));
  return joined(mode.primals(results), tangents);
}

/// Active arguments with their tangents.
Datums duals(Forward& mode, const Datums& arguments, const Active& active, const Datums& tangents) {
  return with_active(arguments, active, [&, dx = tangents.begin()](const Datum& x) mutable {
    return mode.dual(x, *dx++);
  });
}

Datums eager_jvp(const Program& program, const Datums& arguments, const Active& active, const Datums& tangents,
                 const Location& loc, bool literal) {
  const Evaluation evaluation;
  const auto mode = literal ? make_forward_by_handler(fresh_number()) : std::make_shared<Forward>(fresh_number());
  const Ending ending{*mode};
  const Datums tagged = duals(*mode, arguments, active, tangents);
  Datums results;
  mode->run([&] { results = program.run(tagged); });
  return parts_of(*mode, results, loc);
}

/// The program's graph run under forward mode: values, then tangents.
Datums staged_jvp(Staging& s, const Unit& unit, const Location& loc) {
  const auto mode = std::make_shared<StagedForward>(s, fresh_number());
  const Ending ending{*mode};
  const Datums tagged = duals(*mode, unit.arguments, unit.active, unit.beside);
  return parts_of(*mode, Replay(s, mode.get()).run(unit.primal, tagged), loc);
}

}  // namespace

void require_scalar(const std::vector<ir::Type>& results, const Location& loc) {
  if (results.size() == 1 && results[0].is_scalar() && results[0].is_differentiable()) return;
  std::string found;
  for (const ir::Type& t : results) found += (found.empty() ? "" : ", ") + t.str();
  raise_at(loc, "grad: expected a function with one floating-point scalar as its result, got (" + found +
                    "); use vjp, jvp or jacobian");
}

void extend(Active& active, const Datums& data, bool selected) {
  while (active.size() < data.size()) active.push_back(selected && data[active.size()].type().is_differentiable());
}

std::vector<ir::Type> types_of(const Datums& data) {
  std::vector<ir::Type> types;
  for (const Datum& d : data) types.push_back(d.type());
  return types;
}

Datums vjp(const Program& program, const Datums& arguments, const Active& active, const Datums& seeds, bool values,
           const Location& loc) {
  Staging* s = context().staging;
  if (!s) return eager_vjp(program, arguments, active, &seeds, values, loc);
  return derivative_unit(*s, "vjp", program, arguments, active, Beside::results, seeds, loc, [&](const Unit& unit) {
    require_seeds(unit.primal.result_types, seeds, loc);
    const auto mode = std::make_shared<StagedReverse>(*s, fresh_number());
    const Ending ending{*mode};
    return mode->vjp(unit, unit.beside, values, loc);
  });
}

Datums eager_gradient(const Program& program, const Datums& arguments, const Active& active, bool value,
                      const Location& loc) {
  return eager_vjp(program, arguments, active, nullptr, value, loc);
}

void require_tangents(const char* what, const Datums& arguments, const Active& active, const Datums& tangents,
                      const Location& loc) {
  const auto expected = static_cast<std::size_t>(std::count(active.begin(), active.end(), true));
  if (expected != tangents.size())
    raise_at(loc, std::string(what) + ": expected as many tangents as floating arguments, " +
                      std::to_string(expected) + ", got " + std::to_string(tangents.size()));
  std::size_t at = 0;
  const std::string tangent = std::string(what) + ": a tangent";
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (!active[i]) continue;
    require_like(arguments[i].type(), tangents[at].type(), tangent.c_str(), loc);
    require_sizes(arguments[i], tangents[at++], tangent.c_str(), loc);
  }
}

Datums jvp(const Program& program, const Datums& arguments, const Active& active, const Datums& tangents,
           const Location& loc, bool literal) {
  require_tangents("jvp", arguments, active, tangents, loc);
  Staging* s = context().staging;
  if (!s) return eager_jvp(program, arguments, active, tangents, loc, literal);
  // By what has the tangent 0 in the program's text nothing is differentiated.
  Active live = active;
  Datums along;
  for (std::size_t i = 0, at = 0; i < active.size(); ++i) {
    if (!active[i]) continue;
    const Datum& t = tangents[at++];
    live[i] = !t.is_literal() || t.f() != 0;
    if (live[i]) along.push_back(t);
  }
  return derivative_unit(*s, "jvp", program, arguments, live, Beside::arguments, along, loc,
                         [&](const Unit& unit) { return staged_jvp(*s, unit, loc); });
}

Program untyped_program(std::string name, const Untyped& untyped) {
  return {std::move(name), [untyped](const Datums& data) { return untyped.run(untyped, data); }};
}

Datums run_eagerly(const Program& program, const Datums& arguments) {
  const StagingScope eager(nullptr);
  const Evaluation evaluation;
  return program.run(arguments);
}

OwnedProgram::OwnedProgram(std::string name, const void* function, void (*deleted)(const void*),
                           Datums (*run)(const void*, const Datums&))
    : name_(std::move(name)), function_(function, deleted), run_(run) {}
OwnedProgram::OwnedProgram(const OwnedProgram&) = default;
OwnedProgram& OwnedProgram::operator=(const OwnedProgram&) = default;
OwnedProgram::~OwnedProgram() = default;

Datums run_eagerly(const OwnedProgram& program, Check check, const Datums& arguments) {
  const detail::CheckScope scope(check);
  if (check != Check::none)
    for (std::size_t i = 0; i < arguments.size(); ++i) detail::check_argument(i, arguments[i]);
  return run_eagerly({program.name(), std::cref(program)}, arguments);
}

Datums row_by_row(const Datum& n, const Datums& empty, ir::FunctionRef<Datums(const Datums& s)> row,
                  const Location& loc) {
  const auto op = [&loc](Opcode code, const Datums& operands) { return perform({code, 0, loc}, operands); };
  const Datums done = detail::loop(
      joined({Datum::integer(0, ir::I64)}, empty), [&](const Datums& s) { return op(Opcode::lt_, {s[0], n}); },
      [&](const Datums& s) {
        const Datums parts = row(s);
        Datums next{op(Opcode::add_, {s[0], Datum::integer(1, ir::I64)})};
        for (std::size_t k = 0; k < parts.size(); ++k) {
          const Opcode put = parts[k].type().is_tensor() ? Opcode::add_take_ : Opcode::set_;
          next.push_back(op(put, {s[k + 1], s[0], parts[k]}));
        }
        return next;
      },
      loc);
  return slice(done, 1, done.size());
}

Datums forward_gradient(const Program& program, const Datums& arguments, const Active& active, bool literal,
                        const Location& loc) {
  Datums out;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (!active[i]) continue;
    const Datum& x = arguments[i];
    Active one(arguments.size(), false);
    one[i] = true;
    const auto pass = [&](const Datum& direction) {
      Datums value_and_tangent = jvp(program, arguments, one, {direction}, loc, literal);
      require_scalar({value_and_tangent[0].type()}, loc);
      return value_and_tangent;
    };
    if (x.type().is_scalar()) {
      const Datums r = pass(Datum::number(1.0, x.type()));
      if (out.empty()) out.push_back(r[0]);
      out.push_back(r.back());
      continue;
    }
    // One pass per element, of a matrix in row-major order.
    const auto op = [&loc](Opcode code, const Datums& operands) { return perform({code, 0, loc}, operands); };
    const Datum like = zeros_like(x, loc);
    Datum size = Datum::integer(1, ir::I64);
    for (int d = 0; d < x.type().rank(); ++d) size = op(Opcode::mul_, {size, dimension_of(x, d, loc)});
    const ir::Type element(x.type().element());
    const Datum zero = x.type().rank() == 1 ? like : op(Opcode::fill_, {Datum::zero(element), size});
    const auto shaped_as = [&](const Datum& flat, const Datum& shape) {
      return x.type().rank() == 1 ? flat : op(Opcode::reshape_, {flat, shape});
    };
    const auto slope = [&](const Datums& s) {
      const Datum direction = op(Opcode::set_, {zero, s[0], Datum::number(1.0, element)});
      return Datums{pass(shaped_as(direction, like)).back()};
    };
    const Datum slopes = shaped_as(row_by_row(size, {zero}, slope, loc)[0], like);
    if (out.empty()) out.push_back(program.run(arguments)[0]);
    out.push_back(slopes);
  }
  return out;
}

}  // namespace lantern::core::ad
