// The prelude's matrix products: of matrices that lie in rows and columns, and of groups of a tensor's indices.
#include "lantern/codegen/c/prelude_text.hpp"

namespace lantern::codegen {

using enum PreludeGroup;

const std::vector<PreludePart>& contraction_parts();

const std::vector<PreludePart>& contraction_parts() {
  static const std::vector<PreludePart> parts = {
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
#define LT_GEMM_FEW (LT_GEMM_ROWS / 3)
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
      {"K:gemm_tile",
       functions,
       {"gemm_sizes", "integers"},
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
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < vectors; ++j) sum[i][j] = zero;
  for (int64_t l = 0; l < k; ++l) {
    lt_gemm_vector_$K y[2];
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
      *at = fresh ? scale * sum[i][j] : *at + scale * sum[i][j];
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
/* The columns of a tile for so many. */
static inline int64_t lt_gemm_across_$K(int64_t some) { return some <= LT_GEMM_NARROW_$K ? LT_GEMM_NARROW_$K : LT_GEMM_COLUMNS_$K; }
/* A tile of which a is packed by columns of so many rows, and b by rows of so many columns. */
static inline void lt_gemm_packed_$K(int64_t rows, int64_t columns, int fresh, int64_t k, $T scale, const $T* a, const $T* b,
                                     $T* const* to) {
  (columns == LT_GEMM_COLUMNS_$K ? rows == LT_GEMM_ROWS  ? lt_gemm_tile_$K
                                   : rows == LT_GEMM_FEW ? lt_gemm_few_$K
                                                         : lt_gemm_most_$K
   : rows == LT_GEMM_ROWS        ? lt_gemm_narrow_tile_$K
   : rows == LT_GEMM_FEW         ? lt_gemm_narrow_few_$K
                                 : lt_gemm_narrow_most_$K)(fresh, k, scale, a, b, to);
}
/* One of which the rows of a lie where they are, each in one piece: of few rows that is no slower than packing, and costs
   nothing. Of many there are not enough registers for where they lie. */
#define LT_GEMM_WHERE_IT_IS (LT_GEMM_ROWS <= 6)
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
    *at = fresh ? x : *at + x;
  }
#endif
  LT_PLAIN_LOOP
  for (; s < some; ++s) to[s] = (fresh ? 0 : to[s]) + scale * tile[s];
}
)c"},
      // Goto and van de Geijn pack panels; these are the copies of which that consists.
      {"K:panel",
       functions,
       {"gemm_sizes", "integers"},
       R"c(#ifndef __TINYC__
typedef $T lt_four_$K __attribute__((vector_size(4 * sizeof($T)), aligned(sizeof($T)), may_alias));
typedef $T lt_eight_$K __attribute__((vector_size(8 * sizeof($T)), aligned(sizeof($T)), may_alias));
typedef $T lt_sixteen_$K __attribute__((vector_size(16 * sizeof($T)), aligned(sizeof($T)), may_alias));
/* Copies n numbers; vectors at both ends may overlap, and nothing else is touched. */
static inline void lt_copy_$K($T* to, const $T* from, int64_t n) {
  if (n >= 16) {
    LT_PLAIN_LOOP
    for (int64_t i = 0; i + 16 < n; i += 16) *(lt_sixteen_$K*)(to + i) = *(const lt_sixteen_$K*)(from + i);
    *(lt_sixteen_$K*)(to + n - 16) = *(const lt_sixteen_$K*)(from + n - 16);
  } else if (n >= 8) {
    *(lt_eight_$K*)to = *(const lt_eight_$K*)from;
    *(lt_eight_$K*)(to + n - 8) = *(const lt_eight_$K*)(from + n - 8);
  } else if (n >= 4) {
    *(lt_four_$K*)to = *(const lt_four_$K*)from;
    *(lt_four_$K*)(to + n - 4) = *(const lt_four_$K*)(from + n - 4);
  } else {
    LT_PLAIN_LOOP
    for (int64_t i = 0; i < n; ++i) to[i] = from[i];
  }
}

/* Eight numbers from each of eight places become columns of eight rows: pairs, then fours, then halves change places. Rows
   are written one after the other: they may be shorter than eight. */
LT_GEMM_APART static void lt_turn_$K($T* to, int64_t row, const $T* const* at) {
#define LT_READ(i) const lt_eight_$K a##i = *(const lt_eight_$K*)at[i];
#define LT_PAIRS(i, j)                                                                   \
  const lt_eight_$K b##i = __builtin_shufflevector(a##i, a##j, 0, 8, 1, 9, 4, 12, 5, 13); \
  const lt_eight_$K b##j = __builtin_shufflevector(a##i, a##j, 2, 10, 3, 11, 6, 14, 7, 15);
#define LT_FOURS(i, j, low, high)                                                          \
  const lt_eight_$K c##low = __builtin_shufflevector(b##i, b##j, 0, 1, 8, 9, 4, 5, 12, 13); \
  const lt_eight_$K c##high = __builtin_shufflevector(b##i, b##j, 2, 3, 10, 11, 6, 7, 14, 15);
#define LT_LOW(i, j) *(lt_eight_$K*)(to + i * row) = __builtin_shufflevector(c##i, c##j, 0, 1, 2, 3, 8, 9, 10, 11);
#define LT_HIGH(i, j) *(lt_eight_$K*)(to + j * row) = __builtin_shufflevector(c##i, c##j, 4, 5, 6, 7, 12, 13, 14, 15);
  LT_READ(0) LT_READ(1) LT_READ(2) LT_READ(3) LT_READ(4) LT_READ(5) LT_READ(6) LT_READ(7)
  LT_PAIRS(0, 1) LT_PAIRS(2, 3) LT_PAIRS(4, 5) LT_PAIRS(6, 7)
  LT_FOURS(0, 2, 0, 1) LT_FOURS(1, 3, 2, 3) LT_FOURS(4, 6, 4, 5) LT_FOURS(5, 7, 6, 7)
  LT_LOW(0, 4) LT_LOW(1, 5) LT_LOW(2, 6) LT_LOW(3, 7)
  LT_HIGH(0, 4) LT_HIGH(1, 5) LT_HIGH(2, 6) LT_HIGH(3, 7)
#undef LT_READ
#undef LT_PAIRS
#undef LT_FOURS
#undef LT_LOW
#undef LT_HIGH
}

/* Eight rows of a panel, of which each line holds eight numbers in one piece from `at` on: line p begins at line[p], or p
   times `apart` where there are no lines. The last lines are repeated up to a multiple of eight; what is then written behind
   a row belongs to the next one, which is written later (behind the panel there is room for it). */
static inline void lt_turn_lines_$K($T* to, int64_t across, const $T* at, const int64_t* line, int64_t apart, int64_t some) {
  for (int64_t p = (some - 1) / 8 * 8; p >= 0; p -= 8) {
    const $T* place[8];
    for (int64_t i = 0; i < 8; ++i) {
      const int64_t q = p + i < some ? p + i : some - 1;
      place[i] = at + (line ? line[q] : q * apart);
    }
    lt_turn_$K(to + p, across, place);
  }
  if ((some + 7) / 8 * 8 < across)
    for (int64_t l = 0; l < 8; ++l)
      LT_PLAIN_LOOP
      for (int64_t p = (some + 7) / 8 * 8; p < across; ++p) to[l * across + p] = 0;
}
#endif
)c"},
      {"K:gemm",
       functions,
       {"allocate", "mark", "K:gemm_tile", "K:panel", "integers"},
       R"c(/* Copies a matrix's block, `across` lines at a time side by side; the last ones are filled up with zeros. */
LT_GEMM_APART static void lt_gemm_pack_$K($T* to, const $T* from, int64_t lines, int64_t line, int64_t k, int64_t step,
                                          int64_t across) {
  for (int64_t i = 0; i < lines; i += across) {
    const int64_t some = across < lines - i ? across : lines - i;
    int64_t l = 0;
#ifndef __TINYC__
    if (step == 1 && line != 1)
      for (; l + 8 <= k; l += 8, to += 8 * across) lt_turn_lines_$K(to, across, from + i * line + l, 0, line, some);
#endif
    for (; l < k; ++l) {
      const $T* at = from + i * line + l * step;
      int64_t p = 0;
#ifndef __TINYC__
      if (line == 1)
        for (; p + LT_GEMM_LANES_$K <= some; p += LT_GEMM_LANES_$K)
          *(lt_gemm_in_memory_$K*)(to + p) = *(const lt_gemm_in_memory_$K*)(at + p);
#endif
      LT_PLAIN_LOOP
      for (; p < some; ++p) to[p] = at[p * line];
      LT_PLAIN_LOOP
      for (; p < across; ++p) to[p] = 0;
      to += across;
    }
  }
}

/* Some rows and vectors of columns of c += scale a b, or, where `fresh`, c = scale a b, where the rows of b and c lie in one
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
    for (int j = 0; j < vectors; ++j) y[j] = *(const lt_gemm_in_memory_$K*)(b + l * b_row + j * LT_GEMM_LANES_$K);
    for (int i = 0; i < rows; ++i) {
      const lt_gemm_vector_$K x = a[i * a_row + l * a_column] - zero;
      for (int j = 0; j < vectors; ++j) sum[i][j] += x * y[j];
    }
  }
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < vectors; ++j) {
      lt_gemm_in_memory_$K* const to = (lt_gemm_in_memory_$K*)(c + i * c_row + j * LT_GEMM_LANES_$K);
      *to = fresh ? scale * sum[i][j] : *to + scale * sum[i][j];
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

/* Packs all of b: what lt_gemm packs for each block of sums and columns, one block after the other. */
static const $T* lt_gemm_keep_$K($T* kept, int64_t n, int64_t k, int64_t padded, const $T* b, int64_t b_row, int64_t b_column) {
  const int64_t columns = LT_GEMM_COLUMNS_$K, most_k = 256, most_n = 64 * columns, last = n % columns;
  $T* const panels = kept + 64 / sizeof($T);
  if (kept[0] != 0) return panels;
  for (int64_t l = 0; l < k; l += most_k) {
    const int64_t depth = most_k < k - l ? most_k : k - l;
    $T* const to = panels + l * padded;
    for (int64_t j = 0; j < n - last; j += most_n)
      lt_gemm_pack_$K(to + j * depth, b + l * b_row + j * b_column, most_n < n - last - j ? most_n : n - last - j, b_column, depth,
                      b_row, columns);
    lt_gemm_pack_$K(to + (n - last) * depth, b + l * b_row + (n - last) * b_column, last, b_column, depth, b_row,
                    lt_gemm_across_$K(last));
  }
  kept[0] = 1;
  return panels;
}
#ifndef __TINYC__
/* c += scale a b, b so small that it stays in the cache, of b's panels: without packing a. */
static void lt_gemm_of_panels_$K(lt_workspace* ws, int fresh, int64_t m, int64_t n, int64_t k, $T scale, const $T* a,
                                 int64_t a_row, int64_t a_column, const $T* panels, int64_t padded, $T* c, int64_t c_row) {
  const int64_t columns = LT_GEMM_COLUMNS_$K, lanes = LT_GEMM_LANES_$K, most_k = 256, last = n % columns;
  for (int64_t l = 0; l < k; l += most_k) {
    const int64_t depth = most_k < k - l ? most_k : k - l;
    const int begins = fresh && l == 0;
    const $T* const from = a + l * a_column;
    const $T* const b = panels + l * padded;
    for (int64_t q = 0; q < n - last; q += columns)
      lt_gemm_column_$K(2, begins, m, depth, scale, from, a_row, a_column, b + q * depth, columns, c + q, c_row);
    const int64_t across = lt_gemm_across_$K(last);
    if (last == across) {
      lt_gemm_column_$K(1, begins, m, depth, scale, from, a_row, a_column, b + (n - last) * depth, across, c + n - last, c_row);
    } else if (last > 0) {
      const lt_position mark = lt_mark(ws);
      $T* const to = ($T*)lt_allocate(ws, m * across * (int64_t)sizeof($T));
      lt_gemm_column_$K((int)(across / lanes), 1, m, depth, scale, from, a_row, a_column, b + (n - last) * depth, across, to, across);
      for (int64_t i = 0; i < m; ++i) lt_gemm_row_$K(begins, c + i * c_row + n - last, to + i * across, last, 1);
      lt_leave(ws, mark);
    }
  }
}
#endif

/* c += scale a b, or, where `fresh`, c = scale a b, of m by k and k by n, a and b with the steps of their rows and columns in
   memory; a row of c lies in one piece. `kept`, where given, is memory of this b alone for its panels, from one product to the
   next: it begins with 0 while there are none, and has room for k * (n + 32) + 64 numbers. */
static void lt_gemm_kept_$K(lt_workspace* ws, int fresh, int64_t m, int64_t n, int64_t k, $T scale, const $T* a, int64_t a_row,
                            int64_t a_column, const $T* b, int64_t b_row, int64_t b_column, $T* c, int64_t c_row, $T* kept) {
  const int64_t rows = LT_GEMM_ROWS, columns = LT_GEMM_COLUMNS_$K, most_k = 256, most_m = 16 * rows, most_n = 64 * columns;
  if (m <= 0 || n <= 0 || k < 0) return;
#ifndef __TINYC__
  if (m <= 4 && a_column == 1 && b_row == 1 && !(kept && kept[0] != 0)) {
    lt_gemm_dots_$K(fresh, m, n, k, scale, a, a_row, b, b_column, c, c_row);
    return;
  }
#endif
  const int64_t padded = n - n % columns + (n % columns ? lt_gemm_across_$K(n % columns) : 0);
  const $T* const panels = kept ? lt_gemm_keep_$K(kept, n, k, padded, b, b_row, b_column) : 0;
#ifndef __TINYC__
  if (kept && n * k < 64000)
    return lt_gemm_of_panels_$K(ws, fresh, m, n, k, scale, a, a_row, a_column, panels, padded, c, c_row);
#endif
  const lt_position mark = lt_mark(ws);
  if (!kept && (n * k < 64000 || (m <= 4 && b_column == 1))) { /* packing b pays where many rows use it */
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
  const int there = LT_GEMM_WHERE_IT_IS && a_column == 1;
  $T* const left = ($T*)lt_allocate(ws, most_k * (most_m + rows) * (int64_t)sizeof($T));
  $T* const packed = kept ? 0 : ($T*)lt_allocate(ws, (most_k * most_n + 8) * (int64_t)sizeof($T));
  $T* const tile = ($T*)lt_allocate(ws, rows * columns * (int64_t)sizeof($T));
  for (int64_t l = 0; l < k; l += most_k) {
    const int64_t depth = most_k < k - l ? most_k : k - l;
    for (int64_t j = 0; j < n; j += most_n) {
      const int64_t wide = most_n < n - j ? most_n : n - j;
      const int64_t last = wide % columns;
      const $T* const right = kept ? panels + l * padded + j * depth : packed;
      if (!kept) {
        lt_gemm_pack_$K(packed, b + l * b_row + j * b_column, wide - last, b_column, depth, b_row, columns);
        lt_gemm_pack_$K(packed + (wide - last) * depth, b + l * b_row + (j + wide - last) * b_column, last, b_column, depth, b_row,
                        lt_gemm_across_$K(last));
      }
      for (int64_t i = 0; i < m; i += most_m) {
        const int64_t high = most_m < m - i ? most_m : m - i;
        const int64_t whole = high - high % rows, rest = high - whole;
        const int64_t few = rest <= LT_GEMM_FEW ? LT_GEMM_FEW : rest <= 2 * LT_GEMM_FEW ? 2 * LT_GEMM_FEW : rows;
        if (!there) lt_gemm_pack_$K(left, a + i * a_row + l * a_column, whole, a_row, depth, a_column, rows);
        lt_gemm_pack_$K(left + whole * depth, a + (i + whole) * a_row + l * a_column, high - whole, a_row, depth, a_column, few);
        for (int64_t q = 0; q < wide; q += columns)
          for (int64_t p = 0, next; p < high; p = next) {
            next = p + (p < whole ? rows : few);
            $T* const first = c + (i + p) * c_row + j + q;
            const int64_t some_rows = (next < high ? next : high) - p;
            const int64_t some_columns = columns < wide - q ? columns : wide - q, across = lt_gemm_across_$K(some_columns);
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
  lt_gemm_kept_$K(ws, fresh, m, n, k, scale, a, a_row, a_column, b, b_row, b_column, c, c_row, 0);
}
)c",
       true},
      {"contraction",
       functions,
       {"allocate", "integers", "gemm_sizes"},
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

/* How many times the next offset is not the next element. */
LT_GEMM_APART static int64_t lt_leaps(const int64_t* at, int64_t n) {
  int64_t leaps = 0;
  LT_PLAIN_LOOP
  for (int64_t i = 1; i < n; ++i) leaps += at[i] - at[i - 1] != 1;
  return leaps;
}

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
      {"K:contract",
       functions,
       {"contraction", "allocate", "mark", "K:gemm_tile", "K:panel", "K:gemm", "integers"},
       R"c(/* r[batch, rows, columns] += the sum over `sums` of x[batch, rows, sums] y[batch, sums, columns], or, where `fresh`, = it.
   Each of the four is a group of indices, of so many; an index has a size, and a step in each tensor. */
typedef struct lt_contraction_$K {
  const $T* x;
  const $T* y;
  $T* r;
  int fresh, rank[4];
  int64_t size[26], x_step[26], y_step[26], r_step[26];
} lt_contraction_$K;

/* A row of a panel, one by one. */
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

/* Copies some lines of a block side by side; the rest of `across` are zeros. Where lines are neighbours in memory they are
   copied in pieces; where numbers of a line are, eight of eight lines at a time are turned. */
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
  if (2 * leaps < some) {
    int64_t start[LT_GEMM_COLUMNS_$K + LT_GEMM_ROWS + 1], pieces = 0;
    for (int64_t p = 0; p < some; ++p)
      if (p == 0 || line[p] - line[p - 1] != 1) start[pieces++] = p;
    start[pieces] = some;
    for (; l < k; ++l, to += across) {
      const $T* const at = from + step[l];
      for (int64_t i = 0; i < pieces; ++i)
        lt_copy_$K(to + start[i], at + line[start[i]], start[i + 1] - start[i]);
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
  const int64_t rows = LT_GEMM_ROWS, columns = LT_GEMM_COLUMNS_$K, most_k = 256, most_m = 16 * rows, most_n = 64 * columns;
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
  const int64_t deepest = most_k < k ? most_k : k, widest = (most_n < n ? most_n : n) + columns;
  const int64_t x_apart = lt_step(x_row, m);
  const int there = LT_GEMM_WHERE_IT_IS && lt_leaps(x_sum, k) == 0 && lt_even(x_row, m);
  const lt_position mark = lt_mark(ws);
  $T* const left = ($T*)lt_allocate(ws, deepest * (most_m + rows) * (int64_t)sizeof($T));
  $T* const right = ($T*)lt_allocate(ws, (deepest * widest + 8) * (int64_t)sizeof($T));
  $T* const tile = ($T*)lt_allocate(ws, rows * columns * (int64_t)sizeof($T));
  for (int64_t l = 0; l < k; l += most_k) {
    const int64_t depth = most_k < k - l ? most_k : k - l;
    for (int64_t j = 0; j < n; j += most_n) {
      const int64_t wide = most_n < n - j ? most_n : n - j;
      for (int64_t q = 0; q < wide; q += columns) {
        const int64_t some = columns < wide - q ? columns : wide - q;
        lt_contract_pack_$K(right + q * depth, y, y_column + j + q, some, y_sum + l, depth, lt_gemm_across_$K(some));
      }
      for (int64_t i = 0; i < m; i += most_m) {
        const int64_t high = most_m < m - i ? most_m : m - i;
        const int64_t whole = high - high % rows, rest = high - whole;
        const int64_t few = rest <= LT_GEMM_FEW ? LT_GEMM_FEW : rest <= 2 * LT_GEMM_FEW ? 2 * LT_GEMM_FEW : rows;
        for (int64_t p = 0, next; p < high; p = next) {
          next = p + (p < whole ? rows : few);
          if (there && p < whole) continue;
          lt_contract_pack_$K(left + p * depth, x, x_row + i + p, (next < high ? next : high) - p, x_sum + l, depth, next - p);
        }
        for (int64_t q = 0; q < wide; q += columns) {
          const int64_t* const to_column = r_column + j + q;
          const int64_t some_columns = columns < wide - q ? columns : wide - q, across = lt_gemm_across_$K(some_columns);
          const int in_a_row = lt_leaps(to_column, some_columns) == 0;
          const int at_once = in_a_row && some_columns == across, begins = fresh && l == 0;
          for (int64_t p = 0, next; p < high; p = next) {
            next = p + (p < whole ? rows : few);
            const int64_t some_rows = (next < high ? next : high) - p;
            $T* to[LT_GEMM_ROWS];
            for (int64_t a = 0; a < next - p; ++a)
              to[a] = at_once && a < some_rows ? r + r_row[i + p + a] + to_column[0] : tile + a * columns;
            if (there && p < whole)
              lt_gemm_there_$K(across, begins || !at_once, depth, 1, x + x_row[i + p] + x_sum[l], x_apart, right + q * depth, to);
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

/* The same with fewer indices: those of one place are gone, and two that follow one another as one would in every tensor, as
   the rows and columns of a picture do, are one. */
LT_GEMM_APART static lt_contraction_$K lt_merged_$K(const lt_contraction_$K* c) {
  lt_contraction_$K all = *c;
  int to = 0;
  for (int g = 0, d = 0; g < 4; ++g) {
    const int first = to;
    for (int e = 0; e < c->rank[g]; ++e, ++d) {
      const int64_t n = c->size[d];
      if (n == 1) continue;
      const int last = to - 1;
      if (to > first && all.x_step[last] == n * c->x_step[d] && all.y_step[last] == n * c->y_step[d] &&
          all.r_step[last] == n * c->r_step[d])
        all.size[last] *= n;
      else
        all.size[to++] = n;
      all.x_step[to - 1] = c->x_step[d];
      all.y_step[to - 1] = c->y_step[d];
      all.r_step[to - 1] = c->r_step[d];
    }
    all.rank[g] = to - first;
  }
  return all;
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
)c",
       true},
  };
  return parts;
}

}  // namespace lantern::codegen
