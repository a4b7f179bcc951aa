// What the processor says of itself.
#include "lantern/codegen/toolchain/host.hpp"

#include <llvm-c/Core.h>
#include <llvm-c/TargetMachine.h>

namespace lantern::codegen {

std::string host_processor() {
  char* name = LLVMGetHostCPUName();
  char* features = LLVMGetHostCPUFeatures();
  std::string both = std::string(name) + " " + features;
  LLVMDisposeMessage(name);
  LLVMDisposeMessage(features);
  return both;
}

}  // namespace lantern::codegen
