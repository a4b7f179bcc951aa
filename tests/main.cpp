// The test runner shared by all test files.
#define CATCH_CONFIG_RUNNER
#include <catch2/catch.hpp>

#include "correctness/depth.hpp"

int main(int arguments, char* argument[]) {
  // Where time does not matter, every program is compiled at the level that it asks for.
  if (lantern::test::deep()) unsetenv("LANTERN_CLANG_LEVEL");
  return Catch::Session().run(arguments, argument);
}
