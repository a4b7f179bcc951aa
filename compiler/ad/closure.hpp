// closure(f): a function that modes are told of, as an effect (thesis, 5.3).
#pragma once

#include "lantern/compiler/ad/known_function.hpp"

namespace lantern::core {

namespace ad {

/// app (abs f) x, effects for the mode in charge of the arguments if its handler has clauses for them
/// (modes/effects.hpp). Other modes, evaluation and staging just call f.
Datums app(const Program& f, const Datums& x, const Location& loc);

}  // namespace ad

/// A function value that computes what f computes, and may be passed on, kept and called like f. Under
/// mode::closures each call has a reverse pass of its own; under mode::checkpointed_closures each call is run
/// twice instead of remembered. It then runs after the frame that called it has ended: a lambda captures by
/// value.
template <detail::OverReps F>
auto closure(F f, std::source_location l = std::source_location::current()) {
  return detail::Known<F, ad::app>(std::move(f), "", here(l));
}
LANTERN_TAKES_ONE_FUNCTION(closure)

}  // namespace lantern::core
