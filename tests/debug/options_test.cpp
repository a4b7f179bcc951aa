// lanternc -g, --check and what the texts for readers and debuggers look like.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

#include "lantern/codegen/toolchain/process.hpp"
#include "lantern/lantern.hpp"

using namespace lantern;
using Catch::Matchers::Contains;
using Catch::Matchers::EndsWith;
using codegen::ProcessResult;
using codegen::read_file;
using codegen::run_process;
using codegen::TemporaryDirectory;

namespace {

const std::string models = LANTERN_TEST_DIR "/debug/";

ProcessResult lanternc(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), LANTERNC);
  return run_process(arguments);
}

std::string built(const TemporaryDirectory& directory, std::vector<std::string> arguments) {
  const std::string program = directory.path() / "program";
  arguments.insert(arguments.end(), {"-o", program});
  const ProcessResult r = lanternc(std::move(arguments));
  INFO(r.err);
  REQUIRE(r.status == 0);
  return program;
}

/// The number of the only line with this text.
std::string line_of(const std::string& file, const std::string& text) {
  std::istringstream stream(read_file(models + file));
  int number = 0, found = 0;
  for (std::string line; std::getline(stream, line);) {
    ++number;
    if (line.find(text) != std::string::npos) found = number;
  }
  REQUIRE(found > 0);
  return std::to_string(found);
}

/// The definition of a function.
std::string definition(const std::string& source, const std::string& head) {
  const std::size_t at = source.find(head);
  REQUIRE(at != std::string::npos);
  return source.substr(at, source.find("\n}\n", at) + 3 - at);
}

}  // namespace

TEST_CASE("with -g and a level the compiler optimises as asked, and the text knows the lines") {
  const TemporaryDirectory directory;
  const ProcessResult text = lanternc({"-g", "--emit=c", models + "constructs.cpp"});
  INFO(text.err);
  REQUIRE(text.status == 0);
  CHECK_THAT(text.out, Contains("#line " + line_of("constructs.cpp", "Rep<double> angle") + " \"" + models +
                                "constructs.cpp\"\n  double angle = 2.0 * start;\n"));
  // What is not the user's has lines of its own, and their numbers are right.
  std::istringstream stream(text.out);
  int number = 0, directives = 0;
  for (std::string line; std::getline(stream, line);) {
    ++number;
    if (line.find("\"generated.c\"") == std::string::npos) continue;
    CHECK(line == "#line " + std::to_string(number + 1) + " \"generated.c\"");
    ++directives;
  }
  CHECK(directives > 0);
  const std::string program = built(directory, {"-g", "-O2", models + "constructs.cpp"});
  const std::string numbers = run_process({program}).out;
  CHECK(numbers == run_process({program, "eager"}).out);
  for (const char* level : {"-O0", "-O1", "-O3"})
    CHECK(run_process({built(directory, {"-g", level, models + "constructs.cpp"})}).out == numbers);
}

TEST_CASE("a derivative is readable: sections, the user's names and lines") {
  const ProcessResult text = lanternc({"--emit=cpp", models + "native.cpp"});
  REQUIRE(text.status == 0);
  const std::string body = definition(text.out, "static double slope_inner(");
  const std::size_t forward = body.find("  // forward\n"), backward = body.find("  // backward\n");
  REQUIRE(forward < backward);
  REQUIRE(backward < body.size());
  const std::string first = body.substr(forward, backward - forward), second = body.substr(backward);
  CHECK_THAT(body, Contains("(lt_workspace* ws, double square) {\n"));
  CHECK_THAT(first, Contains("  double root = square;\n"));
  CHECK_THAT(first, Contains("    // Rep<double> next = 0.5 * (root + square / root);\n"
                             "    double next = 0.5 * (root + square / root);\n"));
  CHECK_THAT(second, Contains("double d_root") && Contains("double d_next") && Contains("double d_square"));
}

TEST_CASE("a program that prints is built ahead of time, and prints what it prints eagerly") {
  const TemporaryDirectory directory;
  const std::string expected =
      "next = 2.5\nnext = 2.05\nadjoint of next = 1\nadjoint of next = 0.18\n0.29\n-nan\n";
  const std::string program = built(directory, {models + "printed.cpp"});
  const auto without_sign = [](std::string s) {
    if (const std::size_t at = s.find("-nan"); at != std::string::npos) s.erase(at, 1);
    return s;
  };
  CHECK(without_sign(run_process({program}).out) == without_sign(expected));
  CHECK(without_sign(run_process({program, "eager"}).out) == without_sign(expected));
}

TEST_CASE("--check=nan and LANTERN_CHECK=nan trap the first NaN of a program built ahead of time") {
  const TemporaryDirectory directory;
  const std::string message = models + "printed.cpp:" + line_of("printed.cpp", "log(x)") +
                              ": error: expected finite values, got nan from log\n";
  CHECK_THAT(run_process({built(directory, {"--check=nan", models + "printed.cpp"})}).out, EndsWith(message));
  ::setenv("LANTERN_CHECK", "nan", 1);
  const std::string program = built(directory, {models + "printed.cpp"});
  const std::string without = built(directory, {"--check=none", models + "printed.cpp"});
  ::unsetenv("LANTERN_CHECK");
  CHECK_THAT(run_process({without}).out, EndsWith("nan\n"));
  // Read when it is built, not when it runs.
  CHECK_THAT(run_process({built(directory, {"--check", "nan", models + "printed.cpp"})}).out,
             EndsWith(message));
  CHECK_THAT(lanternc({"--emit=c", models + "native.cpp"}).out, !Contains("finite"));
}

TEST_CASE("what cannot be meant is refused") {
  CHECK(lanternc({"--check=inf", models + "native.cpp"}).err ==
        "lanternc: error: --check: expected nan or none, got 'inf'\n");
  const auto f = [](Rep<double> x) { return x; };
  CHECK_THROWS_WITH(
      compile(f, {.target = Target::c, .debug = true}),
      "compile: expected Target::automatic or Target::cpp with debug, got Target::c: what tcc compiles "
      "cannot be debugged");
}
