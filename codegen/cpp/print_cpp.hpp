// A module as C++20: direct style, or nested lambdas in the shape of the Lantern paper's figures.
#pragma once

#include <string>

#include "lantern/codegen/print_options.hpp"
#include "lantern/ir/graph.hpp"

namespace lantern::codegen {

/// As print_c, with C linkage for what is exported. Cells are references; several results are a structure,
/// except for an entry of scalars, which gives them out through pointers as in C.
///
/// Continuations that have not been closed become nested lambdas (Lantern paper, figures of section 4).
/// Compilers limit how deep brackets nest: close a module with a function that is `deepest_nest` deep or
/// more.
std::string print_cpp(const ir::Module& module, const PrintOptions& options = {});

inline constexpr int deepest_nest = 100;

/// How deep the continuations of a function nest; 0 where there is none.
int continuation_depth(const ir::Function& function);

}  // namespace lantern::codegen
