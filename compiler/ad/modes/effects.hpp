// What a program does under a mode, as effects (thesis, 4 and 5), for the handler that the mode installs. Each is
// performed on an instance, the mode with the highest tag among the arguments: with nested derivatives several
// are active at once.
#pragma once

#include "lantern/compiler/ad/step.hpp"
#include "lantern/compiler/control/control.hpp"

namespace lantern::core::ad {

/// ap0, ap1, ap2 (listing 4.2), for any number of operands. The result: the step's values, as numbers of the
/// mode.
struct Smooth : Effect<Datums(Step)> {};

/// A part of a program, as a function of its arguments. It may be run when the frame that made it has ended.
using Part = std::function<Datums(const Datums&)>;

/// checkpoint {p x} (listing 5.2).
struct Checkpoint : Effect<Datums(Part, Datums, Location)> {};

/// A function's reverse pass.
using Pass = std::function<void()>;
/// An instrumented function: results, and the reverse pass of the call (listing 5.3, Func).
using Func = std::function<std::pair<Datums, Pass>(const Datums&)>;
/// abs f and app f x.
struct Abs : Effect<Func(Part)> {};
struct App : Effect<Datums(Func, Datums)> {};

}  // namespace lantern::core::ad
