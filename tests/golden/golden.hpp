// Golden files: text compared with a file beside the tests; LANTERN_BLESS=1 writes the files anew.
#pragma once

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace lantern::test {

/// Compares `text` with tests/golden/NAME.
inline void check_golden(const std::string& name, const std::string& text) {
  const std::filesystem::path path = std::filesystem::path(LANTERN_TEST_DIR) / "golden" / name;
  if (std::getenv("LANTERN_BLESS")) {
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
    return;
  }
  std::ifstream in(path);
  INFO("golden file " << path.string() << " (LANTERN_BLESS=1 writes it anew)");
  REQUIRE(in);
  std::stringstream expected;
  expected << in.rdbuf();
  CHECK(expected.str() == text);
}

}  // namespace lantern::test
