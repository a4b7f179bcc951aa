// cps: direct style to continuation-passing style.
//
// User programs are staged in direct style, and so they are compiled: a derivative runs them again under its
// handler, and it is then that the rest of the program is captured (Lantern paper, 4). This writes the same for a
// program as it is, for people to read: what a derivative will see. `unwind` is its inverse.
//
//   y = branch c {A; yield a} else {B; yield b}; R    k = fun(y) {R}; branch c {A; jump k, a} else {B; jump k, b}
//   y = loop x while (s) {C; yield c} do (s) {B; yield b}; R
//                                                     loop = fun(s) {C; branch c {B; jump loop, b} else {R}}; jump loop, x
//   y = call @f(x); R                                 k = fun(y) {R}; call @f(x, k)
//   yield y                                           jump k, y                     of a function, whose k is a parameter
//
// Source: Danvy and Filinski, "Representing Control" (Mathematical Structures in Computer Science, 1992): in one
// pass, so that no continuation is made which only passes on what it is given to another one.
#pragma once

#include "lantern/ir/graph.hpp"

namespace lantern::passes {

/// Writes every function of the module that is in direct style; what the entry gives leaves through slots, as that of
/// derivatives does. Conditions of loops stay in direct style, as under a derivative, which none reaches. Functions with
/// continuations of
/// their own, the derivatives, are left as they are, and called as before.
void to_cps(ir::Module& module);

}  // namespace lantern::passes
