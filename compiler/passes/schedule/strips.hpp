// strips: work on vectors of many registers goes through them register by register.
//
//   u = load x[i, 0..31]                        for g in 0, W .. n - 1:
//   v = u * a + load y[i, 0..31]                  u = load x[i, g .. g+W-1];  v = u * a + load y[i, g ..]
//   store z[i, 0..31] = -v                        store z[i, g ..] = -v
//
// Where vectorise takes so many lanes that a vector fills many registers (loops over directions: what all
// directions have in common is then computed once), a few vectors fill them all, and each operation goes by
// way of memory. Strip mining what lies between two loops or branches (Allen and Kennedy, Optimizing
// Compilers for Modern Architectures, 2001, 5.8) keeps a strip's values in registers. What is asked for
// outside its strip loop becomes an array with an element a lane; in the last, incomplete block of trips the
// strips end with the lanes that work. What does not change in a loop is computed before it: no strip loop
// would find that out.
//
// The same values are formed. A loop's vectors are left whole where their lanes are added up, saved on a
// tape, or decide about branches, and where an inner loop keeps all its vectors in registers as it is.
#pragma once

#include "lantern/ir/graph.hpp"

namespace lantern::passes {

/// `native`: how many f64 a register holds.
void strips(ir::Module& module, int native);

}  // namespace lantern::passes
