// gdb on programs that lanternc -g and compile(..., {.debug = true}) make: breakpoints on the user's lines
// stop in the forward and in the backward part of derivatives, and the user's variables have readable values.
#include <catch2/catch.hpp>
#include <cstdio>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "lantern/codegen/toolchain/process.hpp"

namespace fs = std::filesystem;
using Catch::Matchers::Contains;
using lantern::codegen::find_program;
using lantern::codegen::ProcessResult;
using lantern::codegen::read_file;
using lantern::codegen::run_process;
using lantern::codegen::TemporaryDirectory;

namespace {

const std::string models = LANTERN_TEST_DIR "/debug/";

/// "constructs.cpp:9" for the only line with this text.
std::string place(const std::string& file, const std::string& text) {
  std::istringstream stream(read_file(models + file));
  int number = 0, found = 0, times = 0;
  for (std::string line; std::getline(stream, line);) {
    ++number;
    if (line.find(text) == std::string::npos) continue;
    found = number;
    ++times;
  }
  REQUIRE(times == 1);
  return file + ":" + std::to_string(found);
}

std::string build(const std::string& file, const TemporaryDirectory& directory) {
  const std::string program = directory.path() / "program";
  const ProcessResult built = run_process({LANTERNC, "-g", models + file, "-o", program});
  INFO(built.err);
  REQUIRE(built.status == 0);
  return program;
}

/// What gdb says to the commands, each after a line "> COMMAND".
std::string gdb(const std::vector<std::string>& program, const std::vector<std::string>& commands) {
  std::vector<std::string> words{
      "gdb", "-nx",        "-q", "-batch", "-iex", "set debuginfod enabled off", "-ex", "set confirm off",
      "-ex", "set width 0"};
  for (const std::string& c : commands) {
    words.insert(words.end(), {"-ex", "echo > " + c + "\\n", "-ex", c});
  }
  words.emplace_back("--args");
  words.insert(words.end(), program.begin(), program.end());
  const ProcessResult r = run_process(words);
  return r.out + r.err;
}

/// What was said to the n-th of the commands of this text.
std::string answer(const std::string& said, const std::string& command, int n = 1) {
  std::size_t at = 0;
  for (int i = 0; i < n; ++i) {
    at = said.find("> " + command + "\n", at);
    REQUIRE(at != std::string::npos);
    at += command.size() + 3;
  }
  return said.substr(at, said.find("\n> ", at) - at);
}

/// gdb may be missing, or not be allowed to trace: then there is nothing to test, and ctest says so.
bool can_debug() {
  const char* problem = nullptr;
  if (!find_program("gdb"))
    problem = "gdb was not found; tools/setup installs it";
  else if (gdb({"/bin/true"}, {"run"}).find("exited normally") == std::string::npos)
    problem = "gdb cannot run programs here";
  if (problem) std::printf("skipped: %s\n", problem);
  return problem == nullptr;
}

}  // namespace

TEST_CASE(
    "a breakpoint on a line of a model stops in the forward and in the backward part of its derivative") {
  if (!can_debug()) return;
  const TemporaryDirectory directory;
  const std::string height = place("constructs.cpp", "Rep<double> height");
  const std::string said =
      gdb({build("constructs.cpp", directory)},
          {"break " + height, "run", "print start", "print angle", "next", "print height", "continue", "bt 1",
           "print angle", "print height", "print d_level", "continue"});
  INFO(said);
  CHECK_THAT(answer(said, "run"), Contains("slope_lantern (") && Contains("constructs.cpp:") &&
                                      Contains("Rep<double> height = sin(angle) * angle;"));
  CHECK_THAT(answer(said, "print start"), Contains("= 1\n") || Contains("= 1"));
  CHECK_THAT(answer(said, "print angle"), Contains("= 2"));
  CHECK_THAT(answer(said, "print height"), Contains("= 1.8185948"));
  // The loop halves the height once: low = height / 2, and what arrives at the height is low.
  CHECK_THAT(answer(said, "continue"), Contains("slope_lantern (") && Contains("Rep<double> height"));
  CHECK_THAT(answer(said, "print angle", 2), Contains("= 2"));
  CHECK_THAT(answer(said, "print height", 2), Contains("= 1.8185948"));
  CHECK_THAT(answer(said, "print d_level"), Contains("= 0.909297"));
  CHECK_THAT(answer(said, "continue", 2), Contains("exited normally"));
}

TEST_CASE("values of a loop written with WHILE have the names of its lambda, in both parts") {
  if (!can_debug()) return;
  const TemporaryDirectory directory;
  const std::string half = place("constructs.cpp", "Rep<double> half");
  const std::string said = gdb(
      {build("constructs.cpp", directory)},
      {"break " + half, "run", "print level", "next", "print half", "continue", "info locals", "continue"});
  INFO(said);
  CHECK_THAT(answer(said, "run"), Contains("slope_lantern (") && Contains("Rep<double> half = 0.5 * level;"));
  CHECK_THAT(answer(said, "print level"), Contains("= 1.8185948"));
  CHECK_THAT(answer(said, "continue"), Contains("slope_lantern (") && Contains("Rep<double> half"));
  CHECK_THAT(answer(said, "info locals"), Contains("d_level = 1.8185948") || Contains("d_half = 1.8185948"));
  CHECK_THAT(answer(said, "continue", 2), Contains("exited normally"));
}

TEST_CASE("after rewriting native control flow the lines and names are those of the user's file") {
  if (!can_debug()) return;
  const TemporaryDirectory directory;
  const std::string next = place("native.cpp", "Rep<double> next"),
                    step = place("native.cpp", "root = next;");
  const std::string said = gdb({build("native.cpp", directory)},
                               {"break slope_lantern", "run",      "break " + next, "continue", "print root",
                                "print square",        "next",     "print next",    "continue", "print root",
                                "tbreak " + step,      "continue", "delete 2",      "continue", "bt 1",
                                "break " + next,       "continue", "print d_next",  "delete",   "continue"});
  INFO(said);
  CHECK_THAT(answer(said, "continue"), Contains("slope_lantern (") && Contains("native.cpp:") &&
                                           Contains("Rep<double> next = 0.5 * (root + square / root);"));
  CHECK_THAT(answer(said, "print root"), Contains("= 9"));
  CHECK_THAT(answer(said, "print square"), Contains("= 9"));
  CHECK_THAT(answer(said, "print next"), Contains("= 5"));
  CHECK_THAT(answer(said, "print root", 2), Contains("= 5"));
  CHECK(said.find("rewritten") == std::string::npos);
}

TEST_CASE("the backward part of a native loop stops at the user's lines") {
  if (!can_debug()) return;
  const TemporaryDirectory directory;
  const std::string next = place("native.cpp", "Rep<double> next");
  // Seven iterations forward, then the backward part of the last.
  const std::string said =
      gdb({build("native.cpp", directory)}, {"break slope_lantern", "run", "break " + next, "ignore 2 7",
                                             "continue", "print d_next", "continue", "delete", "continue"});
  INFO(said);
  CHECK_THAT(answer(said, "continue"), Contains("slope_lantern (") && Contains("Rep<double> next"));
  CHECK_THAT(answer(said, "print d_next"), Contains("= 1"));
  CHECK_THAT(answer(said, "continue", 3), Contains("exited normally"));
}

TEST_CASE("code that a program compiles with debug = true is known to gdb") {
  if (!can_debug()) return;
  const std::string height = place("jit.cpp", "Rep<double> height"), call = place("jit.cpp", "std::printf");
  const std::string said = gdb({LANTERN_TEST_JIT}, {"break " + call, "run", "break " + height, "continue",
                                                    "print angle", "continue", "print d_height", "continue"});
  INFO(said);
  CHECK_THAT(answer(said, "continue"), Contains("grad_f (") && Contains("Rep<double> height"));
  CHECK_THAT(answer(said, "print angle"), Contains("= 2"));
  CHECK_THAT(answer(said, "continue", 2), Contains("grad_f (") && Contains("Rep<double> height"));
  CHECK_THAT(answer(said, "print d_height"), Contains("= 3.637189"));
  CHECK_THAT(answer(said, "continue", 3), Contains("exited normally"));
}

TEST_CASE("a program that is run eagerly is stepped through, and values of Rep are readable") {
  if (!can_debug()) return;
  const TemporaryDirectory directory;
  const std::string angle = place("constructs.cpp", "Rep<double> angle"),
                    half = place("constructs.cpp", "Rep<double> half");
  const std::string said =
      gdb({build("constructs.cpp", directory), "eager"},
          {"source " LANTERN_GDB_SCRIPT, "break " + angle, "run", "print start", "next", "print angle",
           "next", "print height", "break " + half, "continue", "next", "print half", "delete", "continue"});
  INFO(said);
  if (said.find("Python") != std::string::npos) {
    std::printf("skipped: this gdb was built without Python\n");
    return;
  }
  CHECK_THAT(answer(said, "run"), Contains(" wave (") && Contains("Rep<double> angle = 2.0 * start;"));
  CHECK_THAT(answer(said, "print start"), Contains("= 1 (reverse mode)"));
  CHECK_THAT(answer(said, "print angle"), Contains("= 2 (reverse mode)"));
  CHECK_THAT(answer(said, "print height"), Contains("= 1.8185948"));
  CHECK_THAT(answer(said, "print half"), Contains("= 0.909297"));
  CHECK_THAT(answer(said, "continue", 2), Contains("exited normally"));
}

TEST_CASE("a file that was named from the folder it lies in is found from another") {
  if (!can_debug()) return;
  const TemporaryDirectory directory;
  const std::string program = directory.path() / "program",
                    height = place("constructs.cpp", "Rep<double> height");
  const ProcessResult built = run_process(
      {"sh", "-c", "cd '" + models + "' && exec '" LANTERNC "' -g constructs.cpp -o '" + program + "'"});
  INFO(built.err);
  REQUIRE(built.status == 0);
  const std::string said = gdb({program}, {"break " + height, "run"});
  INFO(said);
  CHECK_THAT(answer(said, "run"), Contains("Rep<double> height = sin(angle) * angle;"));
}
