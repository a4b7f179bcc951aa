// Programs that must not compile, and what the compiler says: tests/compile_fail/*.cpp, each with `// expect: text`.
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

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

/// The compiler on a file, with Lantern's header precompiled for all of them.
class SyntaxCheck {
 public:
  SyntaxCheck() {
    std::filesystem::create_directory(path("lantern"));
    const auto result = run({"-x", "c++-header", LANTERN_TEST_INCLUDE "/lantern/lantern.hpp", "-o",
                             path("lantern/lantern.hpp.gch").string()});
    INFO(result.err);
    REQUIRE(result.status == 0);
  }
  std::filesystem::path path(const std::string& name) const {
    return std::filesystem::path(directory_.path()) / name;
  }
  codegen::ProcessResult operator()(const std::filesystem::path& file) const {
    return run({"-fsyntax-only", file.string()});
  }

 private:
  codegen::ProcessResult run(const std::vector<std::string>& more) const {
    std::vector<std::string> command{LANTERN_TEST_COMPILER, "-std=c++20", "-fmessage-length=0",
                                     "-I" + std::string(directory_.path()), "-I" LANTERN_TEST_INCLUDE};
    command.insert(command.end(), more.begin(), more.end());
    return codegen::run_process(command);
  }
  codegen::TemporaryDirectory directory_;
};

/// Made once.
const SyntaxCheck& syntax_check() {
  static const SyntaxCheck check;
  return check;
}

}  // namespace

TEST_CASE("a program that is right compiles") {
  const std::filesystem::path file = syntax_check().path("right.cpp");
  std::ofstream(file) << "#include \"lantern/lantern.hpp\"\n"
                         "lantern::Rep<double> f(lantern::Rep<double> x) { return x * 2.0; }\n";
  const auto result = syntax_check()(file);
  INFO(result.err);
  CHECK(result.status == 0);
}

TEST_CASE("programs that must not compile say what to do") {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(LANTERN_TEST_DIR "/compile_fail"))
    files.push_back(entry.path());
  REQUIRE(files.size() >= 12);
  for (const auto& file : files) {
    const auto result = syntax_check()(file);
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
