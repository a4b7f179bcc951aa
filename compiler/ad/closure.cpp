// Application of functions that modes know of.
#include "lantern/compiler/ad/closure.hpp"

#include "lantern/compiler/ad/modes/effects.hpp"

namespace lantern::core::ad {

Datums app(const Program& f, const Datums& x, const Location&) {
  const Mode* mode = in_charge(x);
  return handled<App>(mode) ? perform_on<App>(mode, perform_on<Abs>(mode, f.run), x) : f.run(x);
}

}  // namespace lantern::core::ad
