// Calls of functions for a GPU, all the way through the driver: where there is none, with stand-ins for NVIDIA's
// libraries (stand_in_driver.cpp), which run kernels by the launch emulator.
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdlib>
#include <thread>

#include "lantern/cuda.hpp"
#include "lantern/lantern.hpp"
#include "lantern/nn.hpp"
#include "lantern/tensor.hpp"

#include "../correctness/written.hpp"

using namespace lantern;
using Matrix = Rep<Tensor<float, dyn, dyn>>;
using Row = Rep<Tensor<float, dyn>>;
using Matrix64 = Rep<Tensor<double, dyn, dyn>>;
using Row64 = Rep<Tensor<double, dyn>>;
using Labels = Rep<Tensor<std::int64_t, dyn>>;

namespace {

template <class T = float>
TensorValue<T> numbers(std::vector<std::int64_t> shape, double scale = 1) {
  TensorValue<T> t(std::move(shape));
  for (std::size_t i = 0; i < t.data.size(); ++i)
    t.data[i] = static_cast<T>(scale * std::sin(1.7 * static_cast<double>(i) + 0.4));
  return t;
}

TensorValue<std::int64_t> labels(std::int64_t n, std::int64_t classes) {
  TensorValue<std::int64_t> t({n});
  for (std::int64_t i = 0; i < n; ++i) t.data[static_cast<std::size_t>(i)] = i * 7 % classes;
  return t;
}

template <class T>
void same(const TensorValue<T>& got, const TensorValue<T>& expected, double tolerance) {
  REQUIRE(got.shape == expected.shape);
  for (std::size_t i = 0; i < got.data.size(); ++i) {
    INFO("element " << i);
    CHECK(static_cast<double>(got.data[i]) ==
          Approx(static_cast<double>(expected.data[i])).epsilon(tolerance).margin(tolerance));
  }
}

Rep<float> loss(Matrix w1, Row b1, Matrix w2, Row b2, Matrix x, Labels y) {
  const Matrix h = relu(matmul(x, transpose(w1)) + b1);
  return nn::cross_entropy(Matrix(matmul(h, transpose(w2)) + b2), y);
}
std::tuple<Rep<float>, Matrix, Row, Matrix, Row> step(Matrix w1, Row b1, Matrix w2, Row b2, Matrix x, Labels y,
                                                       Rep<float> rate) {
  const auto [l, g] = value_and_grad<0, 1, 2, 3>(loss)(w1, b1, w2, b2, x, y);
  const auto [g1, g2, g3, g4] = g;
  return {l, w1 - rate * g1, b1 - rate * g2, w2 - rate * g3, b2 - rate * g4};
}

}  // namespace

TEST_CASE("a function for a GPU is called like any other", "[cuda]") {
  REQUIRE(cuda::missing() == "");
  const auto f = [](Matrix64 x, Row64 b) { return std::tuple(sum(exp(x) * b), x * b); };
  const auto gpu = compile(f, {.target = Target::cuda});
  const auto cpu = compile(f, {.target = Target::c});
  for (const std::int64_t n : {70, 3, 0}) {
    const auto x = numbers<double>({n, 9}), b = numbers<double>({9});
    const auto [s, y] = gpu(x, b);
    const auto [s2, y2] = cpu(x, b);
    CHECK(s == Approx(s2).epsilon(1e-12));
    same(y, y2, 1e-12);
    CHECK(cuda::last_call().waits == 2);  // for the sum, then for the copy to the host
  }
  CHECK_THROWS_WITH(gpu(numbers<double>({4, 3}), numbers<double>({9})), Catch::Contains("shapes [9] and [4, 3] do not fit") ||
                                                                            Catch::Contains("do not fit"));
}

TEST_CASE("a function of numbers runs as a map of one element", "[cuda]") {
  const auto gpu = compile(grad([](Rep<double> x) {
                             return WHILE(x, [](Rep<double> t) { return t > 1.0; }, [=](Rep<double> t) { return t * 0.5 * cos(x); });
                           }),
                           {.target = Target::cuda});
  const auto cpu = compile(grad([](Rep<double> x) {
    return WHILE(x, [](Rep<double> t) { return t > 1.0; }, [=](Rep<double> t) { return t * 0.5 * cos(x); });
  }));
  CHECK(gpu(5.0) == Approx(cpu(5.0)).epsilon(1e-13));
  const cuda::Stream s;
  for (int i = 0; i < 3; ++i) CHECK(gpu.on(s)(5.0) == Approx(cpu(5.0)).epsilon(1e-13));
}

TEST_CASE("a training step keeps its tensors on the GPU", "[cuda]") {
  const std::int64_t batch = 16, in = 12, hidden = 20, classes = 5;
  auto w1 = numbers({hidden, in}, 0.3), w2 = numbers({classes, hidden}, 0.3), b1 = numbers({hidden}, 0.1), b2 = numbers({classes}, 0.1);
  const auto x = numbers({batch, in});
  const auto y = labels(batch, classes);
  const auto gpu = compile(step, {.target = Target::cuda});
  const auto cpu = compile(step, {.target = Target::c});
  auto d1 = cuda::to_device(w1), d2 = cuda::to_device(b1), d3 = cuda::to_device(w2), d4 = cuda::to_device(b2);
  const auto dx = cuda::to_device(x);
  const auto dy = cuda::to_device(y);
  const cuda::Stream stream;
  float there = 0, here = 0;
  std::uint64_t allocated = 0;
  for (int i = 0; i < 5; ++i) {
    gpu.on(stream).into(there, d1, d2, d3, d4, d1, d2, d3, d4, dx, dy, 0.1f);
    std::tie(here, w1, b1, w2, b2) = cpu(w1, b1, w2, b2, x, y, 0.1f);
    CHECK(there == Approx(here).epsilon(1e-5));
    if (i == 1) allocated = cuda::allocations();
  }
  same(cuda::to_host(d1, stream), w1, 1e-5);
  same(cuda::to_host(d4, stream), b2, 1e-5);
  CHECK(cuda::allocations() == allocated);  // none from the second call on
  CHECK(cuda::last_call().waits == 1);      // for the loss
  CHECK(cuda::last_call().launches <= 20);
  CHECK(cuda::last_call().graphs == 1);  // captured, with all of them

  const auto [l, n1, n2, n3, n4] = gpu.on(stream)(d1, d2, d3, d4, dx, dy, 0.1f);  // results of their own
  const auto expected = cpu(w1, b1, w2, b2, x, y, 0.1f);
  same(cuda::to_host(n1, stream), std::get<1>(expected), 1e-5);
  same(cuda::to_host(d1, stream), w1, 1e-5);
  // Arguments of the host are copied.
  const auto mixed = gpu.on(stream)(w1, b1, w2, d4, x, dy, 0.1f);
  same(cuda::to_host(std::get<1>(mixed), stream), std::get<1>(expected), 1e-5);
}

/// A model, whose members may be anything.
template <class S>
struct Net {
  nn::Linear<S> first, second;
};
using Model = Net<Rep<float>>;
using State = nn::AdamState<Model>;
/// Of no template.
struct Plain {
  Matrix w;
  Rep<float> rate;
};

TEST_CASE("a model and the state of an optimiser stay on the GPU", "[cuda]") {
  const auto f = [](Model m, State s, Matrix x, Labels y, Rep<float> rate) {
    const auto [l, g] = value_and_grad([&](Model w) { return nn::cross_entropy(w.second(relu(w.first(x))), y); })(m);
    const auto [m2, s2] = nn::adam(m, g, s, {.learning_rate = rate});
    return std::tuple(l, m2, s2);
  };
  nn::Generator random(7);
  Net<float> m{nn::Linear<float>::init(6, 9, random), nn::Linear<float>::init(9, 4, random)};
  auto s = nn::adam_state(m);
  const auto x = numbers({11, 6});
  const auto y = labels(11, 4);
  const auto gpu = compile(f, {.target = Target::cuda});
  auto on_cpu = nn::in_place(compile(f, {.target = Target::c}));
  const cuda::Stream stream;
  auto there = cuda::to_device<Model>(m, stream);
  auto state = cuda::to_device<State>(s, stream);
  auto in_place = nn::in_place(gpu.on(stream));
  float l = 0, expected = 0;
  for (int i = 0; i < 3; ++i) {
    if (i == 0) gpu.on(stream).into(l, there, state, there, state, x, y, 0.1f);  // in place
    else l = in_place(there, state, x, y, 0.1f);
    expected = on_cpu(m, s, x, y, 0.1f);
    CHECK(l == Approx(expected).epsilon(1e-5));
  }
  const Net<float> back = cuda::to_host<Model>(there, stream);
  same(back.first.weight, m.first.weight, 1e-4);
  same(back.second.bias, m.second.bias, 1e-4);
  const nn::AdamState<Net<float>> back_state = cuda::to_host<State>(state, stream);
  CHECK(back_state.steps == s.steps);
  same(back_state.square.first.weight, s.square.first.weight, 1e-4);
  // A struct of no template is the tuple of its members.
  const auto scaled = compile([](Plain p) { return Plain{p.w * p.rate, p.rate + 1.0f}; }, {.target = Target::cuda});
  const auto plain = cuda::to_device<Plain>(std::tuple(x, 3.0f), stream);
  const auto twice = scaled.on(stream)(scaled.on(stream)(plain));
  CHECK(std::get<1>(twice) == 5.0f);
  const auto host = cuda::to_host<Plain>(twice, stream);
  CHECK(std::get<0>(host).data[3] == Approx(x.data[3] * 12));
}

TEST_CASE("factors of products are rounded where that is asked for", "[cuda]") {
  const auto f = [](Matrix x, Matrix y) { return matmul(x, y); };
  const auto digits = [](TensorValue<float> t, int n) {
    for (float& e : t.data) e = std::ldexp(std::nearbyint(std::ldexp(e, n - 1 - std::ilogb(e))), 1 - n + std::ilogb(e));
    return t;
  };
  const auto x = numbers({40, 30}), y = numbers({30, 20}, 0.7);
  const auto exact = compile(f, {.target = Target::cpp})(x, y);
  for (const auto& [products, n] : {std::pair{"tf32", 11}, {"bf16", 8}, {"f16", 11}}) {
    const auto got = compile(f, {.target = Target::cuda, .products = products})(x, y);
    same(got, compile(f, {.target = Target::cpp})(digits(x, n), digits(y, n)), 1e-6);
    double furthest = 0;
    for (std::size_t i = 0; i < got.data.size(); ++i) furthest = std::fmax(furthest, std::fabs(got.data[i] - exact.data[i]));
    CHECK(furthest > 1e-5);
  }
  same(compile(f, {.target = Target::cuda, .products = "f32"})(x, y), exact, 1e-6);
  CHECK_THROWS_WITH(compile(f, {.target = Target::cuda, .products = "f8"}), "products: expected f32, tf32, bf16 or f16, got 'f8'");
  for (const CompileOptions& options : {CompileOptions{.target = Target::c, .products = "tf32"},
                                        CompileOptions{.target = Target::cuda, .strict_math = true, .products = "tf32"}})
    CHECK_THROWS_WITH(compile(f, options), "compile: products of tf32 go with Target::cuda, without strict_math");
}

TEST_CASE("a scaled loss keeps small gradients of products in half precision", "[cuda]") {
  using One = nn::SgdState<Matrix>;
  using Scale = nn::LossScale<Matrix>;
  const auto f = [](Matrix w, One s, Scale scale, Matrix x, Matrix small) {
    const auto loss = [&](Matrix m) { return sum(sin(matmul(x, m)) * small); };
    return nn::scaled_step(loss, w, s, scale, [&](Matrix g) { return nn::sgd(w, g, s, {.learning_rate = 1.0}); });
  };
  const cuda::Stream stream;
  auto step = nn::in_place(compile(f, {.target = Target::cuda, .products = "f16"}).on(stream));
  const auto x = numbers({9, 6}), zero = TensorValue<float>({6, 5});
  const auto run = [&](double factor, float small) {  // what a step makes of zeros
    auto w = cuda::to_device(zero);
    auto state = cuda::to_device<One>(nn::sgd_state(zero), stream);
    nn::LossScale<TensorValue<float>> scale{factor, 0};
    auto there = cuda::to_device<Scale>(scale, stream);
    TensorValue<float> all({9, 5});
    std::fill(all.data.begin(), all.data.end(), small);
    step(w, state, there, x, all);
    scale = cuda::to_host<Scale>(there, stream);
    CHECK(cuda::to_host<One>(state, stream).steps == (scale.steps > 0 ? 1 : 0));
    return std::pair(cuda::to_host(w, stream), scale.scale);
  };
  TensorValue<float> expected = zero;  // minus the gradient
  for (std::size_t i = 0; i < expected.data.size(); ++i)
    for (std::size_t k = 0; k < 9; ++k) expected.data[i] -= 1e-9f * x.data[6 * k + i / 5];
  const auto relative = [](TensorValue<float> t) {
    for (float& e : t.data) e *= 1e9f;
    return t;
  };
  same(run(1, 1e-9f).first, zero, 0);  // 1e-9 is zero in half precision
  same(relative(run(65536, 1e-9f).first), relative(expected), 5e-3);
  const auto [skipped, scale] = run(65536, 8.0f);  // 8 * 65536 is infinite there
  same(skipped, zero, 0);
  CHECK(scale == 32768);
}

TEST_CASE("a network trains with its own tensors in 16 bits", "[cuda]") {
  const auto x = numbers({16, 12});
  const auto y = labels(16, 5);
  const auto train = [&](auto at) {  // the losses of ten steps
    std::vector<float> losses(10);
    auto w1 = numbers({20, 12}, 0.3), w2 = numbers({5, 20}, 0.5), b1 = numbers({20}, 0.1), b2 = numbers({5}, 0.1);
    for (float& l : losses) std::tie(l, w1, b1, w2, b2) = at(w1, b1, w2, b2, x, y, 0.2f);
    return losses;
  };
  const auto exact = train(compile(step, {.target = Target::c}));
  for (const char* storage : {"f16", "bf16"}) {
    INFO(storage);
    const auto gpu = compile(step, {.target = Target::cuda, .storage = storage});
    const auto losses = train(gpu);
    for (std::size_t i = 0; i < losses.size(); ++i) {
      CHECK(losses[i] == Approx(exact[i]).epsilon(storage[0] == 'b' ? 1e-2 : 2e-3));
      CHECK(losses[i] != exact[i]);
    }
    CHECK(losses.back() < 0.7f * losses.front());
    // Calls that repeat are graphs, and give the same bits.
    const cuda::Stream stream;
    const auto w1 = cuda::to_device(numbers({20, 12}, 0.3)), w2 = cuda::to_device(numbers({5, 20}, 0.5));
    const auto b1 = cuda::to_device(numbers({20}, 0.1)), b2 = cuda::to_device(numbers({5}, 0.1)), there = cuda::to_device(x);
    const auto y_there = cuda::to_device(y);
    for (int i = 0; i < 3; ++i) CHECK(std::get<0>(gpu.on(stream)(w1, b1, w2, b2, there, y_there, 0.2f)) == losses.front());
    CHECK(cuda::last_call().graphs > 0);
  }
}

TEST_CASE("prints and checks run in every call that repeats", "[cuda]") {
  const auto told = [](Row x) {
    print(x, "x");
    return Row(exp(x));
  };
  const auto gpu = compile(told, {.target = Target::cuda});
  const auto x = cuda::to_device(numbers({4}));
  auto y = cuda::to_device(numbers({4}));
  const cuda::Stream stream;
  const std::string once = lantern::test::written([&] { compile(told, {.target = Target::c})(numbers({4})); });
  CHECK(lantern::test::written([&] {
          for (int i = 0; i < 4; ++i) gpu.on(stream).into(y, x);
        }) == once + once + once + once);
  same(cuda::to_host(y, stream), compile([](Row v) { return Row(exp(v)); })(numbers({4})), 1e-6);

  const auto logarithm = [](Row v, Matrix m) { return Row(sum<1>(matmul(m, m)) + log(v)); };
  const auto checked = compile(logarithm, {.target = Target::cuda, .check = Check::nan});
  const auto m = cuda::to_device(numbers({4, 4}));
  auto v = cuda::to_device(TensorValue<float>({1, 2, 3, 4}, {4}));
  for (int i = 0; i < 4; ++i) checked.on(stream).into(y, v, m);
  v = cuda::to_device(TensorValue<float>({1, 2, -3, 4}, {4}));
  CHECK_THROWS_WITH(([&] {
                      checked.on(stream).into(y, v, m);
                      cuda::to_host(y, stream);
                    }()),
                    Catch::EndsWith("expected finite values, got nan from log"));
}

TEST_CASE("a call that repeats is one graph", "[cuda]") {
  const auto f = [](Row x, Row y, Rep<float> s) {
    const Row z = Row(exp(x) * s + y);
    return std::tuple(z, sum(z * z));
  };
  const auto gpu = compile(f, {.target = Target::cuda});
  const auto cpu = compile(f, {.target = Target::c});
  const auto y = numbers({300});
  const auto there = cuda::to_device(y);
  cuda::DeviceTensor<float> x = cuda::to_device(numbers({300})), z({300});
  const cuda::Stream stream;
  float total = 0;
  std::vector<std::uint64_t> graphs;
  const auto call = [&](float s) {
    const auto given = cuda::to_host(x, stream);
    gpu.on(stream).into(z, total, x, there, s);
    const auto [expected, sum_expected] = cpu(given, y, s);
    same(cuda::to_host(z, stream), expected, 1e-5);
    CHECK(total == Approx(sum_expected).epsilon(1e-5));
    graphs.push_back(cuda::last_call().graphs);
  };
  for (int i = 0; i < 5; ++i) call(0.5f);
  CHECK(graphs.front() == 0);
  CHECK(std::vector(graphs.end() - 3, graphs.end()) == std::vector<std::uint64_t>{1, 1, 1});  // memory is there since
  // What lies in the tensors is not the graph's.
  x = cuda::to_device(numbers({300}, 0.25));
  for (int i = 0; i < 3; ++i) call(0.5f);
  cuda_driver::copy(x.data(), y.data.data(), 1200, stream.get());
  call(0.5f);
  CHECK(graphs.back() == 1);
  // Another number is another call.
  call(0.75f);
  CHECK(graphs.back() == 0);
  call(0.5f);
  CHECK(graphs.back() == 1);
  // Arguments of the host are copied in each call: no graph holds that.
  for (int i = 0; i < 4; ++i) {
    gpu.on(stream).into(z, total, x, numbers({300}, 0.1 * i), 0.5f);
    CHECK(cuda::last_call().graphs == 0);
    CHECK(total == Approx(std::get<1>(cpu(cuda::to_host(x, stream), numbers({300}, 0.1 * i), 0.5f))).epsilon(1e-5));
  }
  // A loop that waits for the GPU: its first iterations are a graph, up to the wait.
  const auto until = [](Row u) {
    return WHILE(
        u, [](Row now) { return sum(now * now) > 1.0f; }, [](Row now) { return Row(now * 0.5f); });
  };
  const auto halved = compile(until, {.target = Target::cuda});
  const auto expected = compile(until, {.target = Target::c})(y);
  for (int i = 0; i < 5; ++i) same(cuda::to_host(halved.on(stream)(there), stream), expected, 1e-6);
}

TEST_CASE("a failure found by a graph", "[cuda]") {
  const auto taken = compile([](Matrix x, Labels at) { return take<0>(x, at) * 2.0f; }, {.target = Target::cuda});
  const auto x = cuda::to_device(numbers({20, 5}));
  auto wrong = labels(50, 20);
  auto at = cuda::to_device(wrong);
  cuda::DeviceTensor<float> out({50, 5});
  const cuda::Stream stream;
  for (int i = 0; i < 5; ++i) taken.on(stream).into(out, x, at);
  CHECK(cuda::last_call().graphs == 1);
  stream.wait();
  const auto right = cuda::to_host(out, stream);
  wrong.data[7] = 31;
  cuda_driver::copy(at.data(), wrong.data.data(), 400, stream.get());
  taken.on(stream).into(out, x, at);
  CHECK(cuda::last_call().graphs == 1);
  CHECK_THROWS_WITH(stream.wait(), Catch::StartsWith("index 31 is outside 0..19 ("));
  wrong.data[7] = 7 * 7 % 20;
  cuda_driver::copy(at.data(), wrong.data.data(), 400, stream.get());
  taken.on(stream).into(out, x, at);
  same(cuda::to_host(out, stream), right, 0);
}

TEST_CASE("what a kernel finds wrong is raised, and the next call works", "[cuda]") {
  const auto taken = compile([](Matrix x, Labels at) { return take<0>(x, at) * 2.0f; }, {.target = Target::cuda});
  auto at = labels(50, 20);
  at.data[41] = 20;
  at.data[17] = -3;
  for (int i = 0; i < 2; ++i)
    CHECK_THROWS_WITH(taken(numbers({20, 5}), at), Catch::StartsWith("index -3 is outside 0..19 ("));
  // Of a queued call that gives no number the next wait says so.
  const cuda::Stream stream;
  const auto queued = taken.on(stream)(numbers({20, 5}), at);
  CHECK_THROWS_WITH(cuda::to_host(queued, stream), Catch::StartsWith("index -3 is outside 0..19 ("));
  at = labels(50, 20);
  CHECK(taken(numbers({20, 5}), at).shape == std::vector<std::int64_t>{50, 5});
  stream.wait();
}

TEST_CASE("misuse of the GPU's memory", "[cuda]") {
  const auto doubled = [](Row x) { return x * 2.0f; };
  const auto gpu = compile(doubled, {.target = Target::cuda});
  const cuda::Stream stream;
  auto x = cuda::to_device(numbers({8}));
  auto moved = std::move(x);
  CHECK(gpu.on(stream)(moved).shape() == std::vector<std::int64_t>{8});
  float host[8] = {};
  CHECK_THROWS_WITH(gpu.on(stream)(cuda::DeviceView<const float>(host, {8})),
                    Catch::Contains("argument 1 is a DeviceView of memory that is not the GPU's"));
  CHECK_THROWS_WITH(gpu.on(stream)(cuda::DeviceView<const float>(nullptr, {8})), Catch::Contains("moved from or never made"));
  cuda::DeviceTensor<float> small({7});
  CHECK_THROWS_WITH(gpu.on(stream).into(small, moved), Catch::Contains("into: expected room for 8 elements, got 7"));
  const auto cpu = compile(doubled, {.target = Target::cpp, .name = "doubled"});
  CHECK_THROWS_WITH(cpu.on(stream)(moved), Catch::Contains("expected a function that is compiled for Target::cuda, got 'doubled'"));
}

TEST_CASE("loops with sizes and numbers of the GPU", "[cuda]") {
  const auto until = [](Row64 u) {
    return WHILE(
        u, [](Row64 now) { return sum(now * now) > 1.0; }, [](Row64 now) { return now * 0.5; });
  };
  same(compile(until, {.target = Target::cuda})(numbers<double>({300})), compile(until, {.target = Target::c})(numbers<double>({300})), 1e-12);
  const auto stencil = grad<0>([](Row64 u, Rep<std::int64_t> steps) {
    return sum(FOR(0, steps, u, [](Rep<std::int64_t>, Row64 v) { return Row64(v + 0.1 * (roll<0>(v, 1) - sin(v))); }));
  });
  same(compile(stencil, {.target = Target::cuda})(numbers<double>({64}), 7), compile(stencil, {.target = Target::c})(numbers<double>({64}), 7),
       1e-12);
}

TEST_CASE("threads have memory of the GPU of their own", "[cuda]") {
  const auto gpu = compile([](Row64 x) { return sum(x * x); }, {.target = Target::cuda});
  std::vector<std::thread> threads;
  std::vector<double> sums(4);
  for (std::size_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 3; ++i) sums[t] = gpu(numbers<double>({100 + static_cast<std::int64_t>(t)}));
    });
  for (std::thread& t : threads) t.join();
  const auto cpu = compile([](Row64 x) { return sum(x * x); }, {.target = Target::c});
  for (std::size_t t = 0; t < 4; ++t) CHECK(sums[t] == Approx(cpu(numbers<double>({100 + static_cast<std::int64_t>(t)}))).epsilon(1e-13));
}
