// Automatic differentiation as transformations of terms (Lantern paper, Figs. 4, 9, 10 and 11), one file
// each.
//
// Each takes a closed term of type R -> R to the term of its derivative, of the same type, so they may be
// applied to each other's results. Sources may use all of the calculus, also references; shift and reset, of
// which the results of Fig. 9 are made, only where it says so. Error, naming the place of the call, for a
// source that is not closed or has control operators where there may be none.
#pragma once

#include <source_location>

#include "lantern/compiler/calculus/term.hpp"

namespace lantern::calculus {

using Place = std::source_location;

/// Forward mode: every number becomes a pair of primal and tangent (Fig. 4). The source may use shift and
/// reset.
Term forward(const Term& f, Place l = Place::current());

/// Reverse mode: every number becomes a pair of primal and adjoint cell, and + and * capture the rest of the
/// program by shift in the target language (Fig. 9). The source may use shift and reset, so this may be
/// applied to its own results, each time with operators of the next level: reverse mode over reverse mode
/// (Fig. 13).
Term reverse_by_control(const Term& f, Place l = Place::current());

/// Reverse mode with shift and reset in the meta-language, here C++: they run while the term is transformed,
/// and the result is in continuation-passing style, with proper tail calls (Fig. 10).
Term reverse_by_meta_control(const Term& f, Place l = Place::current());

/// Reverse mode with the meta-language in continuation-passing style too: no control operators anywhere (Fig.
/// 11).
Term reverse_by_cps(const Term& f, Place l = Place::current());

}  // namespace lantern::calculus
