// Derivatives of flattened programs: what grad, vjp and jvp do once types are gone.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "lantern/compiler/staging/mode.hpp"
#include "lantern/compiler/staging/operation.hpp"

namespace lantern::core {
class Staging;
}

namespace lantern::core::ad {

/// Ends a handler on every way out.
struct Ending {
  Mode& mode;
  ~Ending() { mode.end(); }
};

/// A program over flattened products.
struct Program {
  std::string name;
  std::function<Datums(const Datums&)> run;
};

/// Which arguments are differentiated, one entry per flattened argument.
using Active = std::vector<bool>;

/// Reverse mode: the values, then one adjoint per active argument. With `seeds` (one per floating result) it
/// computes a vector-Jacobian product; without, the result must be one floating scalar, whose adjoint is 1.
/// `values` false leaves the values out of the result.
/// Eager outside staging; while staging, a derivative unit is built and called.
Datums vjp(const Program& program, const Datums& arguments, const Active& active, const Datums* seeds, bool values,
         const Location& loc);

/// The same without values, with one adjoint per floating argument: zero for those that are not active.
Datums vjp_of_all(const Program& program, const Datums& arguments, const Active& active, const Datums& cotangents,
                const Location& loc);

/// Reverse mode of a scalar program while staging, its operators in continuation-passing style (modes/staged_cps.hpp):
/// the value if `value`, then one adjoint per active argument.
Datums staged_cps_gradient(Staging& s, const Program& program, const Datums& arguments, const Active& active,
                         bool value, const Location& loc);

/// The same with states of loops instead of a tape (modes/staged_divide_and_conquer.hpp).
Datums staged_divide_and_conquer_gradient(Staging& s, const Program& program, const Datums& arguments,
                                        const Active& active, bool value, const Location& loc);

/// Error, naming `loc`, unless there is one tangent for each active argument, of its type. `what`: "jvp",
/// "taylor".
void require_tangents(const char* what, const Datums& arguments, const Active& active, const Datums& tangents,
                      const Location& loc);

/// Forward mode: the values, then one tangent per floating result. `tangents` has one entry per active argument.
/// `literal`: by a handler (thesis, listing 4.4), if eagerly.
Datums jvp(const Program& program, const Datums& arguments, const Active& active, const Datums& tangents,
           const Location& loc, bool literal = false);

/// The gradient of a scalar program by forward mode, one pass per element of each active argument.
Datums forward_gradient(const Program& program, const Datums& arguments, const Active& active, bool literal,
                        const Location& loc);

/// Error, naming `loc`, unless the results are one floating scalar.
void require_scalar(const std::vector<ir::Type>& results, const Location& loc);

std::vector<ir::Type> types_of(const Datums& data);

/// The graph that this thread is building, or null.
Staging* staging_in_progress();

/// Runs a program at once, also while something is being staged.
Datums run_eagerly(const Program& program, const Datums& arguments);

}  // namespace lantern::core::ad
