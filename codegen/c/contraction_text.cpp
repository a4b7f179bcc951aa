// The prelude's matrix products: of matrices that lie in rows and columns, and of groups of a tensor's indices.
#include "lantern/codegen/c/prelude_text.hpp"

namespace lantern::codegen {

using enum PreludeGroup;

const std::vector<PreludePart>& contraction_parts();

const std::vector<PreludePart>& contraction_parts() {
  static const std::vector<PreludePart> parts = {
      // A matrix product by packed panels and a tile that stays in registers: Goto and van de
      // Geijn, Anatomy of high-performance matrix multiplication, 2008.
      {"gemm_sizes", types, {},
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
#define LT_GEMM_FEW (LT_GEMM_ROWS / 3)
#define LT_GEMM_WHERE_IT_IS (LT_GEMM_ROWS <= 6) /* see lt_gemm_there */
#define LT_GEMM_DEPTH 256  /* numbers of a line that are packed together */
#define LT_GEMM_LEAST 2000 /* numbers of a matrix that are worth keeping */
/* Functions by themselves: their registers are all that there are. */
#ifdef __TINYC__
#define LT_GEMM_APART
#elif defined __clang__ && defined __AVX512F__ /* which for some processors would split vectors of 512 bits */
#define LT_GEMM_APART __attribute__((noinline, min_vector_width(512)))
#else
#define LT_GEMM_APART __attribute__((noinline))
#endif
/* What is in vectors says so; the other loops are short, and compilers need not work on them. */
#ifdef __clang__
#define LT_PLAIN_LOOP _Pragma("clang loop vectorize(disable) unroll(disable)")
#else
#define LT_PLAIN_LOOP
#endif
)c"},
      {"K:gemm_tile", functions, {"gemm_sizes", "integers"},
       R"c(/* Rows of a, times a number, times columns of b, which is packed by rows, become what lies at `to`, a place for each row, or
   are added to it. */
#ifdef __TINYC__
#define LT_GEMM_COLUMNS_$K 4
#define LT_GEMM_NARROW_$K 4
static void lt_gemm_rows_$K(int rows, int columns, int fresh, int64_t k, $T scale, const $T* a, int64_t a_row, int64_t a_column,
                            const $T* b, $T* const* to) {
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < columns; ++j) {
      $T sum = 0;
      for (int64_t l = 0; l < k; ++l) sum += a[i * a_row + l * a_column] * b[l * columns + j];
      to[i][j] = (fresh ? 0 : to[i][j]) + scale * sum;
    }
}
#else
typedef $T lt_gemm_vector_$K __attribute__((vector_size(LT_GEMM_BYTES), may_alias));
typedef $T lt_gemm_in_memory_$K __attribute__((vector_size(LT_GEMM_BYTES), aligned(sizeof($T)), may_alias));
#define LT_GEMM_LANES_$K (LT_GEMM_BYTES / (int)sizeof($T))
#define LT_GEMM_PUT(to, x) (fresh ? ((to) = (x)) : ((to) += (x))) /* C has no choice between two vectors */
#define LT_GEMM_COLUMNS_$K (2 * LT_GEMM_LANES_$K)
#define LT_GEMM_NARROW_$K LT_GEMM_LANES_$K
static inline __attribute__((always_inline)) void lt_gemm_rows_$K(int rows, int columns, int fresh, int64_t k, $T scale,
                                                                  const $T* a, int64_t a_row, int64_t a_column, const $T* b,
                                                                  $T* const* to) {
#ifdef __clang__
#pragma STDC FP_CONTRACT ON
#endif
  const int vectors = columns / LT_GEMM_LANES_$K;
  const lt_gemm_vector_$K zero = {0};
  lt_gemm_vector_$K sum[LT_GEMM_ROWS][2];
  for (int i = 0; i < rows; ++i) { /* results come to the cache while they are made */
    __builtin_prefetch(to[i], 1);
    __builtin_prefetch(to[i] + columns - 1, 1);
  }
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < vectors; ++j) sum[i][j] = zero;
  for (int64_t l = 0; l < k; ++l) {
    lt_gemm_vector_$K y[2];
    if (a_row == 1) __builtin_prefetch(a + rows * k, 0, 2); /* the next panel comes to the second cache meanwhile */
    for (int j = 0; j < vectors; ++j) y[j] = *(const lt_gemm_vector_$K*)(b + j * LT_GEMM_LANES_$K);
    for (int i = 0; i < rows; ++i) {
      const lt_gemm_vector_$K x = a[i * a_row] - zero; /* x - 0 is x, of -0 too */
      for (int j = 0; j < vectors; ++j) sum[i][j] += x * y[j];
    }
    a += a_column;
    b += columns;
  }
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < vectors; ++j) {
      lt_gemm_in_memory_$K* const at = (lt_gemm_in_memory_$K*)(to[i] + j * LT_GEMM_LANES_$K);
      LT_GEMM_PUT(*at, scale * sum[i][j]);
    }
}
#endif
/* Of the last columns a tile has half as many where that is enough. */
#define LT_GEMM_TILE(name, rows, columns)                                                                                 \
  LT_GEMM_APART static void name(int fresh, int64_t k, $T scale, const $T* a, const $T* b, $T* const* to) {              \
    lt_gemm_rows_$K(rows, columns, fresh, k, scale, a, 1, rows, b, to);                                                   \
  }
LT_GEMM_TILE(lt_gemm_tile_$K, LT_GEMM_ROWS, LT_GEMM_COLUMNS_$K)
LT_GEMM_TILE(lt_gemm_most_$K, 2 * LT_GEMM_FEW, LT_GEMM_COLUMNS_$K)
LT_GEMM_TILE(lt_gemm_few_$K, LT_GEMM_FEW, LT_GEMM_COLUMNS_$K)
LT_GEMM_TILE(lt_gemm_narrow_tile_$K, LT_GEMM_ROWS, LT_GEMM_NARROW_$K)
LT_GEMM_TILE(lt_gemm_narrow_most_$K, 2 * LT_GEMM_FEW, LT_GEMM_NARROW_$K)
LT_GEMM_TILE(lt_gemm_narrow_few_$K, LT_GEMM_FEW, LT_GEMM_NARROW_$K)
#undef LT_GEMM_TILE
/* Tiles of fewer columns than a vector has lanes: of the rows a vector each, times a number for each column. */
#define LT_GEMM_SLIM_$K (LT_GEMM_WHERE_IT_IS || LT_GEMM_NARROW_$K <= 4 ? 0 : LT_GEMM_NARROW_$K <= 8 ? 4 : 8)
#ifndef __TINYC__
static inline __attribute__((always_inline)) void lt_gemm_thin_$K(int rows, int columns, int fresh, int64_t k, $T scale,
                                                                  const $T* a, const $T* b, $T* const* to) {
#ifdef __clang__
#pragma STDC FP_CONTRACT ON
#endif
  const int vectors = (rows + LT_GEMM_LANES_$K - 1) / LT_GEMM_LANES_$K;
  const lt_gemm_vector_$K zero = {0};
  lt_gemm_vector_$K sum[8][LT_GEMM_ROWS];
  for (int j = 0; j < columns; ++j)
    for (int i = 0; i < vectors; ++i) sum[j][i] = zero;
  for (int64_t l = 0; l < k; ++l) {
    for (int i = 0; i < vectors; ++i) {
      const lt_gemm_vector_$K x = *(const lt_gemm_in_memory_$K*)(a + i * LT_GEMM_LANES_$K); /* lanes behind the rows are idle */
      for (int j = 0; j < columns; ++j) sum[j][i] += x * (b[j] - zero);
    }
    a += rows;
    b += columns;
  }
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < columns; ++j) {
      const $T x = scale * sum[j][i / LT_GEMM_LANES_$K][i % LT_GEMM_LANES_$K];
      to[i][j] = fresh ? x : to[i][j] + x;
    }
}
#define LT_GEMM_THIN(name, columns)                                                                                          \
  LT_GEMM_APART static void name(int64_t rows, int fresh, int64_t k, $T scale, const $T* a, const $T* b, $T* const* to) { \
    if (rows == LT_GEMM_ROWS) lt_gemm_thin_$K(LT_GEMM_ROWS, columns, fresh, k, scale, a, b, to);                          \
    else if (rows == LT_GEMM_FEW) lt_gemm_thin_$K(LT_GEMM_FEW, columns, fresh, k, scale, a, b, to);                       \
    else lt_gemm_thin_$K(2 * LT_GEMM_FEW, columns, fresh, k, scale, a, b, to);                                            \
  }
LT_GEMM_THIN(lt_gemm_slim_$K, 4)
LT_GEMM_THIN(lt_gemm_slim_twice_$K, 8)
#undef LT_GEMM_THIN
#endif
/* The columns of a tile for the next of so many; only the last tile has columns that are not filled. */
static inline int64_t lt_gemm_across_$K(int64_t some) {
  const int64_t narrow = LT_GEMM_NARROW_$K, slim = LT_GEMM_SLIM_$K;
  return some > narrow + slim ? LT_GEMM_COLUMNS_$K : some > slim ? narrow : some > 4 ? 8 : 4;
}
/* So many columns, with those that fill up the last tile. */
static inline int64_t lt_gemm_filled_$K(int64_t some) {
  int64_t all = some - some % LT_GEMM_COLUMNS_$K;
  while (all < some) all += lt_gemm_across_$K(some - all);
  return all;
}
/* A tile of which a is packed by columns of so many rows, and b by rows of so many columns. */
static inline void lt_gemm_packed_$K(int64_t rows, int64_t columns, int fresh, int64_t k, $T scale, const $T* a, const $T* b,
                                     $T* const* to) {
#ifndef __TINYC__
  if (columns < LT_GEMM_NARROW_$K) {
    (columns == 4 ? lt_gemm_slim_$K : lt_gemm_slim_twice_$K)(rows, fresh, k, scale, a, b, to);
    return;
  }
#endif
  (columns == LT_GEMM_COLUMNS_$K ? rows == LT_GEMM_ROWS  ? lt_gemm_tile_$K
                                   : rows == LT_GEMM_FEW ? lt_gemm_few_$K
                                                         : lt_gemm_most_$K
   : rows == LT_GEMM_ROWS        ? lt_gemm_narrow_tile_$K
   : rows == LT_GEMM_FEW         ? lt_gemm_narrow_few_$K
                                 : lt_gemm_narrow_most_$K)(fresh, k, scale, a, b, to);
}
/* One of which the rows of a lie where they are, each in one piece: of few rows that is no slower than packing, and costs
   nothing. Of many there are not enough registers for where they lie. */
LT_GEMM_APART static void lt_gemm_wide_there_$K(int fresh, int64_t k, $T scale, const $T* a, int64_t a_row, const $T* b,
                                                $T* const* to) {
  lt_gemm_rows_$K(LT_GEMM_ROWS, LT_GEMM_COLUMNS_$K, fresh, k, scale, a, a_row, 1, b, to);
}
LT_GEMM_APART static void lt_gemm_narrow_there_$K(int fresh, int64_t k, $T scale, const $T* a, int64_t a_row, const $T* b,
                                                  $T* const* to) {
  lt_gemm_rows_$K(LT_GEMM_ROWS, LT_GEMM_NARROW_$K, fresh, k, scale, a, a_row, 1, b, to);
}
static inline void lt_gemm_there_$K(int64_t columns, int fresh, int64_t k, $T scale, const $T* a, int64_t a_row, const $T* b,
                                    $T* const* to) {
  (columns == LT_GEMM_COLUMNS_$K ? lt_gemm_wide_there_$K : lt_gemm_narrow_there_$K)(fresh, k, scale, a, a_row, b, to);
}

/* A row of a tile, times a number, becomes what lies at `to` or is added to it. */
LT_GEMM_APART static void lt_gemm_row_$K(int fresh, $T* to, const $T* tile, int64_t some, $T scale) {
  int64_t s = 0;
#ifndef __TINYC__
  for (; s + LT_GEMM_LANES_$K <= some; s += LT_GEMM_LANES_$K) {
    const lt_gemm_vector_$K x = scale * *(const lt_gemm_in_memory_$K*)(tile + s);
    lt_gemm_in_memory_$K* const at = (lt_gemm_in_memory_$K*)(to + s);
    LT_GEMM_PUT(*at, x);
  }
#endif
  LT_PLAIN_LOOP
  for (; s < some; ++s) to[s] = (fresh ? 0 : to[s]) + scale * tile[s];
}
)c"},
      {"K:gemm", functions, {"allocate", "mark", "K:gemm_tile", "K:pack", "integers"},
       R"c(/* Some rows and vectors of columns of c += scale a b, or, where `fresh`, c = scale a b, where the rows of b and c lie in one
   piece. */
#ifdef __TINYC__
static void lt_gemm_in_place_$K(int fresh, int64_t m, int64_t n, int64_t k, $T scale, const $T* a, int64_t a_row,
                                int64_t a_column, const $T* b, int64_t b_row, $T* c, int64_t c_row) {
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      $T sum = 0;
      for (int64_t l = 0; l < k; ++l) sum += a[i * a_row + l * a_column] * b[l * b_row + j];
      c[i * c_row + j] = (fresh ? 0 : c[i * c_row + j]) + scale * sum;
    }
}
#else
static inline __attribute__((always_inline)) void lt_gemm_block_$K(int rows, int vectors, int fresh, int64_t k, $T scale,
                                                                   const $T* a, int64_t a_row, int64_t a_column,
                                                                   const $T* b, int64_t b_row, $T* c, int64_t c_row) {
#ifdef __clang__
#pragma STDC FP_CONTRACT ON
#endif
  const lt_gemm_vector_$K zero = {0};
  lt_gemm_vector_$K sum[LT_GEMM_ROWS][2];
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < vectors; ++j) sum[i][j] = zero;
  for (int64_t l = 0; l < k; ++l) {
    lt_gemm_vector_$K y[2];
    for (int j = 0; j < vectors; ++j) {
      y[j] = *(const lt_gemm_in_memory_$K*)(b + l * b_row + j * LT_GEMM_LANES_$K);
      __builtin_prefetch(b + l * b_row + (vectors + j) * LT_GEMM_LANES_$K); /* of the next columns */
    }
    for (int i = 0; i < rows; ++i) {
      const lt_gemm_vector_$K x = a[i * a_row + l * a_column] - zero;
      for (int j = 0; j < vectors; ++j) sum[i][j] += x * y[j];
    }
  }
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < vectors; ++j) {
      lt_gemm_in_memory_$K* const to = (lt_gemm_in_memory_$K*)(c + i * c_row + j * LT_GEMM_LANES_$K);
      LT_GEMM_PUT(*to, scale * sum[i][j]);
    }
}
#define LT_GEMM_BLOCK(name, rows, vectors)                                                                              \
  __attribute__((noinline)) static void name(int fresh, int64_t k, $T scale, const $T* a, int64_t a_row, int64_t a_column, \
                                             const $T* b, int64_t b_row, $T* c, int64_t c_row) {                           \
    lt_gemm_block_$K(rows, vectors, fresh, k, scale, a, a_row, a_column, b, b_row, c, c_row);                              \
  }
LT_GEMM_BLOCK(lt_gemm_all_by_2_$K, LT_GEMM_ROWS, 2)
LT_GEMM_BLOCK(lt_gemm_most_by_2_$K, 2 * LT_GEMM_FEW, 2)
LT_GEMM_BLOCK(lt_gemm_few_by_2_$K, LT_GEMM_FEW, 2)
LT_GEMM_BLOCK(lt_gemm_one_by_2_$K, 1, 2)
LT_GEMM_BLOCK(lt_gemm_most_by_1_$K, 2 * LT_GEMM_FEW, 1)
LT_GEMM_BLOCK(lt_gemm_few_by_1_$K, LT_GEMM_FEW, 1)
LT_GEMM_BLOCK(lt_gemm_one_by_1_$K, 1, 1)
#undef LT_GEMM_BLOCK

/* The same for one or two vectors of columns, as many rows at a time as there are. */
static void lt_gemm_column_$K(int vectors, int fresh, int64_t m, int64_t k, $T scale, const $T* a, int64_t a_row,
                              int64_t a_column, const $T* b, int64_t b_row, $T* c, int64_t c_row) {
  for (int64_t i = 0, rows; i < m; i += rows) {
    const $T* const from = a + i * a_row;
    $T* const to = c + i * c_row;
    rows = vectors == 2 && m - i >= LT_GEMM_ROWS ? LT_GEMM_ROWS
           : m - i >= 2 * LT_GEMM_FEW            ? 2 * LT_GEMM_FEW
           : m - i >= LT_GEMM_FEW                ? LT_GEMM_FEW
                                                 : 1;
    (vectors == 2 ? rows == LT_GEMM_ROWS      ? lt_gemm_all_by_2_$K
                    : rows == 2 * LT_GEMM_FEW ? lt_gemm_most_by_2_$K
                    : rows == LT_GEMM_FEW     ? lt_gemm_few_by_2_$K
                                              : lt_gemm_one_by_2_$K
     : rows == 2 * LT_GEMM_FEW ? lt_gemm_most_by_1_$K
     : rows == LT_GEMM_FEW     ? lt_gemm_few_by_1_$K
                               : lt_gemm_one_by_1_$K)(fresh, k, scale, from, a_row, a_column, b, b_row, to, c_row);
  }
}

/* c += scale a b, b so small that it stays in the cache as it is: without packing. Columns that do not fill a vector go
   through a copy that is filled up. */
static void lt_gemm_in_place_$K(lt_workspace* ws, int fresh, int64_t m, int64_t n, int64_t k, $T scale, const $T* a,
                                int64_t a_row, int64_t a_column, const $T* b, int64_t b_row, $T* c, int64_t c_row) {
  const int64_t lanes = LT_GEMM_LANES_$K;
  int64_t j = 0;
  for (; j + 2 * lanes <= n; j += 2 * lanes)
    lt_gemm_column_$K(2, fresh, m, k, scale, a, a_row, a_column, b + j, b_row, c + j, c_row);
  for (; j + lanes <= n; j += lanes)
    lt_gemm_column_$K(1, fresh, m, k, scale, a, a_row, a_column, b + j, b_row, c + j, c_row);
  if (j == n) return;
  const int64_t some = n - j;
  $T* const from = ($T*)lt_allocate(ws, k * lanes * (int64_t)sizeof($T));
  $T* const to = ($T*)lt_allocate(ws, m * lanes * (int64_t)sizeof($T));
  for (int64_t l = 0; l < k; ++l)
    for (int64_t p = 0; p < lanes; ++p) from[l * lanes + p] = p < some ? b[l * b_row + j + p] : 0;
  lt_gemm_column_$K(1, 1, m, k, scale, a, a_row, a_column, from, lanes, to, lanes);
  for (int64_t i = 0; i < m; ++i)
    for (int64_t p = 0; p < some; ++p)
      c[i * c_row + j + p] = (fresh ? 0 : c[i * c_row + j + p]) + to[i * lanes + p];
}
#endif

#ifndef __TINYC__
/* The same of few rows of a, where columns of b lie in one piece: each element by itself, a vector of lanes at a time. */
static void lt_gemm_dots_$K(int fresh, int64_t m, int64_t n, int64_t k, $T scale, const $T* a, int64_t a_row, const $T* b,
                            int64_t b_column, $T* c, int64_t c_row) {
#ifdef __clang__
#pragma STDC FP_CONTRACT ON
#endif
  const int64_t lanes = LT_GEMM_LANES_$K;
  for (int64_t j = 0; j < n; j += 4)
    for (int64_t i = 0; i < m; ++i) {
      const $T* const x = a + i * a_row;
      const $T* y[4];
      lt_gemm_vector_$K sum[4][2];
      for (int64_t q = 0; q < 4; ++q) {
        const lt_gemm_vector_$K zero = {0};
        y[q] = b + (j + q < n ? j + q : n - 1) * b_column;
        sum[q][0] = sum[q][1] = zero;
      }
      int64_t l = 0;
      for (; l + 2 * lanes <= k; l += 2 * lanes) {
        const lt_gemm_vector_$K x0 = *(const lt_gemm_in_memory_$K*)(x + l), x1 = *(const lt_gemm_in_memory_$K*)(x + l + lanes);
        for (int q = 0; q < 4; ++q) {
          sum[q][0] += x0 * *(const lt_gemm_in_memory_$K*)(y[q] + l);
          sum[q][1] += x1 * *(const lt_gemm_in_memory_$K*)(y[q] + l + lanes);
        }
      }
      for (int64_t q = 0; q < 4 && j + q < n; ++q) {
        const lt_gemm_vector_$K both = sum[q][0] + sum[q][1];
        $T total = 0;
        for (int64_t p = 0; p < lanes; ++p) total += both[p];
        for (int64_t p = l; p < k; ++p) total += x[p] * y[q][p];
        $T* const to = c + i * c_row + j + q;
        *to = fresh ? scale * total : *to + scale * total;
      }
    }
}
#endif

/* From one tile to the next: to the rows below, then to the next columns; where all columns stay in a cache, to the next columns,
   then to the rows below, so that rows of results are written in longer pieces. */
static inline void lt_gemm_next_$K(int64_t depth, int64_t* column, int64_t across, int64_t columns, int64_t* row, int64_t below,
                                   int64_t rows) {
  if (columns * depth <= 40000) {
    *column += across;
    if (*column < columns) return;
    *column = 0;
    *row = below;
  } else {
    *row = below;
    if (*row < rows) return;
    *row = 0;
    *column += across;
  }
}

/* c += scale a b, or, where `fresh`, c = scale a b, of m by k and k by n, a and b with the steps of their rows and columns in
   memory; a row of c lies in one piece. `ready`: the panels of b, where they are packed. */
static void lt_gemm_ready_$K(lt_workspace* ws, int fresh, int64_t m, int64_t n, int64_t k, $T scale, const $T* a, int64_t a_row,
                             int64_t a_column, const $T* b, int64_t b_row, int64_t b_column, $T* c, int64_t c_row,
                             const $T* ready) {
  const int64_t rows = LT_GEMM_ROWS, columns = LT_GEMM_COLUMNS_$K, most_k = LT_GEMM_DEPTH, most_m = 16 * rows;
  if (m <= 0 || n <= 0 || k < 0) return;
#ifndef __TINYC__
  if (m <= 4 && a_column == 1 && b_row == 1 && !ready) {
    lt_gemm_dots_$K(fresh, m, n, k, scale, a, a_row, b, b_column, c, c_row);
    return;
  }
#endif
  const lt_position mark = lt_mark(ws);
  const $T *a_kept = 0, *b_kept = ready;
  /* With few rows each number of b is used too seldom for packing to pay, unless rows of b collide in the cache. */
  const int few_rows = m <= 4 * rows && b_column == 1 && k <= 1024 && b_row * (int64_t)sizeof($T) % 512 != 0;
  if (m > 4 && !ready) {
    if (!few_rows) a_kept = lt_gemm_kept_$K(ws, a, m, a_row, k, a_column, rows);
    if (!a_kept) b_kept = lt_gemm_kept_$K(ws, b, n, b_column, k, b_row, columns);
  }
  if (!a_kept && !b_kept && (n * k < 64000 || few_rows || (m <= 4 && b_column == 1))) {
    if (b_column != 1) { /* its columns become rows */
      $T* const turned = ($T*)lt_allocate(ws, k * n * (int64_t)sizeof($T));
      for (int64_t l = 0; l < k; ++l)
        for (int64_t j = 0; j < n; ++j) turned[l * n + j] = b[l * b_row + j * b_column];
      b = turned;
      b_row = n;
    }
#ifdef __TINYC__
    lt_gemm_in_place_$K(fresh, m, n, k, scale, a, a_row, a_column, b, b_row, c, c_row);
#else
    lt_gemm_in_place_$K(ws, fresh, m, n, k, scale, a, a_row, a_column, b, b_row, c, c_row);
#endif
    lt_leave(ws, mark);
    return;
  }
  const int there = LT_GEMM_WHERE_IT_IS && a_column == 1 && !a_kept;
  const int64_t most_n = (a_kept ? 16 : 64) * columns; /* panels of b stay in the cache, unless packing a takes longer */
  $T* const a_panels = a_kept ? 0 : ($T*)lt_allocate(ws, most_k * (most_m + rows) * (int64_t)sizeof($T));
  $T* const b_panels = b_kept ? 0 : ($T*)lt_allocate(ws, (most_k * most_n + 8) * (int64_t)sizeof($T));
  const int64_t filled_m = lt_gemm_filled_rows_$K(m), filled_n = lt_gemm_filled_$K(n);
  $T* const tile = ($T*)lt_allocate(ws, rows * columns * (int64_t)sizeof($T));
  for (int64_t l = 0; l < k; l += most_k) {
    const int64_t depth = most_k < k - l ? most_k : k - l;
    for (int64_t j = 0; j < n; j += most_n) {
      const int64_t wide = most_n < n - j ? most_n : n - j;
      const $T* const right = b_kept ? b_kept + l * filled_n + j * depth : b_panels;
      if (!b_kept) lt_gemm_pack_columns_$K(b_panels, b + l * b_row + j * b_column, wide, b_column, depth, b_row);
      for (int64_t i = 0; i < m; i += most_m) {
        const int64_t high = most_m < m - i ? most_m : m - i;
        const int64_t whole = high - high % rows, few = lt_gemm_few_of_$K(high - whole);
        const $T* const left = a_kept ? a_kept + l * filled_m + i * depth : a_panels;
        if (!there && !a_kept) lt_gemm_pack_$K(a_panels, a + i * a_row + l * a_column, whole, a_row, depth, a_column, rows);
        if (!a_kept)
          lt_gemm_pack_$K(a_panels + whole * depth, a + (i + whole) * a_row + l * a_column, high - whole, a_row, depth, a_column,
                          few);
        for (int64_t q = 0, p = 0, across, next; q < wide && p < high; lt_gemm_next_$K(depth, &q, across, wide, &p, next, high)) {
          across = lt_gemm_across_$K(wide - q);
          next = p + (p < whole ? rows : few);
          $T* const first = c + (i + p) * c_row + j + q;
          const int64_t some_columns = across < wide - q ? across : wide - q;
          const int64_t some_rows = (next < high ? next : high) - p;
          const int at_once = some_columns == across, begins = fresh && l == 0;
          $T* to[LT_GEMM_ROWS];
          for (int64_t r = 0; r < next - p; ++r) to[r] = at_once && r < some_rows ? first + r * c_row : tile + r * columns;
          if (there && p < whole)
            lt_gemm_there_$K(across, begins || !at_once, depth, at_once ? scale : 1, a + (i + p) * a_row + l, a_row,
                             right + q * depth, to);
          else
            lt_gemm_packed_$K(next - p, across, begins || !at_once, depth, at_once ? scale : 1, left + p * depth,
                              right + q * depth, to);
          for (int64_t r = 0; !at_once && r < some_rows; ++r)
            lt_gemm_row_$K(begins, first + r * c_row, tile + r * columns, some_columns, scale);
        }
      }
    }
  }
  lt_leave(ws, mark);
}
static void lt_gemm_$K(lt_workspace* ws, int fresh, int64_t m, int64_t n, int64_t k, $T scale, const $T* a, int64_t a_row,
                       int64_t a_column, const $T* b, int64_t b_row, int64_t b_column, $T* c, int64_t c_row) {
  lt_gemm_ready_$K(ws, fresh, m, n, k, scale, a, a_row, a_column, b, b_row, b_column, c, c_row, 0);
}
)c", true},
      {"contraction", functions, {"allocate", "integers", "gemm_sizes"},
       R"c(/* The offsets of the points of a box, the last index fastest. */
LT_GEMM_APART static const int64_t* lt_offsets(lt_workspace* ws, int rank, const int64_t* size, const int64_t* step) {
  int64_t count = 1, done = 1;
  for (int d = 0; d < rank; ++d) count *= size[d];
  int64_t* const all = (int64_t*)lt_allocate(ws, (count > 1 ? count : 1) * (int64_t)sizeof(int64_t));
  all[0] = 0;
  for (int d = rank; d-- > 0;) {
    for (int64_t i = 1; i < size[d]; ++i)
      LT_PLAIN_LOOP
      for (int64_t j = 0; j < done; ++j) all[i * done + j] = all[j] + i * step[d];
    done *= size[d];
  }
  return all;
}

/* How many times the next offset is not so many elements away. */
LT_GEMM_APART static int64_t lt_leaps_of(const int64_t* at, int64_t n, int64_t step) {
  int64_t leaps = 0;
  LT_PLAIN_LOOP
  for (int64_t i = 1; i < n; ++i) leaps += at[i] - at[i - 1] != step;
  return leaps;
}
static int64_t lt_leaps(const int64_t* at, int64_t n) { return lt_leaps_of(at, n, 1); }

/* Whether all offsets are as far from each other. */
LT_GEMM_APART static int lt_even(const int64_t* at, int64_t n) {
  for (int64_t i = 2; i < n; ++i)
    if (at[i] - at[i - 1] != at[1] - at[0]) return 0;
  return 1;
}
static int64_t lt_step(const int64_t* at, int64_t n) { return n > 1 ? at[1] - at[0] : 1; }
)c"},
      // Offsets in place of strides: Matthews, High-performance tensor contraction without transposition,
      // 2018.
      {"K:contract", functions, {"contraction", "allocate", "mark", "K:gemm_tile", "K:panel", "K:gemm", "K:merged_contraction"},
       R"c(/* A row of a panel, one by one. */
static inline void lt_pack_row_$K($T* to, const $T* at, const int64_t* line, int64_t some, int64_t across) {
  int64_t p = 0;
  LT_PLAIN_LOOP
  for (; p + 4 <= some; p += 4) {
    to[p] = at[line[p]];
    to[p + 1] = at[line[p + 1]];
    to[p + 2] = at[line[p + 2]];
    to[p + 3] = at[line[p + 3]];
  }
  LT_PLAIN_LOOP
  for (; p < some; ++p) to[p] = at[line[p]];
  LT_PLAIN_LOOP
  for (; p < across; ++p) to[p] = 0;
}

/* Copies some lines of a block side by side; the rest of `across` are zeros. Where lines are neighbours in memory, or every
   second number, they are copied in pieces; where numbers of a line are, eight of eight lines at a time are turned. */
LT_GEMM_APART static void lt_contract_pack_$K($T* to, const $T* from, const int64_t* line, int64_t some, const int64_t* step,
                                              int64_t k, int64_t across) {
  int64_t l = 0;
#ifndef __TINYC__
  const int64_t leaps = lt_leaps(line, some);
  if (leaps == 0 && some == across && across == LT_GEMM_COLUMNS_$K) {
    for (; l < k; ++l, to += across) {
      const lt_gemm_in_memory_$K* const at = (const lt_gemm_in_memory_$K*)(from + line[0] + step[l]);
      lt_gemm_in_memory_$K* const put = (lt_gemm_in_memory_$K*)to;
      put[0] = at[0];
      put[1] = at[1];
    }
    return;
  }
  const int64_t distance = 2 * leaps < some ? 1 : 2;
  if (distance == 1 || 4 * lt_leaps_of(line, some, 2) < some) {
    int64_t start[LT_GEMM_COLUMNS_$K + LT_GEMM_ROWS + 1], pieces = 0;
    for (int64_t p = 0; p < some; ++p)
      if (p == 0 || line[p] - line[p - 1] != distance) start[pieces++] = p;
    start[pieces] = some;
    for (; l < k; ++l, to += across) {
      const $T* const at = from + step[l];
      for (int64_t i = 0; i < pieces; ++i)
        if (distance == 1) lt_copy_$K(to + start[i], at + line[start[i]], start[i + 1] - start[i]);
        else lt_copy_second_$K(to + start[i], at + line[start[i]], start[i + 1] - start[i]);
      LT_PLAIN_LOOP
      for (int64_t p = some; p < across; ++p) to[p] = 0;
    }
    return;
  }
  for (int64_t end; l < k; to += (end - l) * across, l = end) {
    for (end = l + 1; end < k && step[end] - step[end - 1] == 1;) ++end;
    for (int64_t at = l; end - l < 8 && at < end; ++at)
      lt_pack_row_$K(to + (at - l) * across, from + step[at], line, some, across);
    for (int64_t at = l; end - l >= 8 && at < end; at += 8) {
      const int64_t first = at + 8 <= end ? at : end - 8;
      lt_turn_lines_$K(to + (first - l) * across, across, from + step[first], line, 0, some);
    }
  }
#endif
  for (; l < k; ++l, to += across) lt_pack_row_$K(to, from + step[l], line, some, across);
}

/* A row of a tile becomes what lies at some places, or is added to it. */
LT_GEMM_APART static void lt_contract_row_$K(int fresh, $T* to, const int64_t* at, int64_t some, const $T* tile) {
#ifndef __TINYC__
  for (int64_t s = 0, end; s < some; s = end) {
    for (end = s + 1; end < some && at[end] - at[end - 1] == 1;) ++end;
    $T* const piece = to + at[s];
    if (fresh) {
      lt_copy_$K(piece, tile + s, end - s);
      continue;
    }
    int64_t i = 0;
    LT_PLAIN_LOOP
    for (; i + 8 <= end - s; i += 8) *(lt_eight_$K*)(piece + i) += *(const lt_eight_$K*)(tile + s + i);
    LT_PLAIN_LOOP
    for (; i + 4 <= end - s; i += 4) *(lt_four_$K*)(piece + i) += *(const lt_four_$K*)(tile + s + i);
    LT_PLAIN_LOOP
    for (; i < end - s; ++i) piece[i] += tile[s + i];
  }
#else
  for (int64_t s = 0; s < some; ++s) to[at[s]] = (fresh ? 0 : to[at[s]]) + tile[s];
#endif
}

static void lt_contract_block_$K(lt_workspace* ws, int fresh, int64_t m, int64_t n, int64_t k, const $T* x, const int64_t* x_row,
                                 const int64_t* x_sum, const $T* y, const int64_t* y_column, const int64_t* y_sum, $T* r,
                                 const int64_t* r_row, const int64_t* r_column) {
  const int64_t rows = LT_GEMM_ROWS, columns = LT_GEMM_COLUMNS_$K, most_k = LT_GEMM_DEPTH, most_m = 16 * rows;
  /* Long pieces of columns, as some of a picture are, are columns of a product of matrices each. */
  const int even = lt_even(x_row, m) && lt_even(x_sum, k) && lt_even(y_sum, k) && lt_even(r_row, m);
  if (even && n / (1 + lt_leaps(y_column, n) + lt_leaps(r_column, n)) >= 192) {
    for (int64_t j = 0, next; j < n; j = next) {
      for (next = j + 1; next < n && y_column[next] - y_column[next - 1] == 1 && r_column[next] - r_column[next - 1] == 1;) ++next;
      lt_gemm_$K(ws, fresh, m, next - j, k, 1, x, lt_step(x_row, m), lt_step(x_sum, k), y + y_column[j], lt_step(y_sum, k), 1,
                 r + r_column[j], lt_step(r_row, m));
    }
    return;
  }
  if (m * n * k < 1000) {
    for (int64_t i = 0; fresh && i < m; ++i)
      LT_PLAIN_LOOP
      for (int64_t j = 0; j < n; ++j) r[r_row[i] + r_column[j]] = 0;
    for (int64_t i = 0; i < m; ++i)
      for (int64_t l = 0; l < k; ++l)
        LT_PLAIN_LOOP
        for (int64_t j = 0; j < n; ++j)
          r[r_row[i] + r_column[j]] += x[x_row[i] + x_sum[l]] * y[y_sum[l] + y_column[j]];
    return;
  }
  const int64_t x_stride = lt_step(x_row, m);
  const lt_position mark = lt_mark(ws);
  const $T* const x_kept = lt_even(x_row, m) && lt_even(x_sum, k)
                               ? lt_gemm_kept_$K(ws, x, m, x_stride, k, lt_step(x_sum, k), rows)
                               : 0;
  const $T* const y_kept = !x_kept && lt_even(y_column, n) && lt_even(y_sum, k)
                               ? lt_gemm_kept_$K(ws, y, n, lt_step(y_column, n), k, lt_step(y_sum, k), columns)
                               : 0;
  const int64_t most_n = (x_kept ? 16 : 64) * columns, deepest = most_k < k ? most_k : k, widest = (most_n < n ? most_n : n) + columns;
  const int there = LT_GEMM_WHERE_IT_IS && !x_kept && lt_leaps(x_sum, k) == 0 && lt_even(x_row, m);
  $T* const x_panels = x_kept ? 0 : ($T*)lt_allocate(ws, deepest * (most_m + rows) * (int64_t)sizeof($T));
  $T* const y_panels = y_kept ? 0 : ($T*)lt_allocate(ws, (deepest * widest + 8) * (int64_t)sizeof($T));
  const int64_t filled_m = lt_gemm_filled_rows_$K(m), filled_n = lt_gemm_filled_$K(n);
  $T* const tile = ($T*)lt_allocate(ws, rows * columns * (int64_t)sizeof($T));
  for (int64_t l = 0; l < k; l += most_k) {
    const int64_t depth = most_k < k - l ? most_k : k - l;
    for (int64_t j = 0; j < n; j += most_n) {
      const int64_t wide = most_n < n - j ? most_n : n - j;
      const $T* const right = y_kept ? y_kept + l * filled_n + j * depth : y_panels;
      for (int64_t q = 0, across; !y_kept && q < wide; q += across) {
        across = lt_gemm_across_$K(wide - q);
        lt_contract_pack_$K(y_panels + q * depth, y, y_column + j + q, across < wide - q ? across : wide - q, y_sum + l, depth,
                            across);
      }
      for (int64_t i = 0; i < m; i += most_m) {
        const int64_t high = most_m < m - i ? most_m : m - i;
        const int64_t whole = high - high % rows, few = lt_gemm_few_of_$K(high - whole);
        const $T* const left = x_kept ? x_kept + l * filled_m + i * depth : x_panels;
        for (int64_t p = 0, next; !x_kept && p < high; p = next) {
          next = p + (p < whole ? rows : few);
          if (there && p < whole) continue;
          lt_contract_pack_$K(x_panels + p * depth, x, x_row + i + p, (next < high ? next : high) - p, x_sum + l, depth, next - p);
        }
        for (int64_t q = 0, across; q < wide; q += across) {
          across = lt_gemm_across_$K(wide - q);
          const int64_t* const to_column = r_column + j + q;
          const int64_t some_columns = across < wide - q ? across : wide - q;
          const int in_a_row = lt_leaps(to_column, some_columns) == 0;
          const int at_once = in_a_row && some_columns == across, begins = fresh && l == 0;
          for (int64_t p = 0, next; p < high; p = next) {
            next = p + (p < whole ? rows : few);
            const int64_t some_rows = (next < high ? next : high) - p;
            $T* to[LT_GEMM_ROWS];
            for (int64_t a = 0; a < next - p; ++a)
              to[a] = at_once && a < some_rows ? r + r_row[i + p + a] + to_column[0] : tile + a * columns;
            if (there && p < whole)
              lt_gemm_there_$K(across, begins || !at_once, depth, 1, x + x_row[i + p] + x_sum[l], x_stride, right + q * depth, to);
            else
              lt_gemm_packed_$K(next - p, across, begins || !at_once, depth, 1, left + p * depth, right + q * depth, to);
            for (int64_t a = 0; !at_once && a < some_rows; ++a) {
              $T* const at = r + r_row[i + p + a];
              if (in_a_row) lt_gemm_row_$K(begins, at + to_column[0], tile + a * columns, some_columns, 1);
              else lt_contract_row_$K(begins, at, to_column, some_columns, tile + a * columns);
            }
          }
        }
      }
    }
  }
  lt_leave(ws, mark);
}

static void lt_contract_$K(lt_workspace* ws, const lt_contraction_$K* given) {
  const lt_contraction_$K merged = lt_merged_$K(given), *const c = &merged;
  int64_t count[4] = {1, 1, 1, 1};
  for (int g = 0, d = 0; g < 4; ++g)
    for (int e = 0; e < c->rank[g]; ++e) count[g] *= c->size[d++];
  if (count[0] <= 0 || count[1] <= 0 || count[2] <= 0 || count[3] < 0) return;
  const lt_position mark = lt_mark(ws);
  const int row = c->rank[0], column = row + c->rank[1], sum = column + c->rank[2];
  const int64_t* const x_batch = lt_offsets(ws, row, c->size, c->x_step);
  const int64_t* const y_batch = lt_offsets(ws, row, c->size, c->y_step);
  const int64_t* const r_batch = lt_offsets(ws, row, c->size, c->r_step);
  /* Matrices in memory, of which the result's rows or columns are in one piece. */
  if (c->rank[1] <= 1 && c->rank[2] <= 1 && c->rank[3] <= 1) {
    const int64_t x_rows = c->rank[1] ? c->x_step[row] : 1, r_rows = c->rank[1] ? c->r_step[row] : 1,
                  y_columns = c->rank[2] ? c->y_step[column] : 1, r_columns = c->rank[2] ? c->r_step[column] : 1,
                  x_sums = c->rank[3] ? c->x_step[sum] : 1, y_sums = c->rank[3] ? c->y_step[sum] : 1;
    if (r_columns == 1 || r_rows == 1) {
      const int turned = r_columns != 1 || (r_rows == 1 && count[1] > count[2]);
      for (int64_t b = 0; b < count[0]; ++b)
        if (turned)
          lt_gemm_$K(ws, c->fresh, count[2], count[1], count[3], 1, c->y + y_batch[b], y_columns, y_sums, c->x + x_batch[b], x_sums,
                     x_rows, c->r + r_batch[b], r_columns);
        else
          lt_gemm_$K(ws, c->fresh, count[1], count[2], count[3], 1, c->x + x_batch[b], x_rows, x_sums, c->y + y_batch[b], y_sums,
                     y_columns, c->r + r_batch[b], r_rows);
      lt_leave(ws, mark);
      return;
    }
  }
  const int64_t* const x_row = lt_offsets(ws, c->rank[1], c->size + row, c->x_step + row);
  const int64_t* const r_row = lt_offsets(ws, c->rank[1], c->size + row, c->r_step + row);
  const int64_t* const y_column = lt_offsets(ws, c->rank[2], c->size + column, c->y_step + column);
  const int64_t* const r_column = lt_offsets(ws, c->rank[2], c->size + column, c->r_step + column);
  const int64_t* const x_sum = lt_offsets(ws, c->rank[3], c->size + sum, c->x_step + sum);
  const int64_t* const y_sum = lt_offsets(ws, c->rank[3], c->size + sum, c->y_step + sum);
  /* Columns are what lies in pieces that are longer. */
  const double row_leaps = (double)lt_leaps(r_row, count[1]) / (double)count[1];
  const double column_leaps = (double)lt_leaps(r_column, count[2]) / (double)count[2];
  const int turned = row_leaps < column_leaps || (row_leaps == column_leaps && count[1] > count[2]);
  for (int64_t b = 0; b < count[0]; ++b) {
    const $T* const x = c->x + x_batch[b];
    const $T* const y = c->y + y_batch[b];
    if (turned)
      lt_contract_block_$K(ws, c->fresh, count[2], count[1], count[3], y, y_column, y_sum, x, x_row, x_sum, c->r + r_batch[b], r_column,
                           r_row);
    else
      lt_contract_block_$K(ws, c->fresh, count[1], count[2], count[3], x, x_row, x_sum, y, y_column, y_sum, c->r + r_batch[b], r_row,
                           r_column);
  }
  lt_leave(ws, mark);
}
)c", true},
  };
  return parts;
}

}  // namespace lantern::codegen
