// --emit=mex: a MEX file for Octave and MATLAB, as one C source.
#pragma once

#include <string>
#include <vector>

#include "options.hpp"
#include "stage.hpp"

namespace lantern::tool {

/// `code`, a C stand-alone source, with a mexFunction behind it that calls NAME_try of each function by its name:
/// [y, dy] = model('df', x). `mkoctfile --mex model.c` and `mex model.c` compile it. `symbols` are the names of NAME_try.
///
/// Numbers and arrays have the class of the C++ type, where double, logical and, for whole numbers, double without a
/// fraction are converted. x(i, j) is the element that C++ calls x(i - 1, j - 1): of more than one dimension arrays are
/// transposed. An array of one dimension may be a row or a column, and is a column as a result. Failures are errors of
/// Octave's. PlacedError: a function takes a tree.
std::string mex_source(const std::vector<StagedFunction>& functions, const std::vector<std::string>& symbols,
                       const std::string& code, const Options& options);

}  // namespace lantern::tool
