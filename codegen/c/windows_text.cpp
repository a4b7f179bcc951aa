// The prelude's sums over a window of each channel, as depthwise convolutions are.
#include "lantern/codegen/c/prelude_text.hpp"

namespace lantern::codegen {

using enum PreludeGroup;

const std::vector<PreludePart>& windows_parts();

const std::vector<PreludePart>& windows_parts() {
  static const std::vector<PreludePart> parts = {
      // A channel with zeros around fits into a cache. With steps its rows and columns are sorted by their remainders: then
      // each place of the window is a shift of numbers that follow one another.
      {"K:windows", functions, {"allocate", "mark", "K:gemm_tile", "K:panel", "integers"},
       R"c(/* r[n,c,i,j] += the sum over p and q of x[n,c,step i + gap p - before,...] y[c,p,q], or, where `fresh`, = it; what
   lies outside of x is zero. Rows of pictures and of windows lie in one piece. */
typedef struct lt_window_sum_$K {
  const $T* x;
  const $T* y;
  $T* r;
  int fresh;
  int64_t pictures, x_picture, y_picture, r_picture, channels, x_channel, y_channel, r_channel;
  struct {
    int64_t of_x, of_r, of_y, step, gap, before;
  } rows, columns;
} lt_window_sum_$K;

#ifdef __TINYC__
static void lt_windows_$K(lt_workspace* ws, const lt_window_sum_$K* w) {
  (void)ws;
  for (int64_t n = 0; n < w->pictures; ++n)
    for (int64_t c = 0; c < w->channels; ++c)
      for (int64_t i = 0; i < w->rows.of_r; ++i)
        for (int64_t j = 0; j < w->columns.of_r; ++j) {
          const $T* const x = w->x + n * w->x_picture + c * w->x_channel;
          const $T* const y = w->y + n * w->y_picture + c * w->y_channel;
          $T* const r = w->r + n * w->r_picture + c * w->r_channel + i * w->columns.of_r + j;
          $T sum = 0;
          for (int64_t p = 0; p < w->rows.of_y; ++p)
            for (int64_t q = 0; q < w->columns.of_y; ++q) {
              const int64_t row = w->rows.step * i + w->rows.gap * p - w->rows.before;
              const int64_t column = w->columns.step * j + w->columns.gap * q - w->columns.before;
              if (row >= 0 && row < w->rows.of_x && column >= 0 && column < w->columns.of_x)
                sum += x[row * w->columns.of_x + column] * y[p * w->columns.of_y + q];
            }
          *r = (w->fresh ? 0 : *r) + sum;
        }
}
#else
/* Some vectors of the result, of which the last one begins at `last`: the window's numbers times what lies at their shifts. */
static inline __attribute__((always_inline)) void lt_windows_some_$K(int vectors, int64_t last, int places, $T* to, const $T* from,
                                                                     const $T* y, const int64_t* shift) {
#ifdef __clang__
#pragma STDC FP_CONTRACT ON
#endif
  const lt_gemm_vector_$K zero = {0};
  lt_gemm_vector_$K sum[4];
  for (int v = 0; v < vectors; ++v) sum[v] = zero;
  for (int p = 0; p < places; ++p) {
    const lt_gemm_vector_$K by = y[p] - zero;
    for (int v = 0; v < vectors; ++v)
      sum[v] += by * *(const lt_gemm_in_memory_$K*)(from + shift[p] + (v + 1 < vectors ? v * LT_GEMM_LANES_$K : last));
  }
  for (int v = 0; v < vectors; ++v) *(lt_gemm_in_memory_$K*)(to + (v + 1 < vectors ? v * LT_GEMM_LANES_$K : last)) = sum[v];
}
static inline __attribute__((always_inline)) void lt_windows_line_$K(int places, int64_t n, $T* to, const $T* from, const $T* y,
                                                                     const int64_t* shift) {
  const int64_t lanes = LT_GEMM_LANES_$K;
  int64_t i = 0;
  for (; n - i >= 4 * lanes; i += 4 * lanes) lt_windows_some_$K(4, 3 * lanes, places, to + i, from + i, y, shift);
  const int64_t last = n - lanes - i; /* the last vector may overlap with the one before */
  if (last > 2 * lanes) lt_windows_some_$K(4, last, places, to + i, from + i, y, shift);
  else if (last > lanes) lt_windows_some_$K(3, last, places, to + i, from + i, y, shift);
  else if (last > 0) lt_windows_some_$K(2, last, places, to + i, from + i, y, shift);
  else if (last > -lanes) lt_windows_some_$K(1, last, places, to + i, from + i, y, shift);
}
/* n numbers, of a vector's lanes or more. */
LT_GEMM_APART static void lt_windows_of_$K(int64_t places, int64_t n, $T* to, const $T* from, const $T* y, const int64_t* shift) {
  if (places == 9) lt_windows_line_$K(9, n, to, from, y, shift);
  else if (places == 25) lt_windows_line_$K(25, n, to, from, y, shift);
  else lt_windows_line_$K((int)places, n, to, from, y, shift);
}

/* Copies rows of a picture to the planes of their remainders: row i to to[i], of which columns from first[a] on, count[a] of
   them, go to at[a], each so many columns away from the one before. */
LT_GEMM_APART static void lt_windows_rows_$K($T* padded, const int64_t* to, int64_t rows, const $T* x, int64_t row, int64_t step,
                                             const int64_t* first, const int64_t* count, const int64_t* at) {
  for (int64_t i = 0; i < rows; ++i, x += row)
    for (int64_t a = 0; a < step; ++a) {
      $T* const put = padded + to[i] + at[a];
      if (step == 1) lt_copy_$K(put, x, count[0]);
      else if (step == 2) lt_copy_second_$K(put, x + first[a], count[a]);
      else
        for (int64_t j = 0; j < count[a]; ++j) put[j] = x[first[a] + j * step];
    }
}

static void lt_windows_$K(lt_workspace* ws, const lt_window_sum_$K* w) {
  const int64_t high = w->rows.of_r, wide = w->columns.of_r, places = w->rows.of_y * w->columns.of_y, lanes = LT_GEMM_LANES_$K;
  if (w->pictures <= 0 || w->channels <= 0 || high <= 0 || wide <= 0) return;
  const int64_t down = w->rows.step, across = w->columns.step, above = w->rows.before, before = w->columns.before;
  const int64_t rows = high + (w->rows.of_y - 1) * w->rows.gap / down, row = wide + (w->columns.of_y - 1) * w->columns.gap / across;
  const int64_t plane = rows * row, all = down * across * plane + row + 2 * lanes;
  /* Rows and columns behind these are not read. */
  const int64_t some_rows = down * rows - above, some_columns = across * row - before;
  const int64_t from_rows = some_rows < 0 ? 0 : some_rows < w->rows.of_x ? some_rows : w->rows.of_x;
  const int64_t from_columns = some_columns < 0 ? 0 : some_columns < w->columns.of_x ? some_columns : w->columns.of_x;
  const int64_t flat = (high * row + lanes - 1) / lanes * lanes;
  const lt_position mark = lt_mark(ws);
  int64_t* const shift = (int64_t*)lt_allocate(ws, (places + from_rows + 3 * across) * (int64_t)sizeof(int64_t));
  int64_t *const to = shift + places, *const first = to + from_rows, *const count = first + across, *const at = count + across;
  $T* const padded = ($T*)lt_allocate(ws, all * (int64_t)sizeof($T));
  $T* const line = ($T*)lt_allocate(ws, flat * (int64_t)sizeof($T));
  for (int64_t p = 0; p < w->rows.of_y; ++p)
    for (int64_t q = 0; q < w->columns.of_y; ++q) {
      const int64_t a = p * w->rows.gap, b = q * w->columns.gap;
      shift[p * w->columns.of_y + q] = (a % down * across + b % across) * plane + a / down * row + b / across;
    }
  for (int64_t i = 0; i < from_rows; ++i) to[i] = (i + above) % down * across * plane + (i + above) / down * row;
  for (int64_t a = 0; a < across; ++a) {
    first[a] = ((a - before) % across + across) % across;
    count[a] = first[a] < from_columns ? (from_columns - first[a] + across - 1) / across : 0;
    at[a] = a * plane + (before + first[a]) / across;
  }
  for (int64_t i = 0; i < all; ++i) padded[i] = 0;
  const int direct = w->fresh && wide >= lanes;
  for (int64_t n = 0; n < w->pictures; ++n)
    for (int64_t c = 0; c < w->channels; ++c) {
      const $T* const y = w->y + n * w->y_picture + c * w->y_channel;
      $T* const r = w->r + n * w->r_picture + c * w->r_channel;
      lt_windows_rows_$K(padded, to, from_rows, w->x + n * w->x_picture + c * w->x_channel, w->columns.of_x, across, first, count, at);
      if (direct) {
        for (int64_t i = 0; i < high; ++i) lt_windows_of_$K(places, wide, r + i * wide, padded + i * row, y, shift);
        continue;
      }
      lt_windows_of_$K(places, flat, line, padded, y, shift);
      for (int64_t i = 0; i < high; ++i)
        if (w->fresh) lt_copy_$K(r + i * wide, line + i * row, wide);
        else lt_gemm_row_$K(0, r + i * wide, line + i * row, wide, 1);
    }
  lt_leave(ws, mark);
}
#endif
)c", true},
  };
  return parts;
}

}  // namespace lantern::codegen
