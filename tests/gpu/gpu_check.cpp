// Programs on a real GPU: each is compared with the processor's, run twice for equal bits, and timed with its tensors on
// the GPU. Prints a line for each; the exit status says whether all agree. tools/gpu_check builds and packs it.
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
using Batch = Rep<Tensor<float, dyn, dyn, dyn>>;

namespace {

int failed = 0;
std::string only;  // programs whose names begin so

template <class T>
TensorValue<T> numbers(std::vector<std::int64_t> shape, double scale = 1, double shift = 0) {
  TensorValue<T> t(std::move(shape));
  for (std::size_t i = 0; i < t.data.size(); ++i)
    t.data[i] = static_cast<T>(shift + scale * std::sin(1.7 * static_cast<double>(i % 100003) + 0.4));
  return t;
}
TensorValue<std::int64_t> places(std::int64_t n, std::int64_t below) {
  TensorValue<std::int64_t> t({n});
  for (std::int64_t i = 0; i < n; ++i) t.data[static_cast<std::size_t>(i)] = (i * 7919 + i / 3) % below;
  return t;
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
};

double bandwidth = 0;  // GB/s of a copy, read and written

template <class F, class... A>
void check(const char* name, F f, Program p, const A&... args) {
  if (std::string(name).rfind(only, 0) != 0) return;
  try {
    const auto start = std::chrono::steady_clock::now();
    const auto gpu = compile(f, {.target = Target::cuda, .name = name});
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    double apart = 0;
    bool same = true;
    if (p.compare) {
      const auto first = flat(gpu(args...)), second = flat(gpu(args...));
      same = first.size() == second.size() && std::memcmp(first.data(), second.data(), 8 * first.size()) == 0;
      apart = distance(first, flat(compile(f, {.target = Target::cpp, .name = name})(args...)));
    }
    const cuda::Stream stream;
    const auto there = std::tuple(on_gpu(args)...);
    const auto queued = gpu.on(stream);
    const auto run = [&] { return std::apply([&](const auto&... a) { return queued(a...); }, there); };
    for (int i = 0; i < 3; ++i) run();
    stream.wait();
    const auto allocated = cuda::allocations();
    std::vector<double> times;
    for (int i = 0; i < p.repeats; ++i) {
      const auto begin = std::chrono::steady_clock::now();
      run();
      stream.wait();
      times.push_back(std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count());
    }
    std::sort(times.begin(), times.end());
    const double ms = times[times.size() / 2];
    const bool right = apart <= p.tolerance && same;
    failed += right ? 0 : 1;
    std::printf("%-4s %-24s error %.1e %s %9.3f ms %4llu launches %2llu graphs %2llu waits %2llu allocations compile %.2f s", right ? "ok" : "BAD",
                name, apart, same ? "same bits" : "OTHER BITS", ms, static_cast<unsigned long long>(cuda::last_call().launches),
                static_cast<unsigned long long>(cuda::last_call().graphs),
                static_cast<unsigned long long>(cuda::last_call().waits),
                static_cast<unsigned long long>(cuda::allocations() - allocated), seconds);
    if (p.bytes > 0) std::printf("  %.0f GB/s (%.0f %%)", p.bytes / ms / 1e6, 100 * p.bytes / ms / 1e6 / bandwidth);
    if (p.flops > 0) std::printf("  %.1f TFLOP/s", p.flops / ms / 1e9);
    std::printf("\n");
  } catch (const std::exception& e) {
    ++failed;
    std::printf("BAD  %-24s %s\n", name, e.what());
  }
  std::fflush(stdout);
}

void measure_bandwidth() {
  const std::int64_t n = 1 << 28;
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
  std::printf("%s, a copy moves %.0f GB/s\n", cuda::device_name().c_str(), bandwidth);
}

void errors() {
  const auto taken = compile([](Matrix x, Labels at) { return take<0>(x, at) * 2.0f; }, {.target = Target::cuda});
  TensorValue<std::int64_t> wrong = places(5000, 20);
  wrong.data[4111] = 20;
  wrong.data[17] = -3;
  for (int i = 0; i < 2; ++i) {
    std::string message = "nothing";
    try {
      taken(numbers<float>({20, 5}), wrong);
    } catch (const Error& e) {
      message = e.what();
    }
    const bool right = message.rfind("index -3 is outside 0..19", 0) == 0;
    failed += right ? 0 : 1;
    std::printf("%-4s an index outside: %s\n", right ? "ok" : "BAD", message.c_str());
  }
  const auto good = taken(numbers<float>({20, 5}), places(5000, 20));
  std::printf("%-4s and goes on\n", good.shape[0] == 5000 ? "ok" : "BAD");
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
  auto w1 = numbers<float>({512, 784}, 0.05), w2 = numbers<float>({10, 512}, 0.05);
  auto b1 = numbers<float>({512}, 0.1), b2 = numbers<float>({10}, 0.1);
  const auto x = numbers<float>({128, 784});
  const auto y = places(128, 10);
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
  const bool right = std::abs(there - here) < 1e-4 && apart < 1e-4;
  failed += right ? 0 : 1;
  std::printf("%-4s training in place: loss %.6f here %.6f, weights differ by %.1e\n", right ? "ok" : "BAD", there, here, apart);
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < 200; ++i) step.into(there, d1, d2, d3, d4, d1, d2, d3, d4, dx, dy, 0.1f);
  std::printf("     %.3f ms a step\n",
              std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count() / 200);
}

Matrix stencil(Matrix u) {
  const auto m = u.dim(0), n = u.dim(1);
  return FOR(1, m - 1, u, [&](Rep<std::int64_t> i, Matrix rows) {
    return FOR(1, n - 1, rows, [&](Rep<std::int64_t> j, Matrix next) {
      return next.set(i, j, u(i, j) + 0.1f * (u(i - 1, j) + u(i + 1, j) + u(i, j - 1) + u(i, j + 1) - 4.0f * u(i, j)));
    });
  });
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1) only = argv[1];
  if (!cuda::available()) {
    std::printf("no GPU: %s\n", cuda::missing().c_str());
    return 77;
  }
  measure_bandwidth();
  errors();
  if (only.empty()) training();
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
  check("product_f64", [](Matrix64 a, Matrix64 b) { return matmul(a, transpose(b)); },
        {.tolerance = 1e-12, .flops = 2.0 * 1024 * 1024 * 1024}, numbers<double>({1024, 1024}), numbers<double>({1024, 1024}));
  check("product_batch", [](Batch a, Batch b) { return einsum<"bij,bjk->bik">(a, b); }, {.flops = 2.0 * 64 * 256 * 256 * 256},
        numbers<float>({64, 256, 256}), numbers<float>({64, 256, 256}));
  check("product_vector", [](Matrix a, Row x) { return matmul(a, x); }, {.tolerance = 1e-4}, numbers<float>({4096, 4096}),
        numbers<float>({4096}));
  check("convolution", grad<0, 1>([](Images x, Images w) { return sum(relu(conv(x, w, {.stride = 1, .padding = 1}))); }),
        {.tolerance = 1e-3}, numbers<float>({16, 32, 28, 28}), numbers<float>({32, 32, 3, 3}, 0.1));
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
  std::printf("%s: %d failed\n", failed ? "FAILED" : "all right", failed);
  return failed ? 1 : 0;
}
