/* Calls every function of interface.cpp through its header, as C and as C++. */
#include <stdio.h>
#include <string.h>

#include "interface.h"

static int bad = 0;

static void expect(int line, double got, double expected) {
  if (got - expected < 1e-12 && expected - got < 1e-12) return;
  printf("line %d: expected %g, got %g\n", line, expected, got);
  ++bad;
}
#define EXPECT(got, expected) expect(__LINE__, (double)(got), expected)

int main(void) {
  double a = -1, b = -1, v[2] = {3, 4}, w[4] = {1, 2, 3, 4};
  int64_t i = -1;
  int32_t n = -1;
  float s = -1;
  bool is = false;
  lt_f64_1d x = {v, {2}}, dx = {0, {0}}, row = {0, {0}};
  lt_f64_2d m = {w, {2, 2}};

  EXPECT(one(3), 6);
  EXPECT(truth(0.5, false), 1);
  EXPECT(truth(0.5, true), 0);
  several(1, true, 4, 5, 0.5f, &a, &is, &i, &n, &s);
  EXPECT(a, 2);
  EXPECT(is, 0);
  EXPECT(i, 8);
  EXPECT(n, 6);
  EXPECT(s, 1);
  EXPECT(looped(2, 2), 2);
  slope(4, 2, &a, &b); /* (x^2 / 2)^2 / 2 */
  EXPECT(a, 32);
  EXPECT(b, 32);
  looped_truth(1, 1, &a, &is);
  EXPECT(a, 0.5);
  EXPECT(is, 1);
  dpower(2, 5, &a, &b);
  EXPECT(a, 32);
  EXPECT(b, 80);
  nothing(&a, &i);
  EXPECT(a, 1.5);
  EXPECT(i, 7);

  /* Status in place of an end: scalars, arrays in memory of the library's and of ours, failures. */
  {
    const char* message = "none";
    lt_const_f64_1d in_x = {v, {2}};
    lt_const_f64_2d in_m = {w, {2, 2}}, narrow = {w, {1, 4}};
    double mine[2] = {-1, -1};
    lt_f64_2d own = {0, {0, 0}};
    EXPECT(one_try(3, &a, &message), 0);
    EXPECT(a, 6);
    EXPECT(message == 0, 1);
    EXPECT(several_try(1, true, 4, 5, 0.5f, &a, &is, &i, &n, &s, 0), 0);
    EXPECT(a, 2);
    EXPECT(is, 0);
    EXPECT(i, 8);
    EXPECT(n, 6);
    EXPECT(s, 1);
    EXPECT(dpower_try(2, 5, &a, &b, &message), 0);
    EXPECT(b, 80);
    EXPECT(gradient_try(2, in_x, &a, &b, &dx, &message), 0);
    EXPECT(a, 50);
    EXPECT(dx.dim[0], 2);
    EXPECT(dx.data[1], 16);
    dx.data = mine;
    EXPECT(gradient_try(3, in_x, &a, &b, &dx, &message), 0);
    EXPECT(dx.data == mine, 1);
    EXPECT(mine[1], 24);
    dx.dim[0] = 1;
    EXPECT(gradient_try(3, in_x, &a, &b, &dx, &message), 2);
    EXPECT(strcmp(message, "result 3: expected size 2 in dimension 0, got 1"), 0);
    EXPECT(dx.dim[0], 2);
    EXPECT(matrices_try(in_m, in_m, &own, &message), 0);
    EXPECT(own.data[3], 22);
    own.data = 0;
    EXPECT(matrices_try(in_m, narrow, &own, &message), 1);
    EXPECT(strncmp(message, "matmul: shapes [2, 2] and [1, 4] do not fit", 43), 0);
    row.data = 0;
    EXPECT(mixed_try(in_m, 7, &row, &is, &a, &message), 1);
    EXPECT(strncmp(message, "rows 7 to 8 (exclusive) are outside 0..2", 40) && strncmp(message, "index 7 is outside 0..1", 23), 0);
    EXPECT(mixed_try(in_m, 1, &row, &is, &a, &message), 0);
    EXPECT(row.data[0], 3);
    dx.data = v; /* an argument's memory: read before it is written */
    dx.dim[0] = 2;
    EXPECT(times_try(in_x, 2, &dx, &message), 0);
    EXPECT(v[1], 8);
    v[0] = 3;
    v[1] = 4;
  }

  EXPECT(everything(x), 7);
  vg(2, x, &a, &b);
  EXPECT(a, 50);
  EXPECT(b, 25);
  gradient(gradient_workspace(), 2, x, &a, &b, &dx);
  EXPECT(a, 50);
  EXPECT(b, 25);
  EXPECT(dx.dim[0], 2);
  EXPECT(dx.data[1], 16);
  dx = times(times_workspace_2(), x, 0.5);
  EXPECT(dx.data[0], 1.5);
  m = matrices(matrices_workspace(), m, m);
  EXPECT(m.data[3], 22);
  mixed(mixed_workspace(), m, 1, &row, &is, &a);
  EXPECT(row.data[0], 15);
  EXPECT(is, 1);
  EXPECT(a, 7 + 10 + 15 + 22);
  shifted(1, 2, 3, &a, &b);
  EXPECT(a, 4);
  EXPECT(b, -1);
  denergy(1, 2, 3, &a, &b, v);
  EXPECT(a, 6);
  EXPECT(b, 12);
  EXPECT(v[0], 5);
  {
    int64_t left[3] = {1, -1, -1}, right[3] = {2, -1, -1};
    double value[3] = {2, 3, 5};
    lt_tree_f64 tree;
    tree.left = left;
    tree.right = right;
    tree.value0 = value;
    tree.node = 0;
    EXPECT(dfolded(dfolded_workspace(), 2, tree), 4 * 2 * 3 * 5 * 8);
  }
  {
    unsigned char which[2] = {1, 0};
    lt_bool_1d flag, after;
    v[0] = 3;
    flag.data = which;
    flag.dim[0] = 2;
    turned(turned_workspace(), flag, x, &a, &after);
    EXPECT(a, 3);
    EXPECT(after.data[0], 0);
    EXPECT(after.data[1], 1);
  }

  EXPECT(in_(3), 9);
  EXPECT(trailing_(3), 6);
  EXPECT(restrict_(3), 6);
  EXPECT(two__(3), 9);
  EXPECT(times_workspace(3), 9);
  EXPECT(slope_on_failure(3), 9);
  EXPECT(looped_entry(3), 9);
  EXPECT(n_lt_workspace(3), 6);
  EXPECT(gamma_(3), 9);
  return bad;
}
