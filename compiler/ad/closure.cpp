// Application of functions that handlers know of.
#include "lantern/compiler/ad/closure.hpp"

#include "lantern/compiler/ad/modes/effects.hpp"

namespace lantern::core::ad {

Datums app(const Part& f, const Datums& x) {
  const Mode* mode = in_charge(x);
  return handled<App>(mode) ? perform_on<App>(mode, perform_on<Abs>(mode, f), x) : f(x);
}

}  // namespace lantern::core::ad
