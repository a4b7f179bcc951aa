// lanternc with native control flow, as its users run it.
#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>

#include "lantern/codegen/toolchain/process.hpp"

namespace fs = std::filesystem;
using lantern::codegen::ProcessResult;
using lantern::codegen::read_file;
using lantern::codegen::run_process;
using lantern::codegen::TemporaryDirectory;
using lantern::codegen::write_file;

namespace {

const std::string models = LANTERN_TEST_DIR "/native/lanternc/";
const std::string model = models + "model.cpp";

ProcessResult lanternc(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), LANTERNC);
  return run_process(arguments);
}

/// Compiles without a warning.
void check_compiles(const std::string& compiler, const std::string& file) {
  const ProcessResult r = run_process({compiler, "-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Werror",
                                       "-I" LANTERN_TEST_INCLUDE, "-iquote", models, file});
  INFO(compiler << "\n" << r.err);
  CHECK(r.status == 0);
}

/// A switch of so many states in a loop, each with three early ways out, over double and Rep<double>.
std::string state_machine(int states) {
  std::string text =
      "#include <cstdio>\n#include <cmath>\n#include <lantern/lantern.hpp>\nusing namespace lantern;\n"
      "using std::sin;\n"
      "template <class T, class I> T machine(T x, T c, I iterations) {\n  I state = 0;\n  T sum = 0.0;\n"
      "  for (I k = 0; k < iterations; ++k) {\n    switch (state) {\n";
  for (int k = 0; k < states; ++k) {
    const std::string n = std::to_string(k), all = std::to_string(states);
    text += "      case " + n + ": x = x * (0.9 + 0.001 * " + n + ") + 0.05 * c; if (x > 1.1) { state = (" + n +
            " * 5 + 3) % " + all + "; x -= 1.5; continue; } if (x < -2.0) return sum * x; if (sum > 50.0) break; " +
            "sum += x * 0.01 * " + n + "; state = (" + n + " + 7) % " + all + "; break;\n";
  }
  return text +
         "    }\n    x += sin(c) * 0.3;\n  }\n  return sum + 3.0 * x;\n}\n"
         "Rep<double> staged(Rep<double> x, Rep<double> c, Rep<std::int64_t> iterations) {\n"
         "  return machine<Rep<double>, Rep<std::int64_t>>(x, c, iterations);\n}\n"
         "LANTERN_FUNCTION(slope, value_and_grad<0>(staged))\n"
         "int main() {\n  for (const double x : {0.3, 1.2, -3.0}) {\n"
         "    const auto [value, dx] = slope(x, 0.7, 40);\n    const double h = 1e-6;\n"
         "    const double plain = machine<double, std::int64_t>(x, 0.7, 40);\n"
         "    const double difference = (machine<double, std::int64_t>(x + h, 0.7, 40) -\n"
         "                               machine<double, std::int64_t>(x - h, 0.7, 40)) / (2 * h);\n"
         "    std::printf(\"%d %d\\n\", std::abs(value - plain) < 1e-12, std::abs(dx - difference) < 1e-6);\n  }\n}\n";
}

}  // namespace

TEST_CASE("a state machine of many states is computed and differentiated as it is written") {
  const TemporaryDirectory directory;
  const std::string source = directory.path() / "machine.cpp", program = directory.path() / "machine";
  write_file(source, state_machine(9));
  const ProcessResult built = lanternc({source, "-o", program});
  INFO(built.err);
  REQUIRE(built.status == 0);
  CHECK(run_process({program}).out == "1 1\n1 1\n1 1\n");
}

TEST_CASE("what native control flow becomes is compiled in proportion to the program") {
  const TemporaryDirectory directory;
  const std::string source = directory.path() / "machine.cpp", rewritten = directory.path() / "rewritten.cpp",
                    object = directory.path() / "machine.o";
  const auto size = [&](int states) {
    write_file(source, state_machine(states));
    const ProcessResult r = lanternc({source, "--emit=rewritten", "-o", rewritten});
    INFO(r.err);
    REQUIRE(r.status == 0);
    const ProcessResult c = run_process({LANTERN_TEST_COMPILER, "-std=c++20", "-O0", "-DLANTERN_STAGING_IMAGE",
                                         "-I" LANTERN_TEST_INCLUDE, "-c", "-o", object, rewritten});
    INFO(c.err);
    REQUIRE(c.status == 0);
    return static_cast<double>(fs::file_size(object));
  };
  const double few = size(6), twice = size(12), four_times = size(24);
  CAPTURE(few, twice, four_times);
  CHECK(twice - few < 6 * 60e3);  // bytes of an object for a state, which is eight pieces of a program
  CHECK(four_times - twice < 2.5 * (twice - few));
}

TEST_CASE("of the sides of many branches one runs, and what it keeps for the derivative has one place") {
  const TemporaryDirectory directory;
  const std::string source = directory.path() / "machine.cpp", graph = directory.path() / "machine.ir";
  const auto lines = [&](int states) {
    write_file(source, state_machine(states));
    const ProcessResult r = lanternc({source, "--emit=ir", "-o", graph});
    INFO(r.err);
    REQUIRE(r.status == 0);
    return static_cast<double>(std::ranges::count(read_file(graph), '\n'));
  };
  const double few = lines(12), twice = lines(24), four_times = lines(48);
  CAPTURE(few, twice, four_times);
  CHECK(four_times - twice < 2.4 * (twice - few));
}

TEST_CASE("a program of one file holds the functions that stage only where it calls them") {
  const TemporaryDirectory directory;
  const std::string source = directory.path() / "model.cpp", other = directory.path() / "other.cpp",
                    program = directory.path() / "model";
  const std::string head = "#include <cstdio>\n#include <lantern/lantern.hpp>\nusing namespace lantern;\n";
  const std::string model =
      head + "Rep<double> bent(Rep<double> x) { if (x > 1.0) return x * x; return 2.0 * x; }\n";
  const auto has_model = [&](const std::string& last, const std::vector<std::string>& more) {
    write_file(source, model + last);
    std::vector<std::string> arguments{source, "-o", program};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const ProcessResult built = lanternc(arguments);
    INFO(built.err);
    REQUIRE(built.status == 0);
    return run_process({"nm", "-C", program}).out.find(" bent(") != std::string::npos;
  };
  const std::string slope = "LANTERN_FUNCTION(slope, grad(bent))\n";
  CHECK_FALSE(has_model(slope + "int main() { std::printf(\"%g\\n\", slope(3.0)); }\n", {}));
  CHECK(run_process({program}).out == "6\n");
  CHECK(has_model(slope + "int main() { std::printf(\"%g %g\\n\", slope(3.0), eager(bent)(3.0)); }\n", {}));
  CHECK(run_process({program}).out == "6 9\n");
  // Another file may call it.
  write_file(other, head + "Rep<double> bent(Rep<double>);\ndouble called(double x) { return eager(bent)(x); }\n");
  CHECK(has_model(slope + "double called(double);\nint main() { std::printf(\"%g %g\\n\", slope(3.0), called(3.0)); }\n",
                  {other}));
  CHECK(run_process({program}).out == "6 9\n");
}

TEST_CASE("a program with native control flow is built as it is written") {
  const TemporaryDirectory directory;
  const std::string program = directory.path() / "model";
  const ProcessResult built = lanternc({model, "-o", program});
  INFO(built.err);
  REQUIRE(built.status == 0);
  CHECK(built.err.empty());
  CHECK(run_process({program}).out == "3 0.166666666667\n6 3\n2 4\n24 26\n3 -11\n");
}

TEST_CASE("structs, elements and results in the caller's memory, built ahead of time") {
  const TemporaryDirectory directory;
  const std::string program = directory.path() / "products";
  const ProcessResult built = lanternc({models + "products.cpp", "-o", program});
  INFO(built.err);
  REQUIRE(built.status == 0);
  CHECK(run_process({program}).out ==
        "2.5 1.5 -2 2\n0.606531 -1.21306 1 2.39347\n"
        "index 3 is outside 0..2 \nproducts.cpp:86)\nindex 3 is outside 0..2 \nproducts.cpp:90)\n"
        "6 9 0\n8 10 16\n");
}

TEST_CASE("programs that were once rewritten wrongly compute what C++ computes") {
  const TemporaryDirectory directory;
  const std::string program = directory.path() / "regressions";
  const ProcessResult built = lanternc({models + "regressions.cpp", "-O0", "-o", program});
  INFO(built.err);
  REQUIRE(built.status == 0);
  CHECK(run_process({program}).out == "0 wrong\n");
}

TEST_CASE("the rewritten file is C++20 for both compilers, and leaves alone what is not staged") {
  const TemporaryDirectory directory;
  const std::string file = directory.path() / "rewritten.cpp";
  REQUIRE(lanternc({model, "--emit=rewritten", "-o", file}).status == 0);
  const std::string text = read_file(file);
  CHECK(text.find("int plain(int n) { return n > 2 && n < 9 ? n : -n; }") != std::string::npos);
  CHECK(text.find("while (true)") == std::string::npos);
  check_compiles(LANTERN_TEST_COMPILER, file);
  if (fs::exists(LANTERN_TEST_CLANG)) check_compiles(LANTERN_TEST_CLANG, file);
  // Nothing is left to rewrite.
  const ProcessResult again = lanternc({file, "--emit=rewritten", "-I", models});
  INFO(again.err);
  CHECK(again.out == text);
}

TEST_CASE("without rewriting, the compiler says what to write instead") {
  const TemporaryDirectory directory;
  const ProcessResult r = lanternc({model, "--no-rewrite", "-o", directory.path() / "model"});
  CHECK(r.status == 1);
  CHECK(r.err.find("or compile the file with lanternc") != std::string::npos);
  CHECK(lanternc({model, "--no-rewrite", "--emit=rewritten"}).err ==
        "lanternc: error: --emit=rewritten does not go with --no-rewrite\n");
}

TEST_CASE("a file without native control flow over Rep is not touched") {
  const TemporaryDirectory directory;
  const std::string file = directory.path() / "plain.cpp";
  const std::string text =
      "#include <lantern/lantern.hpp>\n"
      "int f(int n) { for (int i = 0; i < 3; ++i) if (i && n) return n ? i : 2; return 0; }\n"
      "template <class T> T g(T x) { while (x > 1.0) x = x * 0.5; return x; }\n"
      "double h(double x) { return g(x); }\n";
  write_file(file, text);
  const ProcessResult r = lanternc({file, "--emit=rewritten"});
  CHECK(r.status == 0);
  CHECK(r.out == text);
}

TEST_CASE("messages of staging and of the compiler name the user's lines") {
  const std::string wrong = models + "wrong_line.cpp";
  const ProcessResult staged = lanternc({wrong, "--emit=ir"});
  CHECK(staged.status == 1);
  INFO(staged.err);
  CHECK(staged.err.find("wrong_line.cpp:10") != std::string::npos);

  const TemporaryDirectory directory;
  const std::string file = directory.path() / "late.cpp";
  write_file(file,
             "#include <lantern/lantern.hpp>\n"
             "using namespace lantern;\n"
             "Rep<double> f(Rep<double> x) {\n"
             "  if (x > 0.0) return x;\n"
             "  // a comment\n"
             "  x = x * 2.0;\n"
             "  for (Rep<std::int64_t> i = 0; i < 3;\n"
             "       ++i)\n"
             "    x = x + 1.0;\n"
             "  int unused = 3;\n"
             "  return x;\n"
             "}\n"
             "LANTERN_FUNCTION(g, f)\n"
             "int main() { int late = 1; }\n");
  const ProcessResult r = lanternc({file, "-o", directory.path() / "late", "--", "-Wall"});
  INFO(r.err);
  CHECK(r.err.find(file + ":10:7: warning: unused variable") != std::string::npos);
  CHECK(r.err.find(file + ":14:18: warning: unused variable") != std::string::npos);
}

TEST_CASE("headers of the user's with staged functions are rewritten as well") {
  const TemporaryDirectory directory;
  const auto path = [&](const std::string& name) { return std::string(directory.path() / name); };
  fs::create_directory(directory.path() / "parts");
  // Found beside the header that includes it, wherever that header's text goes.
  write_file(path("parts/constants.hpp"), "#pragma once\ninline double slope() { return 0.25; }\n");
  write_file(path("parts/leaky.hpp"),
             "#pragma once\n#include <lantern/lantern.hpp>\n#include \"constants.hpp\"\n"
             "template <class T>\nT leaky(T x) {\n  if (x > 0.0) return x * x;\n  return slope() * x;\n}\n");
  // Includes it as well, before and after the model does.
  write_file(path("before.hpp"), "#ifndef BEFORE\n#define BEFORE\n#include \"parts/leaky.hpp\"\n#endif\n");
  write_file(
      path("after.hpp"),
      "#pragma once\n#include \"parts/leaky.hpp\"\ninline double native(double x) { return leaky(x); }\n");
  const std::string source = path("model.cpp"), program = path("model");
  write_file(source,
             "#include \"before.hpp\"\n#include \"parts/leaky.hpp\"  // again\n#include \"after.hpp\"\n"
             "#include <cstdio>\n"
             "LANTERN_FUNCTION(g, lantern::value_and_grad(leaky<lantern::Rep<double>>))\n"
             "int main() {\n  for (double x : {3.0, -2.0}) {\n    const auto [y, dy] = g(x);\n"
             "    std::printf(\"%g %g %g %d\\n\", y, dy, native(x), __LINE__);\n  }\n}\n");
  const ProcessResult built = lanternc({source, "-o", program, "--", "-Wall", "-Werror"});
  INFO(built.err);
  REQUIRE(built.status == 0);
  CHECK(run_process({program}).out == "9 6 9 9\n-0.5 0.25 -0.5 9\n");

  // A result that is kept depends on the header, though the compiler never reads it.
  write_file(
      path("parts/leaky.hpp"),
      "#pragma once\n#include <lantern/lantern.hpp>\n#include \"constants.hpp\"\n"
      "template <class T>\nT leaky(T x) {\n  if (x > 0.0) return x * x + 1.0;\n  return slope() * x;\n}\n");
  REQUIRE(lanternc({source, "-o", program, "--", "-Wall", "-Werror"}).status == 0);
  CHECK(run_process({program}).out == "10 6 10 9\n-0.5 0.25 -0.5 9\n");

  // What cannot be staged is told of the header's own lines.
  write_file(path("parts/leaky.hpp"),
             "#pragma once\n#include <lantern/lantern.hpp>\ntemplate <class T>\nT leaky(T x) {\n"
             "  int n = 0;\n  if (x > 0.0) n = 1;\n  return n * x;\n}\n");
  const ProcessResult refused = lanternc({source, "-o", program});
  CHECK(refused.status == 1);
  INFO(refused.err);
  CHECK(
      refused.err.find(path("parts/leaky.hpp") +
                       ":6:16: error: the plain variable 'n' (int) is changed in a branch that is staged") !=
      std::string::npos);
}
