// Derivative units: a program staged by itself, and the functions made from it.
#pragma once

#include "lantern/compiler/ad/program.hpp"
#include "lantern/compiler/staging/staging.hpp"
#include "lantern/ir/graph.hpp"

namespace lantern::core::ad {

/// What a derivative is made from, and where: a program staged by itself, and the parameters of the function that
/// the derivative becomes.
struct Unit {
  ir::Function& primal;
  Active active;     ///< of the primal's parameters: the program's arguments first, captured values after
  Datums arguments;  ///< for those
  Datums beside;     ///< one for each of what is said below
};
/// What a derivative has further arguments for: tangents of the active arguments, cotangents of the floating results.
enum class Beside { nothing, arguments, results };

/// Stages `program` and a function PREFIX_name(arguments..., further...), whose results are what `derive` gives, and
/// calls it. Error, naming `loc`, where the program calls a function that is still being defined.
Datums derivative_unit(Staging& s, const std::string& prefix, const Program& program, const Datums& arguments,
                       const Active& active, Beside what, const Datums& further, const Location& loc,
                       ir::FunctionRef<Datums(const Unit&)> derive);

/// Error, naming `loc`, for a derivative that does not have the type of what it belongs to, as far as that is
/// known. `what`: "jvp: a tangent", ...
void require_like(const ir::Type& value, const ir::Type& derivative, const char* what, const Location& loc);
/// Error, now or when the program runs, for a derivative that has not the sizes of what it belongs to.
void require_sizes(const Datum& value, const Datum& derivative, const char* what, const Location& loc);

}  // namespace lantern::core::ad
