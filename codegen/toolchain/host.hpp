// The machine this process runs on.
#pragma once

#include <string>

namespace lantern::codegen {

/// The processor's LLVM name and all that it offers.
std::string host_processor();

}  // namespace lantern::codegen
