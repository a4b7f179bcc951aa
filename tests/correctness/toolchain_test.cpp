// Every tool chain compiles text to code that runs, refuses bad text with a useful message, and leaves
// nothing behind.
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <thread>
#include <vector>

#include "lantern/codegen/toolchain/clang.hpp"
#include "lantern/codegen/toolchain/nvcc.hpp"
#include "lantern/codegen/toolchain/nvrtc.hpp"
#include "lantern/codegen/toolchain/process.hpp"
#include "lantern/codegen/toolchain/system_compiler.hpp"
#include "lantern/codegen/toolchain/tcc.hpp"
#include "lantern/ir/error.hpp"

using namespace lantern::codegen;
using Catch::Matchers::Contains;

namespace {

ClangOptions optimised(int level) {
  ClangOptions options;
  options.opt_level = level;
  return options;
}

struct ToolChain {
  std::string name;
  std::function<std::unique_ptr<LoadedCode>(const std::string&, std::span<const HostSymbol>)> compile;
};

std::vector<ToolChain> tool_chains() {
  std::vector<ToolChain> chains;
  chains.push_back({"tcc", &compile_with_tcc});
  for (const int level : {0, 1, 2, 3}) {
    chains.push_back({"clang -O" + std::to_string(level),
                      [level](const std::string& source, std::span<const HostSymbol> symbols) {
                        return compile_with_clang(source, Language::c, optimised(level), symbols);
                      }});
  }
  chains.push_back({"clang -g", [](const std::string& source, std::span<const HostSymbol> symbols) {
                      ClangOptions options = optimised(0);
                      options.debug_info = true;
                      return compile_with_clang(source, Language::c, options, symbols);
                    }});
  chains.push_back({"system compiler", [](const std::string& source, std::span<const HostSymbol> symbols) {
                      return compile_with_system_compiler(source, Language::c, {}, symbols);
                    }});
  return chains;
}

/// Sets an environment variable for the life of the object; without a value, removes it.
class ScopedEnvironment {
 public:
  ScopedEnvironment(const char* name, std::optional<std::string> value) : name_(name) {
    if (const char* previous = std::getenv(name)) previous_ = previous;
    set(value);
  }
  ~ScopedEnvironment() { set(previous_); }

 private:
  void set(const std::optional<std::string>& value) {
    if (value) {
      ::setenv(name_, value->c_str(), 1);
    } else {
      ::unsetenv(name_);
    }
  }

  const char* name_;
  std::optional<std::string> previous_;
};

/// The text of the InternalError that `action` throws.
template <class Action>
std::string internal_error(Action action) {
  try {
    action();
  } catch (const lantern::InternalError& error) {
    return error.what();
  }
  FAIL("expected an InternalError");
  return {};
}

[[maybe_unused]] double resident_megabytes() {
  std::ifstream file("/proc/self/statm");
  double total = 0, resident = 0;
  file >> total >> resident;
  return resident * static_cast<double>(::sysconf(_SC_PAGESIZE)) / 1e6;
}

/// A function of about fifty lines: a loop over a chain of scalar operations, the shape generated code has.
std::string fifty_lines() {
  std::string text = "double sin(double);\nvoid f(double* x, double* y, long long n) {\n  double sum = 0;\n";
  text += "  for (long long i = 0; i < n; ++i) {\n    double v0 = x[i];\n";
  for (int i = 1; i < 42; ++i) {
    const std::string half = "v" + std::to_string(i / 2);
    text += "    double v" + std::to_string(i) + " = v" + std::to_string(i - 1);
    text += i % 10 == 5 ? " + sin(" + half + ");\n" : i % 3 == 0 ? " - 0.5 * " + half + ";\n" : " * 1.01;\n";
  }
  return text + "    y[i] = v41;\n    sum += v41;\n  }\n  y[n] = sum;\n}\n";
}

int host_calls = 0;
double host_square(double x) {
  ++host_calls;
  return x * x;
}

}  // namespace

TEST_CASE("every tool chain: scalar function and libm", "[toolchain]") {
  for (const ToolChain& chain : tool_chains()) {
    INFO(chain.name);
    const auto code = chain.compile(
        "double exp(double); float tanhf(float); double pow(double, double); double fma(double, double, "
        "double);\n"
        "double f(double x) { return exp(x) * 2.0; }\n"
        "float g(float x) { return tanhf(x); }\n"
        "double h(double x, double y) { return fma(x, y, pow(x, y)); }\n",
        {});
    CHECK(code->function<double(double)>("f")(0.5) == Approx(2 * std::exp(0.5)).epsilon(1e-15));
    CHECK(code->function<float(float)>("g")(0.5F) == Approx(std::tanh(0.5F)).epsilon(1e-6));
    CHECK(code->function<double(double, double)>("h")(1.5, 2.5) ==
          Approx(std::fma(1.5, 2.5, std::pow(1.5, 2.5))).epsilon(1e-15));
    CHECK_THROWS_AS(code->symbol("missing"), lantern::Error);
    CHECK_THROWS_WITH(code->symbol("missing"), Contains("no symbol named 'missing'"));
  }
}

TEST_CASE("every tool chain: structs by pointer, arrays, loops, static data", "[toolchain]") {
  struct Frame {
    std::int64_t count;
    double* values;
    double sum;
    std::uint8_t flag;
  };
  for (const ToolChain& chain : tool_chains()) {
    INFO(chain.name);
    const auto code = chain.compile(
        "typedef struct { long long count; double* values; double sum; unsigned char flag; } Frame;\n"
        "static const double weight[4] = {1, 2, 3, 4};\n"
        "int calls;\n"
        "static void copy(Frame* to, const Frame* from) { *to = *from; }\n"
        "void run(Frame* frame) {\n"
        "  Frame local;\n"
        "  copy(&local, frame);\n"
        "  for (long long i = 0; i < local.count; ++i) {\n"
        "    local.values[i] *= weight[i % 4];\n"
        "    local.sum += local.values[i];\n"
        "  }\n"
        "  local.flag = local.sum > 100;\n"
        "  copy(frame, &local);\n"
        "  ++calls;\n"
        "}\n",
        {});
    std::vector<double> values(1000, 1.0);
    Frame frame{static_cast<std::int64_t>(values.size()), values.data(), 0, 0};
    code->function<void(Frame*)>("run")(&frame);
    CHECK(frame.sum == 2500);
    CHECK(frame.flag == 1);
    CHECK(values[7] == 4);
    CHECK(*static_cast<int*>(code->symbol("calls")) == 1);
  }
}

TEST_CASE("every tool chain: host functions", "[toolchain]") {
  const HostSymbol symbols[] = {{"host_square", reinterpret_cast<void*>(&host_square)}};
  for (const ToolChain& chain : tool_chains()) {
    INFO(chain.name);
    host_calls = 0;
    const auto code = chain.compile(
        "double host_square(double);\n"
        "double f(double x) { return host_square(x) + host_square(x + 1); }\n"
        "double (*pointer(void))(double) { return host_square; }\n",
        symbols);
    CHECK(code->function<double(double)>("f")(2) == 13);
    CHECK(host_calls == 2);
    CHECK(code->function<double (*())(double)>("pointer")()(3) == 9);
  }
}

TEST_CASE("every tool chain: conversions between floating point and 64-bit integers", "[toolchain]") {
  for (const ToolChain& chain : tool_chains()) {
    INFO(chain.name);
    const auto code = chain.compile(
        "typedef long long i64; typedef unsigned long long u64;\n"
        "i64 di(double x) { return (i64)x; } i64 fi(float x) { return (i64)x; }\n"
        "u64 du(double x) { return (u64)x; } u64 fu(float x) { return (u64)x; }\n"
        "double id(i64 x) { return (double)x; } float jf(i64 x) { return (float)x; }\n"
        "double ud(u64 x) { return (double)x; } float uf(u64 x) { return (float)x; }\n"
        "int i32(double x) { return (int)x; } i64 bool_sum(double x) { return (i64)(x > 0) + (x == x); }\n"
        "i64 li(double x) { return (i64)(long double)x; } u64 lu(double x) { return (u64)(long double)x; }\n"
        "double ul(u64 x) { return (double)(long double)x; }\n",
        {});
    for (const double x : {0.0, 1.9, 12345.75, 4503599627370497.0, 9.0e18}) {
      CHECK(code->function<std::int64_t(double)>("di")(x) == static_cast<std::int64_t>(x));
      CHECK(code->function<std::int64_t(double)>("di")(-x) == static_cast<std::int64_t>(-x));
      CHECK(code->function<std::int64_t(double)>("li")(-x) == static_cast<std::int64_t>(-x));
      CHECK(code->function<std::uint64_t(double)>("du")(2 * x) == static_cast<std::uint64_t>(2 * x));
      CHECK(code->function<std::uint64_t(double)>("lu")(2 * x) == static_cast<std::uint64_t>(2 * x));
      const auto single = static_cast<float>(x);
      CHECK(code->function<std::int64_t(float)>("fi")(-single) == static_cast<std::int64_t>(-single));
      CHECK(code->function<std::uint64_t(float)>("fu")(single) == static_cast<std::uint64_t>(single));
    }
    CHECK(code->function<int(double)>("i32")(-7.9) == -7);
    for (const std::uint64_t x : {UINT64_C(0), UINT64_C(7), UINT64_C(1) << 53, (UINT64_C(1) << 62) + 4097,
                                  UINT64_C(0x8000000000000401), UINT64_C(0xFFFFFFFFFFFFFFFF)}) {
      INFO(x);
      CHECK(code->function<double(std::uint64_t)>("ud")(x) == static_cast<double>(x));
      CHECK(code->function<float(std::uint64_t)>("uf")(x) == static_cast<float>(x));
      CHECK(code->function<double(std::uint64_t)>("ul")(x) ==
            static_cast<double>(static_cast<long double>(x)));
      const auto as_signed = static_cast<std::int64_t>(x);
      CHECK(code->function<double(std::int64_t)>("id")(as_signed) == static_cast<double>(as_signed));
      CHECK(code->function<float(std::int64_t)>("jf")(as_signed) == static_cast<float>(as_signed));
    }
    CHECK(code->function<std::int64_t(double)>("bool_sum")(1.0) == 2);
    CHECK(code->function<std::int64_t(double)>("bool_sum")(std::nan("")) == 0);
  }
}

TEST_CASE("tcc and clang without contraction agree to the bit", "[toolchain]") {
  const std::string source = fifty_lines();
  using Function = void(double*, double*, long long);
  constexpr int n = 100;
  std::vector<double> x(n), expected(n + 1), actual(n + 1);
  for (int i = 0; i < n; ++i) x[static_cast<std::size_t>(i)] = 0.01 * i - 0.3;
  const auto reference = compile_with_tcc(source);
  reference->function<Function>("f")(x.data(), expected.data(), n);
  for (const int level : {0, 1, 2, 3}) {
    ClangOptions options = optimised(level);
    options.contract = false;
    const auto strict = compile_with_clang(source, Language::c, options);
    strict->function<Function>("f")(x.data(), actual.data(), n);
    CHECK(actual == expected);
    const auto contracted = compile_with_clang(source, Language::c, optimised(level));
    contracted->function<Function>("f")(x.data(), actual.data(), n);
    for (std::size_t i = 0; i <= n; ++i) CHECK(actual[i] == Approx(expected[i]).epsilon(1e-12));
  }
}

TEST_CASE("deeply nested expressions compile", "[toolchain]") {
  std::string expression = "x";
  for (int i = 0; i < 2000; ++i) expression = "(" + expression + " + 1)";
  const std::string source = "int f(int x) { return " + expression + "; }";
  CHECK(compile_with_tcc(source)->function<int(int)>("f")(1) == 2001);
  for (const int level : {0, 3}) {
    CHECK(compile_with_clang(source, Language::c, optimised(level))->function<int(int)>("f")(1) == 2001);
  }
}

TEST_CASE("tcc reports errors with the line", "[toolchain]") {
  CHECK_THAT(internal_error([] { compile_with_tcc("int f(int x) {\n  return x + ;\n}\n"); }),
             Contains("<string>:3: error: identifier expected") && Contains("2 |   return x + ;"));
  CHECK_THAT(internal_error([] { compile_with_tcc("double f(double x) { return g(x); }"); }),
             Contains("implicit declaration of function 'g'"));
  CHECK_THAT(
      internal_error([] { compile_with_tcc("double g(double); double f(double x) { return g(x); }"); }),
      Contains("undefined symbol 'g'"));
  CHECK_THAT(internal_error([] { compile_with_tcc("int f(int* p) { double* q = p; return *q > 0; }"); }),
             Contains("incompatible pointer type"));
  const auto code = compile_with_tcc("int f(void) { return 1; }");  // a failure leaves no trace
  CHECK(code->function<int()>("f")() == 1);
}

TEST_CASE("clang reports errors with the line", "[toolchain]") {
  const auto compile = [](const std::string& source) {
    ClangOptions options;
    options.file_name = "kernel_7.c";
    compile_with_clang(source, Language::c, options);
  };
  CHECK_THAT(internal_error([&] { compile("int f(int x) {\n  return x + y;\n}\n"); }),
             Contains("kernel_7.c:2:14: error:") && Contains("return x + y;"));
  CHECK_THAT(internal_error([&] { compile("double f(double x) { return g(x); }"); }), Contains("'g'"));
  CHECK_THAT(internal_error([&] { compile("double g(double); double f(double x) { return g(x); }"); }),
             Contains("Symbols not found: [ g ]"));
  CHECK_THAT(internal_error([&] { compile("int f(int* p) { double* q = p; return *q > 0; }"); }),
             Contains("incompatible pointer type"));
  CHECK_THAT(internal_error([] { compile_with_clang("int g(); int x = g();", Language::cpp); }),
             Contains("when it is loaded"));
  CHECK_THROWS_WITH(compile_with_clang("", Language::c, optimised(4)), Contains("from 0 to 3, got 4"));
  CHECK(compile_with_clang("", Language::c) != nullptr);
}

TEST_CASE("clang compiles C++ and finds process symbols", "[toolchain]") {
  const auto code = compile_with_clang(
      "extern \"C\" double cos(double);\n"
      "template <class T> struct Dual { T v, d; };\n"
      "template <class T> Dual<T> operator*(Dual<T> a, Dual<T> b) { return {a.v * b.v, a.v * b.d + a.d * "
      "b.v}; }\n"
      "extern \"C\" double derivative(double x) { auto y = Dual<double>{x, 1} * Dual<double>{x, 1};\n"
      "  return [&] { return y.d; }() + 0 * cos(x); }\n",
      Language::cpp);
  CHECK(code->function<double(double)>("derivative")(3) == 6);
  CHECK_THAT(clang_version(), Catch::Matchers::StartsWith("19."));
}

TEST_CASE("clang contracts as told", "[toolchain]") {
  const std::string source =
      "double f(double a, double b, double c) { return a * b - c; }\n"
      "float g(float a, float b, float c) { float p = a * b; return p - c; }\n";
  ClangOptions strict;
  strict.contract = false;
  const double a = 1 + 0x1p-30, product = a * a, exact_tail = std::fma(a, a, -product);
  REQUIRE(exact_tail != 0);
  const auto separate = compile_with_clang(source, Language::c, strict);
  CHECK(separate->function<double(double, double, double)>("f")(a, a, product) == 0);
  const auto fused = compile_with_clang(source, Language::c);
  const double tail = fused->function<double(double, double, double)>("f")(a, a, product);
  CHECK((tail == exact_tail || tail == 0));  // a machine without fused multiply-add cannot fuse
}

TEST_CASE("clang writes relocatable objects", "[toolchain]") {
  for (const bool pic : {false, true}) {
    ClangOptions options;
    options.pic = pic;
    options.target_cpu = "x86-64";
    const std::vector<char> object = object_with_clang(
        "double exp(double); double twice_exp(double x) { return 2 * exp(x); }", Language::c, options);
    REQUIRE(object.size() > 64);
    CHECK(std::string(object.begin(), object.begin() + 4) ==
          "\x7f"
          "ELF");
    if (!find_program("c++")) continue;
    const TemporaryDirectory directory;
    write_file(directory.path() / "part.o", std::string(object.begin(), object.end()));
    write_file(
        directory.path() / "main.cpp",
        "extern \"C\" double twice_exp(double);\nint main() { return int(twice_exp(0)) == 2 ? 0 : 1; }\n");
    ProcessOptions here;
    here.working_directory = directory.path();
    const ProcessResult link = run_process({"c++", "main.cpp", "part.o", "-o", "program"}, {}, here);
    CAPTURE(link.err);
    REQUIRE(link.status == 0);
    CHECK(run_process({(directory.path() / "program").string()}).status == 0);
  }
}

TEST_CASE("parts of a program reach each other wherever the system has room", "[toolchain]") {
  // Room for one of the parts; the next that is free lies 16 GB away.
  constexpr std::size_t room = std::size_t{4} << 20, far = std::size_t{16} << 30;
  const auto reserve = [](std::size_t bytes) {
    return static_cast<char*>(
        ::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  };
  char* const reserved = reserve(far + room);
  REQUIRE(reserved != MAP_FAILED);
  ::munmap(reserved + far, room);
  const std::string hidden = "__attribute__((visibility(\"hidden\"))) ", data = "[3 << 20] = {1};\n";
  const std::vector<SourcePart> sources{
      {"static char first" + data + hidden + "int part(int);\n" +
       "int start(int x) { first[x] = 2; return part(x) + first[x]; }\n"},
      {"static char second" + data + hidden + "int part(int x) { second[x] += 3; return second[x] + x; }\n"}};
  const auto code = load_parts(compile_parts(sources, Language::c));
  CHECK(reinterpret_cast<int (*)(int)>(code->symbol("start"))(5) == 10);
  ::munmap(reserved, far);
}

TEST_CASE("two threads compile at once", "[toolchain]") {
  std::vector<int> failures(2, 0);
  const auto work = [&](std::size_t thread) {
    for (int i = 0; i < 20; ++i) {
      const int value = 1000 * static_cast<int>(thread) + i;
      const std::string source = "int f(int x) { return x + " + std::to_string(value) + "; }";
      const auto clang = compile_with_clang(source, Language::c, optimised(1));
      if (clang->function<int(int)>("f")(1) != value + 1) ++failures[thread];
      for (int k = 0; k < 20; ++k) {
        const auto tcc = compile_with_tcc(source);
        if (tcc->function<int(int)>("f")(2) != value + 2) ++failures[thread];
      }
    }
  };
  std::thread first(work, 0), second(work, 1);
  first.join();
  second.join();
  CHECK(failures == std::vector<int>{0, 0});
}

#ifndef __SANITIZE_ADDRESS__  // whose quarantine keeps freed memory
TEST_CASE("Clang's own code gives its memory back, and works again", "[toolchain]") {
  const std::string source = fifty_lines();
  compile_with_clang(source, Language::c, optimised(1));
  const double before = resident_megabytes();
  release_clang();
  CHECK(resident_megabytes() < before - 20);
  const auto code = compile_with_clang("double f(double x) { return x + 1; }", Language::c, optimised(1));
  CHECK(code->function<double(double)>("f")(2) == 3);
}

TEST_CASE("memory stays flat over many compilations", "[toolchain]") {
  const std::string source = fifty_lines();
  const auto growth = [](int count, const std::function<void()>& compile) {
    for (int i = 0; i < count / 10; ++i) compile();  // allocators and lazily built tables reach their size
    const double before = resident_megabytes();
    for (int i = 0; i < count; ++i) compile();
    return resident_megabytes() - before;
  };
  // A code page kept per compilation would be 20 MB for tcc; a Clang AST kept, hundreds.
  CHECK(growth(5000, [&] { compile_with_tcc(source); }) < 2);
  CHECK(growth(200, [&] { compile_with_clang(source, Language::c, optimised(1)); }) < 8);
  CHECK(growth(50, [&] {
          ClangOptions options = optimised(0);
          options.debug_info = true;
          compile_with_clang(source, Language::c, options);
        }) < 8);
}
#endif

TEST_CASE("system compiler: C++, choice of compiler, errors", "[toolchain]") {
  const HostSymbol symbols[] = {{"host_square", reinterpret_cast<void*>(&host_square)}};
  const auto code = compile_with_system_compiler(
      "extern \"C\" double host_square(double);\n"
      "template <class T> T twice(T x) { return x + x; }\n"
      "extern \"C\" double f(double x) { return twice(host_square(x)); }\n",
      Language::cpp, optimised(2), symbols);
  CHECK(code->function<double(double)>("f")(3) == 18);
  CHECK_THAT(internal_error([] { compile_with_system_compiler("int f( {", Language::c); }),
             Contains("generated.c:1"));
  CHECK_THAT(internal_error([] {
               compile_with_system_compiler("int g(void); int f(void) { return g(); }", Language::c);
             }),
             Contains("undefined reference to `g'"));
  const ScopedEnvironment compiler("CXX", "no-such-compiler -v");
  CHECK_THROWS_WITH(compile_with_system_compiler("", Language::c), Contains("'no-such-compiler'"));
}

TEST_CASE("NVRTC compiles a kernel to PTX", "[toolchain]") {
  if (!nvrtc_available()) {
    WARN("skipped: NVRTC is not installed");
    return;
  }
  const std::string ptx = compile_with_nvrtc(
      "extern \"C\" __global__ void scale(double* x, double a, int n) {\n"
      "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
      "  if (i < n) x[i] = a * exp(x[i]);\n"
      "}\n");
  CHECK_THAT(ptx, Contains(".visible .entry scale(") && Contains(".target sm_80"));
  CHECK_THAT(compile_with_nvrtc("extern \"C\" __global__ void k() {}", "compute_90"), Contains("sm_90"));
  CHECK_THAT(internal_error([] { compile_with_nvrtc("__global__ void k() { undeclared(); }"); }),
             Contains("generated.cu(1): error:") && Contains("undeclared"));
}

TEST_CASE("a missing CUDA toolkit is one clear error", "[toolchain]") {
  const ScopedEnvironment toolkit("LANTERN_CUDA_PATH", "/nonexistent");
  CHECK_FALSE(nvrtc_available());
  CHECK_FALSE(find_nvcc());
  CHECK_THROWS_AS(compile_with_nvrtc(""), lantern::Error);
  CHECK_THROWS_WITH(compile_with_nvrtc(""), Contains("libnvrtc") && Contains("LANTERN_CUDA_PATH"));
  CHECK_THROWS_AS(object_with_nvcc(""), lantern::Error);
  CHECK_THROWS_WITH(object_with_nvcc(""), Contains("nvcc") && Contains("LANTERN_CUDA_PATH"));
}

TEST_CASE("nvcc compiles to an object", "[toolchain]") {
  if (!find_nvcc()) {
    WARN("skipped: nvcc is not installed");
    return;
  }
  const std::vector<char> object = object_with_nvcc(
      "__global__ void k(float* x) { x[threadIdx.x] += 1; }\nvoid launch(float* x) { k<<<1, 32>>>(x); }\n");
  REQUIRE(object.size() > 64);
  CHECK(std::string(object.begin(), object.begin() + 4) ==
        "\x7f"
        "ELF");
  CHECK_THAT(internal_error([] { object_with_nvcc("__global__ void k() { undeclared(); }"); }),
             Contains("undeclared"));
}

TEST_CASE("processes get their arguments untouched", "[toolchain]") {
  const ProcessResult echo =
      run_process({"printf", "%s|", "two words", "a\"b'c", "$HOME `id` \\ *", "", "line\nbreak"});
  CHECK(echo.status == 0);
  CHECK(echo.out == "two words|a\"b'c|$HOME `id` \\ *||line\nbreak|");
  CHECK(echo.err.empty());
}

TEST_CASE("processes: streams, status, directory", "[toolchain]") {
  const std::string megabytes(3'000'000, 'x');  // far beyond what a pipe holds
  const ProcessResult both = run_process({"sh", "-c", "tee /dev/stderr; exit 3"}, megabytes);
  CHECK(both.status == 3);
  CHECK(both.out == megabytes);
  CHECK(both.err == megabytes);
  CHECK(run_process({"true"}, megabytes).status == 0);  // a child that never reads is no obstacle
  CHECK(run_process({"cat"}).out.empty());
  CHECK(run_process({"sh", "-c", "kill -9 $$"}).status == 128 + 9);
  ProcessOptions options;
  options.working_directory = "/usr";
  CHECK(run_process({"pwd"}, {}, options).out == "/usr\n");
  CHECK_THROWS_WITH(run_process({"no-such-program"}), Contains("'no-such-program'"));
  CHECK(find_program("sh"));
  CHECK_FALSE(find_program("no-such-program"));
  CHECK_FALSE(find_program("/usr"));
}

TEST_CASE("temporary directories are private and short-lived", "[toolchain]") {
  std::filesystem::path path;
  {
    TemporaryDirectory directory;
    path = directory.path();
    struct stat status {};
    REQUIRE(::stat(path.c_str(), &status) == 0);
    CHECK((status.st_mode & 0777) == 0700);
    std::filesystem::create_directory(path / "inner");
    write_file(path / "inner" / "file", std::string("a\0b", 3));
    CHECK(read_file(path / "inner" / "file") == std::string("a\0b", 3));
    const TemporaryDirectory moved = std::move(directory);
    CHECK(moved.path() == path);
  }
  CHECK_FALSE(std::filesystem::exists(path));
  CHECK_THROWS_WITH(read_file(path / "file"), Contains(path.string()));
}
