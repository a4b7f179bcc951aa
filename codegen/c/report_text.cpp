// The prelude's prints and checks of values. Eager evaluation prints the same text (compiler/staging/print.cpp).
#include "lantern/codegen/c/prelude_text.hpp"

namespace lantern::codegen {

using enum PreludeGroup;

const std::vector<PreludePart>& report_parts();

const std::vector<PreludePart>& report_parts() {
  static const std::vector<PreludePart> parts = {
      {"printf", prototypes, {}, "int printf(const char* format, ...);\n"},
      {"K:show", functions, {"printf"}, R"c(static void lt_show_$K($T x) {
$P
}
)c"},
      {"K:print", functions, {"K:show"}, R"c(static void lt_print_$K(const char* label, $T x) {
  printf("%s = ", label);
  lt_show_$K(x);
  printf("\n");
}
)c"},
      {"K:print_all", functions, {"K:show"}, R"c(/* Of a dimension longer than 8 the first and the last elements. */
static int lt_show_rows_$K(const $T* x, const int64_t* dim, int rank) {
  int64_t stride = 1;
  int cut = 0;
  if (rank == 0) {
    lt_show_$K(*x);
    return 0;
  }
  for (int r = 1; r < rank; ++r) stride *= dim[r];
  printf("[");
  for (int64_t i = 0; i < dim[0]; ++i) {
    if (i > 0) printf(", ");
    if (dim[0] > 8 && i == 3) {
      printf("..., ");
      i = dim[0] - 3;
      cut = 1;
    }
    cut |= lt_show_rows_$K(x + i * stride, dim + 1, rank - 1);
  }
  printf("]");
  return cut;
}

static void lt_print_all_$K(const char* label, const $T* x, const int64_t* dim, int rank) {
  printf("%s = ", label);
  if (lt_show_rows_$K(x, dim, rank)) {
    for (int r = 0; r < rank; ++r) printf("%s%lld", r ? "x" : " (", (long long)dim[r]);
    printf(")");
  }
  printf("\n");
}
)c"},
      {"K:finite", functions, {}, R"c(static int lt_finite_$K($T x) { return x - x == 0; }
)c"},
      {"K:finite_all", functions, {"K:finite"}, R"c(static int lt_finite_all_$K(const $T* x, int64_t n) {
  for (int64_t i = 0; i < n; ++i)
    if (!lt_finite_$K(x[i])) return 0;
  return 1;
}
)c"},
      {"K:not_finite_in", functions, {}, R"c(/* A NaN if there is one, else an infinity. */
static $T lt_not_finite_in_$K(const $T* x, int64_t n) {
  $T found = 0;
  for (int64_t i = 0; i < n; ++i) {
    if (x[i] != x[i]) return x[i];
    if (x[i] - x[i] != 0) found = x[i];
  }
  return found;
}
)c"},
      {"K:fail_value", functions, {"put"}, R"c(/* An infinity may be made of infinities. */
static void lt_fail_value_$K(lt_workspace* ws, $T x, int operands_finite, const char* before,
                             const char* after) {
  if (x == x && !operands_finite) return;
  char* at = lt_put(ws, lt_put(ws, ws->message, before), x != x ? "nan" : x > 0 ? "inf" : "-inf");
  lt_put(ws, at, after);
  ws->fail(ws, ws->message);
}
)c"},
      {"K:fail_argument", functions, {"put_number"},
       R"c(static void lt_fail_argument_$K(lt_workspace* ws, const char* argument, int64_t i, const char* name, $T x) {
  char* at = lt_put(ws, lt_put(ws, ws->message, argument), "[");
  at = lt_put(ws, lt_put(ws, lt_put_number(ws, at, i), "]"), name);
  lt_put(ws, lt_put(ws, at, ": expected finite values, got "), x != x ? "nan" : x > 0 ? "inf" : "-inf");
  ws->fail(ws, ws->message);
}
)c"},
      {"K:check_argument", functions, {"K:fail_argument", "K:finite"},
       R"c(static void lt_check_argument_$K(lt_workspace* ws, const $T* x, int64_t n, const char* argument,
                                 const char* name) {
  for (int64_t i = 0; i < n; ++i)
    if (!lt_finite_$K(x[i])) lt_fail_argument_$K(ws, argument, i, name, x[i]);
}
)c"},
  };
  return parts;
}

}  // namespace lantern::codegen
