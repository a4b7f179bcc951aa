// The prelude's packing of matrices for products: panels, and those of constant matrices that are kept between calls.
#include "lantern/codegen/c/prelude_text.hpp"

namespace lantern::codegen {

using enum PreludeGroup;

const std::vector<PreludePart>& panel_parts();

const std::vector<PreludePart>& panel_parts() {
  static const std::vector<PreludePart> parts = {
      // Copies that packing of panels consists of (Goto and van de Geijn).
      {"K:panel", functions, {"gemm_sizes", "integers"}, R"c(#ifndef __TINYC__
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

/* Copies every second of numbers, n of them; vectors at the end may overlap, and nothing else is read or written. */
static inline __attribute__((always_inline)) void lt_copy_second_$K($T* to, const $T* from, int64_t n) {
  if (n < 8) {
    LT_PLAIN_LOOP
    for (int64_t i = 0; i < n; ++i) to[i] = from[2 * i];
    return;
  }
  for (int64_t i = 0; n >= 16 && i < n; i += 16) {
    const int64_t at = i + 16 <= n ? i : n - 16;
    const lt_sixteen_$K a = *(const lt_sixteen_$K*)(from + 2 * at), b = *(const lt_sixteen_$K*)(from + 2 * at + 15);
    *(lt_sixteen_$K*)(to + at) = __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14, 17, 19, 21, 23, 25, 27, 29, 31);
  }
  for (int64_t i = 0; n < 16 && i < n; i += 8) {
    const int64_t at = i + 8 <= n ? i : n - 8;
    const lt_eight_$K a = *(const lt_eight_$K*)(from + 2 * at), b = *(const lt_eight_$K*)(from + 2 * at + 7);
    *(lt_eight_$K*)(to + at) = __builtin_shufflevector(a, b, 0, 2, 4, 6, 9, 11, 13, 15);
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
   times `stride` where there are no lines. The last lines are repeated up to a multiple of eight; what is then written behind
   a row belongs to the next one, which is written later (behind the panel there is room for it). */
static inline void lt_turn_lines_$K($T* to, int64_t across, const $T* at, const int64_t* line, int64_t stride, int64_t some) {
  for (int64_t p = (some - 1) / 8 * 8; p >= 0; p -= 8) {
    const $T* place[8];
    for (int64_t i = 0; i < 8; ++i) {
      const int64_t q = p + i < some ? p + i : some - 1;
      place[i] = at + (line ? line[q] : q * stride);
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
      {"kept", functions, {"panels", "gemm_sizes", "integers"},
       R"c(/* Memory of so many bytes, aligned to a cache line, for what the first call makes of a matrix that is the same in every call.
   `made` says whether an earlier call has filled it. Null where the matrix, which ends at `end`, may change. */
LT_GEMM_APART static void* lt_kept(lt_workspace* ws, const lt_packed* key, const char* end, unsigned long bytes, int* made) {
  lt_panels* const all = ws->panels;
  *made = 0;
  if (!all) return 0;
  int64_t low = 0, high = all->ranges; /* the last range that begins here or before is low - 1 */
  while (low < high) {
    const int64_t middle = (low + high) / 2;
    if (all->begin[middle] <= (const char*)key->of) low = middle + 1;
    else high = middle;
  }
  if (low == 0 || end > all->end[low - 1]) return 0;
  for (int64_t i = 0; i < all->count; ++i) {
    const int64_t at = all->next + i < all->count ? all->next + i : all->next + i - all->count;
    const lt_packed* const p = all->packed + at;
    if (p->of != key->of || p->lines != key->lines || p->line != key->line || p->k != key->k || p->step != key->step ||
        p->across != key->across)
      continue;
    all->next = at + 1 < all->count ? at + 1 : 0;
    *made = 1;
    return p->data;
  }
  if (all->count == all->capacity) {
    const int64_t room = all->capacity ? 2 * all->capacity : 16;
    lt_packed* const more = (lt_packed*)ws->resize(all->packed, (unsigned long)room * sizeof(lt_packed));
    if (!more) return 0;
    all->packed = more;
    all->capacity = room;
  }
  char* const memory = (char*)ws->resize(0, bytes + 64);
  if (!memory) return 0;
  lt_packed* const fresh = all->packed + all->count++;
  *fresh = *key;
  fresh->memory = memory;
  fresh->data = memory + 64 - (unsigned long)memory % 64;
  all->next = 0;
  return fresh->data;
}
)c"},
      {"K:pack", functions, {"kept", "K:gemm_tile", "K:panel", "integers"},
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

/* The same of columns, in tiles of the widths that lt_gemm_across gives. */
static void lt_gemm_pack_columns_$K($T* to, const $T* from, int64_t n, int64_t column, int64_t k, int64_t step) {
  const int64_t whole = n - n % LT_GEMM_COLUMNS_$K;
  lt_gemm_pack_$K(to, from, whole, column, k, step, LT_GEMM_COLUMNS_$K);
  for (int64_t q = whole, across; q < n; q += across) {
    across = lt_gemm_across_$K(n - q);
    lt_gemm_pack_$K(to + q * k, from + q * column, across < n - q ? across : n - q, column, k, step, across);
  }
}
/* Rows of a tile for so many of the last ones, and so many rows with those that fill up the last tile. */
static inline int64_t lt_gemm_few_of_$K(int64_t rest) {
  return rest <= LT_GEMM_FEW ? LT_GEMM_FEW : rest <= 2 * LT_GEMM_FEW ? 2 * LT_GEMM_FEW : LT_GEMM_ROWS;
}
static inline int64_t lt_gemm_filled_rows_$K(int64_t m) {
  const int64_t rest = m % LT_GEMM_ROWS;
  return m - rest + (rest ? lt_gemm_few_of_$K(rest) : 0);
}

/* The panels of a matrix that is the same in every call, packed by the first call: those of `depth` numbers from l on begin
   at l times the lines with those that fill up. Null where the matrix may change. */
#ifdef __TINYC__
static const $T* lt_gemm_kept_$K(lt_workspace* ws, const $T* from, int64_t lines, int64_t line, int64_t k, int64_t step,
                                 int64_t across) {
  (void)ws, (void)from, (void)lines, (void)line, (void)k, (void)step, (void)across;
  return 0;
}
#else
LT_GEMM_APART static const $T* lt_gemm_kept_$K(lt_workspace* ws, const $T* from, int64_t lines, int64_t line, int64_t k,
                                               int64_t step, int64_t across) {
  if (!ws->panels || lines * k < LT_GEMM_LEAST || line < 0 || step < 0) return 0;
  const lt_packed key = {from, lines, line, k, step, across, 0, 0};
  const int of_columns = across == LT_GEMM_COLUMNS_$K;
  const int64_t filled = of_columns ? lt_gemm_filled_$K(lines) : lt_gemm_filled_rows_$K(lines), whole = lines - lines % across;
  int made = 0;
  /* Turning may write, and slim tiles may read, a vector behind. */
  $T* const to = ($T*)lt_kept(ws, &key, (const char*)(from + (lines - 1) * line + (k - 1) * step + 1),
                              (unsigned long)(filled * k) * sizeof($T) + 64, &made);
  if (!to || made) return to;
  for (int64_t l = 0; l < k; l += LT_GEMM_DEPTH) {
    const int64_t depth = LT_GEMM_DEPTH < k - l ? LT_GEMM_DEPTH : k - l;
    if (of_columns) lt_gemm_pack_columns_$K(to + l * filled, from + l * step, lines, line, depth, step);
    else {
      lt_gemm_pack_$K(to + l * filled, from + l * step, whole, line, depth, step, across);
      lt_gemm_pack_$K(to + l * filled + whole * depth, from + whole * line + l * step, lines - whole, line, depth, step,
                      lt_gemm_few_of_$K(lines - whole));
    }
  }
  return to;
}
#endif
)c"},
      {"K:gemm_packing_once", functions, {"allocate", "mark", "K:gemm_tile", "K:pack", "K:gemm", "integers"},
       R"c(/* The panels of all of b, in memory that is b's alone: it begins with 0 while they are not packed yet. */
static const $T* lt_gemm_pack_once_$K($T* memory, int64_t n, int64_t k, const $T* b, int64_t b_row, int64_t b_column) {
  const int64_t filled = lt_gemm_filled_$K(n);
  $T* const panels = memory + 64 / sizeof($T);
  if (memory[0] != 0) return panels;
  for (int64_t l = 0; l < k; l += LT_GEMM_DEPTH)
    lt_gemm_pack_columns_$K(panels + l * filled, b + l * b_row, n, b_column, LT_GEMM_DEPTH < k - l ? LT_GEMM_DEPTH : k - l, b_row);
  memory[0] = 1;
  return panels;
}
#ifndef __TINYC__
/* c += scale a b, b so small that it stays in the cache, of b's panels: without packing a. */
static void lt_gemm_of_panels_$K(lt_workspace* ws, int fresh, int64_t m, int64_t n, int64_t k, $T scale, const $T* a,
                                 int64_t a_row, int64_t a_column, const $T* panels, $T* c, int64_t c_row) {
  const int64_t lanes = LT_GEMM_LANES_$K, filled = lt_gemm_filled_$K(n);
  for (int64_t l = 0; l < k; l += LT_GEMM_DEPTH) {
    const int64_t depth = LT_GEMM_DEPTH < k - l ? LT_GEMM_DEPTH : k - l;
    const int begins = fresh && l == 0;
    const $T* const from = a + l * a_column;
    for (int64_t q = 0, across; q < n; q += across) {
      across = lt_gemm_across_$K(n - q);
      const $T* const b = panels + l * filled + q * depth;
      if (across >= lanes && across <= n - q) {
        lt_gemm_column_$K((int)(across / lanes), begins, m, depth, scale, from, a_row, a_column, b, across, c + q, c_row);
        continue;
      }
      /* A tile with columns that fill it up, or of less than a vector, whose other lanes are idle. */
      const int64_t wide = across < lanes ? lanes : across, some = across < n - q ? across : n - q;
      const lt_position mark = lt_mark(ws);
      $T* const to = ($T*)lt_allocate(ws, m * wide * (int64_t)sizeof($T));
      lt_gemm_column_$K((int)(wide / lanes), 1, m, depth, scale, from, a_row, a_column, b, across, to, wide);
      for (int64_t i = 0; i < m; ++i) lt_gemm_row_$K(begins, c + i * c_row + q, to + i * wide, some, 1);
      lt_leave(ws, mark);
    }
  }
}
#endif

/* The same with memory of this b alone for its panels, which the first product that needs them packs: it begins with 0, and has
   room for k * (n + 32) + 64 numbers. */
static void lt_gemm_packing_once_$K(lt_workspace* ws, int fresh, int64_t m, int64_t n, int64_t k, $T scale, const $T* a,
                                    int64_t a_row, int64_t a_column, const $T* b, int64_t b_row, int64_t b_column, $T* c,
                                    int64_t c_row, $T* memory) {
  if (m <= 0 || n <= 0 || k < 0) return;
  const $T* panels = 0;
  if (memory[0] != 0 || m > 4 || a_column != 1 || b_row != 1) panels = lt_gemm_pack_once_$K(memory, n, k, b, b_row, b_column);
#ifndef __TINYC__
  if (panels && n * k < 64000) {
    lt_gemm_of_panels_$K(ws, fresh, m, n, k, scale, a, a_row, a_column, panels, c, c_row);
    return;
  }
#endif
  lt_gemm_ready_$K(ws, fresh, m, n, k, scale, a, a_row, a_column, b, b_row, b_column, c, c_row, panels);
}
)c", true},
  };
  return parts;
}

}  // namespace lantern::codegen
