// --emit=fortran: a Fortran module over generated code, by iso_c_binding.
#pragma once

#include <string>
#include <vector>

#include "options.hpp"
#include "stage.hpp"

namespace lantern::tool {

/// The text of a Fortran 2018 module that calls NAME_try of each function, to be linked with what --emit=object makes.
/// `symbols` are the names of NAME_try.
///
/// Numbers are of the kinds of iso_c_binding, and a(i, j) is the element that C++ calls a(i - 1, j - 1): of more than one
/// dimension arrays are transposed into temporary memory, of one dimension they are read in place. A function with one result
/// is a function; otherwise results are arguments behind the others. `stat` and `errmsg` behave as in an allocate statement.
/// Error: a function takes a tree; names that differ by upper and lower case alone, or are the module's.
std::string fortran_module(const std::vector<StagedFunction>& functions, const std::vector<std::string>& symbols,
                           const Options& options);

}  // namespace lantern::tool
