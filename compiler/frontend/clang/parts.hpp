// The two parts of a file: what is staged when the program is built, and what runs in the program.
#pragma once

#include "lantern/compiler/frontend/clang/facts.hpp"

namespace lantern::frontend {

/// Fills Unit::program_part and Unit::staged_part of the file that is parsed.
///
/// The program's part has no bodies of functions over Reps that nothing of it names, and no initialisers of variables
/// made by FUN that nothing of it names. A LANTERN_FUNCTION names them, but the program calls what was made of them, and
/// needs its types alone. The staged part has no bodies of functions that neither a LANTERN_FUNCTION nor an initialiser
/// names (main, most often). Both keep the lines of the file. What names what is found in the bodies of all functions
/// and instantiations that are not the precompiled headers'.
void find_parts(clang::ASTContext& ast, const Facts& facts, Unit& unit);

}  // namespace lantern::frontend
