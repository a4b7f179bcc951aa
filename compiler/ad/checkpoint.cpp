// Checkpointed programs, eager and staged.
#include "lantern/compiler/ad/checkpoint.hpp"

#include "lantern/compiler/ad/checkpointing.hpp"
#include "lantern/compiler/staging/operation.hpp"
#include "lantern/compiler/staging/staging.hpp"
#include "lantern/ir/checkpoint.hpp"

namespace lantern::core::ad {

namespace {

Datums staged(Staging& s, const Program& program, const Datums& arguments, const Location& loc) {
  Datums nodes;
  std::vector<ir::Type> types;
  for (ir::Value* v : s.use(arguments, loc)) {
    nodes.push_back(Datum::node(v));
    types.push_back(v->type);
  }
  StagedFunction& f = s.stage(program.name, types, nullptr, program.run, loc);
  const Datums results = s.call(f, nodes, loc);
  f.calls.back().op->integer = ir::checkpointed;
  return results;
}

/// The handler in charge, as for an operation: the one with the highest tag among the arguments; null where it keeps
/// no checkpoints.
Checkpointing* in_charge(const Datums& arguments) {
  Mode* top = nullptr;
  for (const Datum& d : arguments) {
    if (!d.is_tagged()) continue;
    Mode* mode = static_cast<TaggedBox*>(d.box())->mode.get();
    if (!top || mode->tag() > top->tag()) top = mode;
  }
  return top && !top->ended() ? dynamic_cast<Checkpointing*>(top) : nullptr;
}

}  // namespace

Datums checkpoint(const Program& program, const Datums& arguments, const Location& loc) {
  if (Staging* s = context().staging) return staged(*s, program, arguments, loc);
  Checkpointing* mode = in_charge(arguments);
  return mode ? mode->checkpoint(program.run, arguments, loc) : program.run(arguments);
}

}  // namespace lantern::core::ad
