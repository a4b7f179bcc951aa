// vjp and jvp over flattened programs, eager and staged.
#include "lantern/compiler/ad/program.hpp"

#include <algorithm>

#include "lantern/compiler/ad/forward.hpp"
#include "lantern/compiler/ad/modes/staged_cps.hpp"
#include "lantern/compiler/ad/modes/staged_divide_and_conquer.hpp"
#include "lantern/compiler/ad/reverse.hpp"
#include "lantern/compiler/ad/staged_forward.hpp"
#include "lantern/compiler/ad/staged_reverse.hpp"
#include "lantern/compiler/ad/unit.hpp"
#include "lantern/compiler/passes/unwind.hpp"
#include "lantern/compiler/staging/control_flow.hpp"
#include "lantern/compiler/staging/staging.hpp"
#include "lantern/ir/error.hpp"

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
  Datums tagged = arguments;
  std::vector<CellPtr> cells;
  for (std::size_t i = 0; i < tagged.size(); ++i) {
    if (!active[i]) continue;
    cells.push_back(eager_cell(arguments[i]));
    tagged[i] = mode->variable(arguments[i], cells.back());
  }
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

Datums eager_jvp(const Program& program, const Datums& arguments, const Active& active, const Datums& tangents,
                 const Location& loc, bool literal) {
  const Evaluation evaluation;
  const auto mode = literal ? make_forward_by_handler(fresh_number()) : std::make_shared<Forward>(fresh_number());
  const Ending ending{*mode};
  Datums tagged = arguments;
  std::size_t at = 0;
  for (std::size_t i = 0; i < tagged.size(); ++i)
    if (active[i]) tagged[i] = mode->dual(arguments[i], tangents[at++]);
  Datums results, out, derivatives;
  mode->run([&] { results = program.run(tagged); });
  for (const Datum& r : results) {
    out.push_back(mode->primal(r));
    if (r.type().is_differentiable()) derivatives.push_back(mode->tangent_of(r, loc));
  }
  out.insert(out.end(), derivatives.begin(), derivatives.end());
  return out;
}

/// The program's graph run under reverse mode: values if `with_values`, then adjoints.
template <class Handler>
Datums staged_vjp(Staging& s, const Unit& unit, bool seeded, bool with_values, const Location& loc) {
  const auto mode = std::make_shared<Handler>(s, fresh_number());
  const Ending ending{*mode};
  Datums tagged = unit.arguments;
  std::vector<std::shared_ptr<StagedCell>> cells, values;
  for (std::size_t i = 0; i < tagged.size(); ++i) {
    if (!unit.active[i]) continue;
    cells.push_back(staged_cell(tagged[i].node(), loc));
    tagged[i] = mode->variable(tagged[i], cells.back());
  }
  // The values leave the continuation through cells of their own.
  if (with_values)
    for (const ir::Type& t : unit.primal.result_types)
      values.push_back(std::make_shared<StagedCell>(
          s.builder(loc).op(Opcode::slot_, {}, {ir::Type::ref(t)})->result()));
  mode->run([&] {
    const Datums out = Replay(s, mode.get()).run(unit.primal, tagged);
    if (seeded)
      for (auto seed = unit.beside.begin(); const Datum& r : out)
        if (r.type().is_differentiable()) require_sizes(mode->primal(r), *seed++, "vjp: a cotangent", loc);
    for (std::size_t i = 0; i < values.size(); ++i)
      s.builder(loc).op(Opcode::ref_set_, {values[i]->ref(), s.use(mode->primal(out[i]), loc)});
    s.builder(loc).op(Opcode::halt_, {});
    for (auto seed = unit.beside.begin(); const Datum& r : out) {
      if (!r.type().is_differentiable()) continue;
      const Datum g = seeded ? *seed++ : Datum::number(1.0, r.type());
      if (Variable* v = mode->variable_of(r)) v->cell->add(g, loc);
    }
  });
  Datums out;
  for (const auto& v : values) out.push_back(v->get(loc));
  for (const auto& c : cells) out.push_back(c->get(loc));
  return out;
}

/// The program's graph run under forward mode: values, then tangents.
Datums staged_jvp(Staging& s, const Unit& unit, const Location& loc) {
  const auto mode = std::make_shared<StagedForward>(s, fresh_number());
  const Ending ending{*mode};
  Datums tagged = unit.arguments;
  for (std::size_t i = 0, at = 0; i < tagged.size(); ++i)
    if (unit.active[i]) tagged[i] = mode->dual(tagged[i], unit.beside[at++]);
  const Datums values = Replay(s, mode.get()).run(unit.primal, tagged);
  Datums out, tangents;
  for (const Datum& v : values) {
    out.push_back(mode->primal(v));
    if (v.type().is_differentiable()) tangents.push_back(mode->tangent_of(v, loc));
  }
  out.insert(out.end(), tangents.begin(), tangents.end());
  return out;
}

}  // namespace

void require_scalar(const std::vector<ir::Type>& results, const Location& loc) {
  if (results.size() == 1 && results[0].is_scalar() && results[0].is_differentiable()) return;
  std::string found;
  for (const ir::Type& t : results) found += (found.empty() ? "" : ", ") + t.str();
  raise_at(loc, "grad: expected a function with one floating-point scalar as its result, got (" + found +
                    "); use vjp, jvp or jacobian");
}

Staging* staging_in_progress() { return context().staging; }

std::vector<ir::Type> types_of(const Datums& data) {
  std::vector<ir::Type> types;
  for (const Datum& d : data) types.push_back(d.type());
  return types;
}

Datums vjp(const Program& program, const Datums& arguments, const Active& active, const Datums* seeds, bool values,
         const Location& loc) {
  Staging* s = context().staging;
  if (!s) return eager_vjp(program, arguments, active, seeds, values, loc);
  return derivative_unit(*s, seeds ? "vjp" : "grad", program, arguments, active,
                         seeds ? Beside::results : Beside::nothing, seeds ? *seeds : Datums(), loc,
                         [&](const Unit& unit) {
                           if (seeds) require_seeds(unit.primal.result_types, *seeds, loc);
                           else require_scalar(unit.primal.result_types, loc);
                           return staged_vjp<StagedReverse>(*s, unit, seeds != nullptr, values, loc);
                         });
}

Datums vjp_of_all(const Program& program, const Datums& arguments, const Active& active, const Datums& cotangents,
                const Location& loc) {
  const Datums some = vjp(program, arguments, active, &cotangents, false, loc);
  Datums all;
  std::size_t next = 0;
  for (std::size_t i = 0; i < arguments.size(); ++i)
    if (arguments[i].type().is_differentiable())
      all.push_back(active[i] ? some[next++] : zeros_like(arguments[i], loc));
  return all;
}

namespace {

template <class Handler>
Datums staged_gradient(Staging& s, const Program& program, const Datums& arguments, const Active& active, bool value,
                     const Location& loc) {
  return derivative_unit(s, "grad", program, arguments, active, Beside::nothing, {}, loc, [&](const Unit& unit) {
    require_scalar(unit.primal.result_types, loc);
    return staged_vjp<Handler>(s, unit, false, value, loc);
  });
}

}  // namespace

Datums staged_cps_gradient(Staging& s, const Program& program, const Datums& arguments, const Active& active,
                         bool value, const Location& loc) {
  return staged_gradient<StagedCps>(s, program, arguments, active, value, loc);
}

Datums staged_divide_and_conquer_gradient(Staging& s, const Program& program, const Datums& arguments,
                                        const Active& active, bool value, const Location& loc) {
  return staged_gradient<StagedDivideAndConquer>(s, program, arguments, active, value, loc);
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
  return derivative_unit(*s, "jvp", program, arguments, active, Beside::arguments, tangents, loc,
                         [&](const Unit& unit) { return staged_jvp(*s, unit, loc); });
}

Datums run_eagerly(const Program& program, const Datums& arguments) {
  const StagingScope eager(nullptr);
  const Evaluation evaluation;
  return program.run(arguments);
}

Datums forward_gradient(const Program& program, const Datums& arguments, const Active& active, bool literal,
                        const Location& loc) {
  Datums out;
  const auto directional = [&](std::size_t i, const Datum& direction) {
    Active one(arguments.size(), false);
    one[i] = true;
    const Datums r = jvp(program, arguments, one, {direction}, loc, literal);
    require_scalar({r[0].type()}, loc);
    if (out.empty()) out.push_back(r[0]);
    return r.back();
  };
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (!active[i]) continue;
    const Datum& x = arguments[i];
    if (x.type().is_scalar()) {
      const Datum d = directional(i, Datum::number(1.0, x.type()));
      out.push_back(d);
      continue;
    }
    if (x.type().rank() != 1)
      raise_at(loc, "grad<mode::forward>: expected scalars or arrays, got " + x.type().str() + "; use reverse mode");
    // One pass per element, collected in a loop.
    const Datum zero = zeros_like(x, loc);
    const Datum size = perform({Opcode::dim_, 0, loc}, {strip(x)});
    const Datums done = detail::loop(
        {Datum::integer(0, ir::I64), zero},
        [&](const Datums& s) { return perform({Opcode::lt_, 0, loc}, {s[0], size}); },
        [&](const Datums& s) -> Datums {
          const Datum unit = perform({Opcode::set_, 0, loc}, {zero, s[0], Datum::number(1.0, ir::Type(x.type().element()))});
          Active one(arguments.size(), false);
          one[i] = true;
          const Datums r = jvp(program, arguments, one, {unit}, loc, literal);
          require_scalar({r[0].type()}, loc);
          return {perform({Opcode::add_, 0, loc}, {s[0], Datum::integer(1, ir::I64)}),
                  perform({Opcode::set_, 0, loc}, {s[1], s[0], r.back()})};
        },
        loc);
    if (out.empty()) out.push_back(program.run(arguments)[0]);
    out.push_back(done[1]);
  }
  return out;
}

}  // namespace lantern::core::ad
