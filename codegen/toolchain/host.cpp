// What the processor says of itself.
#include "lantern/codegen/toolchain/host.hpp"

namespace lantern::codegen {

int host_vector_lanes() {
#if defined __x86_64__
  if (__builtin_cpu_supports("avx512f")) return 8;
  if (__builtin_cpu_supports("avx2")) return 4;
#endif
  return 2;
}

}  // namespace lantern::codegen
