// Programs with tensors as CUDA: what becomes a kernel, and that it computes what the program says.
#include <cmath>
#include <lantern/nn.hpp>
#include <lantern/random.hpp>
#include <lantern/tensor.hpp>

#include "cuda_tensors.hpp"

using namespace lantern;
using lantern::test::check_cuda;
using lantern::test::Cuda;
using lantern::test::Emulated;
using Matrix = Rep<Tensor<double, dyn, dyn>>;
using Row = Rep<Tensor<double, dyn>>;

namespace {

TensorValue<double> numbers(std::vector<std::int64_t> shape, double scale = 1) {
  TensorValue<double> t(std::move(shape));
  for (std::size_t i = 0; i < t.data.size(); ++i)
    t.data[i] = scale * (0.3 + std::sin(1.7 * static_cast<double>(i) + 0.4) * 0.8);
  return t;
}

}  // namespace

TEST_CASE("element-wise chains as kernels", "[cuda]") {
  const auto chain = [](Matrix x, Matrix y) { return exp(x) * y + tanh(x); };
  check_cuda("chain", chain, {.nvcc = true}, numbers({70, 9}), numbers({70, 9}));
  check_cuda("chain_none", chain, {}, numbers({0, 9}), numbers({0, 9}));
  const auto broadcast = [](Matrix x, Row b) { return exp(x) * b + b; };
  check_cuda("broadcasting", broadcast, {}, numbers({70, 9}), numbers({9}));
}

TEST_CASE("sums of fixed ranges", "[cuda]") {
  const auto total = [](Matrix x) { return sum(exp(x)); };
  const std::string text = check_cuda("total", total, {.nvcc = true}, numbers({130, 77}));
  CHECK(text.find("lt_last_block(ended)") != std::string::npos);
  check_cuda("total_none", total, {}, numbers({0, 3}));
  check_cuda("total_one", total, {}, numbers({1, 1}));
  check_cuda(
      "rows", [](Matrix x) { return sum<1>(x * x); }, {}, numbers({70, 9}));
  check_cuda(
      "columns", [](Matrix x) { return sum<0>(x * x); }, {}, numbers({70, 9}));
  check_cuda(
      "largest", [](Matrix x) { return std::tuple(max(x), min(x), mean(x), norm(x)); }, {}, numbers({70, 9}));
  check_cuda(
      "any_all", [](Matrix x) { return std::tuple(any_of(x > 1.0), all_of(x > -1.0), argmax(ravel(x))); }, {},
      numbers({70, 9}));
  check_cuda(
      "logsum", [](Matrix x) { return logsumexp<1>(x); }, {}, numbers({40, 7}));
}

TEST_CASE("products as kernels", "[cuda]") {
  check_cuda(
      "product", [](Matrix x, Matrix y) { return matmul(x, y); }, {}, numbers({40, 17}), numbers({17, 33}));
  check_cuda(
      "product_known",
      [](Rep<Tensor<float, 40, 17>> x, Rep<Tensor<float, 17, 33>> y) { return matmul(x, y); },
      {.tolerance = 1e-5},
      [] {
        TensorValue<float> t({40, 17});
        for (std::size_t i = 0; i < t.data.size(); ++i)
          t.data[i] = static_cast<float>(std::sin(static_cast<double>(i)));
        return t;
      }(),
      [] {
        TensorValue<float> t({17, 33});
        for (std::size_t i = 0; i < t.data.size(); ++i)
          t.data[i] = static_cast<float>(std::cos(static_cast<double>(i)));
        return t;
      }());
  check_cuda(
      "batched",
      [](Rep<Tensor<double, dyn, dyn, dyn>> x, Rep<Tensor<double, dyn, dyn, dyn>> y) {
        return einsum<"bij,bjk->bik">(x, y);
      },
      {}, numbers({5, 8, 7}), numbers({5, 7, 6}));
  check_cuda(
      "vector", [](Matrix x, Row y) { return matmul(x, y); }, {}, numbers({40, 17}), numbers({17}));
  check_cuda(
      "outer", [](Row x, Row y) { return outer(x, y); }, {}, numbers({40}), numbers({17}));
  check_cuda(
      "conv",
      [](Rep<Tensor<double, dyn, dyn, dyn, dyn>> x, Rep<Tensor<double, dyn, dyn, dyn, dyn>> w) {
        return conv2d(x, w, {.padding = {1, 1}});
      },
      {}, numbers({2, 3, 8, 7}), numbers({4, 3, 3, 3}));
}

TEST_CASE("a block of threads shares a row", "[cuda]") {
  const auto product = [](Matrix x, Matrix y) { return matmul(x, y); };
  const std::string text =
      check_cuda("shared", product, {.nvcc = true}, numbers({40, 17}), numbers({17, 33}));
  CHECK(text.find("lt_row_threads(") != std::string::npos);
  const Emulated emulated(text, "shared");
  for (const auto& [m, k, n] : {std::array{0, 3, 2}, {3, 0, 2}, {3, 2, 0}, {1, 1, 1}})
    lantern::test::compare(emulated(numbers({m, k}), numbers({k, n}))[0],
                           eager(product)(numbers({m, k}), numbers({k, n})), 1e-12);
  // What every thread of a row does fails where there is no column too.
  const auto scaled = [](Matrix y, Row x, Rep<Tensor<std::int64_t, dyn>> at) {
    return FOR(0, y.dim(0), y, [&](Rep<std::int64_t> i, Matrix rows) {
      Rep<double> factor = x(at(i));
      return FOR(0, y.dim(1), rows,
                 [&](Rep<std::int64_t> j, Matrix r) { return r.set(i, j, r(i, j) * factor); });
    });
  };
  TensorValue<std::int64_t> at({40});
  for (std::size_t i = 0; i < 40; ++i) at.data[i] = static_cast<std::int64_t>(i % 5);
  const Emulated factors(check_cuda("scaled", scaled, {}, numbers({40, 6}), numbers({5}), at), "scaled");
  at.data[33] = 7;
  for (const std::int64_t columns : {6, 0})
    CHECK_THROWS_WITH(factors(numbers({40, columns}), numbers({5}), at),
                      Catch::StartsWith("index 7 is outside 0..4"));
}

TEST_CASE("rows, views and places", "[cuda]") {
  check_cuda(
      "softmax", [](Matrix x) { return softmax<1>(x); }, {.nvcc = true}, numbers({50, 11}));
  check_cuda(
      "transposed", [](Matrix x) { return transpose(x) + 1.0; }, {}, numbers({50, 11}));
  check_cuda(
      "joined", [](Matrix x, Matrix y) { return concat<0>(x, exp(y)); }, {}, numbers({50, 11}),
      numbers({40, 11}));
  check_cuda(
      "cumulative", [](Matrix x) { return cumsum<1>(x); }, {}, numbers({50, 11}));
  check_cuda(
      "sorted", [](Row x) { return sort(x); }, {.kernels = 0}, numbers({50}));
}

TEST_CASE("gather and scatter as kernels", "[cuda]") {
  using Places = Rep<Tensor<std::int64_t, dyn>>;
  TensorValue<std::int64_t> at({60});
  for (std::size_t i = 0; i < 60; ++i) at.data[i] = static_cast<std::int64_t>((i * i + 3 * i) % 20);
  const auto taken = [](Matrix x, Places p) { return take<0>(x, p) * 2.0; };
  const std::string text = check_cuda("taken", taken, {}, numbers({20, 5}), at);
  const Emulated emulated(text, "taken");
  TensorValue<std::int64_t> wrong = at;
  wrong.data[41] = 20;
  wrong.data[17] = -3;
  std::string on_cpu, message;
  try {
    compile(taken, {.target = Target::c})(numbers({20, 5}), wrong);
  } catch (const Error& e) {
    on_cpu = e.what();
  }
  try {
    emulated(numbers({20, 5}), wrong);
  } catch (const std::runtime_error& e) {
    message = e.what();
  }
  CHECK(message == on_cpu);
  CHECK(message.find("index -3 is outside 0..19") != std::string::npos);
  lantern::test::compare(emulated(numbers({20, 5}), at)[0], eager(taken)(numbers({20, 5}), at),
                         1e-12);  // and goes on
  check_cuda(
      "added", [](Matrix x, Matrix y, Places p) { return scatter_add<0>(x, p, y); }, {.kernels = 0},
      numbers({20, 5}), numbers({60, 5}), at);
}

TEST_CASE("gradients as kernels", "[cuda]") {
  const auto loss = [](Matrix w, Row b, Matrix v, Matrix x, Matrix y) {
    const Matrix h = tanh(matmul(x, w) + b);
    const Matrix d = matmul(h, v) - y;
    return sum(d * d);
  };
  check_cuda("network", grad<0, 1, 2>(loss), {.kernels = 3, .nvcc = true}, numbers({6, 40}), numbers({40}),
             numbers({40, 3}), numbers({35, 6}), numbers({35, 3}));
  check_cuda("rows_slope", grad([](Matrix x) { return sum(softmax<1>(x) * x); }), {}, numbers({50, 11}));
}

TEST_CASE("gradients of functions that are called several times", "[cuda]") {
  const auto layer = FUN<Tensor<double, dyn>(Tensor<double, dyn>)>("layer", [](auto, Row x) { return tanh(x) * x; });
  check_cuda(
      "three_layers", grad([&](Row x) { return sum(layer(layer(layer(x)))); }), {}, numbers({9}));
}

TEST_CASE("loops around tensors launch kernels", "[cuda]") {
  const auto heat = [](Row u, Rep<std::int64_t> steps) {
    return FOR(0, steps, u, [](Rep<std::int64_t>, Row now) {
      return now + 0.1 * (roll<0>(now, 1) - 2.0 * now + roll<0>(now, -1));
    });
  };
  check_cuda("heat", heat, {}, numbers({64}), std::int64_t{7});
  const auto until = [](Row u) {
    return WHILE(
        u, [](Row now) { return sum(now * now) > 1.0; }, [](Row now) { return now * 0.5; });
  };
  check_cuda("until", until, {}, numbers({64}));
  check_cuda("heat_slope", grad<0>([=](Row u, Rep<std::int64_t> steps) { return sum(sin(heat(u, steps))); }),
             {}, numbers({64}), std::int64_t{7});
}

TEST_CASE("random numbers in kernels are those of the CPU", "[cuda]") {
  check_cuda(
      "noise", [](Rep<std::int64_t> key) { return random::normal<double>(key, 100); }, {}, std::int64_t{42});
}

TEST_CASE("functions that kernels call", "[cuda]") {
  auto power = FUN<double(double, int64_t)>("power_of", [](auto, Rep<double> x, Rep<int64_t> n) {
    return FOR(0, n, Rep<double>(1.0), [=](Rep<int64_t>, Rep<double> p) { return p * x; });
  });
  check_cuda(
      "powers",
      [=](Row x) {
        return FOR(0, x.dim(0), zeros_like(x),
                   [&](Rep<std::int64_t> i, Row a) { return a.set(i, power(x(i), i % 5)); });
      },
      {.nvcc = true}, numbers({80}));
}

TEST_CASE("Target::cuda compiles the kernels of a program with tensors", "[cuda]") {
  if (!codegen::nvrtc_available()) return;
  const auto f =
      compile([](Matrix x, Row b) { return sum(exp(x) * b); }, {.target = Target::cuda, .name = "on_gpu"});
  CHECK(f.source("cuda").find("on_gpu_kernel1(") != std::string::npos);
  CHECK_THROWS_WITH(f(numbers({3, 2}), numbers({2})), Catch::Contains("needs a GPU"));
}

TEST_CASE("a program whose loops run in lanes is refused with a remedy", "[cuda]") {
  const auto f =
      compile([](Matrix x) { return exp(x) * 2.0; }, {.target = Target::cpp, .lanes = 4, .name = "lanes"});
  CHECK_THROWS_WITH(f.source("cuda"),
                    Catch::Contains("cuda: expected loops that run iteration by iteration, got vectors (i64x8)") &&
                        Catch::Contains("cuda_tensor_test.cpp:") &&
                        Catch::Contains("compile the function for Target::cuda"));
}

TEST_CASE("numbers in, numbers out, and tensors inside", "[cuda]") {
  check_cuda(
      "squares", [](Rep<double> x, Rep<std::int64_t> n) { return sum(exp(fill(x, n))) + 1.0; }, {}, 0.25,
      std::int64_t{100});
}

TEST_CASE("what one thread after the other does stays on the host", "[cuda]") {
  // Each iteration needs the one before: a loop of the host, in managed memory.
  const auto filtered = [](Row x) {
    return FOR(1, x.dim(0), x, [](Rep<std::int64_t> i, Row a) { return a.set(i, 0.5 * a(i - 1) + a(i)); });
  };
  const std::string text = check_cuda("filtered", filtered, {.kernels = 0}, numbers({80}));
  CHECK(lantern::test::kernels_in(text) == 0);
  check_cuda("filtered_slope", grad([=](Row x) { return sum(sin(filtered(x))); }), {}, numbers({80}));
}

TEST_CASE("a check that fails in a sum names the first iteration that failed", "[cuda]") {
  const auto picked = [](Row x, Rep<Tensor<std::int64_t, dyn>> at) {
    return FOR(0, at.dim(0), Rep<double>(0.0),
               [&](Rep<std::int64_t> i, Rep<double> s) { return s + x(at(i)); });
  };
  TensorValue<std::int64_t> at({9000});
  for (std::size_t i = 0; i < at.data.size(); ++i) at.data[i] = static_cast<std::int64_t>(i % 20);
  const std::string text = check_cuda("picked", picked, {}, numbers({20}), at);
  at.data[8000] = 21;
  at.data[7000] = 20;
  at.data[7001] = -1;
  const Emulated emulated(text, "picked");
  for (const bool backwards : {false, true}) {
    emulated.backwards(backwards);
    std::string message;
    try {
      emulated(numbers({20}), at);
    } catch (const std::runtime_error& e) {
      message = e.what();
    }
    CHECK_THAT(message,
               Catch::StartsWith("index 20 is outside 0..19 (") && Catch::Contains("cuda_tensor_test.cpp:"));
  }
}
