// Application of functions that handlers know of.
#include "lantern/compiler/ad/closure.hpp"

#include "lantern/compiler/ad/checkpointing.hpp"
#include "lantern/compiler/staging/staging.hpp"

namespace lantern::core::ad {

Datums app(const HigherOrder::Function& f, const Datums& x, const Location& loc) {
  Mode* top = nullptr;
  for (const Datum& d : x) {
    if (!d.is_tagged()) continue;
    Mode* mode = static_cast<TaggedBox*>(d.box())->mode.get();
    if (!top || mode->tag() > top->tag()) top = mode;
  }
  if (!top || top->ended() || context().staging) return f(x);
  if (auto* mode = dynamic_cast<HigherOrder*>(top)) return mode->app(f, x, loc);
  if (auto* mode = dynamic_cast<RunsFunctionsAgain*>(top)) return mode->checkpoint(f, x, loc);
  return f(x);
}

}  // namespace lantern::core::ad
