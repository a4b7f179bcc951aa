// The AD modes of the papers, one handler a file, behind one door.
#pragma once

#include "lantern/compiler/ad/program.hpp"

namespace lantern::core {

/// How a gradient is computed. All give the same numbers, up to rounding; they differ in what they cost and
/// in what they are made of. Each has an eager form, which runs the program, and a staged form, whose code is
/// in the mode's style before the passes and is mostly the same after them.
enum class mode {
  reverse,       ///< one backward pass, by shift and reset (Lantern paper, Fig. 8): the default
  forward,       ///< one pass per scalar argument or array element (Fig. 5)
  cps,           ///< operators take their continuation as an argument (Fig. 7)
  global_tape,   ///< the backward pass as a composed function in a mutable variable (Fig. 12)
  functional,    ///< no cells: continuations return a map from variables to adjoints (3.6)
  continuation,  ///< every number carries its backpropagator (thesis, 4.3), which is run once, on the sum of
                 ///< its calls
  taped,  ///< a list of what depends on what, and by which factor; constants leave no trace (thesis, 4.4)
  checkpointed,        ///< `checkpoint(f)(x...)` is run twice instead of remembered (thesis, 5.2)
  closures,            ///< eager; every call of a `closure(f)` has a reverse pass of its own (thesis, 5.3)
  divide_and_conquer,  ///< little memory without annotations: what was forgotten is computed again. Eager:
                       ///< the program is run many times, and has to do the same each time; staged: loops
                       ///< keep 32 states, calls their arguments
};

namespace ad {

/// The gradient of a scalar program: its value if `value`, then one adjoint per active argument.
/// Error, naming `loc`, for a result that is not one floating scalar, and for mode::closures while staging.
Datums gradient(mode m, const Program& program, const Datums& arguments, const Active& active, bool value,
              const Location& loc);

/// f(x + t dx) as a power series in t up to the given order: the derivatives of order 0 to `order` of each
/// result by t, at t = 0, one list per order. `tangents` has one entry per active argument.
std::vector<Datums> taylor(const Program& program, const Datums& arguments, const Active& active,
                         const Datums& tangents, int order, const Location& loc);

/// The value, the gradient and, row by row, the Hessian of a scalar program by its active arguments, in one
/// reverse pass. These are scalars, or one vector whose elements the program reads.
struct SecondOrder {
  Datum value;
  Datums gradient;
  std::vector<Datums> hessian;
};
SecondOrder hessian_by_reverse(const Program& program, const Datums& arguments, const Active& active,
                               const Location& loc);

/// The Hessian of a scalar program of one vector, staged. Error, naming `loc`, for other programs.
Datum staged_hessian_by_reverse(Staging& s, const Program& program, const Datum& x, const Location& loc);

}  // namespace ad

}  // namespace lantern::core
