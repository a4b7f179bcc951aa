// The AD modes of the papers, one a file, behind one door.
#pragma once

#include "lantern/compiler/ad/program.hpp"

namespace lantern::core {

/// How a gradient is computed. All give the same numbers, up to rounding; they differ in what they cost and
/// in what they are made of. Eagerly the program is run, by the mode's rule or by its fast path: see `form`. Staged,
/// the code is in the mode's style before the passes and is mostly the same after them.
enum class mode {
  reverse,       ///< one backward pass, by shift and reset (Lantern paper, Fig. 8): the default
  forward,       ///< one pass per scalar argument or array element (Fig. 5; thesis, 4.1)
  cps,           ///< operators take their continuation as an argument (Fig. 7), eagerly from shift: as reverse
  global_tape,   ///< the backward pass as a composed function in a mutable variable (Fig. 12)
  functional,    ///< no cells: continuations return a map from variables to adjoints (3.6)
  continuation,  ///< every number carries its backpropagator (thesis, 4.3). By form::literal that is run for every
                 ///< use of the number, which is exponential for t = t * t; otherwise once, on the sum of its calls
  taped,  ///< a list of what depends on what, and by which factor; constants leave no trace (thesis, 4.4)
  checkpointed,        ///< `checkpoint(f)(x...)` is run twice instead of remembered (thesis, 5.2)
  closures,            ///< eager; every call of a `closure(f)` has a reverse pass of its own (thesis, 5.3)
  checkpointed_closures,  ///< eager; every call of a `closure(f)` is run twice instead (thesis, 5.3, listing 5.4)
  divide_and_conquer,  ///< little memory without annotations: what was forgotten is computed again. Eager:
                       ///< the program is run many times, and has to do the same each time; staged: loops
                       ///< keep 32 states, calls their arguments
};

/// How a mode is run eagerly: grad<mode::taped, form::fast>(f). Staged, there is no difference.
enum class form {
  literal,  ///< by the rule of the paper, with handlers, or shift and reset: what a mode runs if no form is named,
            ///< except `reverse` and `forward`, which are to be fast, and `continuation`, which is exponential
  fast,     ///< the same without control operators, where a mode has that: taped, and those that are mode::reverse once
            ///< their control operators are gone (cps, global_tape, continuation, checkpointed, closures)
};
constexpr form default_form(mode m) {
  return m == mode::reverse || m == mode::forward || m == mode::continuation ? form::fast : form::literal;
}

namespace ad {

/// The gradient of a scalar program: its value if `value`, then one adjoint per active argument.
/// Error, naming `loc`, for a result that is not one floating scalar, and for modes of closures while staging.
Datums gradient(mode m, form how, const Program& program, const Datums& arguments, const Active& active, bool value,
                const Location& loc);

/// The results of a program whose operations are effects, handled by evaluation (thesis, listing 4.3): those of
/// running it.
Datums evaluate_by_handler(const Program& program, const Datums& arguments);

/// The derivatives of order 0 to 2 of each scalar result along the tangents, one list per order, by second derivative
/// forward mode (thesis, 5.1). Error, naming the place, for operations that are not on scalars.
std::vector<Datums> second_derivative(const Program& program, const Datums& arguments, const Active& active,
                                      const Datums& tangents, const Location& loc);

/// f(x + t dx) as a power series in t up to the given order: the derivatives of order 0 to `order` of each
/// result by t, at t = 0, one list per order. `tangents` has one entry per active argument.
std::vector<Datums> taylor(const Program& program, const Datums& arguments, const Active& active,
                         const Datums& tangents, int order, const Location& loc);

/// The Hessian of a scalar program of one vector, whose elements it reads, in one reverse pass. Error, naming `loc`,
/// for other programs.
Datum hessian_by_reverse(const Program& program, const Datum& x, const Location& loc);

}  // namespace ad

}  // namespace lantern::core
