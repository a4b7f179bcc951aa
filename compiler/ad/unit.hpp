// Derivative units: a program staged by itself, and the functions made from it.
#pragma once

#include "lantern/compiler/ad/program.hpp"
#include "lantern/compiler/staging/staging.hpp"
#include "lantern/ir/graph.hpp"

namespace lantern::core::ad {

/// The program staged as a function, with its arguments as the caller sees them: own first, captured after.
struct Unit {
  StagedFunction* primal;
  Datums arguments;
  Active active;
};

/// Error, naming `loc`, where the program calls a function that is still being defined.
Unit stage_unit(Staging& s, const Program& program, const Datums& arguments, const Active& active,
                const Location& loc);

/// Error, naming `loc`, for a derivative that does not have the type of what it belongs to, as far as that is
/// known. `what`: "jvp: a tangent", ...
void require_like(const ir::Type& value, const ir::Type& derivative, const char* what, const Location& loc);
/// Error, now or when the program runs, for a derivative that has not the sizes of what it belongs to.
void require_sizes(const Datum& value, const Datum& derivative, const char* what, const Location& loc);

}  // namespace lantern::core::ad
