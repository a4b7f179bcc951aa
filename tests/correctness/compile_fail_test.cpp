// Programs that must not compile, and what the compiler says: tests/compile_fail/*.cpp. A line of each is
//
//   // expect: text         an error has this text
//   // expect alone: text   and there is no other error
//   // warns: text          it compiles, and a warning has this text
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "lantern/codegen/toolchain/process.hpp"

using namespace lantern;

namespace {

struct Expectation {
  bool error = true, alone = false;
  std::string text;
};

Expectation expectation(const std::filesystem::path& file) {
  std::ifstream in(file);
  const std::string expect = "// expect: ", alone = "// expect alone: ", warns = "// warns: ";
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with(expect)) return {true, false, line.substr(expect.size())};
    if (line.starts_with(alone)) return {true, true, line.substr(alone.size())};
    if (line.starts_with(warns)) return {false, false, line.substr(warns.size())};
  }
  return {};
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++n;
  return n;
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
  codegen::ProcessResult run(const std::vector<std::string>& more) const {
    std::vector<std::string> command{LANTERN_TEST_COMPILER, "-std=c++20", "-fmessage-length=0",
                                     "-I" + std::string(directory_.path()), "-I" LANTERN_TEST_INCLUDE,
                                     "-isystem", LANTERN_TEST_EIGEN};
    command.insert(command.end(), more.begin(), more.end());
    return codegen::run_process(command);
  }

 private:
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

TEST_CASE("an older C++ is refused, and nothing else is said") {
  const std::filesystem::path file = syntax_check().path("older.cpp");
  std::ofstream(file) << "#include \"lantern/lantern.hpp\"\n";
  const auto result = syntax_check().run({"-std=c++17", "-Winvalid-pch", "-fsyntax-only", file.string()});
  INFO(result.err);
  CHECK(result.status != 0);
  CHECK(result.err.find("error: #error \"Lantern is written in C++20: compile with -std=c++20\"") != std::string::npos);
  CHECK(count(result.err, "error: ") == 2);  // and the file that is not there
}

TEST_CASE("a standard library of other types is refused, and nothing else is said") {
  const std::filesystem::path file = syntax_check().path("debug.cpp");
  std::ofstream(file) << "#include \"lantern/lantern.hpp\"\n";
  for (const char* flag : {"-D_GLIBCXX_DEBUG", "-D_GLIBCXX_USE_CXX11_ABI=0"}) {
    const auto result = syntax_check().run({"-std=c++20", flag, "-Winvalid-pch", "-fsyntax-only", file.string()});
    INFO(result.err);
    CHECK(result.status != 0);
    CHECK(result.err.find("Lantern's libraries have") != std::string::npos);
    CHECK(count(result.err, "error: ") == 2);  // and the file that is not there
  }
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
    const Expectation expected = expectation(file);
    REQUIRE(!expected.text.empty());
    CHECK((result.status != 0) == expected.error);
    CHECK(result.err.find(expected.text) != std::string::npos);
    if (expected.alone) CHECK(count(result.err, " error: ") == 1);
    // The user's own line is named.
    CHECK(result.err.find(file.filename().string() + ":") != std::string::npos);
  }
}
