// value_checks: what a program computes is looked at for NaN and infinities.
//
// Each value in which one can arise is followed by a `finite` operation, which says what made it. Only what is
// computed is looked at: values that somebody needs, and of these the elements only where somebody reads them. An
// update of an element or of rows is looked at there. A number that one side of a select alone uses is looked at where that side
// is taken: a slope at a kink is NaN where nothing flows, too. The checks are operations like others, which read memory and have an
// effect: what comes after this pass sees them, and nothing that came before does, so that a checked program computes
// what it would have computed without.
#pragma once

#include "lantern/ir/graph.hpp"

namespace lantern::passes {

/// Puts the checks behind the operations of all functions. Vectors are not looked into.
void value_checks(ir::Module& module);

}  // namespace lantern::passes
