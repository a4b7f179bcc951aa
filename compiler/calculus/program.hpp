// Terms as programs over Rep: the bridge from the calculus to the handlers and the compiler.
#pragma once

#include <functional>

#include "lantern/compiler/calculus/transform.hpp"
#include "lantern/compiler/staging/control_flow.hpp"

namespace lantern::calculus {

/// A closed term of type R -> R as a function over Rep, for eager, compile, grad and the rest.
///
/// It interprets the term by whatever handler is in charge. Numbers are Reps and references to numbers are
/// Vars; pairs, sums and functions exist while staging only, and references to those where nothing is staged.
/// A comparison of numbers gives a Rep<bool>, on which `case` is an IF, unless it is known; its branches
/// return the same shape, and no functions or references. A letrec applied to a number is a FUN and returns a
/// number; applied to anything else it is unrolled while staging, so what ends its recursion must be known
/// then.
///
/// shift and reset are those of C++, with one prompt for each level. So the results of reverse_by_control run
/// over Rep, at once though not staged, where a program's control operators would be part of it; and there
/// the continuations of the paper and those that the handlers of grad capture meet: in
/// grad(program(reverse_by_control(f))) each product that the inner backward pass computes captures what is
/// left of that pass, and of the whole, by grad's own prompt. That is Fig. 13, and how grad(grad(f)) works:
/// each derivative has a prompt of its own (ad/reverse.hpp), what an inner one computes with is performed one
/// level down, and the outer one's shift captures the inner's reset with it.
///
/// Error, naming the place of this call, for terms that are stuck or outside that subset; where it is run,
/// for shift and reset while something is being staged, and for a continuation that is called twice.
std::function<core::Rep<double>(core::Rep<double>)> program(const Term& f, Place l = Place::current());

}  // namespace lantern::calculus
