// The AD modes of the papers, one handler a file, behind one door.
#pragma once

#include "lantern/compiler/ad/program.hpp"

namespace lantern {

/// How a gradient is computed. All give the same numbers, up to rounding; they differ in what they cost and
/// in what they are made of. Those marked eager cannot be staged: staged code is made by `reverse` and
/// `forward`, from which the compiler takes closures, cells and tape away.
enum class mode {
  reverse,       ///< one backward pass, by shift and reset (Lantern paper, Fig. 8): the default
  forward,       ///< one pass per scalar argument or array element (Fig. 5)
  cps,           ///< eager; operators take their continuation as an argument (Fig. 7)
  global_tape,   ///< eager; the backward pass as a composed function in a mutable variable (Fig. 12)
  functional,    ///< eager; no cells: continuations return a map from variables to adjoints (3.6)
  continuation,  ///< eager; every number carries its backpropagator (thesis, 4.3). Shared values cost per use
  taped,         ///< eager; a list of what depends on what, and by which factor; constants leave no trace
                 ///< (thesis, 4.4)
  checkpointed,  ///< eager; `checkpoint(f)(x...)` is run twice instead of remembered (thesis, 5.2)
};

namespace ad {

/// The gradient of a scalar program: its value if `value`, then one adjoint per active argument.
/// Error, naming `loc`, for a result that is not one floating scalar, and for an eager mode while staging.
Data gradient(mode m, const Program& program, const Data& arguments, const Active& active, bool value,
              const Location& loc);

/// f(x + t dx) as a power series in t up to the given order: the derivatives of order 0 to `order` of each
/// result by t, at t = 0, one list per order. `tangents` has one entry per active argument.
std::vector<Data> taylor(const Program& program, const Data& arguments, const Active& active,
                         const Data& tangents, int order, const Location& loc);

/// The value, the gradient and, row by row, the Hessian of a scalar program by its active arguments, in one
/// reverse pass. These are scalars, or one vector whose elements the program reads.
struct SecondOrder {
  Datum value;
  Data gradient;
  std::vector<Data> hessian;
};
SecondOrder hessian_by_reverse(const Program& program, const Data& arguments, const Active& active,
                               const Location& loc);

}  // namespace ad

}  // namespace lantern
