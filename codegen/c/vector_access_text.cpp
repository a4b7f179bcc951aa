// Text of masked and strided loads and stores of vectors.
#include <algorithm>

#include "lantern/codegen/c/prelude.hpp"
#include "lantern/codegen/c/vector_text.hpp"

namespace lantern::codegen {

std::string_view double_masks() {
  return R"c(/* The first n lanes of a register, which may be none or all. */
#if defined __AVX512F__
#define LT_PART 8
typedef double lt_part_vector __attribute__((vector_size(64), aligned(8), may_alias));

static inline unsigned char lt_first_lanes(long long n) {
  return (unsigned char)(n >= 8 ? 255 : n <= 0 ? 0 : (1 << n) - 1);
}

static inline lt_part_vector lt_load_lanes(const double* p, unsigned char lanes) {
  const lt_part_vector zero = {0};
  return __builtin_ia32_loadupd512_mask(p, zero, lanes);
}

static inline void lt_store_lanes(double* p, lt_part_vector x, unsigned char lanes) {
  __builtin_ia32_storeupd512_mask(p, x, lanes);
}

static inline lt_part_vector lt_load_part(const double* p, long long n) {
  return lt_load_lanes(p, lt_first_lanes(n));
}

static inline void lt_store_part(double* p, lt_part_vector x, long long n) {
  lt_store_lanes(p, x, lt_first_lanes(n));
}
#elif defined __AVX__
#define LT_PART 4
typedef double lt_part_vector __attribute__((vector_size(32), aligned(8), may_alias));
typedef double lt_half_vector __attribute__((vector_size(16), aligned(8), may_alias));
typedef double lt_one_lane __attribute__((may_alias));
typedef double lt_part_operand __attribute__((vector_size(32)));
typedef long long lt_part_mask __attribute__((vector_size(32)));

static inline lt_part_vector lt_load_part(const double* p, long long n) {
  const lt_part_mask lane = {0, 1, 2, 3}, all = {n, n, n, n};
  return __builtin_ia32_maskloadpd256((const lt_part_operand*)p, lane < all);
}

/* Masked stores of this width are slow on several machines. */
static inline void lt_store_part(double* p, lt_part_vector x, long long n) {
  if (n >= 4) {
    *(lt_part_vector*)p = x;
  } else if (n > 0) {
    const lt_half_vector low = {x[0], x[1]};
    if (n > 1) *(lt_half_vector*)p = low;
    if (n != 2) *(lt_one_lane*)(p + n - 1) = n == 1 ? x[0] : x[2];
  }
}
#endif
)c";
}

std::string load_every(int step, int lanes, const std::string& type, const std::string& some) {
  const auto start = [&](int k) { return k < step - 1 ? k * lanes : (lanes - 1) * step + 1 - lanes; };
  const auto loaded = [&](int from) {
    const std::string at = from ? "p + " + std::to_string(from) : "p";
    if (some.empty()) return "*(const " + type + "_memory*)" + (from ? "(" + at + ")" : at);
    return some + "(" + at + ", n * " + std::to_string(step) + " - " + std::to_string(step - 1 + from) + ")";
  };
  std::string body = "  " + type + " x = " + loaded(0) + ", y;\n";
  for (int k = 1; k < step; ++k) {
    std::string from;
    for (int i = 0; i < lanes; ++i) {
      const int at = i * step, holder = std::min(at / lanes, step - 1);
      int which = i;  // the lane stays
      if (holder == k) which = lanes + at - start(k);
      if (holder == 0 && k == 1) which = at;
      from += (i ? ", " : "") + std::to_string(which);
    }
    body += "  y = " + loaded(start(k)) + ";\n  x = __builtin_shufflevector(x, y, " + from + ");\n";
  }
  return body + "  return x;\n";
}

std::string add_every(int step, int lanes, const std::string& type, const std::string& element) {
  constexpr int part = widest_register / 8;
  std::string registers;
  for (int first = 0; first < step * (lanes - 1) + 1; first += part) {
    std::string from;
    unsigned mask = 0;
    for (int i = 0; i < part; ++i) {
      const int at = first + i;
      const bool stored = at % step == 0 && at / step < lanes;
      mask |= static_cast<unsigned>(stored) << i;
      from += (i ? ", " : "") + std::to_string(stored ? at / step : 0);
    }
    const std::string place = "(double*)p + " + std::to_string(first),
                      chosen = ", " + std::to_string(mask) + ")";
    registers += "  y = __builtin_shufflevector(x, x, " + from + ");\n";
    registers += "  y += (part)lt_load_lanes(" + place + chosen + ";\n";
    registers += "  lt_store_lanes(" + place + ", (lt_part_vector)y" + chosen + ";\n";
  }
  const std::string l = std::to_string(lanes);
  return "(" + element + "* p, " + type + " x) {\n#ifdef __AVX512F__\n  typedef " + element +
         " part __attribute__((vector_size(64)));\n  part y;\n" + registers +
         "#else\n  for (int i = 0; i < " + l + "; ++i) p[i * " + std::to_string(step) +
         "] += x[i];\n#endif\n}\n";
}

}  // namespace lantern::codegen
