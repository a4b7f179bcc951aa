// How many lanes vectors have in the tests of vectors: ctest runs each with 2, 4 and 8, whatever the machine
// has. What does not depend on that is tried in one of the three runs.
#pragma once

#include <cstdlib>

namespace lantern::test {

/// What LANTERN_TEST_LANES says, otherwise 4.
inline int lanes_under_test() {
  const char* const text = std::getenv("LANTERN_TEST_LANES");
  return text ? std::atoi(text) : 4;
}

}  // namespace lantern::test
