// A module as a stand-alone .cu: a function of numbers, mapped over arrays, one element for each thread; or a
// program with tensors, whose loops become kernels.
#pragma once

#include <string>

#include "lantern/codegen/print_options.hpp"
#include "lantern/ir/graph.hpp"

namespace lantern::codegen {

/// For an entry NAME(x, ...) -> (y, ...) on numbers alone the text, which nvcc and NVRTC compile as it
/// is, defines
///
///   NAME_kernel    the kernel. Parameters: const T* for each of the function's, T* for each result; where
///                  it has a tape, char* tape and int64_t values, the number that each tape of a thread
///                  holds (at 8 bytes); where it may fail, NAME_code::lt_error* error, zero at first; then
///                  int64_t n.
///   NAME_map       int NAME_map(const T* x, ..., T* y, ..., int64_t n) on the host, for arrays there.
///                  Returns 0, a CUDA error code, or one of those below; then y, ... are left alone.
///   NAME_message   const char* NAME_message() on the host, where it may fail: why the last map did.
///
/// NVRTC has no host side and sees the kernel only. Where a tape overflows, NAME_map tries again with more
/// memory for each thread, up to LT_TAPE_VALUES values a tape, a macro that may be set before the text. A
/// bool is one byte. `standalone` changes nothing: the text always is.
///
/// With tensors it defines, on the host, what a source in C++ that is alone does: NAME, NAME_workspace,
/// NAME_entry, NAME_on_failure; and a kernel NAME_kernelK for each loop that codegen/kernels.hpp chooses.
/// Tensors lie in the GPU's memory: arguments there are used as they are, others are copied; results are
/// pointers of the GPU, valid in the order of the stream that NAME_on_stream gives. NAME_wait waits and raises
/// what failed in a kernel; NAME_to_host replaces tensors among the results by copies in the host's memory.
///
/// Throws an Error where continuations have not been unwound, or loops run in lanes.
std::string print_cuda(const ir::Module& module, const PrintOptions& options = {});

/// The arithmetic of cuBLAS for products of f32 by this name of PrintOptions::products. Error for any other name.
int f32_products(const std::string& name);
/// Error where PrintOptions::storage has no such type.
void require_storage(const std::string& name);

/// The same in parts, which follow each other in a stand-alone source: what both sides read, with the title; the
/// kernels; and what the host runs, which NVRTC does not read.
struct CudaText {
  std::string both, kernels, host;
  std::string joined() const;
};
CudaText print_cuda_text(const ir::Module& module, const PrintOptions& options = {});

/// Entries of a text with PrintOptions::hosted, to be added to its host's part: `entry`, a lt_entry whose results lie in
/// the host's memory; and, with tensors,
///
///   void lantern_device_entry(lt_workspace* caller, const void* const* in, void* const* out, lt_target* targets,
///                             cudaStream_t stream)
///
/// which queues the work on the stream and leaves tensors on the GPU.
std::string hosted_entry(const ir::Module& module, const std::string& entry);
inline constexpr const char* device_entry_name = "lantern_device_entry";

/// Whether it is printed so, as a map: a function of numbers, which works on nothing but numbers.
bool is_scalar_program(const ir::Module& module);

/// What NAME_map returns for failures of its own.
inline constexpr int cuda_tape_overflow = 20001;  ///< a tape needs more than LT_TAPE_VALUES
inline constexpr int cuda_check_failed = 20002;   ///< a check of the program, an integer division by zero

}  // namespace lantern::codegen
