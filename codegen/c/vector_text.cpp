// The prelude's vectors: GNU vector types, which Clang and g++ have, and functions on them.
//
// Functions of the mathematical library run eight (or as many as the machine has) lanes at once: exp and tanh
// as code that the compiler schedules among its surroundings, the others through glibc's libmvec; all results
// lie within 4 units in the last place. In strict mode, and elsewhere, lane by lane.
#include "lantern/codegen/c/vector_text.hpp"

#include <algorithm>
#include <array>

#include "lantern/codegen/c/prelude.hpp"
#include "lantern/ir/error.hpp"
#include "lantern/ir/op.hpp"

namespace lantern::codegen {

using ir::Kind;

namespace {

using Template = VectorTemplate;

constexpr std::array helper_templates{
    Template{"load", "", "static inline $V lt_load_$N(const $E* p) { return *(const $V_memory*)p; }\n"},
    Template{"store", "", "static inline void lt_store_$N($E* p, $V x) { *($V_memory*)p = x; }\n"},
    Template{"add", "load store", "static inline void lt_add_$N($E* p, $V x) { lt_store_$N(p, lt_load_$N(p) + x); }\n"},
    Template{"load_strided", "", R"c(static inline $V lt_load_strided_$N(const $E* p, int64_t stride) {
  $V x = {0};
  for (int i = 0; i < $L; ++i) x[i] = $<p[i * stride];
  return x;
}
)c"},
    Template{"store_strided", "", R"c(static inline void lt_store_strided_$N($E* p, int64_t stride, $V x) {
  for (int i = 0; i < $L; ++i) p[i * stride] = x[i]$>;
}
)c"},
    Template{"add_strided", "", R"c(static inline void lt_add_strided_$N($E* p, int64_t stride, $V x) {
  for (int i = 0; i < $L; ++i) p[i * stride] += x[i];
}
)c"},
    Template{"gather", "", R"c(static inline $V lt_gather_$N(const $E* p, $I at) {
  $V x;
  for (int i = 0; i < $L; ++i) x[i] = $<p[at[i]];
  return x;
}
)c"},
    Template{"scatter", "", R"c(static inline void lt_scatter_$N($E* p, $I at, $V x) {
  for (int i = 0; i < $L; ++i) p[at[i]] = x[i]$>;
}
)c"},
    // Lanes may meet at one element: one after the other.
    Template{"add_scatter", "", R"c(static inline void lt_add_scatter_$N($E* p, $I at, $V x) {
  for (int i = 0; i < $L; ++i) p[at[i]] += x[i];
}
)c"},
    // The first n lanes alone.
    Template{"load_some", "", R"c(static inline $V lt_load_some_$N(const $E* p, int64_t n) {
#if defined $P && $L % $P == 0
  union {
    $V all;
    lt_$p_vector part[$L / $P];
  } u;
  for (int i = 0; i < $L / $P; ++i)
    u.part[i] = lt_load_$p($Cp + $P * i, n - $P * i);
  return u.all;
#else
  $E e[$L];
  for (int i = 0; i < $L; ++i) e[i] = i < n ? p[i] : 0;
  return *(const $V_memory*)e;
#endif
}
)c"},
    Template{"store_some", "", R"c(static inline void lt_store_some_$N($E* p, $V x, int64_t n) {
#if defined $P && $L % $P == 0
  union {
    $V all;
    lt_$p_vector part[$L / $P];
  } u;
  u.all = x;
  for (int i = 0; i < $L / $P; ++i)
    lt_store_$p($Dp + $P * i, u.part[i], n - $P * i);
#else
  for (int i = 0; i < $L; ++i)
    if (i < n) p[i] = x[i];
#endif
}
)c"},
    Template{"add_some", "load_some store_some", R"c(static inline void lt_add_some_$N($E* p, $V x, int64_t n) {
  lt_store_some_$N(p, lt_load_some_$N(p, n) + x, n);
}
)c"},
    // Idle lanes read what the last one that works reads.
    Template{"load_strided_some", "", R"c(static inline $V lt_load_strided_some_$N(const $E* p, int64_t stride, int64_t n) {
  $E e[$L];
  for (int i = 0; i < $L; ++i) e[i] = p[(i < n ? i : n - 1) * stride];
  return *(const $V_memory*)e;
}
)c"},
    Template{"store_strided_some", "", R"c(static inline void lt_store_strided_some_$N($E* p, int64_t stride, $V x, int64_t n) {
  for (int i = 0; i < $L; ++i)
    if (i < n) p[i * stride] = x[i]$>;
}
)c"},
    Template{"add_strided_some", "", R"c(static inline void lt_add_strided_some_$N($E* p, int64_t stride, $V x, int64_t n) {
  for (int i = 0; i < $L; ++i)
    if (i < n) p[i * stride] += x[i];
}
)c"},
    Template{"gather_some", "", R"c(static inline $V lt_gather_some_$N(const $E* p, $I at, int64_t n) {
  $E e[$L];
  for (int i = 0; i < $L; ++i) e[i] = i < n ? p[at[i]] : 0;
  return *(const $V_memory*)e;
}
)c"},
    Template{"scatter_some", "", R"c(static inline void lt_scatter_some_$N($E* p, $I at, $V x, int64_t n) {
  $E e[$L];
  *($V_memory*)e = x;
  for (int i = 0; i < $L; ++i)
    if (i < n) p[at[i]] = e[i];
}
)c"},
    Template{"add_scatter_some", "", R"c(static inline void lt_add_scatter_some_$N($E* p, $I at, $V x, int64_t n) {
  $E e[$L];
  *($V_memory*)e = x;
  for (int i = 0; i < $L; ++i)
    if (i < n) p[at[i]] += e[i];
}
)c"},
    Template{"select", "", "static inline $V lt_select_$N($I c, $V x, $V y) { return ($V)((c & ($I)x) | (~c & ($I)y)); }\n"},
    Template{"imin", "select", "static inline $V lt_imin_$N($V x, $V y) { return lt_select_$N(x < y, x, y); }\n"},
    Template{"imax", "select", "static inline $V lt_imax_$N($V x, $V y) { return lt_select_$N(x > y, x, y); }\n"},
    Template{"fma", "", R"c(static inline $V lt_fma_$N($V x, $V y, $V z) {
#ifdef __clang__
  return __builtin_elementwise_fma(x, y, z);
#else
  for (int i = 0; i < $L; ++i) x[i] = __builtin_fma$f(x[i], y[i], z[i]);
  return x;
#endif
}
)c"},
    // Where signed integers overflow, unsigned ones wrap.
    Template{"wrapping_add", "unsigned",
             "static inline $V lt_wrapping_add_$N($V x, $V y) { return ($V)((lt_unsigned_$N)x + "
             "(lt_unsigned_$N)y); }\n"},
    Template{"wrapping_sub", "unsigned",
             "static inline $V lt_wrapping_sub_$N($V x, $V y) { return ($V)((lt_unsigned_$N)x - "
             "(lt_unsigned_$N)y); }\n"},
    Template{"wrapping_mul", "unsigned",
             "static inline $V lt_wrapping_mul_$N($V x, $V y) { return ($V)((lt_unsigned_$N)x * "
             "(lt_unsigned_$N)y); }\n"},
    Template{"wrapping_neg", "unsigned", "static inline $V lt_wrapping_neg_$N($V x) { return ($V)(0 - (lt_unsigned_$N)x); }\n"},
    // Of a number and a NaN the number; of equals the first.
    Template{"min", "select", "static inline $V lt_min_$N($V x, $V y) { return lt_select_$N((x <= y) | (y != y), x, y); }\n"},
    Template{"copysign", "", R"c(static inline $V lt_copysign_$N($V x, $V y) {
  typedef int bits __attribute__((vector_size(sizeof($V))));
  const $V zero = {0};
  const bits sign = (bits)-zero;
  return ($V)((~sign & (bits)x) | (sign & (bits)y));
}
)c"},
    Template{"max", "select", "static inline $V lt_max_$N($V x, $V y) { return lt_select_$N((x >= y) | (y != y), x, y); }\n"},
    // Of 0 and NaN 0.
    Template{"sign", "copysign select", R"c(static inline $V lt_sign_$N($V x) {
  const $V zero = {0};
  return lt_select_$N((x < zero) | (x > zero), lt_copysign_$N(zero + 1.0, x), zero);
}
)c"},
};

/// Functions of <math.h> whose argument is reduced to x = n ln(2) + r, so that e^x is 2^n e^r (Cody and
/// Waite, Software Manual for the Elementary Functions, 1980); the sum with 1.5 * 2^52 rounds to a whole
/// number, which is in its last bits. Infinities, what overflows or is denormal, NaN and -0 give what
/// libm gives.
constexpr std::array own_math{
    // e^r - 1 for |r| <= ln(2) / 2: the polynomial of degree 11 through Chebyshev's nodes, which differs from
    // it by less than 1e-16 of its value.
    Template{"exp_rest", "", R"c(static inline $V lt_exp_rest_$N($V r) {
  const $V r2 = r * r;
  const $V a = 0.041666666666651363 + r * 0.008333333333332155;
  const $V b = 0.0013888888905881542 + r * 0.0001984126985433861;
  const $V c = 2.4801536388690766e-05 + r * 2.755728006701698e-06;
  const $V d = 2.761380686153829e-07 + r * 2.5095554677111112e-08;
  const $V q = (a + r2 * b) + (r2 * r2) * (c + r2 * d);
  return r + r2 * ((0.5 + r * 0.16666666666666666) + r2 * q);
}
)c"},
    // 2^n in two factors, because n may exceed what an exponent can be. 2046 and 1023 more than 1.5 * 2^52
    // make
    // exponents of what the last bits hold.
    Template{"exp", "exp_rest select", R"c(static inline $V lt_exp_$N($V x) {
  const $V zero = {0};
  const $V low = lt_select_$N(x > zero + 710.0, zero + 710.0, x);
  const $V y = lt_select_$N(low < zero - 746.0, zero - 746.0, low);
  const $V t = y * 1.4426950408889634 + 6755399441057790.0, n = t - 6755399441057790.0;
  const $V r = (y - n * 6.93147180369123816490e-01) - n * 1.90821492927058770002e-10;
  const $V half = n * 0.5 + 6755399441056767.0;
  const $I second = ($I)t - ($I)half;
  const $V scale = ($V)(($I)half << 52);
  return (scale + scale * lt_exp_rest_$N(r)) * ($V)(second << 52);
}
)c"},
    // m / (m + 2) with m = e^(2 |x|) - 1, and the sign of x.
    Template{"tanh", "exp_rest select", R"c(static inline $V lt_tanh_$N($V x) {
  const $V zero = {0};
  const $I sign = ($I)x & ($I)-zero;
  const $V size = ($V)(($I)x ^ sign);
  const $V y = lt_select_$N(size > zero + 20.0, zero + 20.0, size);
  const $V t = y * 2.8853900817779268 + 6755399441056767.0, n = t - 6755399441056767.0;
  const $V r = (y * 2.0 - n * 6.93147180369123816490e-01) - n * 1.90821492927058770002e-10;
  const $V power = ($V)(($I)t << 52);
  const $V m = (power - 1.0) + power * lt_exp_rest_$N(r);
  return ($V)(($I)(m / (m + 2.0)) | sign);
}
)c"},
};

/// Lanes that a sum of products, or a function of <math.h>, treats as one: at least a register of any
/// machine.
constexpr int lt_part = 8;
int part_of(Kind kind) { return kind == Kind::f32 ? 2 * lt_part : lt_part; }

/// What libmvec of glibc 2.36 has, by its name in <math.h>.
constexpr std::array vector_math{"acos",  "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt",
                                 "cos",   "cosh",  "erf",  "erfc",  "exp",  "exp2",  "expm1", "log",
                                 "log10", "log1p", "log2", "pow",   "sin",  "sinh",  "tan",   "tanh"};

std::string listed(int n, const std::string& item, const std::string& last = "") {
  std::string s;
  for (int i = 0; i < n; ++i) s += (i ? ", " : "") + (last.empty() ? item : item + std::to_string(i));
  return s;
}

std::string numbers(int from, int to) {
  std::string s;
  for (int i = from; i < to; ++i) s += (i > from ? ", " : "") + std::to_string(i);
  return s;
}

std::string instantiated(std::string_view text, Kind kind, const std::string& v, const std::string& n, const std::string& e,
                         const std::string& lanes, const std::string& index, const std::string& mask) {
  const bool narrow = kind == Kind::f32, truths = kind == Kind::boolean;
  std::string s;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '$') {
      s += text[i];
      continue;
    }
    switch (text[++i]) {
      case 'V': s += v; break;
      case 'N': s += n; break;
      case 'E': s += e; break;
      case 'L': s += lanes; break;
      case 'M': s += mask; break;
      case 'I': s += index; break;
      case 'P': s += narrow ? "LT_FLOAT_PART" : "LT_PART"; break;
      case 'p': s += narrow ? "float_part" : "part"; break;
      case 'C': s += narrow ? "" : "(const double*)"; break;
      case 'D': s += narrow ? "" : "(double*)"; break;
      case 'f': s += narrow ? "f" : ""; break;
      case '<': s += truths ? "-(int64_t)" : ""; break;
      default: s += truths ? " != 0" : "";
    }
  }
  return s;
}

/// The body of a function of a vector x, or of two, that calls f for one part after the other.
std::string in_parts(const std::string& type, const std::string& part, const std::string& parts,
                     const std::string& f, bool two) {
  return "  union {\n    " + type + " all;\n    " + part + " part[" + parts + "];\n  } u" +
         (two ? ", w" : "") + ";\n  u.all = x;\n" + (two ? "  w.all = y;\n" : "") + "  for (int i = 0; i < " +
         parts + "; ++i) u.part[i] = " + f + "(u.part[i]" + (two ? ", w.part[i]" : "") +
         ");\n  return u.all;\n";
}

/// The same where x has fewer lanes than the parts that f takes: the others hold what these hold.
std::string in_first_lanes(const std::string& part, const std::string& size, const std::string& lanes,
                           const std::string& f, bool two) {
  const auto set = [&](const std::string& to, const std::string& from) {
    return "  for (int i = 0; i < " + size + "; ++i) " + to + "[i] = " + from + "[i % " + lanes + "];\n";
  };
  return "  " + part + " u" + (two ? ", w" : "") + ";\n" + set("u", "x") + (two ? set("w", "y") : "") +
         "  u = " + f + "(u" + (two ? ", w" : "") + ");\n  for (int i = 0; i < " + lanes +
         "; ++i) x[i] = u[i];\n  return x;\n";
}

constexpr std::string_view math_lanes =
    R"c(#if defined __x86_64__ && defined __linux__ && defined LT_LIBMVEC
#if defined __AVX512F__
#define LT_MATH_LANES 8
#define LT_MATH(name) _ZGVeN8v_##name
#define LT_MATH2(name) _ZGVeN8vv_##name
#define LT_FLOAT_MATH(name) _ZGVeN16v_##name
#define LT_FLOAT_MATH2(name) _ZGVeN16vv_##name
#elif defined __AVX2__
#define LT_MATH_LANES 4
#define LT_MATH(name) _ZGVdN4v_##name
#define LT_MATH2(name) _ZGVdN4vv_##name
#define LT_FLOAT_MATH(name) _ZGVdN8v_##name
#define LT_FLOAT_MATH2(name) _ZGVdN8vv_##name
#else
#define LT_MATH_LANES 2
#define LT_MATH(name) _ZGVbN2v_##name
#define LT_MATH2(name) _ZGVbN2vv_##name
#define LT_FLOAT_MATH(name) _ZGVbN4v_##name
#define LT_FLOAT_MATH2(name) _ZGVbN4vv_##name
#endif
typedef double lt_math_vector __attribute__((vector_size(8 * LT_MATH_LANES)));
typedef float lt_float_math_vector __attribute__((vector_size(8 * LT_MATH_LANES)));
#endif
#ifdef __cplusplus
#define LT_C extern "C"
#else
#define LT_C
#endif
)c";

}  // namespace

int taped_bytes(const ir::Type& type) {
  if (!type.is_vector()) return lane_bytes(type.kind());
  return type.kind() == Kind::boolean ? std::max(type.lanes() / 8, 1)
                                      : lane_bytes(type.kind()) * type.lanes();
}

int lane_bytes(Kind kind) { return kind == Kind::f32 || kind == Kind::i32 ? 4 : 8; }

std::string Prelude::vector(Kind kind, int lanes) {
  // What comparisons give: all bits set, or none.
  if (kind == Kind::boolean) kind = Kind::i64;
  const std::string name = "lt_" + std::string(ir::kind_name(kind)) + "x" + std::to_string(lanes);
  if (!fresh(name)) return name;
  need("integers");
  if (fresh("vectors"))
    add(Group::types,
        "/* Functions of vectors are inlined: how other code would pass these does not matter. */\n#ifdef "
        "__GNUC__\n#pragma GCC diagnostic ignored \"-Wpsabi\"\n#endif\n\n");
  const int size = lane_bytes(kind);
  if (target_->is_cpp() && size * lanes > (standalone_ ? common_register : widest_register))
    wide_.insert(name);
  const std::string element = target_->element(kind), bytes = std::to_string(size * lanes);
  add(Group::types, "typedef " + element + " " + name + " __attribute__((vector_size(" + bytes +
                        "), aligned(" + std::to_string(std::min(64, size * lanes)) + ")));\ntypedef " +
                        element + " " + name + "_memory __attribute__((vector_size(" + bytes + "), aligned(" +
                        std::to_string(size) + "), may_alias));\n");
  return name;
}

/// g++ tells, of vectors that no register holds, in which version the way of passing them has changed; that
/// the functions are inlined it does not see. In C++ they come by reference.
std::string Prelude::wide_by_reference(std::string text) const {
  for (const std::string& type : wide_)
    for (std::size_t at = 0; (at = text.find(type + " ", at)) != std::string::npos; at += type.size()) {
      if (at < 2 || (text[at - 1] != '(' && text.compare(at - 2, 2, ", ") != 0)) continue;
      const std::size_t name = at + type.size() + 1, end = text.find_first_of(",)", name);
      const std::size_t body = text.find('{', end);
      if (body == std::string::npos) continue;
      const std::string parameter = text.substr(name, end - name);
      text.insert(body + 1, "\n  " + type + " " + parameter + " = lt_" + parameter + ";");
      text.replace(at, end - at, "const " + type + "& lt_" + parameter);
      at += sizeof "const ";
    }
  return text;
}

namespace {

/// Each lane's element lies where its index or a stride says.
bool accesses_by_lane(std::string_view what) {
  constexpr std::string_view some = "_some";
  if (what.ends_with(some)) what.remove_suffix(some.size());
  return what.ends_with("load_strided") || what.ends_with("store_strided") || what.ends_with("add_strided") ||
         what.ends_with("gather") || what.ends_with("scatter");
}

}  // namespace

/// Such a function for what is wider than a register: a loop over so many lanes is not written out, and each
/// of its iterations would load or store all of the vector for one lane.
std::string Prelude::half_by_half(const std::string& what, const std::string& function, Kind kind,
                                  int lanes) {
  const int h = lanes / 2;
  const std::string half = vector_function(what, kind, h), type = vector(kind, lanes),
                    middle = std::to_string(h);
  const bool strided = what.find("strided") != std::string::npos, some = what.ends_with("_some");
  const bool reads = what.starts_with("load") || what.starts_with("gather");
  const std::string element = target_->element(kind);
  const auto part = [&](const char* x, int from) {
    return std::string("__builtin_shufflevector(") + x + ", " + x + ", " + numbers(from, from + h) + ")";
  };
  const auto call = [&](bool high) {
    const int from = high ? h : 0;
    return half + "(p" + (strided && high ? " + " + middle + " * stride" : "") + ", " +
           (strided ? "stride" : part("at", from)) + (reads ? "" : ", " + part("x", from)) +
           (some ? high ? ", n - " + middle : ", n" : "") + ")";
  };
  const std::string parameters = (reads ? "const " : "") + element + "* p, " +
                                 (strided ? "int64_t stride" : vector(Kind::i64, lanes) + " at") +
                                 (reads ? "" : ", " + type + " x") + (some ? ", int64_t n" : "");
  if (!reads)
    return "static inline void " + function + "(" + parameters + ") {\n  " + call(false) + ";\n  " +
           call(true) + ";\n}\n";
  const std::string narrow = vector(kind, h);
  return "static inline " + type + " " + function + "(" + parameters + ") {\n  const " + narrow +
         " low = " + call(false) + ",\n    high = " + call(true) +
         ";\n  return __builtin_shufflevector(low, high, " + numbers(0, lanes) + ");\n}\n";
}

/// A function of one or two vectors, of parts that count as one (part_of).
std::string Prelude::part_by_part(const std::string& what, const std::string& function, Kind kind, int lanes,
                                  bool two) {
  const int most = part_of(kind);
  const std::string type = vector(kind, lanes), part = vector(kind, most),
                    f = vector_function(what, kind, most);
  return "static inline " + type + " " + function + "(" + type + " x" + (two ? ", " + type + " y" : "") +
         ") {\n" + in_parts(type, part, std::to_string(lanes / most), f, two) + "}\n";
}

/// What packs and unpacks truth values of more lanes than a byte has bits where Clang's vectors of bits are missing: either half.
std::string Prelude::packed_by_halves(const std::string& what, int lanes) {
  const int h = lanes / 2;
  const std::string half = vector_function(what, Kind::boolean, h), bits = packed_truths(lanes),
                    middle = std::to_string(h);
  const auto part = [&](int from) {
    return "__builtin_shufflevector(x, x, " + numbers(from, from + h) + ")";
  };
  if (what == "pack")
    return "  return (" + bits + ")(" + half + "(" + part(0) + ") |\n    (" + bits + ")" + half + "(" + part(h) +
           ") << " + middle + ");\n";
  const auto of = [&](const std::string& x) { return half + "((" + packed_truths(h) + ")" + x + ")"; };
  return "  const " + vector(Kind::boolean, h) + " low = " + of("packed") + ",\n    high = " +
         of("(packed >> " + middle + ")") + ";\n  return __builtin_shufflevector(low, high, " + numbers(0, lanes) +
         ");\n";
}

std::string Prelude::vector_function(const std::string& what, Kind kind, int lanes) {
  const std::string type = vector(kind, lanes), name = type.substr(3), index = vector(Kind::i64, lanes);
  const auto of_name = [&](const Template& t) { return t.name == what; };
  if (kind == Kind::boolean) {
    const auto own = std::ranges::find_if(truth_templates(), of_name);
    // Of accesses lane by lane each is that of numbers, but for what an element is.
    const bool by_lane = own == truth_templates().end() && accesses_by_lane(what);
    const auto like = by_lane ? std::ranges::find_if(helper_templates, of_name) : helper_templates.end();
    const Template* const t = own != truth_templates().end() ? &*own : like != helper_templates.end() ? &*like : nullptr;
    if (t) {
      const std::string truths = "boolx" + std::to_string(lanes), function = "lt_" + what + "_" + truths;
      const bool bits = what == "pack" || what == "unpack";
      if (!fresh(function)) return function;
      std::string text = instantiated(t->text, kind, type, truths, bits ? packed_truths(lanes) : target_->element(kind),
                                      std::to_string(lanes), index, index);
      if (bits && lanes > 8) {
        const std::string otherwise = "#else\n";
        const std::size_t from = text.rfind(otherwise) + otherwise.size();
        text.replace(from, text.rfind("#endif") - from, packed_by_halves(what, lanes));
      }
      add(Group::functions, std::move(text));
      return function;
    }
  }
  const std::string full = "lt_" + what + "_" + name;
  if (!fresh(full)) return full;
  const bool narrow = kind == Kind::f32;
  const std::string element = target_->element(kind == Kind::boolean ? Kind::i64 : kind),
                    l = std::to_string(lanes);
  if (what == "splat") {
    add(Group::functions, "static inline " + type + " " + full + "(" + element + " x) {\n  const " + type +
                              " v = {" + listed(lanes, "x") + "};\n  return v;\n}\n");
    return full;
  }
  if (what == "halves") {
    const std::string half = vector(kind, lanes / 2);
    add(Group::functions,
        "/* From iteration to iteration of a loop: what is wider than a register g++ would keep in memory. "
        "*/\n"
        "struct " +
            full + " {\n  " + half + " low, high;\n  " + full + "(const " + type +
            "& x)\n"
            "      : low(__builtin_shufflevector(x, x, " +
            numbers(0, lanes / 2) +
            ")),\n"
            "        high(__builtin_shufflevector(x, x, " +
            numbers(lanes / 2, lanes) + ")) {}\n  " + type +
            " all() const { return __builtin_shufflevector(low, high, " + numbers(0, lanes) + "); }\n};\n");
    return full;
  }
  if (what == "unsigned") {
    const std::string integer = kind == Kind::i32 ? "unsigned" : "unsigned long long";
    add(Group::functions,
        "typedef " + integer + " " + full + " __attribute__((vector_size(sizeof(" + type + "))));\n");
    return full;
  }
  if (what == "index") {
    add(Group::functions, "static inline " + type + " " + full + "(void) {\n  const " + type + " v = {" +
                              numbers(0, lanes) + "};\n  return v;\n}\n");
    return full;
  }
  if (what == "sum" || what == "any") {
    // Halves are added until one lane is left; or what is true in one of them is.
    const std::string with = what == "sum" ? " +" : " |";
    std::string body, x = "x";
    for (int n = lanes / 2; n > 1; n /= 2) {
      const std::string half = vector(kind, n), next = "x" + std::to_string(n);
      body += "  const " + half + " " + next + " = __builtin_shufflevector(" + x + ", " + x + ", " +
              numbers(0, n) + ")" + with + "\n    __builtin_shufflevector(" + x + ", " + x + ", " +
              numbers(n, 2 * n) + ");\n";
      x = next;
    }
    const std::string last = x + "[0]" + with + " " + x + "[1]";
    add(Group::functions, "static inline " + target_->element(kind) + " " + full + "(" + type + " x) {\n" +
                              body + "  return " + (what == "sum" ? last : "(" + last + ") != 0") + ";\n}\n");
    return full;
  }
  if (what == "largest" || what == "smallest") {
    // The same, of halves the larger elements. A NaN is taken by neither.
    std::string body, x = "x";
    for (int n = lanes / 2; n > 1; n /= 2) {
      const std::string half = vector(kind, n), next = "x" + std::to_string(n);
      const std::string f = vector_function(what == "largest" ? "max" : "min", kind, n);
      body += "  const " + half + " " + next + " = " + f + "(__builtin_shufflevector(" + x + ", " + x + ", " +
              numbers(0, n) + "),\n    __builtin_shufflevector(" + x + ", " + x + ", " + numbers(n, 2 * n) +
              "));\n";
      x = next;
    }
    add(Group::functions, "static inline " + element + " " + full + "(" + type + " x) {\n" + body +
                              "  return " + x + "[0] != " + x + "[0] || " + x + "[1] " +
                              (what == "largest" ? ">" : "<") + " " + x + "[0] ? " + x + "[1] : " + x +
                              "[0];\n}\n");
    return full;
  }
  if (what == "dot") {
    // Registers of eight lanes, two sums side by side.
    const int part = std::min(lanes, part_of(kind)), parts = lanes / part;
    if (parts < 2) {
      const std::string sum = vector_function("sum", kind, lanes);
      add(Group::functions, "static inline " + element + " " + full + "(" + type + " x, " + type +
                                " y) { return " + sum + "(x * y); }\n");
      return full;
    }
    const std::string small = vector(kind, part), sum = vector_function("sum", kind, part);
    std::string body;
    for (int i = 0; i < parts; ++i) {
      const std::string lane_list = numbers(part * i, part * (i + 1)), at = i % 2 ? "b" : "a";
      const std::string product = "__builtin_shufflevector(x, x, " + lane_list +
                                  ") *\n    __builtin_shufflevector(y, y, " + lane_list + ")";
      body += "  " + (i < 2 ? small + " " + at + " = " + product : at + " = " + at + " + " + product) + ";\n";
    }
    add(Group::functions, "static inline " + element + " " + full + "(" + type + " x, " + type + " y) {\n" +
                              body + "  return " + sum + "(a + b);\n}\n");
    return full;
  }
  if (const int size = lane_bytes(kind) * lanes; what == "store" && size > common_register) {
    // What is wider than a register goes half by half. Left to itself LLVM stores the last register first,
    // and stores in falling order take twice as long where they cross cache lines, which elements beside a
    // boundary do.
    const std::string half = vector_function("store", kind, lanes / 2);
    const auto part = [&](int from) {
      return "__builtin_shufflevector(x, x, " + numbers(from, from + lanes / 2) + ")";
    };
    const std::string halves = "  " + half + "(p, " + part(0) + ");\n  " + half + "(p + " +
                               std::to_string(lanes / 2) + ", " + part(lanes / 2) + ");\n";
    const std::string whole = "  *(" + type + "_memory*)p = x;\n";
    const std::string body = size > widest_register
                                 ? halves
                                 : "#ifdef " +
                                       std::string(size == widest_register ? "__AVX512F__" : "__AVX__") +
                                       "\n" + whole + "#else\n" + halves + "#endif\n";
    add(Group::functions,
        "static inline void " + full + "(" + element + "* p, " + type + " x) {\n" + body + "}\n");
    return full;
  }
  if (lane_bytes(kind) * lanes > widest_register && accesses_by_lane(what)) {
    add(Group::functions, half_by_half(what, full, kind, lanes));
    return full;
  }
  if (what.starts_with("load_every")) {
    const int step = what[std::string_view("load_every").size()] - '0';
    const std::string some = what.ends_with("_some") ? vector_function("load_some", kind, lanes) : "";
    add(Group::functions, "static inline " + type + " " + full + "(const " + element + "* p" +
                              (some.empty() ? "" : ", int64_t n") + ") {\n" +
                              load_every(step, lanes, type, some) + "}\n");
    return full;
  }
  if (what.starts_with("add_every")) {
    masks(kind);
    add(Group::functions, "static inline void " + full + add_every(what.back() - '0', lanes, type, element));
    return full;
  }
  if (what.starts_with("interleaved")) {
    const int step = what[std::string_view("interleaved").size()] - '0';
    add(Group::functions, "static inline void " + full +
                              interleaved_writes(what, step, lanes, type, element, vector_function("load", kind, lanes),
                                                 vector_function("store", kind, lanes)));
    return full;
  }
  if (what.starts_with("joined")) {
    add(Group::functions, "static inline void " + full +
                              joined_writes(what, lanes, type, element, vector_function("load", kind, lanes),
                                            vector_function("store", kind, lanes)));
    return full;
  }
  if (what.ends_with("_back")) {
    // From p downwards.
    const std::string access = vector_function(what.substr(0, what.find('_')), kind, lanes),
                      last = std::to_string(lanes - 1);
    std::string order = last;
    for (int i = lanes - 2; i >= 0; --i) order += ", " + std::to_string(i);
    add(Group::functions, what.starts_with("load")
                              ? "static inline " + type + " " + full + "(const " + element +
                                    "* p) {\n  const " + type + " x = " + access + "(p - " + last +
                                    ");\n  return __builtin_shufflevector(x, x, " + order + ");\n}\n"
                              : "static inline void " + full + "(" + element + "* p, " + type + " x) {\n  " +
                                    access + "(p - " + last + ", __builtin_shufflevector(x, x, " + order +
                                    "));\n}\n");
    return full;
  }
  if (what == "check") {
    // All lanes that work at once; one by one to find which one it is.
    need("fail_lanes");
    const std::string index_of_lane = vector_function("index", Kind::i64, lanes);
    add(Group::functions,
        "static inline void " + full + "(lt_workspace* ws, " + type +
            " at, int64_t n, int64_t size, const char* where) {\n  const " + type +
            " outside = ((at < 0) | (at >= size)) & (" + index_of_lane +
            "() < n);\n  int64_t any = 0;\n  for (int i = 0; i < " + l +
            "; ++i) any |= outside[i];\n  if (any) {\n    int64_t all[" + l + "];\n    for (int i = 0; i < " +
            l + "; ++i) all[i] = at[i];\n    lt_fail_lanes(ws, all, n, size, where);\n  }\n}\n");
    return full;
  }
  const auto instance = [&](const Template& t) {
    for (std::size_t from = 0; from < t.needs.size();) {
      const std::size_t end = std::min(t.needs.find(' ', from), t.needs.size());
      vector_function(std::string(t.needs.substr(from, end - from)), kind, lanes);
      from = end + 1;
    }
    const std::string mask = narrow ? vector(Kind::i32, lanes) : index;
    add(Group::functions, instantiated(t.text, kind, type, name, element, l, index, mask));
    return full;
  };
  if (what == "load_some" || what == "store_some") masks(kind);
  if (narrow)
    if (const auto t = std::ranges::find_if(float_vector_templates(), of_name);
        t != float_vector_templates().end())
      return instance(*t);
  if (const auto t = std::ranges::find_if(helper_templates, of_name); t != helper_templates.end()) return instance(*t);
  const std::span<const Template> math = narrow ? float_math_templates() : own_math;
  if (const auto t = std::ranges::find_if(math, of_name); t != math.end() && !strict_) {
    if (lanes <= part_of(kind)) return instance(*t);
    add(Group::functions, part_by_part(what, full, kind, lanes, false));
    return full;
  }
  return vector_math_function(what, full, kind, lanes);
}

std::string Prelude::saturating(Kind from, Kind to, int lanes) {
  const std::string type = vector(from, lanes), result = vector(to, lanes);
  const std::string full = result + "_of_" + type.substr(3);
  if (!fresh(full)) return full;
  const std::string wide = vector(Kind::f64, lanes), integers = vector(Kind::i64, lanes);
  std::string body;
  if (from == Kind::f64 && to == Kind::i64) {
    // Lanes that do not fit are 0 first.
    body = "  const " + type + " zero = {0}, limit = zero + 9223372036854775808.0;\n  const " + integers +
           " large = x >= limit, small = x < -limit, fits = (x >= -limit) & (x < limit);\n  return "
           "__builtin_convertvector((" +
           type + ")(fits & (" + integers + ")x), " + integers +
           ") |\n    (large & 9223372036854775807) | (small & (-9223372036854775807 - 1));\n";
  } else if (to == Kind::i64) {
    body = "  return " + saturating(Kind::f64, to, lanes) + "(__builtin_convertvector(x, " + wide + "));\n";
  } else {
    const std::string less = vector_function("imin", Kind::i64, lanes),
                      more = vector_function("imax", Kind::i64, lanes);
    body = "  const " + integers + " zero = {0}, y = " + saturating(from, Kind::i64, lanes) +
           "(x);\n  return __builtin_convertvector(" + more + "(" + less +
           "(y, zero + 2147483647), zero - 2147483647 - 1), " + result + ");\n";
  }
  add(Group::functions, "static inline " + result + " " + full + "(" + type + " x) {\n" + body + "}\n");
  return full;
}

/// What loads and stores of some lanes need.
void Prelude::masks(Kind kind) {
  if (kind == Kind::f32) {
    if (fresh("float_masks")) add(Group::functions, std::string(float_masks()));
    return;
  }
  if (!fresh("masks")) return;
  add(Group::functions, std::string(double_masks()));
}

/// A function of <math.h> lane by lane, or through libmvec.
std::string Prelude::vector_math_function(const std::string& name, const std::string& full, Kind kind,
                                          int lanes) {
  const bool narrow = kind == Kind::f32;
  const std::string f = target_->math(name, kind), type = vector(kind, lanes), l = std::to_string(lanes);
  math(f, kind);
  const ir::Opcode op = ir::opcode_named(name);
  const bool two = name == "lt_polygamma" || (op != ir::Opcode::count_ && ir::info(op).arity == 2);
  const bool by_lane = strict_ || std::ranges::find(vector_math, name) == vector_math.end();
  if (by_lane && lanes > part_of(kind)) {
    add(Group::functions, part_by_part(name, full, kind, lanes, two));
    return full;
  }
  const std::string scalar = std::string("  for (int i = 0; i < ") + l + "; ++i) x[i] = " + f + "(x[i]" +
                             (two ? ", y[i]" : "") + ");\n  return x;\n";
  std::string body = scalar;
  if (!by_lane) {
    if (fresh("math_lanes"))
      add(Group::functions,
          (vector_library_
               ? "/* Functions of the mathematical library on several lanes at once. */\n#define "
                 "LT_LIBMVEC\n"
               : "/* Functions of the mathematical library on several lanes at once: glibc has them "
                 "in libmvec. Asked for\n   by -DLT_LIBMVEC, and -lmvec for the linker. */\n") +
              std::string(math_lanes));
    const std::string part = narrow ? "lt_float_math_vector" : "lt_math_vector";
    const std::string call = std::string(narrow ? "LT_FLOAT_MATH" : "LT_MATH") + (two ? "2(" : "(") + f + ")";
    if (fresh("math_lanes_" + f))
      add(Group::functions, "#ifdef LT_MATH_LANES\nLT_C " + part + " " + call + "(" + part +
                                (two ? ", " + part : "") + ");\n#endif\n");
    const std::string at_once = narrow ? "(2 * LT_MATH_LANES)" : "LT_MATH_LANES";
    const std::string whole = in_parts(type, part, l + " / " + at_once, call, two);
    body = "#ifdef LT_MATH_LANES\n" + whole + "#else\n" + scalar + "#endif\n";
    if (lanes < part_of(kind))
      body = "#if defined LT_MATH_LANES && " + at_once + " <= " + l + "\n" + whole +
             "#elif defined LT_MATH_LANES\n" + in_first_lanes(part, at_once, l, call, two) + "#else\n" +
             scalar + "#endif\n";
  }
  add(Group::functions, "static inline " + type + " " + full + "(" + type + " x" +
                            (two ? ", " + type + " y" : "") + ") {\n" + body + "}\n");
  return full;
}

}  // namespace lantern::codegen
