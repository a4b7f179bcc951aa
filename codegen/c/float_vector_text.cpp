// Vectors of f32: twice as many lanes to a register as of f64. Truth values and indices stay as wide as i64;
// compilers see through the conversions.
#include <array>

#include "lantern/codegen/c/vector_text.hpp"

namespace lantern::codegen {

namespace {

constexpr std::array of_floats{
    // By what comparisons of the same vectors give.
    VectorTemplate{"choose", "",
                   "static inline $V lt_choose_$N($M c, $V x, $V y) { return ($V)((c & ($M)x) | (~c & "
                   "($M)y)); }\n"},
    VectorTemplate{"select", "choose",
                   "static inline $V lt_select_$N($I c, $V x, $V y) {\n  return "
                   "lt_choose_$N(__builtin_convertvector(c, $M), x, y);\n}\n"},
    VectorTemplate{"min", "choose",
                   "static inline $V lt_min_$N($V x, $V y) { return lt_choose_$N((x <= y) | (y != y), x, "
                   "y); }\n"},
    VectorTemplate{"max", "choose",
                   "static inline $V lt_max_$N($V x, $V y) { return lt_choose_$N((x >= y) | (y != y), x, "
                   "y); }\n"},
    VectorTemplate{"sign", "copysign choose", R"c(static inline $V lt_sign_$N($V x) {
  const $V zero = {0};
  return lt_choose_$N((x < zero) | (x > zero), lt_copysign_$N(zero + 1.0f, x), zero);
}
)c"},
};

// As for f64, with 1.5 * 2^23 for the number that rounds to a whole one. That number has what makes n the
// exponent of 2^n added to it already.
constexpr std::array math{
    // e^r - 1 for |r| <= ln(2) / 2: the polynomial of degree 6 through Chebyshev's nodes, which differs from
    // it by less than 1e-8 of its value.
    VectorTemplate{"exp_rest", "", R"c(static inline $V lt_exp_rest_$N($V r) {
  const $V r2 = r * r;
  const $V a = 0.16666576f + r * 0.041666556f, b = 0.008363179f + r * 0.0013926184f;
  return r + r2 * ((0.5f + r * a) + (r2 * r) * b);
}
)c"},
    // Within one unit in the last place; infinities, denormal results and NaN included.
    VectorTemplate{"exp", "exp_rest choose", R"c(static inline $V lt_exp_$N($V x) {
  const $V zero = {0};
  const $V low = lt_choose_$N(x > zero + 89.0f, zero + 89.0f, x);
  const $V y = lt_choose_$N(low < zero - 104.0f, zero - 104.0f, low);
  const $V t = y * 1.442695f + 12583166.0f, n = t - 12583166.0f;
  const $V r = (y - n * 0.693359375f) + n * 0.000212194442f;
  const $V half = n * 0.5f + 12583039.0f;
  const $M second = ($M)t - ($M)half;
  const $V scale = ($V)(($M)half << 23);
  return (scale + scale * lt_exp_rest_$N(r)) * ($V)(second << 23);
}
)c"},
    // Within 3 units in the last place.
    VectorTemplate{"tanh", "exp_rest choose", R"c(static inline $V lt_tanh_$N($V x) {
  const $V zero = {0};
  const $M sign = ($M)x & ($M)-zero;
  const $V size = ($V)(($M)x ^ sign);
  const $V y = lt_choose_$N(size > zero + 10.0f, zero + 10.0f, size);
  const $V t = y * 2.88539f + 12583039.0f, n = t - 12583039.0f;
  const $V r = (y * 2.0f - n * 0.693359375f) + n * 0.000212194442f;
  const $V power = ($V)(($M)t << 23);
  const $V m = (power - 1.0f) + power * lt_exp_rest_$N(r);
  return ($V)(($M)(m / (m + 2.0f)) | sign);
}
)c"},
};

}  // namespace

std::span<const VectorTemplate> float_vector_templates() { return of_floats; }
std::span<const VectorTemplate> float_math_templates() { return math; }

std::string_view float_masks() {
  return R"c(/* The first n lanes of a register of floats, which may be none or all. */
#if defined __AVX512F__
#define LT_FLOAT_PART 16
typedef float lt_float_part_vector __attribute__((vector_size(64), aligned(4), may_alias));

static inline unsigned short lt_first_float_lanes(long long n) {
  return (unsigned short)(n >= 16 ? 65535 : n <= 0 ? 0 : (1 << n) - 1);
}

static inline lt_float_part_vector lt_load_float_part(const float* p, long long n) {
  const lt_float_part_vector zero = {0};
  return __builtin_ia32_loadups512_mask(p, zero, lt_first_float_lanes(n));
}

static inline void lt_store_float_part(float* p, lt_float_part_vector x, long long n) {
  __builtin_ia32_storeups512_mask(p, x, lt_first_float_lanes(n));
}
#elif defined __AVX__
#define LT_FLOAT_PART 8
typedef float lt_float_part_vector __attribute__((vector_size(32), aligned(4), may_alias));
typedef float lt_float_half_vector __attribute__((vector_size(16), aligned(4), may_alias));
typedef float lt_float_part_operand __attribute__((vector_size(32)));
typedef int lt_float_part_mask __attribute__((vector_size(32)));

static inline lt_float_part_vector lt_load_float_part(const float* p, long long n) {
  const int m = n > 8 ? 8 : n < 0 ? 0 : (int)n;
  const lt_float_part_mask lane = {0, 1, 2, 3, 4, 5, 6, 7}, all = {m, m, m, m, m, m, m, m};
  return __builtin_ia32_maskloadps256((const lt_float_part_operand*)p, lane < all);
}

/* Masked stores of this width are slow on several machines. */
static inline void lt_store_float_part(float* p, lt_float_part_vector x, long long n) {
  if (n >= 8) {
    *(lt_float_part_vector*)p = x;
  } else if (n > 0) {
    const lt_float_half_vector low = {x[0], x[1], x[2], x[3]}, high = {x[4], x[5], x[6], x[7]};
    if (n >= 4) *(lt_float_half_vector*)p = low;
    const lt_float_half_vector rest = n >= 4 ? high : low;
    float* const at = p + (n & 4);
    if (n & 3) at[0] = rest[0];
    if ((n & 3) > 1) at[1] = rest[1];
    if ((n & 3) > 2) at[2] = rest[2];
  }
}
#endif
)c";
}

}  // namespace lantern::codegen
