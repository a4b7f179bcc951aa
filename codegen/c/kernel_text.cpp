// The prelude's arithmetic: kernels over tensors, integer division, polygamma.
#include <deque>
#include <string>
#include <utility>

#include "lantern/codegen/c/polygamma_text.hpp"
#include "lantern/codegen/c/prelude_text.hpp"

namespace lantern::codegen {

using enum PreludeGroup;

const std::vector<PreludePart>& kernel_parts();

namespace {

/// Functions of numbers that differ in types, operators and limits alone.
void add_families(std::vector<PreludePart>& parts) {
  using std::string;
  static std::deque<string> texts;  // what the parts' names and texts are views of
  const auto add = [&](const string& name, std::vector<std::string_view> needs, const string& type, const string& parameters,
                       const string& body, const string& comment = {}) {
    const string& own = texts.emplace_back(name);
    parts.push_back({own, functions, std::move(needs),
                     texts.emplace_back(comment + "static inline " + type + " lt_" + name + "(" + parameters + ") {\n" + body + "}\n")});
  };
  struct Integer {
    string kind, type, wraps, largest;
  };
  for (const auto& [kind, type, wraps, largest] : {Integer{"i64", "int64_t", "(unsigned long long)", "9223372036854775807"},
                                                   Integer{"i32", "int32_t", "(unsigned)", "2147483647"}}) {
    // Integers wrap; signed ones need not where the compiler has not been told so.
    const string result = "  return (" + type + ")(";
    for (const auto& [name, sign] : {std::pair("add_", " + "), std::pair("sub_", " - "), std::pair("mul_", " * ")})
      add(name + kind, {"integers"}, type, type + " x, " + type + " y", result + wraps + "x" + sign + wraps + "y);\n");
    add("neg_" + kind, {"integers"}, type, type + " x", result + "0 - " + wraps + "x);\n");
    // Floating numbers become integers by saturation, NaN becomes 0: C leaves both undefined.
    const bool wide = kind == "i64";
    const string beyond = wide ? "9223372036854775808.0" : "2147483648.0";
    for (const bool f64 : {true, false}) {
      const string f = f64 ? "" : "f";
      const string least = wide || !f64 ? "x >= -" + beyond + f : string("x > -2147483649.0");
      add(kind + "_of_" + (f64 ? "f64" : "f32"), {"integers"}, type, f64 ? "double x" : "float x",
          "  if (" + least + " && x < " + beyond + f + ") return (" + type + ")x;\n  return x > 0 ? " + largest +
              " : x < 0 ? -" + largest + " - 1 : 0;\n",
          "/* Towards zero; what is too large is the largest or the smallest integer, NaN is 0. */\n");
    }
  }
  // Of a number and a NaN the number; of equals the first. Two instructions and a choice on most machines. The same of what
  // the iteration before has left: the next one waits for one instruction. Of
  // `x != x` and the comparison Clang would make one branch, which is not rare; g++ would make no branch of the choice's.
  for (const bool carried : {false, true})
    for (const auto& [name, sign] : {std::pair("min", " < "), std::pair("max", " > ")})
      for (const bool f64 : {true, false}) {
        const string type = f64 ? "double" : "float";
        const string choice = string("y") + sign + "x ? y : x;\n";
        if (carried)
          add(string("carried_") + name + (f64 ? "" : "f"), {"rarely"}, type, type + " x, " + type + " y",
              "#ifdef __clang__\n  const " + type + " chosen = " + choice +
                  "  if (LT_RARELY(chosen != chosen)) return y; /* x is NaN */\n  return chosen;\n"
                  "#else\n  return LT_RARELY(x != x) ? y : " + choice + "#endif\n");
        else
          add(string(name) + (f64 ? "" : "f"), {}, type, type + " x, " + type + " y", "  return x != x ? y : " + choice);
      }
}

}  // namespace

const std::vector<PreludePart>& kernel_parts() {
  static const std::vector<PreludePart> parts = [] {
    std::vector<PreludePart> all = {
      // Integers wrap, and the one quotient that does not fit would trap.
      {"K:div", functions, {"workspace"}, R"c(static $T lt_div_$K(lt_workspace* ws, $T x, $T y, const char* message) {
  if (y == 0) ws->fail(ws, message);
  return y == -1 ? ($T)(0 - (unsigned long long)x) : x / y;
}
)c"},
      {"K:rem", functions, {"workspace"}, R"c(static $T lt_rem_$K(lt_workspace* ws, $T x, $T y, const char* message) {
  if (y == 0) ws->fail(ws, message);
  return y == -1 ? 0 : x % y;
}
)c"},
      // Vectors of numbers, whatever the shape.
      {"K:fill", functions, {"integers"}, R"c(static void lt_fill_$K($T* to, int64_t n, $T value) {
  for (int64_t i = 0; i < n; ++i) to[i] = value;
}
)c"},
      {"K:argmax", functions, {"workspace"},
       R"c(static int64_t lt_argmax_$K(lt_workspace* ws, const $T* x, int64_t n, const char* message) {
  int64_t best = 0;
  if (n == 0) ws->fail(ws, message);
  for (int64_t i = 1; i < n; ++i)
    if (x[i] > x[best] || (x[best] != x[best] && x[i] == x[i])) best = i;
  return best;
}
)c"},
      {"K:accumulate", functions, {"integers"}, R"c(static void lt_accumulate_$K($T* to, const $T* x, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] += x[i];
}
)c"},
      {"polygamma", functions, {}, printed_text::polygamma},
      {"polygammaf", functions, {"polygamma"}, R"c(static float lt_polygammaf(float n, float x) {
  return (float)lt_polygamma(n, x);
}
)c"},
    };
    add_families(all);
    return all;
  }();
  return parts;
}

}  // namespace lantern::codegen
