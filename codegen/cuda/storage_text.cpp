// Elements of 16 bits in the memory of a GPU: computing knows float alone, loads widen and stores round.
#include "lantern/codegen/c/prelude_text.hpp"

namespace lantern::codegen {

using enum PreludeGroup;

const std::vector<PreludePart>& device_storage_parts();

const std::vector<PreludePart>& device_storage_parts() {
  static const std::vector<PreludePart> parts = {
      {"bits", types, {}, R"c(typedef union lt_bits {
  float x;
  unsigned bits;
} lt_bits;
)c"},
      {"bf16", types, {"bits"}, R"c(/* 8 binary digits, and the exponents of float. What is stored is the nearest such number, of two the even one. */
struct lt_bf16 {
  unsigned short bits;
  __host__ __device__ __forceinline__ operator float() const {
    lt_bits wide;
    wide.bits = (unsigned)bits << 16;
    return wide.x;
  }
  __host__ __device__ __forceinline__ lt_bf16& operator=(float x) {
    lt_bits wide;
    wide.x = x;
    bits = x != x ? (unsigned short)0x7fff : (unsigned short)((wide.bits + 0x7fffu + (wide.bits >> 16 & 1u)) >> 16);
    return *this;
  }
};
)c"},
      {"f16", types, {"bits"}, R"c(/* Half precision: 11 binary digits, numbers from 6e-8 to 65504. What is stored is the nearest such number, of two the even one;
   from 65520 on that is infinity. */
struct lt_f16 {
  unsigned short bits;
  __host__ __device__ __forceinline__ operator float() const {
    lt_bits wide;
#ifdef __CUDA_ARCH__
    asm("cvt.f32.f16 %0, %1;" : "=f"(wide.x) : "h"(bits));
#else
    const unsigned size = bits & 0x7fffu;
    if (size < 0x400u) wide.x = (float)size * 5.9604644775390625e-8f;
    else wide.bits = size < 0x7c00u ? (size << 13) + (112u << 23) : (size << 13 | 0x7f800000u);
    wide.bits |= (unsigned)(bits & 0x8000u) << 16;
#endif
    return wide.x;
  }
  __host__ __device__ __forceinline__ lt_f16& operator=(float x) {
#ifdef __CUDA_ARCH__
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x));
#else
    lt_bits wide;
    wide.x = x;
    const unsigned sign = wide.bits >> 16 & 0x8000u, size = wide.bits & 0x7fffffffu;
    unsigned half;
    if (size > 0x7f800000u) {
      half = 0x7fff;
    } else if (size >= 0x477ff000u) {
      half = sign | 0x7c00u;
    } else if (size < 0x38800000u) { /* the last digit of 0.5 and more is the smallest half */
      wide.bits = size;
      wide.x += 0.5f;
      half = sign | (wide.bits - 0x3f000000u);
    } else {
      half = sign | ((size + 0xfffu + (size >> 13 & 1u) - (112u << 23)) >> 13);
    }
    bits = (unsigned short)half;
#endif
    return *this;
  }
};
)c"},
      {"K:stored", functions, {}, R"c(static $T lt_stored_$K($S x) {
  $T narrow;
  narrow = x;
  return narrow;
}
)c"},
      {"K:narrow_kernel", kernels, {"kernel"}, R"c(LT_KERNEL void lt_narrow_kernel_$K($T* to, const $S* x, int64_t n) {
  for (int64_t i = LT_THREAD; i < n; i += LT_THREADS) to[i] = x[i];
}
)c"},
      {"K:narrowed", functions, {"K:narrow_kernel", "gpu", "blocks", "device_allocate"}, R"c(/* A factor of a product, rounded for the other one. */
static const $T* lt_narrowed_$K(lt_workspace* ws, const $S* x, int64_t n) {
  $T* to = ($T*)lt_device_allocate(ws, n * (int64_t)sizeof($T));
  if (n <= 0) return to;
  lt_narrow_kernel_$K<<<lt_blocks(ws, n), 256, 0, ws->device->stream>>>(to, x, n);
  lt_launched(ws);
  return to;
}
)c"},
  };
  return parts;
}

}  // namespace lantern::codegen
