// Which handler a mode is, and how a gradient is taken by it.
#include "lantern/compiler/ad/modes/modes.hpp"

#include "lantern/compiler/ad/modes/eager_reverse.hpp"
#include "lantern/compiler/ad/modes/two_pass.hpp"
#include "lantern/compiler/ad/unit.hpp"
#include "lantern/compiler/staging/staging.hpp"

namespace lantern::core::ad {

namespace {

struct Entry {
  const char* name;
  std::shared_ptr<EagerReverse> (*eager)(std::uint64_t tag);
  std::shared_ptr<TwoPass> (*staged)(Staging& staging, std::uint64_t tag);
};

Entry entry_of(mode m) {
  switch (m) {
    case mode::cps:
      return {"cps", make_cps, nullptr};
    case mode::global_tape:
      return {"global_tape", make_global_tape, make_staged_global_tape};
    case mode::functional:
      return {"functional", make_functional, make_staged_functional};
    case mode::continuation:
      return {"continuation", make_continuation, make_staged_continuation};
    case mode::taped:
      return {"taped", make_taped, make_staged_taped};
    case mode::closures:
      return {"closures", make_closures, nullptr};
    case mode::divide_and_conquer:
      return {"divide_and_conquer", make_divide_and_conquer, nullptr};
    default:
      return {"checkpointed", make_checkpointed, make_staged_checkpointed};
  }
}

/// The handler is ended on every way out.
struct Ending {
  Mode& mode;
  ~Ending() { mode.end(); }
};

Datums gradient_by(EagerReverse& handler, const Program& program, const Datums& arguments, const Active& active,
                 bool value, const Location& loc) {
  const Evaluation evaluation;
  const Ending ending{handler};
  Datums tagged = arguments, inputs, out;
  for (std::size_t i = 0; i < tagged.size(); ++i)
    if (active[i]) inputs.push_back(tagged[i] = handler.input(arguments[i]));
  handler.run([&] {
    const Datums results = program.run(tagged);
    require_scalar(types_of(results), loc);
    if (value && out.empty()) out.push_back(handler.primal(results[0]));
    handler.seed(results[0], Datum::number(1.0, results[0].type()), loc);
  });
  for (const Datum& x : inputs) out.push_back(handler.adjoint(x, loc));
  return out;
}

/// The gradient as a function (arguments...) -> (value, adjoints...), called.
Datums staged_gradient(const Entry& entry, Staging& s, const Program& program, const Datums& arguments,
                     const Active& active, bool value, const Location& loc) {
  Staging::Attempt attempt(s);
  const Unit unit = stage_unit(s, program, arguments, active, loc);
  ir::Function& primal = *unit.primal->function;
  require_scalar(primal.result_types, loc);
  const std::vector<ir::Type> params = primal.parameter_types();
  std::vector<ir::Type> results;
  if (value) results = primal.result_types;
  for (std::size_t i = 0; i < params.size(); ++i)
    if (unit.active[i]) results.push_back(params[i]);
  ir::Function* f =
      s.module().add_function(std::string(entry.name) + "_grad_" + primal.name, params, results);
  f->loc = primal.loc;
  {
    const Staging::Scope scope(s, f);
    Datums in;
    for (std::size_t i = 0; i < params.size(); ++i) {
      f->body->params[i]->name = primal.body->params[i]->name;
      in.push_back(Datum::node(f->body->params[i]));
    }
    const auto handler = entry.staged(s, fresh_number());
    const Ending ending{*handler};
    s.builder(loc).yield(s.use(handler->gradient(primal, in, unit.active, value, loc), loc));
  }
  Datums out = s.call(f, unit.arguments, loc);
  attempt.keep();
  return out;
}

}  // namespace

Datums gradient(mode m, const Program& program, const Datums& arguments, const Active& active, bool value,
              const Location& loc) {
  if (m == mode::reverse) return vjp(program, arguments, active, nullptr, value, loc);
  if (m == mode::forward) {
    Datums out = forward_gradient(program, arguments, active, loc);
    if (!value) out.erase(out.begin());
    return out;
  }
  const Entry entry = entry_of(m);
  if (Staging* s = context().staging) {
    if (m == mode::cps) return staged_cps_gradient(*s, program, arguments, active, value, loc);
    if (m == mode::divide_and_conquer)
      return staged_divide_and_conquer_gradient(*s, program, arguments, active, value, loc);
    if (m == mode::closures)
      raise_at(
          loc,
          "grad<mode::closures>: expected to be run eagerly, got a program that is being staged; write "
          "eager(grad<mode::closures>(f)), or grad<mode::global_tape>(f), which treats a call of a staged "
          "function in the same way");
    return staged_gradient(entry, *s, program, arguments, active, value, loc);
  }
  return gradient_by(*entry.eager(fresh_number()), program, arguments, active, value, loc);
}

}  // namespace lantern::core::ad
