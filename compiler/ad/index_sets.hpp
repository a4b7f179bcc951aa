// Which results depend on which elements of an argument: the sparsity pattern of a Jacobian.
#pragma once

#include "lantern/compiler/ad/pattern.hpp"
#include "lantern/compiler/ad/program.hpp"

namespace lantern::core::ad {

/// The pattern of the derivative of a program's one result, a vector, by its argument number `argument`, a
/// vector, found by running it at once on the given arguments: every number carries the set of elements it
/// depends on. Of IF, WHILE and FOR it is the pattern of what ran; what an operation leaves out by its values
/// (a factor zero, the lesser of min's operands, select's other side) is in the pattern. A program that takes
/// derivatives has the pattern of those: the pattern of a gradient is that of the Hessian. Errors: an
/// argument or result that is not a floating vector. Source: Griewank, Walther, "Evaluating Derivatives", 2nd
/// edition, 2008, section 7.1 (index domains).
Pattern dependences(const Program& program, const Datums& arguments, std::size_t argument, const Location& loc);

}  // namespace lantern::core::ad
