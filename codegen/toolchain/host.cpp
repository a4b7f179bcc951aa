// What the processor says of itself.
#include "lantern/codegen/toolchain/host.hpp"

#include <llvm-c/Core.h>
#include <llvm-c/TargetMachine.h>

namespace lantern::codegen {

int host_vector_lanes() {
#if defined __x86_64__
  if (__builtin_cpu_supports("avx512f")) return 8;
  if (__builtin_cpu_supports("avx2")) return 4;
#endif
  return 2;
}

std::string host_processor() {
  char* name = LLVMGetHostCPUName();
  char* features = LLVMGetHostCPUFeatures();
  std::string both = std::string(name) + " " + features;
  LLVMDisposeMessage(name);
  LLVMDisposeMessage(features);
  return both;
}

}  // namespace lantern::codegen
