// A program whose values are checked for NaN and infinities computes what it computes unchecked, bit for bit, or it
// says where one of them arose.
#pragma once

#include <fmt/format.h>

#include <bit>
#include <catch2/catch.hpp>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "lantern/lantern.hpp"

namespace lantern::test {

/// What was compared, to be printed at the end where LANTERN_VERBOSE is set.
struct WatchedTally {
  std::size_t programs = 0, compared = 0, numbers = 0, trapped = 0, alone = 0, raised = 0;
  ~WatchedTally() {
    if (std::getenv("LANTERN_VERBOSE") && programs > 0)
      fmt::print("checked: {} programs, {} calls compared, {} numbers equal, {} calls trapped, {} of them not eagerly, {} "
                 "raised\n",
                 programs, compared, numbers, trapped, alone, raised);
  }
};
inline WatchedTally watched;

/// Without vectors and matrix products, which add up in an order of their own and are not looked into; and as IEEE 754
/// has it, for what is looked at Clang does not round together with what it becomes part of.
inline std::vector<CompileOptions> watched_ways(bool clang) {
  std::vector<CompileOptions> ways{{.target = Target::c, .opt = 0}, {.target = Target::c, .opt = 1},
                                   {.target = Target::c, .opt = 3}, {.target = Target::c, .opt = 3, .threads = 2}};
  if (clang) ways.push_back({.target = Target::cpp, .opt = 3, .strict_math = true, .disabled_passes = {"raise", "vectorise"}});
  return ways;
}

/// What a call gives, or raises.
struct Answer {
  std::vector<double> numbers;
  std::string error;
};
template <class Run, class F, class Input>
Answer answer(const Run& run, const F& f, const Input& in) {
  try {
    return {run(f, in), {}};
  } catch (const Error& e) {
    return {{}, e.what()};
  }
}

inline bool same_bits(double x, double y) {
  return std::bit_cast<std::uint64_t>(x) == std::bit_cast<std::uint64_t>(y) || (x != x && y != y);
}

/// `run(f, in)`: the numbers that a call of what the program becomes gives.
template <class P, class Inputs, class Run>
void compare_watched(const std::string& about, const P& program, const std::vector<CompileOptions>& ways,
                     const Inputs& inputs, const Run& run) {
  std::vector<bool> eagerly;  ///< for each input, whether eager evaluation trapped
  const auto compare = [&](const std::string& way, const auto& plain, const auto& checked) {
    for (std::size_t k = 0; k < inputs.size(); ++k) {
      const auto& in = inputs[k];
      const Answer expected = answer(run, plain, in), found = answer(run, checked, in);
      INFO(about << ", " << way << ": '" << found.error << "' for '" << expected.error << "'");
      ++watched.compared;
      const bool trapped = found.error.find("expected finite values, got") != std::string::npos;
      if (eagerly.size() < inputs.size()) eagerly.push_back(trapped);
      if (trapped) {
        ++watched.trapped;
        watched.alone += eagerly[k] ? 0 : 1;
        continue;
      }
      CHECK(found.error == expected.error);
      watched.raised += found.error.empty() ? 0 : 1;
      REQUIRE(found.numbers.size() == expected.numbers.size());
      std::size_t different = 0;
      for (std::size_t i = 0; i < found.numbers.size(); ++i)
        different += same_bits(found.numbers[i], expected.numbers[i]) ? 0 : 1;
      CHECK(different == 0);
      watched.numbers += found.numbers.size();
    }
  };
  ++watched.programs;
  compare("eager", eager(program, Check::none), eager(program, Check::nan));
  for (CompileOptions way : ways) {
    const std::string name = fmt::format("{}, opt {}, {} threads", way.target == Target::c ? "tcc" : "Clang", way.opt,
                                         way.threads);
    way.check = Check::none;
    const auto plain = compile(program, way);
    way.check = Check::nan;
    compare(name, plain, compile(program, way));
  }
}

}  // namespace lantern::test
