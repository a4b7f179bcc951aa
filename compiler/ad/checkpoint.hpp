// checkpoint(f): a function whose reverse keeps its arguments and computes the inside again.
#pragma once

#include "lantern/compiler/ad/known_function.hpp"

namespace lantern::core {

namespace ad {

/// A program of which reverse mode records nothing but the arguments. Eagerly it is an effect for the mode in
/// charge of the arguments (modes/effects.hpp), which grad(f) and mode::checkpointed have a clause for; other modes
/// just run it. While staging: a call with the attribute of ir/checkpoint.hpp.
Datums checkpoint(const Program& program, const Datums& arguments, const Location& loc);

}  // namespace ad

/// A function that computes what f computes. Of a derivative by reverse mode it keeps only its arguments; the
/// inside is computed again when the backward pass reaches it (thesis, 5.2). Checkpoints nest: in one
/// another, in loops, in functions that call themselves; forward mode passes through.
///
/// What f captures is differentiated too, and not kept. Eagerly f runs again after the frame that called it
/// has ended: a lambda then captures by value.
template <detail::OverReps F>
auto checkpoint(F f, std::source_location l = std::source_location::current()) {
  return detail::Known<F, ad::checkpoint>(std::move(f), "checkpoint_", here(l));
}
LANTERN_TAKES_ONE_FUNCTION(checkpoint)

}  // namespace lantern::core
