// A source for a GPU in this process: kernels by NVRTC, the host's part by Clang, over the driver.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lantern/codegen/cuda/print_cuda.hpp"
#include "lantern/codegen/toolchain/clang.hpp"
#include "lantern/codegen/toolchain/loaded_code.hpp"

namespace lantern::codegen {

/// How kernels are compiled.
struct GpuOptions {
  bool strict_math = false;  ///< a product and a sum are rounded each by itself
};

/// Compiles the kernels for the GPU that is there, and loads both parts. What was printed with PrintOptions::hosted
/// calls this process for memory and failures. Functions of the text are found by their names. `externals`: functions of
/// this process that the host's part calls.
///
/// Kernels are kept in the user's cache directory, by their text, the architecture and NVRTC's version.
/// Throws lantern::Error where there is no GPU or no NVRTC, InternalError where the text does not compile.
std::unique_ptr<LoadedCode> load_for_gpu(const CudaText& text, const GpuOptions& options = {},
                                         const std::vector<HostSymbol>& externals = {});

/// That both compilers accept their parts, where there is no GPU to run them. Throws as load_for_gpu does.
void check_for_gpu(const CudaText& text, const GpuOptions& options = {}, const std::vector<HostSymbol>& externals = {});

}  // namespace lantern::codegen
