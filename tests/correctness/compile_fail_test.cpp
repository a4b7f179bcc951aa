// Programs that must not compile, and what the compiler says: tests/compile_fail/*.cpp, each with `// expect: text`.
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "lantern/codegen/toolchain/process.hpp"

using namespace lantern;

namespace {

std::string expectation(const std::filesystem::path& file) {
  std::ifstream in(file);
  const std::string mark = "// expect: ";
  for (std::string line; std::getline(in, line);)
    if (line.starts_with(mark)) return line.substr(mark.size());
  return {};
}

codegen::ProcessResult syntax_check(const std::filesystem::path& file) {
  return codegen::run_process({LANTERN_TEST_COMPILER, "-std=c++20", "-fsyntax-only", "-fmessage-length=0",
                               "-I" LANTERN_TEST_INCLUDE, file.string()});
}

}  // namespace

TEST_CASE("a program that is right compiles") {
  const codegen::TemporaryDirectory directory;
  const std::filesystem::path file = std::filesystem::path(directory.path()) / "right.cpp";
  std::ofstream(file) << "#include \"lantern/lantern.hpp\"\n"
                         "lantern::Rep<double> f(lantern::Rep<double> x) { return x * 2.0; }\n";
  const auto result = syntax_check(file);
  INFO(result.err);
  CHECK(result.status == 0);
}

TEST_CASE("programs that must not compile say what to do") {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(LANTERN_TEST_DIR "/compile_fail"))
    files.push_back(entry.path());
  REQUIRE(files.size() >= 12);
  for (const auto& file : files) {
    const auto result = syntax_check(file);
    INFO(file.string());
    INFO(result.err);
    CHECK(result.status != 0);
    const std::string expected = expectation(file);
    REQUIRE(!expected.empty());
    CHECK(result.err.find(expected) != std::string::npos);
    // The user's own line is named.
    CHECK(result.err.find(file.filename().string() + ":") != std::string::npos);
  }
}
