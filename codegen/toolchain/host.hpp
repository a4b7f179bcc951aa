// The machine this process runs on.
#pragma once

#include <string>

namespace lantern::codegen {

/// How many f64 a vector register of this machine holds: 8, 4 or 2.
int host_vector_lanes();

/// The processor's LLVM name and all that it offers.
std::string host_processor();

}  // namespace lantern::codegen
