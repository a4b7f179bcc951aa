// Launches as C++, and the emulator as text to put in front of them.
#include <algorithm>
#include <cctype>
#include <regex>

#include "lantern/ir/error.hpp"
#include "lantern/runtime/cuda/rewrite_launches.hpp"

#define LANTERN_EMBED_LAUNCH_EMULATOR
#include "lantern/runtime/cuda/launch_emulator.hpp"
#include "lantern/runtime/cuda/emulated_functions.hpp"
#include "lantern/runtime/cuda/race_detector.hpp"

extern "C" const char lantern_launch_emulator_begin[], lantern_launch_emulator_end[], lantern_emulated_functions_begin[],
    lantern_emulated_functions_end[], lantern_race_detector_begin[], lantern_race_detector_end[];

namespace lantern {

namespace {

/// Where code goes on behind a comment or literal that starts at `at`; `at` itself if none does.
std::size_t skip_text(const std::string& s, std::size_t at) {
  const auto end_of = [&](const std::string& mark, std::size_t from) {
    const std::size_t i = s.find(mark, from);
    return i == std::string::npos ? s.size() : i + mark.size();
  };
  if (s.compare(at, 2, "//") == 0) return end_of("\n", at);
  if (s.compare(at, 2, "/*") == 0) return end_of("*/", at + 2);
  if (s.compare(at, 2, "R\"") == 0) {
    const std::size_t open = s.find('(', at);
    return open == std::string::npos ? s.size() : end_of(")" + s.substr(at + 2, open - at - 2) + "\"", open);
  }
  const char quote = s[at];
  // 1'000: a separator, no literal.
  const bool separator = quote == '\'' && at > 0 && std::isalnum(static_cast<unsigned char>(s[at - 1])) != 0;
  if ((quote != '"' && quote != '\'') || separator) return at;
  std::size_t i = at + 1;
  while (i < s.size() && s[i] != quote && s[i] != '\n') i += s[i] == '\\' ? 2 : 1;
  return std::min(i + 1, s.size());
}

[[noreturn]] void malformed(const std::string& s, std::size_t at, const char* expected) {
  const auto line = 1 + std::count(s.begin(), s.begin() + static_cast<std::ptrdiff_t>(at), '\n');
  throw Error("line " + std::to_string(line) + ": expected " + expected + " in a kernel launch");
}

bool blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

/// The start of the kernel's name, which ends where `text` does: k, space::k, k<int, 4>.
std::size_t kernel_name(const std::string& text) {
  std::size_t i = text.size();
  while (i > 0 && blank(text[i - 1])) --i;
  if (i > 0 && text[i - 1] == '>') {
    int depth = 0;
    do {
      --i;
      depth += text[i] == '>' ? 1 : text[i] == '<' ? -1 : 0;
    } while (i > 0 && depth > 0);
  }
  while (i > 0 && (std::isalnum(static_cast<unsigned char>(text[i - 1])) != 0 || text[i - 1] == '_' ||
                   text[i - 1] == ':'))
    --i;
  return i;
}

std::string replace_all(const std::string& s, const char* pattern, const char* with) {
  return std::regex_replace(s, std::regex(pattern), with);
}

}  // namespace

std::string rewrite_launches(std::string cu, const std::string& space) {
  std::string out;
  for (std::size_t i = 0; i < cu.size();) {
    if (const std::size_t next = skip_text(cu, i); next != i) {
      out.append(cu, i, next - i);
      i = next;
      continue;
    }
    if (cu.compare(i, 3, "<<<") != 0) {
      out += cu[i++];
      continue;
    }
    const std::size_t start = kernel_name(out);
    if (start == out.size()) malformed(cu, i, "the name of a kernel before '<<<'");
    std::size_t end = i + 3;
    for (int depth = 0; end < cu.size() && (depth > 0 || cu.compare(end, 3, ">>>") != 0); ++end)
      depth += cu[end] == '(' ? 1 : cu[end] == ')' ? -1 : 0;
    if (end >= cu.size()) malformed(cu, i, "'>>>'");
    std::size_t open = end + 3;
    while (open < cu.size() && blank(cu[open])) ++open;
    if (open == cu.size() || cu[open] != '(') malformed(cu, i, "'(' behind '>>>'");
    std::size_t first = open + 1;
    while (first < cu.size() && blank(cu[first])) ++first;
    const std::string name = out.substr(start);
    out.resize(start);
    out += space + "::configure(" + cu.substr(i + 3, end - i - 3) + ")(" + name;
    if (first < cu.size() && cu[first] != ')') out += ", ";
    i = open + 1;
  }
  out = replace_all(out, R"(#\s*include\s*<(cuda|device_)\w*(\.h)?>)", "");
  out = replace_all(out, R"re(\basm(\s+volatile)?\s*\(\s*"exit;"\s*\)\s*;)re",
                    (space + "::exit_thread();").c_str());
  return replace_all(
      out, R"(\bextern\s+__shared__\s+(?:__align__\(\s*\d+\s*\)\s+)?([\w:\s]*\w)\s+(\w+)\s*\[\s*\]\s*;)",
      ("$1* const $2 = ($1*)" + space + "::dynamic_shared();").c_str());
}

std::string_view race_detector_text() {
  return {lantern_race_detector_begin, static_cast<std::size_t>(lantern_race_detector_end - lantern_race_detector_begin)};
}

std::string_view launch_emulator_text() {
  static const std::string both = std::string(lantern_launch_emulator_begin, lantern_launch_emulator_end) +
                                  std::string(lantern_emulated_functions_begin, lantern_emulated_functions_end);
  return both;
}

}  // namespace lantern
