// How much the random tests try: little in the suite, and in a deep run as much as a night has time for.
#pragma once

#include <cstdlib>
#include <string_view>

namespace lantern::test {

/// Whether LANTERN_TEST_DEPTH=deep is in the environment, as `tools/test --deep` sets it.
inline bool deep() {
  const char* const depth = std::getenv("LANTERN_TEST_DEPTH");
  return depth && std::string_view(depth) == "deep";
}

inline unsigned number_from_environment(const char* name, unsigned otherwise) {
  const char* const text = std::getenv(name);
  return text ? static_cast<unsigned>(std::atoi(text)) : otherwise;
}

/// The seeds to try: `ordinary` many in the suite, `many` in a deep run, from 0 on; or those that
/// LANTERN_FIRST_SEED and LANTERN_SEEDS ask for.
struct Seeds {
  unsigned first, count;
  Seeds(unsigned ordinary, unsigned many)
      : first(number_from_environment("LANTERN_FIRST_SEED", 0)),
        count(number_from_environment("LANTERN_SEEDS", deep() ? many : ordinary)) {}
  template <class F>
  void each(F&& f) const {
    for (unsigned k = 0; k < count; ++k) f(first + k);
  }
};

}  // namespace lantern::test
