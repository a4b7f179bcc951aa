// --emit=python: a module over generated code, by ctypes.
#pragma once

#include <string>
#include <vector>

#include "options.hpp"
#include "stage.hpp"

namespace lantern::tool {

/// The text of a Python module (3.8 or later, with NumPy where a function has arrays) that holds `library`, a shared
/// library with NAME_try of each function, and calls it. `symbols` are the names of these functions there.
///
/// Functions, parameters and documentation are those of the C++ source. Numbers are int, float and bool, tensors
/// NumPy arrays, several results a tuple. Calls release the interpreter's lock; any number of threads may call. What
/// fails raises an exception.
std::string python_module(const std::vector<StagedFunction>& functions, const std::vector<std::string>& symbols,
                          const std::string& library, const Options& options);

}  // namespace lantern::tool
