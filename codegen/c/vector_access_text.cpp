// Text of masked and strided loads and stores of vectors.
#include <algorithm>
#include <optional>
#include <vector>

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

namespace {

struct ListedWrite {
  bool adds;
  int shift;
};
/// The writes that the name of a function lists: "_set0_add1".
std::vector<ListedWrite> listed_writes(std::string_view what) {
  std::vector<ListedWrite> writes;
  for (std::size_t i = 0; i + 4 < what.size() + 1; ++i)
    if (const std::string_view at = what.substr(i, 4); at == "_set" || at == "_add")
      writes.push_back({at == "_add", what[i + 4] - '0'});
  return writes;
}
std::string written_value(std::size_t i) { return "x" + std::to_string(i); }

}  // namespace

std::string interleaved_writes(std::string_view what, int step, int lanes, const std::string& type,
                               const std::string& element, const std::string& load,
                               const std::string& store) {
  const std::vector<ListedWrite> writes = listed_writes(what);
  const int width = std::ranges::max(writes, {}, &ListedWrite::shift).shift - step + 1;
  const int start = what.find("_up") != std::string_view::npos ? width : 0;
  const auto lane = [&](std::size_t i, int at) -> std::optional<int> {
    const int from = at - writes[i].shift;
    if (from < 0 || from % step != 0 || from / step >= lanes) return {};
    return from / step;
  };
  std::string parameters, body = "  " + type + " y;\n";
  for (std::size_t i = 0; i < writes.size(); ++i) parameters += ", " + type + " " + written_value(i);
  bool zeros = false;
  for (int first = start; first < start + step * lanes; first += lanes) {
    // Lane by lane where it comes from: a write, or `other` where the write has none there.
    const auto shuffled = [&](std::size_t i, const std::string& other, const auto& of_other) {
      std::string from;
      for (int k = 0; k < lanes; ++k) {
        const auto l = lane(i, first + k);
        from += (k ? ", " : "") + std::to_string(l ? *l : lanes + of_other(k));
      }
      return "__builtin_shufflevector(" + written_value(i) + ", " + other + ", " + from + ")";
    };
    const std::string place = first ? "p + " + std::to_string(first) : "p";
    const auto set_at = [&](int k) {
      for (std::size_t i = 0; i < writes.size(); ++i)
        if (!writes[i].adds && lane(i, first + k)) return true;
      return false;
    };
    bool loaded = false;
    for (int k = 0; k < lanes; ++k) loaded |= !set_at(k);
    body += loaded ? "  y = " + load + "(" + place + ");\n" : "";
    bool begun = loaded;
    std::vector<std::size_t> adds;
    for (std::size_t i = 0; i < writes.size(); ++i) {
      if (writes[i].adds) {
        adds.push_back(i);
      } else if (begun) {
        body += "  y = " + shuffled(i, "y", [](int k) { return k; }) + ";\n";
      } else {
        body += "  y = " + shuffled(i, written_value(i), [](int) { return 0; }) + ";\n";
        begun = true;
      }
    }
    // Two that share the lanes between them are added at once.
    while (!adds.empty()) {
      const std::size_t i = adds.front();
      adds.erase(adds.begin());
      const auto other = std::ranges::find_if(adds, [&](std::size_t j) {
        for (int k = 0; k < lanes; ++k)
          if (lane(i, first + k).has_value() == lane(j, first + k).has_value()) return false;
        return true;
      });
      if (other != adds.end()) {
        const std::size_t j = *other;
        adds.erase(other);
        body +=
            "  y += " + shuffled(i, written_value(j), [&](int k) { return lane(j, first + k).value_or(0); }) +
            ";\n";
      } else {
        zeros = true;
        body += "  y += " + shuffled(i, "none", [](int) { return 0; }) + ";\n";
      }
    }
    body += "  " + store + "(" + place + ", y);\n";
  }
  // The elements beyond, as those of joined_writes.
  bool volatile_store = true;
  for (int k = 0; k < width; ++k) {
    const int at = start ? k : step * lanes + k;
    const std::string place = "p[" + std::to_string(at) + "]";
    std::string sum = place;
    bool any = false;
    for (std::size_t i = 0; i < writes.size(); ++i)
      if (const auto l = lane(i, at)) {
        const std::string value = written_value(i) + "[" + std::to_string(*l) + "]";
        sum = writes[i].adds ? sum + " + " + value : value;
        any = true;
      }
    if (!any) continue;
    body += "  " + (volatile_store ? "*(volatile " + element + "*)&" + place : place) + " = " + sum + ";\n";
    volatile_store = false;
  }
  const std::string none = zeros ? "  const " + type + " zero = {0}, none = -zero;\n" : "";
  return "(" + element + "* p" + parameters + ") {\n" + none + body + "}\n";
}

std::string joined_writes(std::string_view what, int lanes, const std::string& type,
                          const std::string& element, const std::string& load, const std::string& store) {
  const std::vector<ListedWrite> writes = listed_writes(what);
  const int width = std::ranges::max(writes, {}, &ListedWrite::shift).shift;
  const bool up = what.find("_up") != std::string_view::npos,
             back = what.find("_back") != std::string_view::npos;
  const int start = up ? width : 0;
  const auto x = [](std::size_t i) { return written_value(i); };
  // The lane of a write that goes to an element; none where it goes to others.
  const auto lane = [&](const ListedWrite& w, int at) -> std::optional<int> {
    const int i = at - w.shift;
    if (i < 0 || i >= lanes) return {};
    return back ? lanes - 1 - i : i;
  };
  std::string parameters, body;
  for (std::size_t i = 0; i < writes.size(); ++i) parameters += ", " + type + " " + x(i);
  // The lanes as they lie in the vector of most elements, from `other` where there is none.
  const auto placed = [&](std::size_t i, const std::string& other, bool same) {
    std::string from;
    bool moved = false;
    for (int k = 0; k < lanes; ++k) {
      const auto l = lane(writes[i], start + k);
      moved |= l != k;
      from += (k ? ", " : "") + std::to_string(l ? *l : lanes + (same ? k : 0));
    }
    return moved ? "__builtin_shufflevector(" + x(i) + ", " + other + ", " + from + ")" : x(i);
  };
  const std::string place = start ? "p + " + std::to_string(start) : "p";
  const bool sets = !writes[0].adds && writes[0].shift == start;
  body += "  " + type + " y = " + (sets ? placed(0, "x0", true) : load + "(" + place + ")") + ";\n";
  if (!sets && !writes[0].adds) body += "  y = " + placed(0, "y", true) + ";\n";
  // Nothing changes by adding -0.
  bool zeros = false;
  for (std::size_t i = writes[0].adds ? 0 : 1; i < writes.size(); ++i) {
    const std::string value = placed(i, "none", false);
    body += "  y += " + value + ";\n";
    zeros |= value != x(i);
  }
  body += "  " + store + "(" + place + ", y);\n";
  // LLVM forwards vectors that one iteration stores to the loads of the next, past narrower stores between them
  // (LoopLoadElimination; llvm-project issue 224832). It leaves loops with volatile stores as they are.
  for (int k = 0; k < width; ++k) {
    const int at = up ? k : lanes + k;
    const std::string place_at = "p[" + std::to_string(at) + "]";
    std::string sum = place_at;
    for (std::size_t i = 0; i < writes.size(); ++i)
      if (const auto l = lane(writes[i], at)) {
        const std::string value = x(i) + "[" + std::to_string(*l) + "]";
        sum = writes[i].adds ? sum + " + " + value : value;
      }
    body += "  " + (k == 0 ? "*(volatile " + element + "*)&" + place_at : place_at) + " = " + sum + ";\n";
  }
  const std::string none = zeros ? "  const " + type + " zero = {0}, none = -zero;\n" : "";
  return "(" + element + "* p" + parameters + ") {\n" + none + body + "}\n";
}

}  // namespace lantern::codegen
