// Functions on vectors of truth values: their arrays in memory, and their bits on tapes.
#include <array>

#include "lantern/codegen/c/prelude.hpp"
#include "lantern/codegen/c/vector_text.hpp"

namespace lantern::codegen {

namespace {

/// An array of truth values has a byte, 1 or 0, for each; a lane has eight, all bits set or none.
constexpr std::array of_truths{
    VectorTemplate{"load", "", R"c(static inline $V lt_load_$N(const $E* p) {
  typedef unsigned char bytes __attribute__((vector_size($L), aligned(1), may_alias));
  return -__builtin_convertvector(*(const bytes*)p, $V);
}
)c"},
    VectorTemplate{"store", "", R"c(static inline void lt_store_$N($E* p, $V x) {
  typedef unsigned char bytes __attribute__((vector_size($L), aligned(1), may_alias));
  *(bytes*)p = __builtin_convertvector(x & 1, bytes);
}
)c"},
    VectorTemplate{"load_some", "", R"c(static inline $V lt_load_some_$N(const $E* p, int64_t n) {
  $V x = {0};
  for (int i = 0; i < $L; ++i) x[i] = i < n ? -(int64_t)p[i] : 0;
  return x;
}
)c"},
    VectorTemplate{"store_some", "", R"c(static inline void lt_store_some_$N($E* p, $V x, int64_t n) {
  for (int i = 0; i < $L; ++i)
    if (i < n) p[i] = x[i] != 0;
}
)c"},
    VectorTemplate{"load_strided_some", "",
                   R"c(static inline $V lt_load_strided_some_$N(const $E* p, int64_t stride, int64_t n) {
  $V x = {0};
  for (int i = 0; i < $L; ++i) x[i] = i < n ? -(int64_t)p[i * stride] : 0;
  return x;
}
)c"},
    VectorTemplate{"gather_some", "", R"c(static inline $V lt_gather_some_$N(const $E* p, $I at, int64_t n) {
  $V x = {0};
  for (int i = 0; i < $L; ++i) x[i] = i < n ? -(int64_t)p[at[i]] : 0;
  return x;
}
)c"},
    VectorTemplate{"scatter_some", "", R"c(static inline void lt_scatter_some_$N($E* p, $I at, $V x, int64_t n) {
  for (int i = 0; i < $L; ++i)
    if (i < n) p[at[i]] = x[i] != 0;
}
)c"},
    // Of each lane a bit, as tapes hold them: eight bytes of 0 and 1 become the bits of the highest byte of a
    // product.
    VectorTemplate{"pack", "", R"c(static inline $E lt_pack_$N($V x) {
#if defined __clang__ && __clang_major__ >= 15
#ifdef __cplusplus
  typedef bool bits __attribute__((ext_vector_type($L)));
#else
  typedef _Bool bits __attribute__((ext_vector_type($L)));
#endif
  const bits all = __builtin_convertvector(x, bits);
  $E packed = 0;
  __builtin_memcpy(&packed, &all, sizeof packed);
  return packed;
#else
  typedef unsigned char bytes __attribute__((vector_size($L)));
  const bytes each = __builtin_convertvector(x & 1, bytes);
  unsigned long long eight = 0;
  __builtin_memcpy(&eight, &each, $L);
  return ($E)(eight * 0x0102040810204080ULL >> 56);
#endif
}
)c"},
    VectorTemplate{"unpack", "", R"c(static inline $V lt_unpack_$N($E packed) {
#if defined __clang__ && __clang_major__ >= 15
#ifdef __cplusplus
  typedef bool bits __attribute__((ext_vector_type($L)));
#else
  typedef _Bool bits __attribute__((ext_vector_type($L)));
#endif
  bits set;
  __builtin_memcpy(&set, &packed, sizeof packed);
  return -__builtin_convertvector(set, $V);
#else
  $V bit, all;
  for (int i = 0; i < $L; ++i) bit[i] = (int64_t)1 << i;
  for (int i = 0; i < $L; ++i) all[i] = packed;
  return (all & bit) != 0;
#endif
}
)c"},
};

}  // namespace

std::span<const VectorTemplate> truth_templates() { return of_truths; }

std::string packed_truths(int lanes) {
  return lanes <= 8    ? "unsigned char"
         : lanes <= 16 ? "unsigned short"
         : lanes <= 32 ? "unsigned"
                       : "unsigned long long";
}

}  // namespace lantern::codegen
