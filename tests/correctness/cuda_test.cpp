// Generated CUDA compiles with nvcc and NVRTC and, emulated on the CPU, computes what the program says; the
// emulator runs shared memory and barriers, and reports what a GPU would leave undefined.
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "lantern/codegen/cuda/print_cuda.hpp"
#include "lantern/codegen/toolchain/emulate.hpp"
#include "lantern/codegen/toolchain/nvcc.hpp"
#include "lantern/codegen/toolchain/nvrtc.hpp"
#include "lantern/ir/error.hpp"
#include "lantern/ir/parse.hpp"
#include "lantern/ir/verify.hpp"
#include "lantern/runtime/cuda/rewrite_launches.hpp"

using namespace lantern;
using namespace lantern::codegen;
using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;

namespace {

const char* const polynomial = R"(entry @poly

fun @poly(%x: f64) -> f64 {
  %two = constant 2 : f64
  %a = mul %two, %x : f64
  %b = mul %x, %x : f64
  %c = mul %b, %x : f64
  %r = add %a, %c : f64
  yield %r
}
)";

/// A call, a branch, two results, a bool parameter.
const char* const branching = R"(entry @both

fun @square(%x: f64) -> f64 {
  %r = mul %x, %x : f64
  yield %r
}

fun @both(%x: f64, %up: bool) -> f64, f64 {
  %s = call @square(%x) : f64
  %zero = constant 0 : f64
  %c = lt %zero, %x : bool
  %d = land %c, %up : bool
  %r = branch %d : f64 {
    %e = exp %x : f64
    yield %e
  } else {
    %n = neg %s : f64
    yield %n
  }
  %t = add %r, %s : f64
  yield %r, %t
}
)";

/// The gradient of the loop of the design: t = x; while (t > 1) t = t * x0, with a tape of t.
const char* const taped = R"(entry @df

fun @df(%x: f64, %x0: f64) -> f64, f64 {
  %zero = constant 0 : i64
  %t.end, %n.end = loop %x, %zero : f64, i64 while (%t: f64, %n: i64) {
    %one = constant 1 : f64
    %c = lt %one, %t : bool
    yield %c
  } do (%t: f64, %n: i64) {
    push[0] %t
    %t.next = mul %t, %x0 : f64
    %step = constant 1 : i64
    %n.next = add %n, %step : i64
    yield %t.next, %n.next
  }
  %one = constant 1 : f64
  %none = constant 0 : f64
  %d.end, %d0.end, %m.end = loop %one, %none, %n.end : f64, f64, i64 while (%d: f64, %d0: f64, %m: i64) {
    %last = constant 0 : i64
    %c = lt %last, %m : bool
    yield %c
  } do (%d: f64, %d0: f64, %m: i64) {
    %t = pop[0] : f64
    %p = mul %t, %d : f64
    %d0.next = add %d0, %p : f64
    %d.next = mul %x0, %d : f64
    %step = constant 1 : i64
    %m.next = sub %m, %step : i64
    yield %d.next, %d0.next, %m.next
  }
  yield %d.end, %d0.end
}
)";

/// Recursion; all values of one kind of 64 and one of 32 bits; integer division, which may fail.
const char* const recursive = R"(entry @power

fun @power(%x: f32, %n: i64, %d: i64) -> f32 {
  %zero = constant 0 : i64
  %c = eq %n, %zero : bool
  %r = branch %c : f32 {
    %one = constant 1 : f32
    yield %one
  } else {
    %step = div %d, %d : i64
    %m = sub %n, %step : i64
    %p = call @power(%x, %m, %d) : f32
    %q = mul %x, %p : f32
    yield %q
  }
  yield %r
}
)";

/// Different kinds on one tape and on a second, a cell, a check, functions of several results.
const char* const mixed = R"(entry @mixed

fun @parts(%x: f64, %d: ref f64) -> f32, bool, i32 {
  ref_add %d, %x
  %f = cast[f32] %x : f32
  %zero = constant 0 : f64
  %b = lt %zero, %x : bool
  %i = cast[i32] %x : i32
  yield %f, %b, %i
}

fun @mixed(%x: f64) -> f64, bool {
  %d = ref_new %x : ref f64
  %f, %b, %i = call @parts(%x, %d) : f32, bool, i32
  %limit = constant 100 : f64
  %fine = lt %x, %limit : bool
  check %fine, "expected a number below 100"
  push[0] %f, %b
  push[1] %i
  %i2 = pop[1] : i32
  %f2, %b2 = pop[0] : f32, bool
  %v = ref_get %d : f64
  %fd = cast[f64] %f2 : f64
  %id = cast[f64] %i2 : f64
  %one = constant 1 : f64
  %g = polygamma %one, %x : f64
  %s = add %v, %fd : f64
  %t = add %s, %id : f64
  %u = add %t, %g : f64
  yield %u, %b2
}
)";

std::string cuda_of(std::string_view ir_text) {
  const auto module = ir::parse(ir_text);
  ir::verify(*module);
  return print_cuda(*module);
}

std::string refusal(std::string_view ir_text) {
  try {
    return print_cuda(*ir::parse(ir_text));
  } catch (const Error& e) {
    return e.what();
  }
}

std::string emulator_report(const LoadedCode& code) {
  return code.function<const char*()>("lantern_emulator_report")();
}

std::int64_t allocations(const LoadedCode& code) {
  return code.function<std::int64_t()>("lantern_emulator_allocations")();
}

std::vector<double> numbers(std::size_t n) {
  std::vector<double> x(n);
  for (std::size_t i = 0; i < n; ++i) x[i] = 0.01 * static_cast<double>(i) - 1.5;
  return x;
}

const std::vector<std::pair<const char*, const char*>> programs = {
    {"poly", polynomial}, {"both", branching}, {"df", taped}, {"power", recursive}, {"mixed", mixed}};

/// Host functions of small hand-written kernels; `n` elements in and out.
using Map = int(const double* x, double* y, std::int64_t n);

}  // namespace

// ---- the printer

TEST_CASE("a polynomial as a stand-alone .cu", "[cuda]") {
  CHECK(cuda_of(polynomial) ==
        R"cu(/* poly over arrays, generated by Lantern; complete in itself: nvcc and NVRTC compile it. */
#ifdef __CUDACC_RTC__
typedef int int32_t;
typedef long long int64_t;
#else
#include <cuda_runtime.h>
#include <stdint.h>
#endif

namespace poly_code {

static __device__ double poly(double x) {
  return 2.0 * x + x * x * x;
}

}  // namespace poly_code

extern "C" __global__ void poly_kernel(const double* x, double* y, int64_t n) {
  const int64_t threads = (int64_t)gridDim.x * blockDim.x;
  const int64_t thread = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  for (int64_t i = thread; i < n; i += threads) {
    y[i] = poly_code::poly(x[i]);
  }
}

#ifndef __CUDACC_RTC__
namespace poly_code {

/* Each does nothing if something has failed before. */
static void* lt_allocate(int64_t bytes, cudaError_t* status) {
  void* memory = 0;
  if (*status == cudaSuccess) *status = cudaMalloc(&memory, (size_t)bytes);
  return memory;
}

static void* lt_copy_in(const void* from, int64_t bytes, cudaError_t* status) {
  void* memory = lt_allocate(bytes, status);
  if (*status == cudaSuccess) *status = cudaMemcpy(memory, from, (size_t)bytes, cudaMemcpyHostToDevice);
  return memory;
}

static void lt_copy_out(void* to, const void* memory, int64_t bytes, cudaError_t* status) {
  if (*status == cudaSuccess) *status = cudaMemcpy(to, memory, (size_t)bytes, cudaMemcpyDeviceToHost);
}

static cudaError_t lt_finish() {
  const cudaError_t status = cudaGetLastError();
  return status == cudaSuccess ? cudaDeviceSynchronize() : status;
}

}  // namespace poly_code

extern "C" int poly_map(const double* x, double* y, int64_t n) {
  if (n == 0) return 0;
  if (n < 0) return cudaErrorInvalidValue;
  cudaError_t status = cudaSuccess;
  double* device_x = (double*)poly_code::lt_copy_in(x, n * (int64_t)sizeof(double), &status);
  double* device_y = (double*)poly_code::lt_allocate(n * (int64_t)sizeof(double), &status);
  const int64_t blocks = (n + 255) / 256 < 65536 ? (n + 255) / 256 : 65536;
  if (status == cudaSuccess) {
    poly_kernel<<<(unsigned)blocks, 256>>>(device_x, device_y, n);
    status = poly_code::lt_finish();
  }
  poly_code::lt_copy_out(y, device_y, n * (int64_t)sizeof(double), &status);
  cudaFree(device_x);
  cudaFree(device_y);
  return (int)status;
}
#endif
)cu");
}

TEST_CASE("NVRTC compiles every kernel to PTX", "[cuda]") {
  if (!nvrtc_available()) {
    WARN("skipped: NVRTC is not installed");
    return;
  }
  for (const auto& [name, text] : programs) {
    INFO(name);
    CHECK_THAT(compile_with_nvrtc(cuda_of(text)), Contains(".entry " + std::string(name) + "_kernel"));
  }
}

TEST_CASE("nvcc compiles every source to an object", "[cuda]") {
  if (!find_nvcc()) {
    WARN("skipped: nvcc is not installed");
    return;
  }
  // All in one: the sources do not get into each other's way. Warnings of the host compiler count.
  std::string all;
  for (const auto& [name, text] : programs) all += cuda_of(text);
  NvccOptions options;
  options.more_arguments = {"-Werror", "all-warnings", "-Xcompiler", "-Wall,-Wextra,-Werror"};
  CHECK(object_with_nvcc(all, options).size() > 1000);
}

TEST_CASE("mapped polynomial: nothing, one element, blocks that are not full, more than one block",
          "[cuda]") {
  const auto code = compile_emulated(cuda_of(polynomial));
  const auto map = code->function<Map>("poly_map");
  for (const std::size_t n : {0, 1, 31, 256, 257, 1000}) {
    const std::vector<double> x = numbers(n);
    std::vector<double> y(n + 1, -7), expected(n + 1, -7);
    for (std::size_t i = 0; i < n; ++i) expected[i] = 2 * x[i] + x[i] * x[i] * x[i];
    CHECK(map(x.data(), y.data(), static_cast<std::int64_t>(n)) == 0);
    CHECK(y == expected);
  }
  CHECK(map(nullptr, nullptr, -1) == 1);
  CHECK(allocations(*code) == 0);
  CHECK(emulator_report(*code).empty());
}

TEST_CASE("mapped call and branch with two results", "[cuda]") {
  const auto code = compile_emulated(cuda_of(branching));
  const auto map =
      code->function<int(const double*, const bool*, double*, double*, std::int64_t)>("both_map");
  const std::vector<double> x = numbers(300);
  std::unique_ptr<bool[]> up(new bool[300]);
  for (std::size_t i = 0; i < 300; ++i) up[i] = i % 2 == 0;
  std::vector<double> r(300), t(300);
  CHECK(map(x.data(), up.get(), r.data(), t.data(), 300) == 0);
  for (std::size_t i = 0; i < 300; ++i) {
    const double expected = x[i] > 0 && up[i] ? std::exp(x[i]) : -(x[i] * x[i]);
    CHECK(r[i] == expected);
    CHECK(t[i] == expected + x[i] * x[i]);
  }
}

TEST_CASE("a loop with a tape, whose memory grows until it suffices", "[cuda]") {
  const auto code = compile_emulated(cuda_of(taped));
  const auto map =
      code->function<int(const double*, const double*, double*, double*, std::int64_t)>("df_map");
  // From no iteration at all to more than the first attempt holds.
  const std::vector<double> x = {0.5, 1.5, 4, 1e6, 3e10, 2}, x0 = {0.3, 0.5, 0.9, 0.99, 0.997, 0.9995};
  std::vector<double> dx(6), dx0(6);
  CHECK(map(x.data(), x0.data(), dx.data(), dx0.data(), 6) == 0);
  double longest = 0;
  for (std::size_t i = 0; i < 6; ++i) {
    std::vector<double> tape;
    for (double t = x[i]; t > 1; t *= x0[i]) tape.push_back(t);
    double d = 1, d0 = 0;
    for (std::size_t j = tape.size(); j-- > 0; d *= x0[i]) d0 += tape[j] * d;
    CHECK(dx[i] == d);
    CHECK(dx0[i] == d0);
    longest = std::max(longest, static_cast<double>(tape.size()));
  }
  CHECK(longest > 1024);
  CHECK(allocations(*code) == 0);
}

TEST_CASE("a tape that overflows for good is an error of its own", "[cuda]") {
  const auto code = compile_emulated("#define LT_TAPE_VALUES 10\n" + cuda_of(taped));
  const auto map =
      code->function<int(const double*, const double*, double*, double*, std::int64_t)>("df_map");
  const auto message = code->function<const char*()>("df_message");
  std::vector<double> x(500, 100), x0(500, 0.5), dx(500, -7), dx0(500, -7);
  CHECK(map(x.data(), x0.data(), dx.data(), dx0.data(), 500) == 0);
  CHECK(std::string(message()).empty());
  x0[321] = 0.9;
  const std::vector<double> before = dx;
  CHECK(map(x.data(), x0.data(), dx.data(), dx0.data(), 500) == cuda_tape_overflow);
  CHECK(std::string(message()) == "a tape is full");
  CHECK(dx == before);
  CHECK(allocations(*code) == 0);
  CHECK(emulator_report(*code).empty());
}

TEST_CASE("a recursive function; integer division by zero is reported", "[cuda]") {
  const auto code = compile_emulated(cuda_of(recursive));
  const auto map =
      code->function<int(const float*, const std::int64_t*, const std::int64_t*, float*, std::int64_t)>(
          "power_map");
  const std::vector<float> x = {1.5f, 2.0f, -1.0f};
  const std::vector<std::int64_t> n = {3, 10, 0};
  std::vector<std::int64_t> d = {1, -5, 0};
  std::vector<float> y(3);
  CHECK(map(x.data(), n.data(), d.data(), y.data(), 3) == 0);
  CHECK(y == std::vector<float>{3.375f, 1024.0f, 1.0f});
  d[1] = 0;
  CHECK(map(x.data(), n.data(), d.data(), y.data(), 3) == cuda_check_failed);
  CHECK(std::string(code->function<const char*()>("power_message")()) == "integer division by zero");
}

TEST_CASE("tapes of several kinds, a cell, a check", "[cuda]") {
  const auto code = compile_emulated(cuda_of(mixed));
  const auto map = code->function<int(const double*, double*, bool*, std::int64_t)>("mixed_map");
  std::vector<double> x = {0.5, 1, 7.25}, y(3);
  bool positive[3] = {};
  CHECK(map(x.data(), y.data(), positive, 3) == 0);
  const double trigamma[] = {4.934802200544679, 1.6449340668482264, 0.1478792332}, whole[] = {0, 1, 7};
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(y[i] == Approx(2 * x[i] + whole[i] + trigamma[i]).epsilon(1e-9));
    CHECK(positive[i]);
  }
  x[2] = 100;
  CHECK(map(x.data(), y.data(), positive, 3) == cuda_check_failed);
  CHECK(std::string(code->function<const char*()>("mixed_message")()) == "expected a number below 100");
}

TEST_CASE("names of the user that CUDA or the kernel use as well", "[cuda]") {
  const std::string text = R"(entry @norm
fun @rsqrt(%i: f64) -> f64 {
  %r = mul %i, %i : f64
  yield %r
}
fun @norm(%n: f64, %i: f64, %tape: f64, %y: f64, %threads: f64) -> f64 {
  %a = call @rsqrt(%n) : f64
  %b = add %a, %i : f64
  %c = add %b, %tape : f64
  %d = add %c, %y : f64
  %e = add %d, %threads : f64
  yield %e
}
)";
  const auto code = compile_emulated(cuda_of(text));
  const double x[] = {3, 4};
  double y[2] = {};
  using Five =
      int(const double*, const double*, const double*, const double*, const double*, double*, std::int64_t);
  CHECK(code->function<Five>("norm_map")(x, x, x, x, x, y, 2) == 0);
  CHECK(y[0] == 21);
  CHECK(y[1] == 32);
  if (nvrtc_available()) CHECK_NOTHROW(compile_with_nvrtc(cuda_of(text)));
}

TEST_CASE("what cannot be printed is refused with a remedy", "[cuda]") {
  CHECK(refusal("entry @f\nfun @f(%x: f64) {\nyield\n}") ==
        "cuda: expected a function that returns what is to be computed, got one of numbers without a result");
  CHECK(refusal("entry @f\nfun @f(%x: f64) -> f64 {\n%v = lane_splat[4] %x : f64x4\n%r = lane_sum %v : "
                "f64\nyield %r\n}") ==
        "cuda: expected loops that run iteration by iteration, got vectors (f64x4) in 'f'; compile the function for "
        "Target::cuda, Target::c or "
        "at opt 1, where no vectors are made");
  CHECK(refusal(
            "entry @f\nfun @f(%x: f64) -> f64 {\n%k = fun (%y: f64) {\nyield\n}\njump %k, %x\nyield %x\n}") ==
        "cuda: expected a function in direct style, got a continuation in 'f'; run the pass 'unwind' first, "
        "or print "
        "the function as C++");
}

// ---- the emulator

TEST_CASE("launches become calls, text that only looks like one does not", "[cuda][emulator]") {
  CHECK(rewrite_launches("k<<<1, 2>>>();") == "lantern_emulator::configure(1, 2)(k);");
  CHECK(rewrite_launches("  a::k<int, 3> <<<g(1, 2), b, 8 * (n + 1)>>> (x, y);") ==
        "  lantern_emulator::configure(g(1, 2), b, 8 * (n + 1))(a::k<int, 3> , x, y);");
  CHECK(rewrite_launches("// k<<<1>>>()\n\"<<<\" '\"' k<<<1,\n1>>>(z)") ==
        "// k<<<1>>>()\n\"<<<\" '\"' lantern_emulator::configure(1,\n1)(k, z)");
  CHECK(rewrite_launches("extern __shared__ float s[];") ==
        "float* const s = (float*)lantern_emulator::dynamic_shared();");
  CHECK_THROWS_WITH(rewrite_launches("\n\nk<<<1, 2>>;"), "line 3: expected '>>>' in a kernel launch");
  CHECK_THROWS_WITH(rewrite_launches("k<<<1, 2>>>;"), "line 1: expected '(' behind '>>>' in a kernel launch");
}

namespace {

/// A tree reduction: each block sums 128 elements in shared memory; static or dynamic.
std::string reduction(bool dynamic) {
  const std::string shared = dynamic ? "extern __shared__ double part[];" : "__shared__ double part[128];";
  return R"(#include <cuda_runtime.h>
#include <stdint.h>
__global__ void reduce(const double* x, double* total, int64_t n) {
  )" + shared +
         R"(
  const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  part[threadIdx.x] = i < n ? x[i] : 0.0;
  __syncthreads();
  for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) atomicAdd(total, part[0]);
}
extern "C" int reduce_map(const double* x, double* y, int64_t n) {
  double *in = nullptr, *out = nullptr;
  cudaMalloc(&in, n * sizeof(double));
  cudaMalloc(&out, sizeof(double));
  cudaMemcpy(in, x, n * sizeof(double), cudaMemcpyHostToDevice);
  cudaMemset(out, 0, sizeof(double));
  reduce<<<(n + 127) / 128, 128, 128 * sizeof(double)>>>(in, out, n);
  int code = cudaGetLastError();
  if (!code) code = cudaMemcpy(y, out, sizeof(double), cudaMemcpyDeviceToHost);
  cudaFree(in);
  cudaFree(out);
  return code;
}
)";
}

/// A kernel over `x` with one block of `threads`, from its body.
std::string kernel(const std::string& body, const std::string& launch = "<<<2, 64>>>") {
  return R"(#include <cuda_runtime.h>
#include <stdint.h>
extern "C" __global__ void work(double* x, int64_t n) {
  const int t = threadIdx.x;
  __shared__ double s[64];
  s[t] = t;
)" + body +
         R"(
}
extern "C" int work_map(const double* x, double* y, int64_t n) {
  double* p = nullptr;
  cudaMalloc(&p, n * sizeof(double));
  cudaMemcpy(p, x, n * sizeof(double), cudaMemcpyHostToDevice);
  work)" +
         launch + R"((p, n);
  int code = cudaDeviceSynchronize();
  cudaGetLastError();
  cudaMemcpy(y, p, n * sizeof(double), cudaMemcpyDeviceToHost);
  cudaFree(p);
  return code;
}
)";
}

struct Outcome {
  int code;
  std::string report;
  std::vector<double> y;
};

/// The outcome, which is the same again where the device's memory is closed to the host.
Outcome run(const std::string& text) {
  const auto code = compile_emulated(text);
  const std::vector<double> x = numbers(64);
  const auto once = [&] {
    Outcome o{0, "", std::vector<double>(64)};
    o.code = code->function<Map>("work_map")(x.data(), o.y.data(), 64);
    o.report = emulator_report(*code);
    return o;
  };
  const Outcome open = once();
  code->function<void(int)>("lantern_emulator_protect")(1);
  const Outcome closed = once();
  CHECK(closed.code == open.code);
  CHECK(closed.report == open.report);
  CHECK(std::memcmp(closed.y.data(), open.y.data(), sizeof(double) * open.y.size()) == 0);
  return open;
}

}  // namespace

TEST_CASE("a reduction with shared memory and barriers", "[cuda][emulator]") {
  for (const bool dynamic : {false, true}) {
    const std::string text = reduction(dynamic);
    const auto code = compile_emulated(text);
    for (const std::size_t n : {1, 128, 1000}) {
      std::vector<double> x(n);
      std::iota(x.begin(), x.end(), 1.0);
      double y = 0;
      CHECK(code->function<Map>("reduce_map")(x.data(), &y, static_cast<std::int64_t>(n)) == 0);
      CHECK(y == std::accumulate(x.begin(), x.end(), 0.0));
    }
    CHECK(allocations(*code) == 0);
    if (find_nvcc() && dynamic) CHECK_NOTHROW(object_with_nvcc(text));
  }
}

TEST_CASE("threads exchange values across a barrier; blocks share nothing", "[cuda][emulator]") {
  const Outcome o = run(kernel("  __syncthreads();\n  x[t] = s[63 - t];\n  __syncthreads();\n  s[t] = -1;"));
  CHECK(o.code == 0);
  CHECK(o.report.empty());
  for (std::size_t i = 0; i < 64; ++i) CHECK(o.y[i] == static_cast<double>(63 - i));
}

TEST_CASE("a barrier that some threads never reach", "[cuda][emulator]") {
  const Outcome o = run(kernel("  if (t >= 10) return;\n  __syncthreads();"));
  CHECK(o.code == 719);
  CHECK(o.report ==
        "divergent barrier: 10 of 64 threads of block (0,0,0) wait at __syncthreads in line 8, among them "
        "(0,0,0), "
        "and the others have returned");
}

TEST_CASE("threads that wait at different barriers", "[cuda][emulator]") {
  const Outcome o = run(kernel("  if (t == 7)\n    __syncthreads();\n  else\n    __syncthreads();"));
  CHECK(o.code == 719);
  CHECK(o.report ==
        "divergent barrier: in block (0,0,0), thread (0,0,0) waits at __syncthreads in line 10 and thread "
        "(7,0,0) in "
        "line 8");
}

TEST_CASE("accesses out of range", "[cuda][emulator]") {
  const Outcome near = run(kernel("  if (blockIdx.x == 1) x[t + 1] = 0;"));
  CHECK(near.code == 700);
  CHECK(near.report == "after the launch: a write at offset 512 of a device allocation of 512 bytes");
  const Outcome below = run(kernel("  if (t == 9) x[-1] = 0;"));
  CHECK(below.report == "after the launch: a write at offset -8 of a device allocation of 512 bytes");
  const Outcome far = run(kernel("  if (t == 3) x[100000] += 1;"));
  CHECK(far.code == 700);
  CHECK(far.report ==
        "thread (3,0,0) of block (0,0,0) accessed offset 800000 of a device allocation of 512 bytes");
  const Outcome wild = run(kernel("  if (t == 5) *(volatile int*)16 = 1;"));
  CHECK(wild.code == 700);
  CHECK(wild.report == "thread (5,0,0) of block (0,0,0) accessed address 0x10, outside of all allocations");
  const Outcome shared = run(kernel("  extern __shared__ double d[];\n  d[t + 1] = 1;", "<<<1, 64, 512>>>"));
  CHECK(shared.code == 700);
  CHECK(shared.report == "block (0,0,0) wrote at offset 512 of dynamic shared memory of 512 bytes");
}

TEST_CASE("launches that no GPU accepts; memory nobody has written", "[cuda][emulator]") {
  CHECK(run(kernel("", "<<<1, 2048>>>")).report == "a launch of (1,1,1) blocks of (2048,1,1) threads");
  CHECK(run(kernel("", "<<<0, 64>>>")).code == 9);
  CHECK(run(kernel("", "<<<1, 64, 1 << 20>>>")).report == "a launch with 1048576 bytes of shared memory");
  const Outcome o = run(kernel("  __shared__ double u[64];\n  x[t] = u[t];"));
  CHECK(std::isnan(o.y[0]));
}

TEST_CASE("a grid and blocks of three dimensions", "[cuda][emulator]") {
  const Outcome o =
      run(kernel("  const int b = threadIdx.x + 2 * (threadIdx.y + 2 * threadIdx.z);\n"
                 "  const int g = blockIdx.x + 2 * (blockIdx.y + 2 * blockIdx.z);\n"
                 "  x[b + 8 * g] = 100 * g + b;",
                 "<<<dim3(2, 2, 2), dim3(2, 2, 2)>>>"));
  CHECK(o.code == 0);
  for (std::size_t i = 0; i < 64; ++i) CHECK(o.y[i] == static_cast<double>(100 * (i / 8) + i % 8));
}

TEST_CASE("a source that is compiled again has a state of its own", "[cuda]") {
  const std::string text = "static int calls = 0;\nextern \"C\" int count() { return ++calls; }\n";
  const auto first = compile_emulated(text), second = compile_emulated(text), third = compile_emulated(text);
  const auto count = [](const auto& code) { return reinterpret_cast<int (*)()>(code->symbol("count"))(); };
  CHECK(count(first) == 1);
  CHECK(count(first) == 2);
  CHECK(count(second) == 1);
  CHECK(count(third) == 1);
  CHECK(count(compile_emulated(text)) == 1);
  CHECK(count(compile_emulated(text + "\n")) == 1);
}

TEST_CASE("a source that is no C++ is refused with its own line", "[cuda][emulator]") {
  CHECK_THROWS_WITH(compile_emulated("int f() {\n  return oops;\n}\n"), Contains("generated.cu:2"));
}
