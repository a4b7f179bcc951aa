// Programs on a real GPU: each is compared with the processor's, run twice for equal bits, and timed with its tensors on
// the GPU. Prints a line for each; the exit status says whether all agree. tools/gpu_check builds and packs it.
//
// A process of its own runs the programs. One that hangs, crashes or leaves the GPU in an error costs its own line: the
// next one begins in a new process. Lines are also written to a file, as soon as they are known.
//
//   gpu_check [--small] [--seconds N] [--each N] [--results FILE] [NAME]
//
// --small: the same programs on small tensors, which are compared and not timed. NAME: those whose names begin so.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "lantern/cuda.hpp"
#include "lantern/lantern.hpp"
#include "lantern/nn.hpp"
#include "lantern/random.hpp"
#include "lantern/tensor.hpp"

using namespace lantern;
using Matrix = Rep<Tensor<float, dyn, dyn>>;
using Row = Rep<Tensor<float, dyn>>;
using Row64 = Rep<Tensor<double, dyn>>;
using Matrix64 = Rep<Tensor<double, dyn, dyn>>;
using Labels = Rep<Tensor<std::int64_t, dyn>>;
using Images = Rep<Tensor<float, dyn, dyn, dyn, dyn>>;
using Images64 = Rep<Tensor<double, dyn, dyn, dyn, dyn>>;
using Batch = Rep<Tensor<float, dyn, dyn, dyn>>;

namespace {

int failed = 0;
std::string only;       // programs whose names begin so
bool small = false;     // tensors
int first = 0;          // the program to begin with, counted from 0
int next_program = 0;

/// A size, or what it becomes where all are small: equal ones stay equal.
std::int64_t size(std::int64_t n) { return !small || n <= 24 ? n : 13 + n % 11; }

template <class T>
TensorValue<T> tensor_of(std::vector<std::int64_t> shape, double scale = 1, double shift = 0) {
  for (std::int64_t& n : shape) n = size(n);
  TensorValue<T> t(std::move(shape));
  for (std::size_t i = 0; i < t.data.size(); ++i)
    t.data[i] = static_cast<T>(shift + scale * std::sin(1.7 * static_cast<double>(i % 100003) + 0.4));
  return t;
}
TensorValue<std::int64_t> indices_of(std::int64_t n, std::int64_t below) {
  TensorValue<std::int64_t> t({size(n)});
  for (std::int64_t i = 0; i < t.shape[0]; ++i) t.data[static_cast<std::size_t>(i)] = (i * 7919 + i / 3) % size(below);
  return t;
}

/// An argument that is made when its program runs: most processes run a few.
template <class T>
struct Numbers {
  std::vector<std::int64_t> shape;
  double scale, shift;
  TensorValue<T> make() const { return tensor_of<T>(shape, scale, shift); }
};
template <class T>
Numbers<T> numbers(std::vector<std::int64_t> shape, double scale = 1, double shift = 0) {
  return {std::move(shape), scale, shift};
}
struct Places {
  std::int64_t n, below;
  TensorValue<std::int64_t> make() const { return indices_of(n, below); }
};
Places places(std::int64_t n, std::int64_t below) { return {n, below}; }
template <class T>
auto made(const T& argument) {
  if constexpr (std::is_arithmetic_v<T>) return argument;
  else return argument.make();
}

// ---- results, leaf by leaf

void leaf(std::vector<double>& to, double x) { to.push_back(x); }
template <class T>
void leaf(std::vector<double>& to, const TensorValue<T>& t) {
  for (const T& x : t.data) to.push_back(static_cast<double>(x));
}
template <class T>
void leaf(std::vector<double>& to, const std::vector<T>& v) {
  for (const T& x : v) to.push_back(static_cast<double>(x));
}
template <class... T>
void leaf(std::vector<double>& to, const std::tuple<T...>& all) {
  std::apply([&](const auto&... one) { (leaf(to, one), ...); }, all);
}
template <class T>
std::vector<double> flat(const T& one) {
  std::vector<double> to;
  leaf(to, one);
  return to;
}

/// Largest difference, relative to the largest number; NaN only where both are.
double distance(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() != b.size()) return INFINITY;
  double largest = 1e-30, worst = 0;
  for (const double x : b)
    if (std::isfinite(x)) largest = std::max(largest, std::abs(x));
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(a[i]) && std::isnan(b[i])) continue;
    if (a[i] == b[i]) continue;
    const double d = std::abs(a[i] - b[i]) / largest;
    if (!(d <= worst)) worst = d;
  }
  return worst;
}

template <class T>
void host_leaf(std::vector<double>& to, const T& one, const cuda::Stream& stream) {
  if constexpr (std::is_arithmetic_v<T>) leaf(to, static_cast<double>(one));
  else leaf(to, cuda::to_host(one, stream));
}
template <class... T>
void host_leaf(std::vector<double>& to, const std::tuple<T...>& all, const cuda::Stream& stream) {
  std::apply([&](const auto&... one) { (host_leaf(to, one, stream), ...); }, all);
}

template <class T>
auto on_gpu(const TensorValue<T>& t) {
  return cuda::to_device(t);
}
template <class T>
auto on_gpu(const std::vector<T>& v) {
  return cuda::to_device(v);
}
template <class T>
  requires std::is_arithmetic_v<T>
T on_gpu(T x) {
  return x;
}

struct Program {
  double tolerance = 1e-5;
  double bytes = 0;   ///< that must move, at least, for the share of bandwidth
  double flops = 0;
  int repeats = 20;
  bool compare = true;  ///< large ones are timed only
  std::string products = "f32";
};

double bandwidth = 0;  // GB/s of a copy, read and written

/// Before a program: whether this process runs it. The process above is told which one is on its way.
bool turn(const char* name) {
  const int number = next_program++;
  if (number < first || std::string(name).rfind(only, 0) != 0) return false;
  std::printf("\x01%d %s\n", number, name);
  std::fflush(stdout);
  return true;
}

/// After a failure that may have left the GPU in an error: the next program begins in a new process.
[[noreturn]] void leave() {
  std::fflush(stdout);
  ::_exit(3);
}

void report(bool right, const char* name, const std::string& rest) {
  failed += right ? 0 : 1;
  std::printf("%-4s %-24s %s\n", right ? "ok" : "BAD", name, rest.c_str());
  std::fflush(stdout);
}

template <class... A>
std::string text(const char* format, A... a) {
  char line[512];
  std::snprintf(line, sizeof line, format, a...);
  return line;
}

/// Runs something that is not one of the programs below.
template <class F>
void part(const char* name, F f) {
  if (!turn(name)) return;
  try {
    f();
  } catch (const std::exception& e) {
    report(false, name, e.what());
    leave();
  }
}

unsigned long long number(std::uint64_t n) { return n; }

template <class F, class... A>
void measure(const char* name, F f, Program p, const A&... args) {
  const auto start = std::chrono::steady_clock::now();
  const auto gpu = compile(f, {.target = Target::cuda, .products = p.products, .name = name});
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  double apart = 0;
  bool same = true;
  if (p.compare) {
    const auto once = flat(gpu(args...)), again = flat(gpu(args...));
    same = once.size() == again.size() && std::memcmp(once.data(), again.data(), 8 * once.size()) == 0;
    apart = distance(once, flat(compile(f, {.target = Target::cpp, .name = name})(args...)));
  }
  const cuda::Stream stream;
  const auto there = std::tuple(on_gpu(args)...);
  const auto queued = gpu.on(stream);
  const auto run = [&] { return std::apply([&](const auto&... a) { return queued(a...); }, there); };
  for (int i = 0; i < 3; ++i) run();  // the third is a graph
  stream.wait();
  const auto allocated = cuda::allocations();
  std::vector<double> times;
  for (int i = 0; i < (small ? 1 : p.repeats); ++i) {
    const auto begin = std::chrono::steady_clock::now();
    run();
    stream.wait();
    times.push_back(std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count());
  }
  if (p.compare) {  // a call that is replayed gives what the first one gave
    const auto replayed = run();
    stream.wait();
    std::vector<double> from_graph;
    host_leaf(from_graph, replayed, stream);
    const auto once = flat(gpu(args...));
    same &= from_graph.size() == once.size() && std::memcmp(from_graph.data(), once.data(), 8 * once.size()) == 0;
    run();
    stream.wait();
  }
  std::sort(times.begin(), times.end());
  const double ms = times[times.size() / 2];
  std::string rest = text("error %.1e %s ", apart, same ? "same bits" : "OTHER BITS");
  if (!small) rest += text("%9.3f ms ", ms);
  rest += text("%4llu launches %2llu graphs %2llu waits %2llu allocations compile %.2f s", number(cuda::last_call().launches),
               number(cuda::last_call().graphs), number(cuda::last_call().waits), number(cuda::allocations() - allocated), seconds);
  if (p.bytes > 0 && !small && bandwidth > 0)
    rest += text("  %.0f GB/s (%.0f %%)", p.bytes / ms / 1e6, 100 * p.bytes / ms / 1e6 / bandwidth);
  if (p.flops > 0 && !small) rest += text("  %.1f TFLOP/s", p.flops / ms / 1e9);
  report(apart <= p.tolerance && same, name, rest);
}

template <class F, class... A>
void check(const char* name, F f, Program p, const A&... args) {
  part(name, [&] { measure(name, f, p, made(args)...); });
}

/// Needed in each process, for the shares; tells of it once.
void measure_bandwidth() {
  if (small) return;
  for (std::int64_t n = 1 << 28; n >= 1 << 20; n /= 4) {
    try {
      cuda::DeviceTensor<float> a({n}), b({n});
      const cuda::Stream s;
      double best = 1e9;
      for (int i = 0; i < 8; ++i) {
        const auto begin = std::chrono::steady_clock::now();
        cuda_driver::copy(b.data(), a.data(), 4 * n, s.get());
        s.wait();
        best = std::min(best, std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count());
      }
      bandwidth = 8.0 * static_cast<double>(n) / best / 1e6;
      if (first == 0)
        std::printf("%s, a copy of %lld MB moves %.0f GB/s\n", cuda::device_name().c_str(), static_cast<long long>(n >> 18), bandwidth);
      return;
    } catch (const std::exception& e) {
      std::printf("a copy of %lld MB: %s\n", static_cast<long long>(n >> 18), e.what());
    }
  }
}

void errors() {
  const auto taken = compile([](Matrix x, Labels at) { return take<0>(x, at) * 2.0f; }, {.target = Target::cuda});
  TensorValue<std::int64_t> wrong = indices_of(5000, 20);
  wrong.data[wrong.data.size() - 1] = 20;
  wrong.data[11] = -3;
  for (int i = 0; i < 2; ++i) {
    std::string message = "nothing";
    try {
      taken(tensor_of<float>({20, 5}), wrong);
    } catch (const Error& e) {
      message = e.what();
    }
    report(message.rfind("index -3 is outside 0..19", 0) == 0, "an index outside", message);
  }
  const auto good = taken(tensor_of<float>({20, 5}), indices_of(5000, 20));
  report(good.shape[0] == size(5000), "and goes on", "");
  const auto rooted = compile([](Row x) { return sqrt(x) + 1.0f; }, {.target = Target::cuda, .check = Check::nan});
  std::string message = "nothing";
  try {
    rooted(tensor_of<float>({5000}, 1, -0.99));
  } catch (const Error& e) {
    message = e.what();
  }
  report(message.find("sqrt") != std::string::npos, "the first NaN", message);
}

Rep<float> mlp_loss(Matrix w1, Row b1, Matrix w2, Row b2, Matrix x, Labels y) {
  const Matrix h = relu(matmul(x, transpose(w1)) + b1);
  return nn::cross_entropy(Matrix(matmul(h, transpose(w2)) + b2), y);
}
std::tuple<Rep<float>, Matrix, Row, Matrix, Row> mlp_step(Matrix w1, Row b1, Matrix w2, Row b2, Matrix x, Labels y,
                                                           Rep<float> rate) {
  const auto [l, g] = value_and_grad<0, 1, 2, 3>(mlp_loss)(w1, b1, w2, b2, x, y);
  const auto [g1, g2, g3, g4] = g;
  return {l, w1 - rate * g1, b1 - rate * g2, w2 - rate * g3, b2 - rate * g4};
}

/// Training in place: twenty steps on the GPU against twenty on the processor.
void training() {
  auto w1 = tensor_of<float>({512, 784}, 0.05), w2 = tensor_of<float>({10, 512}, 0.05);
  auto b1 = tensor_of<float>({512}, 0.1), b2 = tensor_of<float>({10}, 0.1);
  const auto x = tensor_of<float>({128, 784});
  const auto y = indices_of(128, 10);
  const auto gpu = compile(mlp_step, {.target = Target::cuda});
  const auto cpu = compile(mlp_step, {.target = Target::cpp});
  auto d1 = cuda::to_device(w1), d2 = cuda::to_device(b1), d3 = cuda::to_device(w2), d4 = cuda::to_device(b2);
  const auto dx = cuda::to_device(x);
  const auto dy = cuda::to_device(y);
  const cuda::Stream stream;
  const auto step = gpu.on(stream);
  float there = 0, here = 0;
  for (int i = 0; i < 20; ++i) step.into(there, d1, d2, d3, d4, d1, d2, d3, d4, dx, dy, 0.1f);
  for (int i = 0; i < 20; ++i) std::tie(here, w1, b1, w2, b2) = cpu(w1, b1, w2, b2, x, y, 0.1f);
  const double apart = distance(flat(cuda::to_host(d1, stream)), flat(w1));
  const auto begin = std::chrono::steady_clock::now();
  const int steps = small ? 3 : 200;
  float later = 0;
  for (int i = 0; i < steps; ++i) step.into(later, d1, d2, d3, d4, d1, d2, d3, d4, dx, dy, 0.1f);
  const double ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count() / steps;
  report(std::abs(there - here) < 1e-4 && apart < 1e-4, "training in place",
         text("loss %.6f here %.6f, weights differ by %.1e, %.3f ms a step", there, here, apart, ms));
}

Matrix stencil(Matrix u) {
  const auto m = u.dim(0), n = u.dim(1);
  return FOR(1, m - 1, u, [&](Rep<std::int64_t> i, Matrix rows) {
    return FOR(1, n - 1, rows, [&](Rep<std::int64_t> j, Matrix next) {
      return next.set(i, j, u(i, j) + 0.1f * (u(i - 1, j) + u(i + 1, j) + u(i, j - 1) + u(i, j + 1) - 4.0f * u(i, j)));
    });
  });
}

void programs() {
  part("errors", errors);
  part("training", training);
  const double e26 = 67108864;
  check("small_rows", value_and_grad([](Matrix x) { return sum(softmax<1>(x) * x); }), {.tolerance = 1e-5, .repeats = 2},
        numbers<float>({70, 300}));
  check("small_columns", [](Matrix x) { return std::tuple(sum<0>(x), sum(x), max(x)); }, {.tolerance = 1e-5, .repeats = 2},
        numbers<float>({70, 300}));
  check("small_steps", mlp_step, {.tolerance = 1e-5, .repeats = 2}, numbers<float>({64, 48}, 0.05), numbers<float>({64}, 0.1),
        numbers<float>({10, 64}, 0.05), numbers<float>({10}, 0.1), numbers<float>({32, 48}), places(32, 10), 0.1f);

  check("elements", [](Row x, Row y) { return exp(x) * y + 1.0f; }, {.bytes = 12 * e26}, numbers<float>({1 << 26}),
        numbers<float>({1 << 26}));
  check("elements_f64", [](Row64 x, Row64 y) { return x * y + 1.0; }, {.tolerance = 1e-14, .bytes = 12 * e26},
        numbers<double>({1 << 25}), numbers<double>({1 << 25}));
  check("broadcast", [](Matrix x, Row b) { return tanh(x) * b + b; }, {.bytes = 8 * e26}, numbers<float>({8192, 8192}),
        numbers<float>({8192}));
  check("transposed", [](Matrix x) { return transpose(x) + 1.0f; }, {.bytes = 8 * e26}, numbers<float>({8192, 8192}));
  check("sum", [](Row x) { return sum(x); }, {.tolerance = 1e-3, .bytes = 4 * e26}, numbers<float>({1 << 26}, 1, 0.1));
  check("sum_rows", [](Matrix x) { return sum<1>(x); }, {.bytes = 4 * e26}, numbers<float>({8192, 8192}, 1, 0.1));
  check("sum_columns", [](Matrix x) { return sum<0>(x); }, {.bytes = 4 * e26}, numbers<float>({8192, 8192}, 1, 0.1));
  check("sum_columns_256", [](Matrix x) { return sum<0>(x); }, {.bytes = e26}, numbers<float>({65536, 256}, 1, 0.1));
  check("largest", [](Row x) { return std::tuple(max(x), min(x)); }, {.bytes = 4 * e26}, numbers<float>({1 << 26}));
  check("place_of_largest", [](Row x) { return argmax(x); }, {}, numbers<float>({100000}));
  check("softmax", [](Matrix x) { return softmax<1>(x); }, {.bytes = 8 * e26}, numbers<float>({65536, 1024}));
  check("softmax_10", [](Matrix x) { return softmax<1>(x); }, {.bytes = 80e6}, numbers<float>({1000000, 10}));
  const auto norm = [](Matrix x, Row g, Row b, Matrix t) {
    const auto mu = mean<1>(x, keep);
    const Matrix c = x - mu;
    const auto s = mean<1>(c * c, keep);
    return sum(softmax<1>(Matrix(c / sqrt(s + 1e-5f) * g + b)) * t);
  };
  check("norm_gradient", value_and_grad<0, 1, 2>(norm), {.tolerance = 1e-4, .bytes = 12 * 1048576.0}, numbers<float>({1024, 1024}),
        numbers<float>({1024}), numbers<float>({1024}), numbers<float>({1024, 1024}));
  check("norm_gradient_4096", value_and_grad<0, 1, 2>(norm), {.tolerance = 1e-4, .bytes = 12 * 16777216.0},
        numbers<float>({4096, 4096}), numbers<float>({4096}), numbers<float>({4096}), numbers<float>({4096, 4096}));
  check("mlp_128", mlp_step, {.tolerance = 1e-4}, numbers<float>({512, 784}, 0.05), numbers<float>({512}, 0.1),
        numbers<float>({10, 512}, 0.05), numbers<float>({10}, 0.1), numbers<float>({128, 784}), places(128, 10), 0.1f);
  check("mlp_1024", mlp_step, {.tolerance = 1e-4}, numbers<float>({512, 784}, 0.05), numbers<float>({512}, 0.1),
        numbers<float>({10, 512}, 0.05), numbers<float>({10}, 0.1), numbers<float>({1024, 784}), places(1024, 10), 0.1f);
  check("product", [](Matrix a, Matrix b) { return matmul(a, b); }, {.tolerance = 1e-4, .flops = 2.0 * 2048 * 2048 * 2048},
        numbers<float>({2048, 2048}), numbers<float>({2048, 2048}));
  check("product_tf32", [](Matrix a, Matrix b) { return matmul(a, b); },
        {.tolerance = 2e-3, .flops = 2.0 * 4096 * 4096 * 4096, .products = "tf32"}, numbers<float>({4096, 4096}), numbers<float>({4096, 4096}));
  check("product_f64", [](Matrix64 a, Matrix64 b) { return matmul(a, transpose(b)); },
        {.tolerance = 1e-12, .flops = 2.0 * 1024 * 1024 * 1024}, numbers<double>({1024, 1024}), numbers<double>({1024, 1024}));
  check("product_batch", [](Batch a, Batch b) { return einsum<"bij,bjk->bik">(a, b); }, {.flops = 2.0 * 64 * 256 * 256 * 256},
        numbers<float>({64, 256, 256}), numbers<float>({64, 256, 256}));
  check("product_vector", [](Matrix a, Row x) { return matmul(a, x); }, {.tolerance = 1e-4}, numbers<float>({4096, 4096}),
        numbers<float>({4096}));
  check("convolution", grad<0, 1>([](Images x, Images w) { return sum(relu(conv(x, w, {.stride = 1, .padding = 1}))); }),
        {.tolerance = 1e-3}, numbers<float>({16, 32, 28, 28}), numbers<float>({32, 32, 3, 3}, 0.1));
  check("convolution_steps", grad<0, 1>([](Images x, Images w) {
          const Images y = conv(x, w, {.stride = 2, .padding = 1});
          return sum(y * y);
        }),
        {.tolerance = 1e-4}, numbers<float>({8, 16, 30, 28}), numbers<float>({24, 16, 3, 3}, 0.1));
  check("convolution_f64", grad<0, 1>([](Images64 x, Images64 w) {
          const Images64 y = conv(x, w, {.dilation = 2});
          return sum(y * y);
        }),
        {.tolerance = 1e-11}, numbers<double>({4, 6, 20, 20}), numbers<double>({5, 6, 3, 3}, 0.1));
  check("convolution_tf32", [](Images x, Images w) { return conv(x, w, {.padding = 1}); },
        {.tolerance = 2e-3, .flops = 2.0 * 64 * 128 * 128 * 9 * 28 * 28, .compare = small, .products = "tf32"},
        numbers<float>({64, 128, 28, 28}), numbers<float>({128, 128, 3, 3}, 0.1));
  check("pooling", grad([](Images x) {
          const auto y = max_pool(x, 2);
          return sum(y * y);
        }),
        {}, numbers<float>({32, 32, 56, 56}));
  check("stencil_gradient", grad([](Matrix u) {
          const Matrix s = stencil(u);
          return sum(s * s);
        }),
        {.tolerance = 1e-5}, numbers<float>({1024, 1024}));
  check("stencil_20_steps", grad<0>([](Matrix u, Rep<std::int64_t> steps) {
          const Matrix e = FOR(0, steps, u, [](Rep<std::int64_t>, Matrix v) {
            const Matrix w = stencil(v);
            return Matrix(w * w);
          });
          return sum(e * e);
        }),
        {.tolerance = 1e-4}, numbers<float>({1024, 1024}), std::int64_t{20});
  check("embedding", grad<0>([](Matrix w, Labels at, Matrix t) {
          const Matrix d = Matrix(take<0>(w, at) - t);
          return sum(d * d);
        }),
        {.tolerance = 1e-5, .repeats = 5}, numbers<float>({5000, 256}), places(4096, 5000), numbers<float>({4096, 256}));
  check("histogram", [](Row64 w, Labels at) {
          return FOR(0, at.dim(0), zeros<double>({100}),
                     [&](Rep<std::int64_t> i, Rep<Tensor<double, 100>> h) { return h.set(at(i), h(at(i)) + w(i)); });
        },
        {.tolerance = 1e-12, .repeats = 5}, numbers<double>({10000}), places(10000, 100));
  check("cumulative", [](Row64 x) { return cumsum(x); }, {.tolerance = 1e-12, .repeats = 5}, numbers<double>({100000}));
  check("sorted", [](Row64 x) { return sort(x); }, {.tolerance = 0, .repeats = 5}, numbers<double>({10000}));
  check("until", [](Row64 u) {
          return WHILE(
              u, [](Row64 now) { return sum(now * now) > 1.0; }, [](Row64 now) { return now * 0.5; });
        },
        {.tolerance = 1e-12}, numbers<double>({100000}));
  check("newton_map", grad<0>([](Row64 a, Row64 p) {
          const auto root = [](Rep<double> a1, Rep<double> p1) {
            return WHILE(
                a1, [=](Rep<double> t) { return abs(t * t - a1 * p1) > 1e-9; },
                [=](Rep<double> t) { return 0.5 * (t + a1 * p1 / t); });
          };
          return sum(FOR(0, a.dim(0), zeros_like(a),
                         [&](Rep<std::int64_t> i, Row64 all) { return all.set(i, root(a(i), p(i))); }));
        }),
        {.tolerance = 1e-9, .repeats = 5}, numbers<double>({10000}, 0.3, 2), numbers<double>({10000}, 0.3, 2));
  check("random", [](Rep<std::int64_t> key) { return random::normal<double>(key, 1000000); }, {.tolerance = 1e-12}, std::int64_t{42});
  check("recurrent", grad<0>([](Matrix w, Matrix x) {
          const Row h = FOR(0, x.dim(0), Row(zeros_like(Row(x.row(0)))),
                            [&](Rep<std::int64_t> t, Row now) { return Row(tanh(matmul(w, now) + x.row(t))); });
          return sum(h * h);
        }),
        {.tolerance = 1e-4}, numbers<float>({128, 128}, 0.1), numbers<float>({20, 128}));
  check("scalar", [](Rep<double> x) { return sin(x) * x; }, {.tolerance = 1e-14}, 0.7);
}

// ---- the process above

struct Limits {
  double seconds = 240, each = 40;
  std::string results;
};

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

/// Prints a line, and writes it to the file of results.
void tell(const std::string& line, const Limits& limits) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
  if (limits.results.empty()) return;
  if (std::FILE* file = std::fopen(limits.results.c_str(), "a")) {
    std::fprintf(file, "%s\n", line.c_str());
    std::fclose(file);
  }
}

/// One process that begins with a program. Which one the next is to begin with, or -1 where all are done.
int supervise(int from, double end, const Limits& limits, int& bad, int& good) {
  int pipes[2];
  if (::pipe(pipes) != 0) return -1;
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(pipes[1], 1);
    ::close(pipes[0]);
    ::close(pipes[1]);
    std::vector<std::string> words{"gpu_check", "--from", std::to_string(from)};
    if (small) words.push_back("--small");
    if (!only.empty()) words.push_back(only);
    std::vector<char*> arguments;
    for (std::string& w : words) arguments.push_back(w.data());
    arguments.push_back(nullptr);
    ::execv("/proc/self/exe", arguments.data());
    ::_exit(4);
  }
  ::close(pipes[1]);
  std::string pending, running = "the start";
  int at = from;
  double limit = std::min(end, now() + limits.each);
  const char* ended = nullptr;
  for (char buffer[4096];;) {
    const double left = limit - now();
    pollfd one{pipes[0], POLLIN, 0};
    if (left <= 0 || ::poll(&one, 1, static_cast<int>(1000 * left) + 1) == 0) {
      ended = now() >= end ? "no time is left for it" : "takes too long, and is ended";
      ::kill(child, SIGKILL);
      break;
    }
    const ssize_t n = ::read(pipes[0], buffer, sizeof buffer);
    if (n <= 0) break;
    pending.append(buffer, static_cast<std::size_t>(n));
    for (std::size_t stop; (stop = pending.find('\n')) != std::string::npos; pending.erase(0, stop + 1)) {
      const std::string line = pending.substr(0, stop);
      if (line.rfind("\x01", 0) == 0) {
        at = std::atoi(line.c_str() + 1);
        running = line.substr(line.find(' ') + 1);
        limit = std::min(end, now() + limits.each);
        continue;
      }
      bad += line.rfind("BAD", 0) == 0;
      good += line.rfind("ok ", 0) == 0;
      tell(line, limits);
    }
  }
  ::close(pipes[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  if (!ended && WIFEXITED(status) && WEXITSTATUS(status) != 3) return -1;  // to its end
  if (ended || WIFSIGNALED(status)) {
    ++bad;
    tell(text("BAD  %-24s %s", running.c_str(), ended ? ended : ::strsignal(WTERMSIG(status))), limits);
  }
  return now() >= end ? -1 : at + 1;
}

}  // namespace

int main(int argc, char** argv) {
  Limits limits;
  bool worker = false;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const bool more = i + 1 < argc;
    if (word == "--small") small = true;
    else if (word == "--from" && more) worker = true, first = std::atoi(argv[++i]);
    else if (word == "--seconds" && more) limits.seconds = std::atof(argv[++i]);
    else if (word == "--each" && more) limits.each = std::atof(argv[++i]);
    else if (word == "--results" && more) limits.results = argv[++i];
    else if (word.rfind("-", 0) != 0 && only.empty()) only = word;
    else return std::fprintf(stderr, "usage: gpu_check [--small] [--seconds N] [--each N] [--results FILE] [NAME]\n"), 2;
  }
  if (worker) {
    measure_bandwidth();
    programs();
    std::fflush(stdout);
    ::_exit(0);  // whatever the driver does at the end is not asked
  }
  int bad = 0, good = 0;
  const double end = now() + limits.seconds;
  if (!cuda::available()) {
    tell("no GPU: " + cuda::missing(), limits);
    return 77;
  }
  for (int from = 0; from >= 0;) from = supervise(from, end, limits, bad, good);
  tell(text("%s: %d right, %d failed", bad || !good ? "FAILED" : "all right", good, bad), limits);
  return bad || !good ? 1 : 0;
}
