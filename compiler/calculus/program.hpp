// Terms as programs over Rep: the bridge from the calculus to the handlers and the compiler.
#pragma once

#include <functional>

#include "lantern/compiler/calculus/transform.hpp"
#include "lantern/compiler/staging/control_flow.hpp"

namespace lantern::calculus {

/// A closed term of type R -> R as a function over Rep, for eager, compile, grad and the rest.
///
/// It interprets the term by whatever handler is in charge. Numbers are Reps and references to numbers are
/// Vars; pairs, sums and functions exist while staging only. A comparison of numbers gives a Rep<bool>, on
/// which `case` is an IF; its branches return the same shape, and no functions. A letrec applied to a number
/// is a FUN and returns a number; applied to anything else it is unrolled while staging, so what ends its
/// recursion must be known then.
///
/// Error, naming the place of this call, for shift and reset, and for terms that are stuck or outside that
/// subset.
std::function<core::Rep<double>(core::Rep<double>)> program(const Term& f, Place l = Place::current());

}  // namespace lantern::calculus
