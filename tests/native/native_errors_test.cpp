// Native programs that cannot be staged, and everything that is said about them:
// tests/native_errors/NAME.cpp, with the messages in NAME.txt. LANTERN_BLESS=1 writes those anew.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "lantern/compiler/frontend/clang/rewrite.hpp"

namespace fs = std::filesystem;

namespace {

const fs::path directory = LANTERN_TEST_DIR "/native_errors";

std::string contents(const fs::path& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

std::size_t count(const std::string& text, const std::string& what) {
  std::size_t n = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++n;
  return n;
}

/// Messages with file names in place of paths.
std::string without_directory(std::string text) {
  const std::string prefix = directory.string() + "/";
  for (std::size_t at = text.find(prefix); at != std::string::npos; at = text.find(prefix))
    text.erase(at, prefix.size());
  return text;
}

}  // namespace

TEST_CASE("what cannot be staged is refused, with the place, the reason and often the remedy") {
  std::size_t refused = 0;
  for (const auto& entry : fs::directory_iterator(directory)) {
    if (entry.path().extension() != ".cpp") continue;
    INFO(entry.path().string());
    const auto result = lantern::frontend::rewrite_native(entry.path().string(), {"-I" LANTERN_TEST_INCLUDE});
    CHECK(result.failed);
    CHECK_FALSE(result.changed);
    const std::string messages = without_directory(result.messages);
    refused += count(messages, ": error: ");
    const fs::path golden = fs::path(entry.path()).replace_extension(".txt");
    if (std::getenv("LANTERN_BLESS") != nullptr) std::ofstream(golden) << messages;
    CHECK(messages == contents(golden));
  }
  CHECK(refused >= 60);
}

TEST_CASE("functions without Rep are never changed, in sources of any kind") {
  std::size_t tried = 0;
  for (const char* path :
       {"/usr/include/fmt/format.h", "/usr/include/fmt/chrono.h", "/usr/include/fmt/ranges.h",
        "/usr/include/c++/12/regex", "/usr/include/c++/12/random",
        "/usr/include/c++/12/bits/regex_compiler.tcc", "/usr/include/c++/12/bits/stl_algo.h",
        "/usr/include/catch2/catch.hpp", "/usr/include/CLI/App.hpp",
        "/usr/include/boost/graph/planar_canonical_ordering.hpp",
        "/usr/include/boost/multiprecision/cpp_int.hpp",
        "/usr/include/boost/regex/v5/perl_matcher_non_recursive.hpp", "/usr/include/boost/lexical_cast.hpp",
        "/usr/include/eigen3/Eigen/Dense", "/usr/include/eigen3/Eigen/src/SVD/JacobiSVD.h",
        "/usr/include/eigen3/Eigen/src/Eigenvalues/RealSchur.h"}) {
    if (!fs::exists(path)) continue;
    INFO(path);
    const auto result = lantern::frontend::rewrite_native(path, {"-I" LANTERN_TEST_INCLUDE});
    CHECK_FALSE(result.failed);
    CHECK_FALSE(result.changed);
    ++tried;
  }
  // The library's own sources hold Rep, and no native control flow over it.
  for (const char* name :
       {"compiler/ad/program.cpp", "compiler/staging/control_flow.cpp", "compiler/staging/eager.cpp",
        "compiler/passes/direct/unwind.cpp", "ir/parse.cpp"}) {
    INFO(name);
    const auto result = lantern::frontend::rewrite_native(std::string(LANTERN_TEST_DIR "/../") + name,
                                                          {"-I" LANTERN_TEST_INCLUDE});
    CHECK_FALSE(result.failed);
    CHECK_FALSE(result.changed);
    ++tried;
  }
  CHECK(tried >= 12);
}
