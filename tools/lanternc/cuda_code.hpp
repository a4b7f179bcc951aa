// --target=cuda: objects compiled by nvcc, whose functions run on the GPU.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "options.hpp"
#include "stage.hpp"

namespace lantern::tool {

/// An object with NAME_map, or with tensors NAME, and what goes with it (codegen/cuda/print_cuda.hpp). Error:
/// no nvcc. `more` is text behind it.
std::string cuda_object(const StagedFunction& function, const Options& options, const std::string& more = {});

/// The same with the entry point that a program calls: a map over one element, or the function with tensors.
std::vector<std::string> cuda_entry_objects(const StagedFunction& function, const Options& options,
                                            const std::filesystem::path& include);

/// Declares NAME_map of each function of numbers, and each function with tensors.
std::string cuda_header(const std::vector<StagedFunction>& functions, const std::string& file_name);

/// The CUDA run time, for the system's compiler as linker.
std::vector<std::string> cuda_link_arguments();

}  // namespace lantern::tool
