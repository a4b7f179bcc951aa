// The prelude's arithmetic: kernels over tensors, integer division, polygamma.
#include "lantern/codegen/c/prelude_text.hpp"

namespace lantern::codegen {

using enum PreludeGroup;

const std::vector<PreludePart>& kernel_parts();

const std::vector<PreludePart>& kernel_parts() {
  static const std::vector<PreludePart> parts = {
      // Integers wrap, and the one quotient that does not fit would trap.
      {"K:div",
       functions,
       {"workspace"},
       R"c(static $T lt_div_$K(lt_workspace* ws, $T x, $T y, const char* message) {
  if (y == 0) ws->fail(ws, message);
  return y == -1 ? ($T)(0 - (unsigned long long)x) : x / y;
}
)c"},
      {"K:rem",
       functions,
       {"workspace"},
       R"c(static $T lt_rem_$K(lt_workspace* ws, $T x, $T y, const char* message) {
  if (y == 0) ws->fail(ws, message);
  return y == -1 ? 0 : x % y;
}
)c"},
      // Integers wrap; signed ones need not where the compiler has not been told so.
      {"add_i64",
       functions,
       {"integers"},
       R"c(static inline int64_t lt_add_i64(int64_t x, int64_t y) {
  return (int64_t)((unsigned long long)x + (unsigned long long)y);
}
)c"},
      {"sub_i64",
       functions,
       {"integers"},
       R"c(static inline int64_t lt_sub_i64(int64_t x, int64_t y) {
  return (int64_t)((unsigned long long)x - (unsigned long long)y);
}
)c"},
      {"mul_i64",
       functions,
       {"integers"},
       R"c(static inline int64_t lt_mul_i64(int64_t x, int64_t y) {
  return (int64_t)((unsigned long long)x * (unsigned long long)y);
}
)c"},
      {"neg_i64", functions, {"integers"}, R"c(static inline int64_t lt_neg_i64(int64_t x) {
  return (int64_t)(0 - (unsigned long long)x);
}
)c"},
      {"add_i32",
       functions,
       {"integers"},
       R"c(static inline int32_t lt_add_i32(int32_t x, int32_t y) {
  return (int32_t)((unsigned)x + (unsigned)y);
}
)c"},
      {"sub_i32",
       functions,
       {"integers"},
       R"c(static inline int32_t lt_sub_i32(int32_t x, int32_t y) {
  return (int32_t)((unsigned)x - (unsigned)y);
}
)c"},
      {"mul_i32",
       functions,
       {"integers"},
       R"c(static inline int32_t lt_mul_i32(int32_t x, int32_t y) {
  return (int32_t)((unsigned)x * (unsigned)y);
}
)c"},
      {"neg_i32", functions, {"integers"}, R"c(static inline int32_t lt_neg_i32(int32_t x) {
  return (int32_t)(0 - (unsigned)x);
}
)c"},
      // Floating numbers become integers by saturation, NaN becomes 0: C leaves both undefined.
      {"i64_of_f64",
       functions,
       {"integers"},
       R"c(/* Towards zero; what is too large is the largest or the smallest integer, NaN is 0. */
static inline int64_t lt_i64_of_f64(double x) {
  if (x >= -9223372036854775808.0 && x < 9223372036854775808.0) return (int64_t)x;
  return x > 0 ? 9223372036854775807 : x < 0 ? -9223372036854775807 - 1 : 0;
}
)c"},
      {"i64_of_f32",
       functions,
       {"integers"},
       R"c(/* Towards zero; what is too large is the largest or the smallest integer, NaN is 0. */
static inline int64_t lt_i64_of_f32(float x) {
  if (x >= -9223372036854775808.0f && x < 9223372036854775808.0f) return (int64_t)x;
  return x > 0 ? 9223372036854775807 : x < 0 ? -9223372036854775807 - 1 : 0;
}
)c"},
      {"i32_of_f64",
       functions,
       {"integers"},
       R"c(/* Towards zero; what is too large is the largest or the smallest integer, NaN is 0. */
static inline int32_t lt_i32_of_f64(double x) {
  if (x > -2147483649.0 && x < 2147483648.0) return (int32_t)x;
  return x > 0 ? 2147483647 : x < 0 ? -2147483647 - 1 : 0;
}
)c"},
      {"i32_of_f32",
       functions,
       {"integers"},
       R"c(/* Towards zero; what is too large is the largest or the smallest integer, NaN is 0. */
static inline int32_t lt_i32_of_f32(float x) {
  if (x >= -2147483648.0f && x < 2147483648.0f) return (int32_t)x;
  return x > 0 ? 2147483647 : x < 0 ? -2147483647 - 1 : 0;
}
)c"},
      // Of a number and a NaN the number; of equals the first. Two instructions and a choice on most
      // machines.
      {"min", functions, {}, R"c(static inline double lt_min(double x, double y) {
  return x != x ? y : y < x ? y : x;
}
)c"},
      {"minf", functions, {}, R"c(static inline float lt_minf(float x, float y) {
  return x != x ? y : y < x ? y : x;
}
)c"},
      {"max", functions, {}, R"c(static inline double lt_max(double x, double y) {
  return x != x ? y : y > x ? y : x;
}
)c"},
      {"maxf", functions, {}, R"c(static inline float lt_maxf(float x, float y) {
  return x != x ? y : y > x ? y : x;
}
)c"},
      // Vectors of numbers, whatever the shape.
      {"K:fill", functions, {"integers"}, R"c(static void lt_fill_$K($T* to, int64_t n, $T value) {
  for (int64_t i = 0; i < n; ++i) to[i] = value;
}
)c"},
      {"K:argmax",
       functions,
       {"workspace"},
       R"c(static int64_t lt_argmax_$K(lt_workspace* ws, const $T* x, int64_t n, const char* message) {
  int64_t best = 0;
  if (n == 0) ws->fail(ws, message);
  for (int64_t i = 1; i < n; ++i)
    if (x[i] > x[best] || (x[best] != x[best] && x[i] == x[i])) best = i;
  return best;
}
)c"},
      {"K:accumulate",
       functions,
       {"integers"},
       R"c(static void lt_accumulate_$K($T* to, const $T* x, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] += x[i];
}
)c"},
      // A matrix product by packed panels and a tile that stays in registers: Goto and van de
      // Geijn, Anatomy of high-performance matrix multiplication, 2008.
      {"gemm_sizes",
       types,
       {},
       R"c(/* Rows of a tile of a matrix product, and bytes of a vector: half of the registers, or more, are the tile. */
#if defined __AVX512F__
#define LT_GEMM_BYTES 64
#define LT_GEMM_ROWS 12
#elif defined __AVX__
#define LT_GEMM_BYTES 32
#define LT_GEMM_ROWS 6
#else
#define LT_GEMM_BYTES 16
#define LT_GEMM_ROWS 6
#endif
)c"},
      {"K:gemm",
       functions,
       {"allocate", "mark", "gemm_sizes", "integers"},
       R"c(#ifdef __TINYC__
#define LT_GEMM_COLUMNS_$K 4
static void lt_gemm_tile_$K(int64_t k, const $T* a, const $T* b, $T* tile) {
  for (int i = 0; i < LT_GEMM_ROWS * LT_GEMM_COLUMNS_$K; ++i) tile[i] = 0;
  for (int64_t l = 0; l < k; ++l)
    for (int i = 0; i < LT_GEMM_ROWS; ++i)
      for (int j = 0; j < LT_GEMM_COLUMNS_$K; ++j)
        tile[i * LT_GEMM_COLUMNS_$K + j] += a[l * LT_GEMM_ROWS + i] * b[l * LT_GEMM_COLUMNS_$K + j];
}
#else
typedef $T lt_gemm_vector_$K __attribute__((vector_size(LT_GEMM_BYTES), may_alias));
#define LT_GEMM_LANES_$K (LT_GEMM_BYTES / (int)sizeof($T))
#define LT_GEMM_COLUMNS_$K (2 * LT_GEMM_LANES_$K)
/* tile = a b, a packed by columns and b by rows. By itself: its registers are all that there are. */
__attribute__((noinline)) static void lt_gemm_tile_$K(int64_t k, const $T* a, const $T* b, $T* tile) {
#ifdef __clang__
#pragma STDC FP_CONTRACT ON
#endif
  const lt_gemm_vector_$K zero = {0};
  lt_gemm_vector_$K sum[LT_GEMM_ROWS][2];
  for (int i = 0; i < LT_GEMM_ROWS; ++i) sum[i][0] = sum[i][1] = zero;
  for (int64_t l = 0; l < k; ++l) {
    const lt_gemm_vector_$K y0 = *(const lt_gemm_vector_$K*)b;
    const lt_gemm_vector_$K y1 = *(const lt_gemm_vector_$K*)(b + LT_GEMM_LANES_$K);
    for (int i = 0; i < LT_GEMM_ROWS; ++i) {
      const lt_gemm_vector_$K x = zero + a[i];
      sum[i][0] += x * y0;
      sum[i][1] += x * y1;
    }
    a += LT_GEMM_ROWS;
    b += LT_GEMM_COLUMNS_$K;
  }
  for (int i = 0; i < LT_GEMM_ROWS; ++i) {
    *(lt_gemm_vector_$K*)(tile + i * LT_GEMM_COLUMNS_$K) = sum[i][0];
    *(lt_gemm_vector_$K*)(tile + i * LT_GEMM_COLUMNS_$K + LT_GEMM_LANES_$K) = sum[i][1];
  }
}
#endif

/* Copies a matrix's block, `across` lines at a time side by side; the last ones are filled up with zeros. */
static void lt_gemm_pack_$K($T* to, const $T* from, int64_t lines, int64_t line, int64_t k, int64_t step, int64_t across) {
  for (int64_t i = 0; i < lines; i += across) {
    const int64_t some = across < lines - i ? across : lines - i;
    for (int64_t l = 0; l < k; ++l) {
      const $T* at = from + i * line + l * step;
      for (int64_t p = 0; p < some; ++p) to[p] = at[p * line];
      for (int64_t p = some; p < across; ++p) to[p] = 0;
      to += across;
    }
  }
}

/* Some rows and vectors of columns of c += scale a b, where the rows of b and c lie in one piece. */
static inline void lt_gemm_block_$K(int rows, int vectors, int64_t k, $T scale, const $T* a, int64_t a_row,
                                    int64_t a_column, const $T* b, int64_t b_row, $T* c, int64_t c_row) {
#ifdef __TINYC__
  for (int i = 0; i < rows; ++i)
    for (int64_t l = 0; l < k; ++l)
      for (int j = 0; j < vectors; ++j) c[i * c_row + j] += scale * a[i * a_row + l * a_column] * b[l * b_row + j];
#else
#ifdef __clang__
#pragma STDC FP_CONTRACT ON
#endif
  typedef $T in_memory __attribute__((vector_size(LT_GEMM_BYTES), aligned(sizeof($T)), may_alias));
  const lt_gemm_vector_$K zero = {0};
  lt_gemm_vector_$K sum[4][2];
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < vectors; ++j) sum[i][j] = *(const in_memory*)(c + i * c_row + j * LT_GEMM_LANES_$K);
  for (int64_t l = 0; l < k; ++l)
    for (int i = 0; i < rows; ++i) {
      const lt_gemm_vector_$K x = zero + scale * a[i * a_row + l * a_column];
      for (int j = 0; j < vectors; ++j) sum[i][j] += x * *(const in_memory*)(b + l * b_row + j * LT_GEMM_LANES_$K);
    }
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < vectors; ++j) *(in_memory*)(c + i * c_row + j * LT_GEMM_LANES_$K) = sum[i][j];
#endif
}

/* c += scale a b without packing: of products so small that it would take longer than they do. */
static void lt_gemm_small_$K(int64_t m, int64_t n, int64_t k, $T scale, const $T* a, int64_t a_row, int64_t a_column,
                             const $T* b, int64_t b_row, $T* c, int64_t c_row) {
#ifdef __TINYC__
  const int64_t lanes = 1;
#else
  const int64_t lanes = LT_GEMM_LANES_$K;
#endif
  int64_t j = 0;
  for (; j + 2 * lanes <= n; j += 2 * lanes) {
    int64_t i = 0;
    for (; i + 4 <= m; i += 4)
      lt_gemm_block_$K(4, 2, k, scale, a + i * a_row, a_row, a_column, b + j, b_row, c + i * c_row + j, c_row);
    for (; i < m; ++i)
      lt_gemm_block_$K(1, 2, k, scale, a + i * a_row, a_row, a_column, b + j, b_row, c + i * c_row + j, c_row);
  }
  for (; j + lanes <= n; j += lanes)
    for (int64_t i = 0; i < m; ++i)
      lt_gemm_block_$K(1, 1, k, scale, a + i * a_row, a_row, a_column, b + j, b_row, c + i * c_row + j, c_row);
  for (; j < n; ++j)
    for (int64_t i = 0; i < m; ++i) {
      $T sum = 0;
      for (int64_t l = 0; l < k; ++l) sum += a[i * a_row + l * a_column] * b[l * b_row + j];
      c[i * c_row + j] += scale * sum;
    }
}

/* c += scale a b, of m by k and k by n, a and b with the steps of their rows and columns in memory; a row of c lies in one
   piece. */
static void lt_gemm_$K(lt_workspace* ws, int64_t m, int64_t n, int64_t k, $T scale, const $T* a, int64_t a_row,
                       int64_t a_column, const $T* b, int64_t b_row, int64_t b_column, $T* c, int64_t c_row) {
  const int64_t rows = LT_GEMM_ROWS, columns = LT_GEMM_COLUMNS_$K, most_k = 256, most_m = 16 * rows, most_n = 64 * columns;
  if (m <= 0 || n <= 0 || k <= 0) return;
  const lt_position mark = lt_mark(ws);
  if (m * n * k < 64000) {
    if (b_column != 1) { /* its columns become rows */
      $T* const turned = ($T*)lt_allocate(ws, k * n * (int64_t)sizeof($T));
      for (int64_t l = 0; l < k; ++l)
        for (int64_t j = 0; j < n; ++j) turned[l * n + j] = b[l * b_row + j * b_column];
      b = turned;
      b_row = n;
    }
    lt_gemm_small_$K(m, n, k, scale, a, a_row, a_column, b, b_row, c, c_row);
    lt_release(ws, mark);
    return;
  }
  $T* const left = ($T*)lt_allocate(ws, most_k * most_m * (int64_t)sizeof($T));
  $T* const right = ($T*)lt_allocate(ws, most_k * most_n * (int64_t)sizeof($T));
  $T* const tile = ($T*)lt_allocate(ws, rows * columns * (int64_t)sizeof($T));
  for (int64_t l = 0; l < k; l += most_k) {
    const int64_t depth = most_k < k - l ? most_k : k - l;
    for (int64_t j = 0; j < n; j += most_n) {
      const int64_t wide = most_n < n - j ? most_n : n - j;
      lt_gemm_pack_$K(right, b + l * b_row + j * b_column, wide, b_column, depth, b_row, columns);
      for (int64_t i = 0; i < m; i += most_m) {
        const int64_t high = most_m < m - i ? most_m : m - i;
        lt_gemm_pack_$K(left, a + i * a_row + l * a_column, high, a_row, depth, a_column, rows);
        for (int64_t q = 0; q < wide; q += columns)
          for (int64_t p = 0; p < high; p += rows) {
            lt_gemm_tile_$K(depth, left + p * depth, right + q * depth, tile);
            $T* const to = c + (i + p) * c_row + j + q;
            const int64_t some_rows = rows < high - p ? rows : high - p;
            const int64_t some_columns = columns < wide - q ? columns : wide - q;
            for (int64_t r = 0; r < some_rows; ++r)
              for (int64_t s = 0; s < some_columns; ++s) to[r * c_row + s] += scale * tile[r * columns + s];
          }
      }
    }
  }
  lt_release(ws, mark);
}
)c"},
      // The n-th derivative of digamma: recurrence up to where the asymptotic series is exact to rounding
      // (Abramowitz and Stegun 6.3.18 and 6.4.11); below zero digamma and trigamma are reflected.
      {"polygamma", functions, {}, R"c(/* The n-th derivative of the digamma function. */
static double lt_polygamma(double n, double x) {
  static const double bernoulli[8] = {1.0 / 12,           -1.0 / 720,
                                      1.0 / 30240,        -1.0 / 1209600,
                                      1.0 / 47900160,     -691.0 / 1307674368000.0,
                                      1.0 / 74724249600.0, -3617.0 / 10670622842880000.0};
  const double pi = 3.14159265358979323846;
  if (n != floor(n) || n < 0 || n > 100 || x != x) return 0.0 / 0.0;
  if (x <= 0 && x == floor(x)) return floor(n / 2) * 2 == n ? 0.0 / 0.0 : 1.0 / 0.0;
  if (n == 0) {
    double sum = 0;
    if (x < 0) {
      sum = -pi / tan(pi * x);
      x = 1 - x;
    }
    for (; x < 15; x += 1) sum -= 1 / x;
    double power = 1 / (x * x), factorial = 1, term = power;
    sum += log(x) - 0.5 / x;
    for (int k = 0; k < 8; ++k) {
      sum -= bernoulli[k] * factorial * term;
      factorial *= (2 * k + 2) * (2 * k + 3);
      term *= power;
    }
    return sum;
  }
  if (n == 1 && x < 0) {
    const double s = sin(pi * x);
    return pi * pi / (s * s) - lt_polygamma(1, 1 - x);
  }
  if (x < -1e6) return 0.0 / 0.0;
  double zeta = 0, factorial = 1;
  const double s = n + 1;
  for (; x < 15 + n; x += 1) zeta += pow(x, -s);
  zeta += pow(x, -n) / n + 0.5 * pow(x, -s);
  double term = s * pow(x, -s - 1);
  for (int k = 0; k < 8; ++k) {
    zeta += bernoulli[k] * term;
    term *= (s + 2 * k + 1) * (s + 2 * k + 2) / (x * x);
  }
  for (int k = 2; k <= n; ++k) factorial *= k;
  return floor(n / 2) * 2 == n ? -factorial * zeta : factorial * zeta;
}
)c"},
      {"polygammaf", functions, {"polygamma"}, R"c(static float lt_polygammaf(float n, float x) {
  return (float)lt_polygamma(n, x);
}
)c"},
  };
  return parts;
}

}  // namespace lantern::codegen
