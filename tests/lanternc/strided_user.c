/* Calls the functions NAME_strided of strided.cpp through its header, as C and as C++. */
#include <stdio.h>
#include <string.h>

#include "strided.h"

static int bad = 0;

static void expect(int line, double got, double expected) {
  if (got - expected < 1e-12 && expected - got < 1e-12) return;
  printf("line %d: expected %g, got %g\n", line, expected, got);
  ++bad;
}
#define EXPECT(got, expected) expect(__LINE__, (double)(got), expected)

int main(void) {
  const double columns[6] = {1, 4, 2, 5, 3, 6}; /* 1 2 3, 4 5 6, columns first */
  const char* message = "none";
  lt_const_strided_f64_2d m = {columns, {2, 3}, {1, 2}}, square = {columns, {2, 2}, {1, 2}};
  double value = 0;

  /* An argument by columns, one backwards, one with a gap; results by columns and with a gap. */
  {
    double x[4] = {3, -7, 2, -7}, dm[4] = {0, 0, 0, 0}, dx[6] = {9, 9, 9, 9, 9, 9};
    lt_const_strided_f64_1d in = {x, {2}, {2}}; /* 3, 2 */
    lt_strided_f64_2d out_m = {dm, {2, 2}, {1, 2}};
    lt_strided_f64_1d out_x = {dx + 4, {2}, {-2}};
    EXPECT(weighted_gradient_strided(square, in, &value, &out_m, &out_x, &message), 0);
    EXPECT(message == 0, 1);
    EXPECT(value, 3 * (1 * 3 + 2 * 2) + 2 * (4 * 3 + 5 * 2)); /* x^T m x */
    EXPECT(dm[0], 9);                                         /* x x^T */
    EXPECT(dm[1], 6);
    EXPECT(dm[2], 6);
    EXPECT(dm[3], 4);
    EXPECT(dx[4], 18); /* (m + m^T) x = (2 6, 6 10) (3 2) */
    EXPECT(dx[2], 38);
    EXPECT(dx[0], 9);
    EXPECT(dx[3], 9);
    EXPECT(dx[5], 9);
  }
  /* Results where the arguments are, each packed where the other has strides. */
  {
    double a[2] = {1, 2}, b[3] = {3, 0, 4};
    lt_const_strided_f64_1d x = {a, {2}, {1}}, y = {b, {2}, {2}};
    lt_strided_f64_1d to_a = {a, {2}, {1}}, to_b = {b, {2}, {2}};
    EXPECT(exchange_strided(x, y, &to_a, &to_b, &value, 0), 0);
    EXPECT(a[0], 3);
    EXPECT(a[1], 4);
    EXPECT(b[0], 1);
    EXPECT(b[1], 0);
    EXPECT(b[2], 2);
    EXPECT(value, 3);
  }
  /* The same where a packed result is an argument's memory that a result with strides is written to. */
  {
    double a[4] = {1, 2, 3, 4}, packed[2] = {0, 0};
    lt_const_strided_f64_1d x = {a, {2}, {1}}, y = {a + 2, {2}, {1}};
    lt_strided_f64_1d to_x = {a, {2}, {2}}, to_packed = {packed, {2}, {1}};
    EXPECT(exchange_strided(x, y, &to_x, &to_packed, &value, 0), 0);
    EXPECT(a[0], 3);
    EXPECT(a[2], 4);
    EXPECT(packed[0], 1);
    EXPECT(packed[1], 2);
  }
  /* Without memory: packed, in the library's. One element for all: stride 0. */
  {
    const double one = 2;
    lt_const_strided_f64_2d all = {&one, {2, 3}, {0, 0}};
    lt_strided_f64_2d out;
    memset(&out, 0, sizeof out);
    EXPECT(times_strided(all, 3, &out, 0), 0);
    EXPECT(out.dim[0], 2);
    EXPECT(out.dim[1], 3);
    EXPECT(out.stride[0], 3);
    EXPECT(out.stride[1], 1);
    for (int i = 0; i < 6; ++i) EXPECT(out.data[i], 6);
  }
  /* Three dimensions, of floats; no elements. */
  {
    float t[8] = {0, 1, 2, 3, 4, 5, 6, 7}, to[8];
    lt_const_strided_f32_3d in = {t, {2, 2, 2}, {1, 2, 4}};
    lt_strided_f32_3d out = {to, {2, 2, 2}, {4, 2, 1}};
    lt_const_strided_f64_2d empty = {0, {0, 3}, {7, 7}};
    lt_strided_f64_2d nothing = {0, {0, 0}, {0, 0}};
    EXPECT(shift_by_one_strided(in, &out, 0), 0);
    EXPECT(to[0], 1);
    EXPECT(to[1], 5);
    EXPECT(to[2], 3);
    EXPECT(to[6], 4);
    EXPECT(times_strided(empty, 3, &nothing, 0), 0);
    EXPECT(nothing.dim[0], 0);
    EXPECT(nothing.dim[1], 3);
  }
  /* Failures. */
  {
    double small[4];
    lt_strided_f64_2d out = {small, {2, 2}, {1, 2}}; /* m has three columns */
    lt_const_strided_f64_1d x = {columns, {3}, {2}};
    EXPECT(times_strided(m, 3, &out, &message), 2);
    EXPECT(strstr(message, "result 1") != 0, 1);
    EXPECT(square_at_strided(x, 2, &value, &message), 0);
    EXPECT(value, 9);
    EXPECT(square_at_strided(x, 3, &value, &message), 1);
    EXPECT(strstr(message, "index 3 is outside 0..2") != 0, 1);
    EXPECT(square_at_strided(x, 1, &value, &message), 0);
    EXPECT(value, 4);
  }
  if (bad == 0) printf("right\n");
  return bad != 0;
}
