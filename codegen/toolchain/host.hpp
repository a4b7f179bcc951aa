// The machine this process runs on.
#pragma once

namespace lantern::codegen {

/// How many f64 a vector register of this machine holds: 8, 4 or 2.
int host_vector_lanes();

}  // namespace lantern::codegen
