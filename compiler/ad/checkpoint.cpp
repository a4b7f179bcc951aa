// Checkpointed programs, eager and staged.
#include "lantern/compiler/ad/checkpoint.hpp"

#include "lantern/compiler/ad/modes/effects.hpp"
#include "lantern/compiler/control/undelimited.hpp"
#include "lantern/compiler/staging/operation.hpp"
#include "lantern/compiler/staging/staging.hpp"
#include "lantern/ir/checkpoint.hpp"

namespace lantern::core::ad {

namespace {

Datums staged(Staging& s, const Program& program, const Datums& arguments, const Location& loc) {
  const Datums nodes = s.nodes(arguments, loc);
  StagedFunction& f = s.stage(program.name, types_of(nodes), nullptr, program.run, loc);
  const Datums results = s.call(f, nodes, loc);
  f.calls.back().op->integer = ir::checkpointed;
  return results;
}

/// The program, run by the mode that is in charge of the arguments: those inside that one are suspended.
Part part_of(const Program& program, const Location& loc) {
  return [run = program.run, loc](const Datums& x) {
    try {
      return run(x);
    } catch (const control::Undelimited&) {
      raise_at(loc,
               "checkpoint: the function captures a value of an inner derivative; pass it as an argument");
    }
  };
}

}  // namespace

Datums checkpoint(const Program& program, const Datums& arguments, const Location& loc) {
  if (Staging* s = context().staging) return staged(*s, program, arguments, loc);
  const Mode* mode = in_charge(arguments);
  return handled<Checkpoint>(mode) ? perform_on<Checkpoint>(mode, part_of(program, loc), arguments, loc)
                                   : program.run(arguments);
}

}  // namespace lantern::core::ad
