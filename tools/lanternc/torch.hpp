// --emit=torch: functions for PyTorch, as operators of torch.library on the CPU or on GPUs.
#pragma once

#include <string>
#include <vector>

#include "options.hpp"
#include "stage.hpp"

namespace lantern::tool {

/// The text of a Python module that holds `library` and registers its functions as operators of PyTorch (2.4 or later).
/// `symbols` are the names of NAME_try there. Each function with pullbacks has reverse mode (register_autograd), to the
/// second order. Tensors are passed by address: those of the CPU as NumPy arrays of the same memory, through the wrappers of
/// --emit=python, those of a GPU as they are. For a GPU the library has `torch_copy` (torch_text.hpp) too.
std::string torch_module(const std::vector<StagedFunction>& functions, const std::vector<std::string>& symbols,
                         const std::string& library, const Options& options);

}  // namespace lantern::tool
