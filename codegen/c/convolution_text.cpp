// The prelude's convolutions by minimal filtering.
#include "lantern/codegen/c/prelude_text.hpp"

namespace lantern::codegen {

using enum PreludeGroup;

const std::vector<PreludePart>& convolution_parts();

const std::vector<PreludePart>& convolution_parts() {
  static const std::vector<PreludePart> parts = {
      // Winograd's minimal filtering F(2x2, 3x3): Lavin and Gray, Fast algorithms for convolutional neural networks,
      // 2016. A tile of 2 by 2 results takes 16 products where the sum takes 36.
      {"K:convolve", functions, {"K:contract", "kept", "allocate", "mark", "K:gemm_tile", "K:panel", "K:gemm", "integers"},
       R"c(#ifndef __TINYC__
/* A convolution of pictures of `height` by `width` results with filters of 3 by 3. The strides of pictures: by
   input channel, row and column; of filters: by output channel, input channel, row and column; of results: by output channel, row
   and column. */
typedef struct lt_convolution_$K {
  int64_t inputs, outputs, height, width;
  int64_t x_channel, x_row, x_column, y_output, y_input, y_row, y_column, r_channel, r_row, r_column;
} lt_convolution_$K;
#define LT_LOAD(at) (*(const lt_eight_$K*)(at))
#define LT_STORE(at, value) *(lt_eight_$K*)(at) = (value)

/* A tile of filters by rows and columns, (G g) G': 16 panels for each panel of a product's rows. */
LT_GEMM_APART static void lt_winograd_filters_$K($T* to, const lt_convolution_$K* c, const $T* y) {
  const int64_t rows = LT_GEMM_ROWS, filled = lt_gemm_filled_rows_$K(c->outputs);
  for (int64_t o = 0; o < filled; ++o) {
    const int64_t whole = c->outputs - c->outputs % rows, first = o < whole ? o - o % rows : whole;
    const int64_t across = o < whole ? rows : filled - whole;
    for (int64_t i = 0; i < c->inputs; ++i) {
      $T half[4][3];
      for (int64_t v = 0; v < 3; ++v) {
        const $T* const g = y + o * c->y_output + i * c->y_input + v * c->y_column;
        const $T a = o < c->outputs ? g[0] : 0, b = o < c->outputs ? g[c->y_row] : 0, d = o < c->outputs ? g[2 * c->y_row] : 0;
        half[0][v] = a;
        half[1][v] = ((a + d) + b) / 2;
        half[2][v] = ((a + d) - b) / 2;
        half[3][v] = d;
      }
      $T* const at = to + 16 * first * c->inputs + i * across + (o - first);
      const int64_t next = across * c->inputs;
      for (int64_t u = 0; u < 4; ++u) {
        const $T a = half[u][0], b = half[u][1], d = half[u][2];
        $T* const row = at + 4 * u * next;
        row[0] = a;
        row[next] = ((a + d) + b) / 2;
        row[2 * next] = ((a + d) - b) / 2;
        row[3 * next] = d;
      }
    }
  }
}

/* A row of a picture, d B for each tile: the tiles' four numbers lie `distance` numbers from one to the next. `row` has room for the picture's
   row and 26 more, for what is no result: where so many follow the row in memory, they are as good. */
LT_GEMM_APART static void lt_winograd_row_$K($T* to, int64_t distance, $T* row, const $T* x, int64_t step, int64_t columns,
                                             int64_t tiles, int64_t following) {
  if (step == 1 && following >= 26) row = ($T*)x;
  else if (step == 1) lt_copy_$K(row, x, columns);
  else
    for (int64_t j = 0; j < columns; ++j) row[j] = x[j * step];
  for (int64_t t = 0; t < tiles; t += 8) {
    const lt_eight_$K a = LT_LOAD(row + 2 * t), b = LT_LOAD(row + 2 * t + 8), c = LT_LOAD(row + 2 * t + 2), d = LT_LOAD(row + 2 * t + 10);
    const lt_eight_$K d0 = __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14);
    const lt_eight_$K d1 = __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15);
    const lt_eight_$K d2 = __builtin_shufflevector(c, d, 0, 2, 4, 6, 8, 10, 12, 14);
    const lt_eight_$K d3 = __builtin_shufflevector(c, d, 1, 3, 5, 7, 9, 11, 13, 15);
    LT_STORE(to + t, d0 - d2);
    LT_STORE(to + distance + t, d1 + d2);
    LT_STORE(to + 2 * distance + t, d2 - d1);
    LT_STORE(to + 3 * distance + t, d1 - d3);
  }
}

/* B' (d B) of some tiles, of even and odd rows of a picture: eight at a time go to their place in 16 panels. */
LT_GEMM_APART static void lt_winograd_tiles_$K($T* to, int64_t panels, int64_t across, const $T* even, const $T* odd, int64_t distance,
                                               int64_t next_row) {
  for (int64_t j = 0; j < 4; ++j)
    for (int64_t t = 0; t < across; t += 8) {
      const lt_eight_$K d0 = LT_LOAD(even + j * distance + t), d1 = LT_LOAD(odd + j * distance + t);
      const lt_eight_$K d2 = LT_LOAD(even + j * distance + next_row + t), d3 = LT_LOAD(odd + j * distance + next_row + t);
      LT_STORE(to + j * panels + t, d0 - d2);
      LT_STORE(to + (4 + j) * panels + t, d1 + d2);
      LT_STORE(to + (8 + j) * panels + t, d2 - d1);
      LT_STORE(to + (12 + j) * panels + t, d1 - d3);
    }
}

/* A' m A of some tiles: the upper and the lower row of their results. */
LT_GEMM_APART static void lt_winograd_results_$K($T* upper, $T* lower, const $T* m, int64_t distance, int64_t tiles) {
  for (int64_t t = 0; t < tiles; t += 8) {
    lt_eight_$K s[2][4];
    for (int j = 0; j < 4; ++j) {
      const $T* const at = m + j * distance + t;
      const lt_eight_$K m1 = LT_LOAD(at + 4 * distance), m2 = LT_LOAD(at + 8 * distance);
      s[0][j] = LT_LOAD(at) + (m1 + m2);
      s[1][j] = (m1 - m2) - LT_LOAD(at + 12 * distance);
    }
    for (int i = 0; i < 2; ++i) {
      const lt_eight_$K a = s[i][0] + (s[i][1] + s[i][2]), b = (s[i][1] - s[i][2]) - s[i][3];
      $T* const to = (i == 0 ? upper : lower) + 2 * t;
      LT_STORE(to, __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11));
      LT_STORE(to + 8, __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15));
    }
  }
}

/* One picture, of filters that are ready, some tiles at a time: as many as fit into a cache. */
static void lt_winograd_picture_$K(lt_workspace* ws, int fresh, const lt_convolution_$K* c, const $T* x, const $T* filters, $T* r) {
  const int64_t rows = LT_GEMM_ROWS, wide = (c->width + 1) / 2, all = (c->height + 1) / 2 * wide;
  const int64_t inputs = c->inputs, filled = lt_gemm_filled_rows_$K(c->outputs), whole = c->outputs - c->outputs % rows;
  const int64_t columns = LT_GEMM_COLUMNS_$K, narrow = LT_GEMM_NARROW_$K >= 8 ? LT_GEMM_NARROW_$K : columns;
  const int64_t fit = 393216 / (16 * inputs * (int64_t)sizeof($T));
  const int64_t most = (all + columns - 1) / columns * columns, some = fit < columns ? columns : fit - fit % columns;
  const int64_t chunk = some < most ? some : most, distance = (chunk / wide + 3) * wide + chunk + 8, panels = inputs * chunk;
  const lt_position mark = lt_mark(ws);
  $T* const row = ($T*)lt_allocate(ws, (c->width + 2 + 26) * (int64_t)sizeof($T));
  $T* const even = ($T*)lt_allocate(ws, 8 * distance * (int64_t)sizeof($T));
  $T* const odd = even + 4 * distance;
  $T* const tiles = ($T*)lt_allocate(ws, 16 * panels * (int64_t)sizeof($T));
  $T* const products = ($T*)lt_allocate(ws, 16 * rows * chunk * (int64_t)sizeof($T));
  $T* const upper = ($T*)lt_allocate(ws, 4 * chunk * (int64_t)sizeof($T));
  $T* const lower = upper + 2 * chunk;
  for (int64_t j = 0; j < c->width + 2 + 26; ++j) row[j] = 0;
  for (int64_t j = 0; j < 8 * distance; ++j) even[j] = 0;
  for (int64_t t = 0; t < all; t += chunk) {
    const int64_t next = t + chunk < all ? t + chunk : all, first_row = t / wide, last_row = (next - 1) / wide;
    for (int64_t i = 0; i < inputs; ++i) {
      for (int64_t u = 2 * first_row; u <= 2 * last_row + 3; ++u) {
        $T* const to = (u % 2 ? odd : even) + (u / 2 - first_row) * wide;
        if (u < c->height + 2)
          lt_winograd_row_$K(to, distance, row, x + i * c->x_channel + u * c->x_row, c->x_column, c->width + 2, wide,
                             c->x_channel < 0 ? 0 : (inputs - 1 - i) * c->x_channel + (c->height + 1 - u) * c->x_row);
        else
          for (int64_t j = 0; j < 4; ++j)
            for (int64_t q = 0; q < wide; ++q) to[j * distance + q] = 0;
      }
      const int64_t from = t - first_row * wide;
      for (int64_t q = 0, across; t + q < next; q += across) {
        across = next - t - q > narrow ? columns : narrow;
        lt_winograd_tiles_$K(tiles + q * inputs + i * across, panels, across, even + from + q, odd + from + q, distance, wide);
      }
    }
    for (int64_t o = 0; o < filled; o += rows) {
      const int64_t high = o < whole ? rows : filled - whole;
      for (int64_t p = 0; p < 16; ++p)
        for (int64_t l = 0; l < inputs; l += LT_GEMM_DEPTH) {
          const int64_t depth = LT_GEMM_DEPTH < inputs - l ? LT_GEMM_DEPTH : inputs - l;
          for (int64_t q = 0, across; t + q < next; q += across) {
            $T* to[LT_GEMM_ROWS];
            for (int64_t s = 0; s < high; ++s) to[s] = products + (p * rows + s) * chunk + q;
            across = next - t - q > narrow ? columns : narrow;
            lt_gemm_packed_$K(high, across, l == 0, depth, 1, filters + (16 * o + p * high) * inputs + l * high,
                              tiles + p * panels + q * inputs + l * across, to);
          }
        }
      for (int64_t s = 0; s < high && o + s < c->outputs; ++s) {
        lt_winograd_results_$K(upper, lower, products + s * chunk, rows * chunk, next - t);
        for (int64_t a = t, end; a < next; a = end) { /* row by row */
          const int64_t u = a / wide, column = 2 * (a - u * wide);
          end = (u + 1) * wide < next ? (u + 1) * wide : next;
          const int64_t n = 2 * (end - a) < c->width - column ? 2 * (end - a) : c->width - column;
          for (int64_t i = 0; i < 2 && 2 * u + i < c->height; ++i) {
            const $T* const made = (i == 0 ? upper : lower) + 2 * (a - t);
            $T* const to = r + (o + s) * c->r_channel + (2 * u + i) * c->r_row + column * c->r_column;
            if (c->r_column != 1)
              for (int64_t j = 0; j < n; ++j) to[j * c->r_column] = (fresh ? 0 : to[j * c->r_column]) + made[j];
            else if (fresh) lt_copy_$K(to, made, n);
            else lt_gemm_row_$K(0, to, made, n, 1);
          }
        }
      }
    }
  }
  lt_leave(ws, mark);
}
#undef LT_LOAD
#undef LT_STORE

/* Whether a contraction is a convolution by filters of 3 by 3, and there are enough channels and results for tiles to pay:
   which of its indices are rows and columns of a picture. `other`: of its rows that are left one, or -1. */
static int lt_is_convolution_$K(const lt_contraction_$K* c, lt_convolution_$K* to, int* other) {
  const int row = c->rank[0], column = row + c->rank[1], sum = column + c->rank[2], end = sum + c->rank[3];
  int at[2], window[2], pairs = 0, channel = -1;
  *other = -1;
  if (c->rank[1] < 2 || c->rank[1] > 3 || c->rank[2] != 1 || c->rank[3] != 3 || LT_GEMM_COLUMNS_$K < 8) return 0;
  for (int s = sum; s < end; ++s) {
    int found = -1;
    for (int d = row; c->size[s] == 3 && d < column; ++d)
      if (c->x_step[d] == c->x_step[s] && c->size[d] > 1) found = d;
    if (found < 0) channel = s;
    else if (pairs < 2) at[pairs] = found, window[pairs++] = s;
  }
  if (pairs != 2 || channel < 0 || at[0] == at[1]) return 0;
  for (int d = row; d < column; ++d)
    if (d != at[0] && d != at[1]) *other = d;
  const int turned = c->x_step[at[0]] < c->x_step[at[1]]; /* columns are nearer to each other than rows */
  const int i = turned, j = !turned;
  const lt_convolution_$K found = {c->size[channel],     c->size[column],        c->size[at[i]],       c->size[at[j]],
                                   c->x_step[channel],   c->x_step[at[i]],       c->x_step[at[j]],     c->y_step[column],
                                   c->y_step[channel],   c->y_step[window[i]],   c->y_step[window[j]], c->r_step[column],
                                   c->r_step[at[i]],     c->r_step[at[j]]};
  *to = found;
  return found.inputs >= 12 && found.outputs >= LT_GEMM_ROWS && found.height >= 4 && found.width >= 4;
}
#endif

static void lt_convolve_$K(lt_workspace* ws, const lt_contraction_$K* given) {
#ifndef __TINYC__
  lt_convolution_$K c;
  int other;
  if (lt_is_convolution_$K(given, &c, &other)) {
    const int64_t filled = lt_gemm_filled_rows_$K(c.outputs), pictures = other < 0 ? 1 : given->size[other];
    const int64_t bytes = 16 * filled * c.inputs * (int64_t)sizeof($T);
    const int plain = c.y_output > 0 && c.y_input > 0 && c.y_row == 3 && c.y_column == 1;
    const int pays = pictures * c.height * c.width >= 256; /* filters are made ready in every call */
    const lt_position mark = lt_mark(ws);
    const int64_t* const x_batch = lt_offsets(ws, given->rank[0], given->size, given->x_step);
    const int64_t* const y_batch = lt_offsets(ws, given->rank[0], given->size, given->y_step);
    const int64_t* const r_batch = lt_offsets(ws, given->rank[0], given->size, given->r_step);
    int64_t batch = 1, b = 0;
    for (int d = 0; d < given->rank[0]; ++d) batch *= given->size[d];
    for (; b < batch; ++b) {
      const $T* const y = given->y + y_batch[b];
      const lt_packed key = {y, c.outputs, c.y_output, c.inputs, c.y_input, -1, 0, 0};
      int made = 0;
      $T* filters = 0;
      if (plain)
        filters = ($T*)lt_kept(ws, &key, (const char*)(y + (c.outputs - 1) * c.y_output + (c.inputs - 1) * c.y_input + 9),
                               (unsigned long)bytes, &made);
      if (!filters && !pays && b == 0) break; /* later, a part of the result is there */
      if (!filters) filters = ($T*)lt_allocate(ws, bytes);
      if (!made) lt_winograd_filters_$K(filters, &c, y);
      for (int64_t n = 0; n < pictures; ++n)
        lt_winograd_picture_$K(ws, given->fresh, &c, given->x + x_batch[b] + (other < 0 ? 0 : n * given->x_step[other]), filters,
                               given->r + r_batch[b] + (other < 0 ? 0 : n * given->r_step[other]));
    }
    lt_leave(ws, mark);
    if (b == batch) return;
  }
#endif
  lt_contract_$K(ws, given);
}
)c", true},
  };
  return parts;
}

}  // namespace lantern::codegen
