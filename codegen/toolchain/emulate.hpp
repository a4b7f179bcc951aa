// CUDA sources run where there is no GPU: as C++ with the launch emulator in front.
#pragma once

#include <memory>
#include <string>

#include "lantern/codegen/toolchain/loaded_code.hpp"

namespace lantern::codegen {

/// Compiles a whole .cu (kernels and host code) with the system's C++ compiler; its kernels run on the CPU,
/// see runtime/cuda/launch_emulator.hpp. Besides the text's own functions there are
///
///   const char* lantern_emulator_report()    what was wrong last, such as a divergent barrier
///   int64_t lantern_emulator_allocations()   device allocations that have not been freed
///   void lantern_emulator_backwards(int)     1: threads run from the last to the first
///
/// Throws as compile_with_system_compiler does, and an Error where a launch is malformed. Products and sums
/// are not contracted, so results are those of separate operations.
/// The same source compiled once more in a process is a copy of what the compiler made the first time; its state is its own.
/// `races`: loads and stores of kernels are watched, and the report tells of a race between threads; some twenty
/// times as slow.
std::unique_ptr<LoadedCode> compile_emulated(const std::string& cu_source, bool races = false);

}  // namespace lantern::codegen
