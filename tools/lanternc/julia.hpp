// --emit=julia: a Julia module over generated code, by ccall.
#pragma once

#include <string>
#include <vector>

#include "options.hpp"
#include "stage.hpp"

namespace lantern::tool {

/// The text of a Julia module (1.5 or later, standard library alone) that holds `library`, a shared library with NAME_try of
/// each function, and calls it. `symbols` are the names of these functions there.
///
/// Functions, parameters and documentation are those of the C++ source. a[i, j] is the element that C++ calls
/// a(i - 1, j - 1). Vectors, and arrays whose elements lie in row-major order (transpose(a), PermutedDimsArray), are read in
/// place; others are copied. Where a function has arrays for results, NAME! writes them into arrays of the caller's. Several
/// results are a tuple; what fails throws `Error` of the module. Error: a function takes a tree.
std::string julia_module(const std::vector<StagedFunction>& functions, const std::vector<std::string>& symbols,
                         const std::string& library, const Options& options);

}  // namespace lantern::tool
