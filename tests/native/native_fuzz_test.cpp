// Random native programs through lanternc: staged, they compute what C++ computes, and their gradients are
// those of differences; garbled ones are refused or built, and never end lanternc itself.
//
// LANTERN_FUZZ=N in the environment tries N times as many.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "../correctness/depth.hpp"
#include "lantern/codegen/toolchain/process.hpp"
#include "random_native.hpp"

namespace fs = std::filesystem;
using lantern::codegen::ProcessResult;
using lantern::codegen::read_file;
using lantern::codegen::run_process;
using lantern::codegen::TemporaryDirectory;
using lantern::codegen::write_file;
using native_corpus::garbled;
using native_corpus::RandomNative;

namespace {

unsigned factor() {
  const char* given = std::getenv("LANTERN_FUZZ");
  if (given != nullptr) return static_cast<unsigned>(std::strtoul(given, nullptr, 10));
  return lantern::test::deep() ? 200 : 1;
}

const std::string prelude = R"(#include <lantern/lantern.hpp>
#include <cmath>
#include <cstdio>
using namespace lantern;
using std::cos, std::sin, std::tanh;
template <class T>
struct Companion {
  using Index = std::int64_t;
};
template <class T>
struct Companion<Rep<T>> {
  using Index = Rep<std::int64_t>;
};
template <class T>
using Index = typename Companion<T>::Index;
inline double number(std::int64_t i) { return static_cast<double>(i); }
inline Rep<double> number(const Rep<std::int64_t>& i) { return cast<double>(i); }
template <class T>
struct AddAtEnd {
  T& to;
  T by;
  ~AddAtEnd() {
    if (by > 0.5)
      to = 3.0 * tanh(0.3 * to + by);
    else
      to += 0.1 * sin(by);
  }
};
template <class T>
struct RestoreAtEnd {
  T& to;
  T before;
  ~RestoreAtEnd() { to = before; }
};
)";

// Differences with two steps: where they do not agree a condition changes in between.
const std::string harness = R"(
static int wrong = 0, compared = 0;
template <class Native, class Staged>
void check(const char* name, Native native, Staged staged) {
  const double points[][2] = {{0.3, -0.7}, {1.6, 0.4}, {-2.1, 3.3}, {-0.2, -4.0}};
  for (const auto& p : points) {
    const double x = p[0], y = p[1], expected = native(x, y);
    const auto [value, gradient] = staged(x, y);
    if (!(std::abs(value - expected) <= 1e-10 * (1 + std::abs(expected))))
      ++wrong, std::printf("%s(%g, %g): expected %.17g, got %.17g\n", name, x, y, expected, value);
    const auto slope = [&](bool first, double h) {
      const double dx = first ? h : 0, dy = first ? 0 : h;
      return (native(x + dx, y + dy) - native(x - dx, y - dy)) / (2 * h);
    };
    for (const bool first : {true, false}) {
      const double a = slope(first, 1e-5), b = slope(first, 3e-6);
      const double got = first ? std::get<0>(gradient) : std::get<1>(gradient);
      if (std::abs(a - b) > 1e-5 * (1 + std::abs(a))) continue;
      ++compared;
      if (!(std::abs(got - a) <= 1e-4 * (1 + std::abs(a))))
        ++wrong, std::printf("%s(%g, %g): expected slope %d to be %.9g, got %.9g\n", name, x, y, first, a, got);
    }
  }
}
)";

std::string program(unsigned seed, int functions) {
  RandomNative random(seed);
  std::string text = prelude, registered, calls;
  for (int i = 0; i < functions; ++i) {
    const std::string name = "f" + std::to_string(i);
    text += random.function(name);
    registered += "LANTERN_FUNCTION(g" + std::to_string(i) + ", value_and_grad(" + name + "<Rep<double>>))\n";
    calls += "  check(\"" + name + "\", " + name + "<double>, g" + std::to_string(i) + ");\n";
  }
  return text + registered + harness + "int main() {\n" + calls +
         "  std::printf(\"%d wrong\\n\", wrong);\n  return compared > 0 ? 0 : 2;\n}\n";
}

ProcessResult lanternc(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), LANTERNC);
  return run_process(arguments);
}

}  // namespace

TEST_CASE("random native programs compute the same when they are staged, and their gradients are right") {
  const TemporaryDirectory directory;
  const std::string source = directory.path() / "random.cpp", built = directory.path() / "random";
  const unsigned first = factor() > 1 ? 1000 : 1;
  for (unsigned seed = first; seed < first + factor(); ++seed) {
    const std::string text = program(seed, 8);
    write_file(source, text);
    const ProcessResult building = lanternc({source, "-o", built});
    INFO("seed " << seed << "\n" << building.err);
    CHECK(building.status == 0);
    if (building.status != 0) continue;
    const ProcessResult running = run_process({built});
    INFO(text);
    CHECK(running.status == 0);
    CHECK(running.out == "0 wrong\n");
  }
}

TEST_CASE("garbled programs never end the rewriter") {
  const TemporaryDirectory directory;
  const std::string source = directory.path() / "garbled.cpp";
  std::size_t accepted = 0, refused = 0;
  const unsigned first = factor() > 1 ? 5000 : 1;
  for (unsigned seed = first; seed < first + 6 * factor(); ++seed) {
    RandomNative random(seed);
    write_file(source,
               prelude + garbled(random.function("f"), seed) + "LANTERN_FUNCTION(g, grad(f<Rep<double>>))\n");
    const ProcessResult r = lanternc({source, "--emit=rewritten"});
    INFO("seed " << seed << "\n" << read_file(source) << "\n" << r.err);
    CHECK((r.status == 0 || r.status == 1));
    // Something was said where it was refused, and never of ourselves.
    CHECK((r.status == 0 || r.err.find(": error: ") != std::string::npos));
    CHECK(r.err.find("internal error") == std::string::npos);
    (r.status == 0 ? accepted : refused) += 1;
  }
  CHECK(accepted > 0);
  CHECK(refused > 0);
}

TEST_CASE("programs that do not compile never end the rewriter") {
  const TemporaryDirectory directory;
  const std::string source = directory.path() / "broken.cpp";
  for (const char* body : {
           "const auto [a, b] = nowhere(x);\n  if (a > 0.0) return a * b;\n  return b;",
           "auto y = nowhere(x);\n  while (y > 0.0) y = y - 1.0;\n  return y;",
           "Nothing z{x};\n  if (z.value > x) return z.value;\n  return x;",
           "auto f = [&](auto v) { return nowhere(v); };\n  return x > 0.0 ? f(x) : x;",
           "for (auto e : nowhere(x)) x += e;\n  return x;",
           "switch (nowhere(x)) { case 1: return x; }\n  return x * missing;",
       }) {
    write_file(
        source,
        "#include <lantern/lantern.hpp>\nusing namespace lantern;\nRep<double> f(Rep<double> x) {\n  " +
            std::string(body) + "\n}\nLANTERN_FUNCTION(g, grad(f))\n");
    const ProcessResult r = lanternc({source, "--emit=rewritten"});
    INFO(body << "\n" << r.err);
    // The compiler is who says what is wrong.
    CHECK((r.status == 0 || r.status == 1));
    CHECK(r.err.find("internal error") == std::string::npos);
  }
  const ProcessResult r = lanternc({source, "--emit=ir"});
  CHECK(r.status == 1);
  CHECK(r.err.find("broken.cpp:4:") != std::string::npos);
}

TEST_CASE("ordinary code beside a model stays as it is, byte for byte, and does what it did") {
  const TemporaryDirectory directory;
  const std::string source = directory.path() / "mixed.cpp", built = directory.path() / "mixed",
                    plain = directory.path() / "plain";
  const std::string before = read_file(LANTERN_TEST_DIR "/native/lanternc/ordinary.cpp");
  const std::string model =
      "\nlantern::Rep<double> f(lantern::Rep<double> x) {\n  if (x > 1.0) return x * x;\n  return x;\n}\n"
      "LANTERN_FUNCTION(g, lantern::grad(f))\n";
  const std::string after =
      "int more(int n) { while (n > 3 && n != 5) n = n % 2 ? n - 1 : n / 2; return n; }\n"
      "int main() { return ordinary() + more(9) - more(9) + (g(3.0) == 6.0 ? 0 : 1); }\n";
  const std::string include = "#include <lantern/lantern.hpp>\n";
  write_file(source, include + before + model + after);
  const ProcessResult rewritten = lanternc({source, "--emit=rewritten", "--", "-isystem", "/usr/include/eigen3"});
  INFO(rewritten.err);
  REQUIRE(rewritten.status == 0);
  CHECK(rewritten.out.find(before) != std::string::npos);
  CHECK(rewritten.out.find(after) != std::string::npos);
  CHECK(rewritten.out.find(model) == std::string::npos);

  const ProcessResult building = lanternc({source, "-O0", "-o", built, "--", "-isystem", "/usr/include/eigen3"});
  INFO(building.err);
  REQUIRE(building.status == 0);
  write_file(source, before + "int main() { return ordinary(); }\n");
  const ProcessResult reference = run_process({LANTERN_TEST_COMPILER, "-std=c++20", "-O0", "-isystem",
                                               "/usr/include/eigen3", source, "-o", plain, "-lfmt"});
  INFO(reference.err);
  REQUIRE(reference.status == 0);
  const ProcessResult expected = run_process({plain}), got = run_process({built});
  CHECK(expected.status == 0);
  CHECK(expected.out.size() > 150);
  CHECK(got.out == expected.out);
  CHECK(got.status == expected.status);
}
