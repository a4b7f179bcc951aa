// lanternc as its users run it: programs built and run, every output, every message.
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "lantern/codegen/toolchain/nvcc.hpp"
#include "lantern/codegen/toolchain/process.hpp"
#include "lantern/ir/parse.hpp"
#include "lantern/ir/verify.hpp"

namespace fs = std::filesystem;
using lantern::codegen::find_nvcc;
using lantern::codegen::find_program;
using lantern::codegen::ProcessResult;
using lantern::codegen::read_file;
using lantern::codegen::run_process;
using lantern::codegen::TemporaryDirectory;
using lantern::codegen::write_file;

namespace {

const std::string models = LANTERN_TEST_DIR "/lanternc/";
const std::string model = models + "model.cpp", scalar = models + "scalar.cpp";
const std::string help = "; see lanternc --help\n";

ProcessResult lanternc(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), LANTERNC);
  return run_process(arguments);
}

/// Succeeds without a word on the standard error stream; what it printed.
std::string silent(const std::vector<std::string>& arguments) {
  const ProcessResult r = lanternc(arguments);
  INFO(r.err);
  REQUIRE(r.status == 0);
  CHECK(r.err.empty());
  return r.out;
}

std::string refused(const std::vector<std::string>& arguments) {
  const ProcessResult r = lanternc(arguments);
  CHECK(r.status == 1);
  CHECK(r.out.empty());
  return r.err;
}

std::string output_of(const std::string& program) {
  const ProcessResult r = run_process({program});
  INFO(r.err);
  REQUIRE(r.status == 0);
  return r.out;
}

std::vector<std::string> lines(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> all;
  for (std::string line; std::getline(stream, line);) all.push_back(line);
  return all;
}

/// Line by line: numbers up to rounding (a compiler may fuse a multiplication with an addition).
void check_same_numbers(const std::string& got, const std::string& expected, std::size_t leave_out = 0) {
  const auto g = lines(got), e = lines(expected);
  REQUIRE(g.size() == e.size());
  for (std::size_t i = 0; i + leave_out < g.size(); ++i) {
    CAPTURE(i);
    CHECK(std::strtod(g[i].c_str(), nullptr) == Approx(std::strtod(e[i].c_str(), nullptr)).epsilon(1e-13));
  }
}

/// Compiles without a warning.
void check_compiles(const std::vector<std::string>& command) {
  const ProcessResult r = run_process(command);
  INFO(r.err);
  CHECK(r.status == 0);
}

/// The environment with one variable changed for as long as this lives.
class Environment {
 public:
  Environment(const char* name, const std::string& value) : name_(name) {
    if (const char* old = std::getenv(name)) old_ = old, had_ = true;
    ::setenv(name, value.c_str(), 1);
  }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;
  ~Environment() {
    if (had_)
      ::setenv(name_, old_.c_str(), 1);
    else
      ::unsetenv(name_);
  }

 private:
  const char* name_;
  std::string old_;
  bool had_ = false;
};

const std::string no_jit =
    "compile() is not available in a program built by lanternc; build it with --with-jit";

}  // namespace

TEST_CASE("a program built ahead of time prints what the just-in-time program prints") {
  const TemporaryDirectory directory;
  const std::string jit = output_of(LANTERNC_MODEL_JIT);
  const auto build = [&](const std::string& name, std::vector<std::string> more) {
    const std::string program = directory.path() / name;
    more.insert(more.end(), {model, "-o", program});
    CHECK(silent(more).empty());
    return program;
  };

  const std::string program = build("a 'quoted\" model", {"-O3"});
  const std::string numbers = output_of(program);
  check_same_numbers(numbers, jit, 1);
  CHECK(lines(numbers).back() == no_jit);

  const ProcessResult libraries = run_process({"ldd", program});
  REQUIRE(libraries.status == 0);
  for (const char* library : {"LLVM", "clang", "tcc", "boost", "fmt"}) {
    CAPTURE(library);
    CHECK(libraries.out.find(library) == std::string::npos);
  }

  check_same_numbers(output_of(build("unoptimised", {"-O0"})), numbers, 1);
  check_same_numbers(output_of(build("with_jit", {"-O1", "--with-jit", "-g"})), jit);
}

TEST_CASE("several files, flags of the compiler, and a header that two files share") {
  const TemporaryDirectory directory;
  const fs::path folder = directory.path() / "with space";
  fs::create_directory(folder);
  write_file(folder / "shared.hpp",
             "#pragma once\n#include <lantern/lantern.hpp>\n"
             "inline lantern::Rep<double> f(lantern::Rep<double> x) { return x * SCALE; }\n"
             "LANTERN_FUNCTION(df, f)\ndouble other(double);\n");
  write_file(folder / "a.cpp",
             "#include \"shared.hpp\"\n#include <cstdio>\n#include <zlib_stand_in.hpp>\n"
             "int main() { std::printf(\"%g %g %d\\n\", df(1.0), other(1.0), number()); }\n");
  write_file(folder / "b.cc", "#include \"shared.hpp\"\ndouble other(double x) { return 10.0 * df(x); }\n");
  fs::create_directory(folder / "include");
  write_file(folder / "include" / "zlib_stand_in.hpp", "inline int number() { return NUMBER; }\n");
  const std::string program = folder / "it's a \"program\" $HOME";
  silent({folder / "a.cpp", folder / "b.cc", "-o", program, "-I", folder / "include", "-DSCALE=2.5",
          "-std=c++20", "-O1", "--", "-DNUMBER=7", "-Wall", "-Werror"});
  CHECK(output_of(program) == "2.5 25 7\n");
}

TEST_CASE("one compiler lays out the classes that files and libraries of a program share") {
  const TemporaryDirectory directory;
  const auto path = [&](const std::string& name) { return std::string(directory.path() / name); };
  // g++ and Clang differ in the tail padding of a base; the second file asks which compiler reads it.
  write_file(path("shape.hpp"),
             "#pragma once\nstruct Shape { int id; char kind; Shape() = default; Shape(const Shape&) = delete; };\n"
             "struct Circle : Shape { char filled; double radius; char name[9]; };\ndouble area(const Circle& c);\n");
  write_file(path("main.cpp"),
             "#include <lantern/lantern.hpp>\n#include <cstdio>\n#include \"shape.hpp\"\n"
             "lantern::Rep<double> f(lantern::Rep<double> x) { return x * x; }\nLANTERN_FUNCTION(df, f)\n"
             "int main() {\n  Circle c;\n  c.filled = 1;\n  c.radius = 2;\n  c.name[0] = 7;\n"
             "  asm volatile(\"nop\");\n  std::printf(\"%g %g\\n\", area(c), df(3.0));\n}\n");
  write_file(path("area.cpp"),
             "#include \"shape.hpp\"\n#ifdef __clang__\n#error another compiler reads this file\n#endif\n"
             "double area(const Circle& c) { return c.filled * (c.radius * c.radius + c.name[0]); }\n");
  silent({path("main.cpp"), path("area.cpp"), "-o", path("two_files")});
  CHECK(output_of(path("two_files")) == "11 9\n");
  check_compiles({"c++", "-std=c++20", "-c", path("area.cpp"), "-o", path("area.o")});
  silent({path("main.cpp"), path("area.o"), "-o", path("an_object")});
  CHECK(output_of(path("an_object")) == "11 9\n");
  silent({"-c", path("main.cpp"), "-o", path("main.o")});
  const std::string area = read_file(path("area.cpp"));
  write_file(path("main.cpp"), read_file(path("main.cpp")) + area.substr(area.find("double")));
  silent({path("main.cpp"), "-o", path("alone")});
  CHECK(output_of(path("alone")) == "11 9\n");
}

TEST_CASE("graphs") {
  for (const char* kind : {"--emit=ir", "--emit=cps"}) {
    CAPTURE(kind);
    const std::string text = silent({scalar, kind, "--function=dhalved"});
    const auto module = lantern::ir::parse(text);
    lantern::ir::verify(*module);
    CHECK(module->entry->name == "dhalved");
    CHECK((text.find("= fun (") != std::string::npos) == (std::string(kind) == "--emit=cps"));
  }
  CHECK(silent({scalar, "--emit=svg", "--function", "dcubic"}).starts_with("<svg"));
}

TEST_CASE("sources stand alone, objects and libraries hold the generated code alone") {
  const TemporaryDirectory directory;
  const auto path = [&](const std::string& name) { return std::string(directory.path() / name); };
  silent({model, "--emit=c", "-o", path("model.c")});
  check_compiles({"cc", "-std=c99", "-Wall", "-Wextra", "-Werror", "-c", path("model.c"), "-o", path("c.o")});
  silent({model, "--emit=cpp", "-o", path("model.cpp")});
  check_compiles(
      {"c++", "-std=c++20", "-Wall", "-Wextra", "-Werror", "-c", path("model.cpp"), "-o", path("cpp.o")});
  silent({model, "--emit=header", "-o", path("model.h")});
  silent({model, "--emit=object", "-o", path("model.o")});
  silent({model, "--emit=shared", "-o", path("libmodel.so")});

  const std::string header = read_file(path("model.h"));
  CHECK(header.find("/* dcubic(f64 x) -> f64 */\ndouble dcubic(double x);\n") != std::string::npos);
  CHECK(header.find("/* denergy(f64[?] v) -> f64[?]") != std::string::npos);

  // A C program that uses them, through the header.
  write_file(path("use.c"),
             "#include <stdio.h>\n#include \"model.h\"\n#include \"model.h\"\n"
             "int main(void) {\n"
             "  double v[3] = {1, 2, 3};\n"
             "  lt_f64_1d in = {v, {3}};\n"
             "  lt_f64_1d out = denergy(denergy_workspace(), in);\n"
             "  printf(\"%g %g %g %g\\n\", dcubic(3.0), out.data[1], out.data[2], dpower(1.5, 5));\n"
             "  return 0;\n}\n");
  const std::string expected = "29 12 27 25.3125\n";
  for (const std::string& code : {path("c.o"), path("cpp.o"), path("model.o"), path("libmodel.so")}) {
    CAPTURE(code);
    check_compiles({"cc", "-std=c99", "-Wall", "-Werror", path("use.c"), code, "-o", path("use"), "-lm",
                    "-lpthread", "-Wl,-rpath," + directory.path().string()});
    CHECK(output_of(path("use")) == expected);
  }
  check_compiles({"c++", "-x", "c++", "-Wall", "-Werror", "-fsyntax-only", path("model.h")});
}

TEST_CASE("CUDA") {
  const std::string text = silent({scalar, "--emit=cuda", "--function=dhalved", "-O2"});
  CHECK(text.find("extern \"C\" int dhalved_map(const double* x, double* y, int64_t n)") !=
        std::string::npos);
  if (!find_nvcc()) return;
  const TemporaryDirectory directory;
  const std::string source = directory.path() / "map.cu", program = directory.path() / "program";
  write_file(source, text);
  check_compiles({*find_nvcc(), "-c", source, "-o", std::string(directory.path() / "map.o")});
  silent({scalar, "--target=cuda", "-o", program});
  silent({scalar, "--target=cuda", "--emit=shared", "-o", directory.path() / "map.so"});
  const ProcessResult r = run_process({program});
  if (r.status == 0)
    CHECK(r.out == "29 1.6777216\n");
  else
    CHECK(r.err.find("lantern::Error") != std::string::npos);  // no GPU here
}

TEST_CASE("CUDA of functions with tensors") {
  const std::string loops = models + "threads.cpp";
  const TemporaryDirectory directory;
  const std::string header = directory.path() / "loops.h", program = directory.path() / "program";
  silent({loops, "--target=cuda", "--emit=header", "-o", header});
  CHECK(read_file(header).find("_workspace(void);") != std::string::npos);
  check_compiles({"c++", "-x", "c++", "-Wall", "-Werror", "-fsyntax-only", header});
  check_compiles({"cc", "-x", "c", "-Wall", "-Werror", "-fsyntax-only", header});
  // All that it declares is defined, by these names.
  const std::string saxpy = models + "../../samples/cuda/", name = "saxpy_gradient", base = directory.path() / name;
  silent({saxpy + "saxpy.cpp", "--target=cuda", "--emit=header", "--function=" + name, "-o", base + ".h"});
  silent({saxpy + "saxpy.cpp", "--emit=cuda", "--function=" + name, "-o", base + ".cu"});
  const std::string declared = read_file(base + ".h"), defined = read_file(base + ".cu");
  for (const char* end : {"(", "_workspace(void)", "_on_failure(", "_entry(", "_on_stream(", "_wait(", "_to_host("}) {
    INFO(end);
    CHECK(declared.find(name + end) != std::string::npos);
    CHECK(defined.rfind(name + end) != defined.find(name + end));
  }
  if (!find_nvcc()) return;
  check_compiles({*find_nvcc(), saxpy + "main.cu", base + ".cu", "-I" + directory.path().string(), "-ldl", "-o", base});
  silent({loops, "--target=cuda", "-o", program});
  const ProcessResult r = run_process({program});
  if (r.status != 0) CHECK(r.err.find("CUDA") != std::string::npos);  // no GPU here
}

TEST_CASE("a program that uses several threads") {
  const TemporaryDirectory directory;
  const std::string source = models + "threads.cpp", one = directory.path() / "one",
                    two = directory.path() / "two";
  check_compiles({LANTERNC, source, "-o", one});
  check_compiles({LANTERNC, source, "--threads=2", "--verify", "-o", two});
  const auto a = lines(output_of(one)), b = lines(output_of(two));
  REQUIRE(a.size() == 3);
  // Sums of 100,000 numbers, in another order.
  for (const std::size_t i : {std::size_t{0}, std::size_t{1}})
    CHECK(std::stod(b[i]) == Approx(std::stod(a[i])).epsilon(1e-10));
  CHECK(b[2] == a[2]);
  CHECK(b[2].find("index 9 is outside 0..6") == 0);
  const std::string c = silent({source, "--threads=2", "--emit=c"});
  CHECK(c.find("ws->fork(ws, 2, 8, slope_part_run") != std::string::npos);
  CHECK(c.find("link with -pthread") != std::string::npos);
  const std::string explained = silent({source, "--threads=2", "--explain"});
  CHECK(explained.find("  threads\n") != std::string::npos);
  CHECK(explained.find("forks into 2 threads from about ") != std::string::npos);
  CHECK(refused({scalar, "--threads=0"}) ==
        "lanternc: error: --threads: expected a number from 1 to 64, got '0'\n");
  CHECK(refused({scalar, "--threads=two"}) ==
        "lanternc: error: --threads: expected a number from 1 to 64, got 'two'\n");
  CHECK(
      refused({scalar, "--threads=2", "--target=cuda"}) ==
      "lanternc: error: --threads does not go with --target=cuda: a kernel has a thread for every element\n");
}

TEST_CASE("subnormal numbers and the order of sums are a choice") {
  const TemporaryDirectory directory;
  const std::string source = models + "numbers.cpp", program = directory.path() / "program";
  // More lanes than the processor has.
  check_compiles({LANTERNC, source, "--cpu=x86-64", "--lanes=8", "-o", program});
  CHECK(output_of(program) == "subnormal numbers are zero, sums are in any order\n");
  check_compiles({LANTERNC, source, "--strict-math", "--no-reassociate", "-o", program});
  CHECK(output_of(program) == "subnormal numbers are kept, sums are in order\n");
  const std::string c = silent({source, "--strict-math", "--emit=cpp"});
  CHECK(c.find("-ffp-contract=off") != std::string::npos);
  CHECK(refused({scalar, "--lanes=3"}) == "lanternc: error: --lanes: expected 2, 4 or 8, got '3'\n");
}

TEST_CASE("what the passes do can be watched") {
  const ProcessResult r = lanternc({scalar, "--emit=ir", "--function=dcubic", "--time-passes",
                                    "--dump-after=simplify", "--verify", "--disable-pass=inplace"});
  INFO(r.err);
  REQUIRE(r.status == 0);
  CHECK(r.err.find("; dcubic after simplify\nentry @dcubic") == 0);
  CHECK(r.err.find("passes of dcubic, in milliseconds\n  ") != std::string::npos);
  CHECK(r.err.find("inplace") == std::string::npos);
}

TEST_CASE("the command line is checked before anything is compiled") {
  CHECK(refused({}) == "lanternc: error: no input file" + help);
  CHECK(refused({scalar, "--wat"}) ==
        "lanternc: error: unknown option '--wat'; options for the C++ compiler go after --" + help);
  CHECK(refused({scalar, "-Wall"}) ==
        "lanternc: error: unknown option '-Wall'; options for the C++ compiler go after --" + help);
  const std::string see = " Options for the C++ compiler go after --" + help;
  CHECK(refused({scalar, "--targt=cuda"}) ==
        "lanternc: error: unknown option '--targt=cuda': did you mean --target?" + see);
  CHECK(refused({scalar, "--emti=c"}) == "lanternc: error: unknown option '--emti=c': did you mean --emit?" + see);
  CHECK(refused({scalar, "-emit=c"}) == "lanternc: error: unknown option '-emit=c': did you mean --emit?" + see);
  CHECK(refused({scalar, "-march=native"}) ==
        "lanternc: error: unknown option '-march=native'; options for the C++ compiler go after --" + help);
  CHECK(refused({scalar, "--emit=pyton"}) ==
        "lanternc: error: --emit: expected ir, cps, c, cpp, cuda, header, object, shared, python, wheel, jax, torch, "
        "julia, fortran, mex, matlab, svg, rewritten or html, got 'pyton': did you mean python?\n");
  CHECK(refused({scalar, "--disable-pass=unwnd"}) ==
        "lanternc: error: --disable-pass: expected the name of a pass, got 'unwnd': did you mean unwind?\n");
  CHECK(refused({scalar, "--emit=c", "--function=dcubc"}).ends_with(", got 'dcubc': did you mean dcubic?\n"));
  CHECK(refused({scalar, "-std=c++17"}) ==
        "lanternc: error: -std=c++17: Lantern is written in C++20: leave it out, or write -std=c++20 or later\n");
  CHECK(refused({scalar, "--emit=python", "-o", "out/3model.py"}) ==
        "lanternc: error: --emit=python: the module is named after the output, and '3model' is no name: write -o out/m3model.py\n");
  CHECK(refused({scalar, "--emit=torch", "-o", "my-model.py"}) ==
        "lanternc: error: --emit=torch: the module is named after the output, and 'my-model' is no name: write -o my_model.py\n");
  CHECK(refused({scalar, "--emit=jax", "-o", "lambda.py"}) ==
        "lanternc: error: --emit=jax: the module is named after the output, and 'lambda' is no name: write -o lambda_.py\n");
  CHECK(refused({scalar, "-o"}) == "lanternc: error: expected a value after '-o'" + help);
  CHECK(refused({scalar, "--emit=pdf"}) ==
        "lanternc: error: --emit: expected ir, cps, c, cpp, cuda, header, object, shared, python, wheel, jax, torch, "
        "julia, fortran, mex, matlab, svg, rewritten or html, got 'pdf'\n");
  CHECK(refused({scalar, "-O4"}) == "lanternc: error: -O: expected a level from 0 to 3, got '4'\n");
  CHECK(refused({scalar, "--target=tpu"}) == "lanternc: error: --target: expected cpu or cuda, got 'tpu'\n");
  CHECK(refused({scalar, "--cpu=foo"}) ==
        "lanternc: error: --cpu: expected LLVM's name of a processor, such as x86-64-v3, got 'foo'\n");
  CHECK(refused({scalar, "--function=dcubic"}) == "lanternc: error: --function is for use with --emit\n");
  CHECK(refused({scalar, "--emit=c", "--with-jit"}) ==
        "lanternc: error: --with-jit is for programs: leave out --emit\n");
  CHECK(refused({scalar, "--emit=c", "--target=cuda"}) ==
        "lanternc: error: --target=cuda does not go with --emit=c, cpp or html; use --emit=cuda\n");
  CHECK(refused({scalar, "-c", "--emit=c"}) ==
        "lanternc: error: -c does not go with --emit; --emit=object is the generated code alone\n");
  CHECK(refused({scalar, "-c", "--explain"}) == "lanternc: error: -c does not go with --explain\n");
  CHECK(refused({scalar, "--whole-program"}) == "lanternc: error: --whole-program is for use with -c\n");
  CHECK(refused({scalar, "-lm", "-lno_such_library", "-l", "nor_this"}) ==
        "lanternc: error: -lno_such_library, -lnor_this: the linker finds no such library; name its directory with -L, or "
        "install the package that has the file for linking (Debian: lib...-dev)\n");
  CHECK(refused({scalar, scalar}) == "lanternc: error: the input '" + scalar + "' is given twice\n");
  CHECK(refused({"missing.cpp"}) ==
        "lanternc: error: cannot read 'missing.cpp': No such file or directory\n");
  CHECK(refused({models}) == "lanternc: error: cannot read '" + models + "': it is a directory\n");
  CHECK(refused({scalar, "-o", "/nowhere/model"}) ==
        "lanternc: error: cannot write '/nowhere/model': No such file or directory\n");
  CHECK(refused({scalar, "-o", models}) ==
        "lanternc: error: cannot write '" + models + "': it is a directory\n");
  CHECK(refused({scalar, "-o", scalar}) == "lanternc: error: the output '" + scalar + "' is also an input\n");
  CHECK(fs::exists(scalar));
  CHECK(refused({scalar, "--dump-after=unwind", "-O0"}) ==
        "lanternc: error: --dump-after: no pass runs at -O0\n");
  CHECK(refused({scalar, "--dump-after=unwind", "--disable-pass=unwind"}) ==
        "lanternc: error: --dump-after: the pass 'unwind' is disabled\n");
  const std::string unknown = refused({scalar, "--disable-pass=magic"});
  CHECK(unknown.find("lanternc: error: --disable-pass: expected the name of a pass (") == 0);
  CHECK(unknown.find("), got 'magic'\n") != std::string::npos);
  CHECK(silent({"--help"}).find("--emit") != std::string::npos);
  CHECK(silent({"--version"}).find("lanternc ") == 0);
  {
    const Environment compiler("CXX", "no-such-compiler");
    CHECK(refused({scalar, "-o", "/tmp/lanternc-test-none"}) ==
          "lanternc: error: the C++ compiler named by CXX does not exist: 'no-such-compiler'; set CXX to an "
          "installed "
          "compiler or unset it\n");
  }
}

TEST_CASE("mistakes in the user's file, and nothing is left behind") {
  const TemporaryDirectory directory;
  const std::string source = directory.path() / "m.cpp", program = directory.path() / "m";
  const std::string include = "#include <lantern/lantern.hpp>\n";
  const auto build = [&](const std::string& text, const std::vector<std::string>& more = {}) {
    write_file(source, include + text);
    write_file(program, "from an earlier build");
    std::vector<std::string> arguments{source, "-o", program};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const std::string message = refused(arguments);
    CHECK_FALSE(fs::exists(program));
    return message;
  };

  // The compiler's own words, then one line.
  const std::string message = build("int main() { return wat; }\n");
  CHECK(message.find(source + ":2:21: error: ") != std::string::npos);
  CHECK(lines(message).back() == "lanternc: error: " + source + " did not compile");

  CHECK(build("int main() {}\n") == "lanternc: error: no LANTERN_FUNCTION in " + source +
                                        "; write LANTERN_FUNCTION(name, program) at namespace scope\n");
  const std::string f = "lantern::Rep<double> f(lantern::Rep<double> x) { return x * x; }\n";
  CHECK(build(f + "LANTERN_FUNCTION(g, f)\nnamespace a {\nLANTERN_FUNCTION(g, f)\n}\nint main() {}\n") ==
        source + ":5: error: there are two LANTERN_FUNCTIONs of the name 'g'; rename one\n" + source +
            ":3: note: the other one is here\n");
  CHECK(build(f + "LANTERN_FUNCTION(g, f)\nLANTERN_FUNCTION(h, f)\n", {"--emit=svg"}) ==
        "lanternc: error: --emit=svg takes one function; choose with --function=NAME among g, h\n");
  CHECK(build(f + "LANTERN_FUNCTION(g, f)\n", {"--emit=c", "--function=k"}) ==
        "lanternc: error: --function: expected one of g, got 'k'\n");

  // A mistake that staging finds, at the user's line.
  const std::string parameter = "lantern::Rep<double> f(lantern::Rep<lantern::Tensor<double, 2, 3>> a) {\n" +
                                std::string(23, ' ') + std::string(44, '~') + "^\n";
  CHECK(build("lantern::Rep<double> f(lantern::Rep<lantern::Tensor<double, 2, 3>> a) {\n"
              "  return sum(matmul(a, a));\n}\n"
              "LANTERN_FUNCTION(g, f)\nint main() {}\n") ==
        source + ":3:14: error: matmul: expected shapes that fit \"ij,jk->ik\", got f64[2,3], f64[2,3]\n" +
            "  return sum(matmul(a, a));\n             ^~~~~~~~~~~~\n" + source +
            ":2:68: note: the first operand 'a' is f64[2,3]\n" + parameter + source +
            ":2:68: note: the second operand 'a' is f64[2,3]\n" + parameter + source +
            ":5: note: while staging LANTERN_FUNCTION(g, ...)\n");
  CHECK(build("lantern::Rep<double> f(lantern::Rep<lantern::Tensor<double>> a) { return sum(a); }\n"
              "LANTERN_FUNCTION(g, f)\nint main() {}\n") ==
        source +
            ":3: error: LANTERN_FUNCTION(g): a tensor parameter has no rank; declare it, for example "
            "Tensor<double, dyn, dyn>\n");
  CHECK(build("#include <stdexcept>\nlantern::Rep<double> f(lantern::Rep<double>) { throw "
              "std::runtime_error(\"no\"); }\n"
              "LANTERN_FUNCTION(g, f)\nint main() {}\n") ==
        source + ":4: error: the program threw while it was staged: no\n" + source +
            ":4: note: while staging LANTERN_FUNCTION(g, ...)\n");
  CHECK(build("static int number = [] { throw lantern::Error(\"no file\"); return 1; }();\n" + f +
              "LANTERN_FUNCTION(g, f)\n") == "lanternc: error: a static initialiser threw: no file\n");
}

TEST_CASE("what the user's code prints while it is staged does not mix with the output") {
  const TemporaryDirectory directory;
  const std::string source = directory.path() / "m.cpp";
  write_file(
      source,
      "#include <lantern/lantern.hpp>\n#include <cstdio>\nstatic int loaded = std::printf(\"loaded\\n\");\n"
      "lantern::Rep<double> f(lantern::Rep<double> x) { std::printf(\"staged\\n\"); return x; }\n"
      "LANTERN_FUNCTION(g, f)\n");
  const ProcessResult r = lanternc({source, "--emit=ir"});
  CHECK(r.status == 0);
  CHECK(r.err == "loaded\nstaged\n");
  CHECK(r.out == "entry @g\n\nfun @g(%1: f64) -> f64 {\n  yield %1\n}\n");
}

TEST_CASE("missing tools are named") {
  const TemporaryDirectory directory;
  const std::string output = directory.path() / "out";
  {
    const Environment cuda("LANTERN_CUDA_PATH", directory.path().string());
    CHECK(refused({scalar, "--target=cuda", "--emit=object", "-o", output}) ==
          "lanternc: error: the CUDA compiler (nvcc) was not found; install the CUDA toolkit and set "
          "LANTERN_CUDA_PATH to its folder, for instance /usr/local/cuda\n");
    CHECK_FALSE(fs::exists(output));
  }
  // A PATH with a compiler and nothing else.
  for (const char* tool : {"c++", "as", "ld"})
    fs::create_symlink(*find_program(tool), directory.path() / tool);
  const Environment path("PATH", directory.path().string());
  silent({scalar, "--emit=svg", "--function=dcubic", "-o", output});
  CHECK(fs::exists(output));
}
