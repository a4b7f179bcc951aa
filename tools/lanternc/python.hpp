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

/// Text of such a module: structures of arguments, which need only _ctypes and are empty where all are numbers; functions,
/// which call `_library`; the functions' names.
struct PythonWrappers {
  std::string structures, functions;
  std::vector<std::string> names;
};

/// Private functions are named by their symbols, with a '_' before them, and have no documentation.
PythonWrappers python_wrappers(const std::vector<StagedFunction>& functions, const std::vector<std::string>& symbols,
                               bool are_private);

}  // namespace lantern::tool
