// A module with tensors as a stand-alone .cu: host code that launches kernels.
#pragma once


#include "lantern/codegen/cuda/print_cuda.hpp"
#include "lantern/ir/graph.hpp"

namespace lantern::codegen {

/// What print_cuda (print_cuda.hpp) makes of an entry that is not a function of scalars alone, or works on
/// tensors inside. The module is in direct style, and without vectors.
CudaText print_tensor_program(const ir::Module& module, PrintOptions options);

}  // namespace lantern::codegen
