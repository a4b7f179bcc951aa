// What calls on a GPU cost beside their arithmetic: steps of training, stencils, embeddings, sums, boxes, pictures. And that the
// emulator finds races.
#include <lantern/nn.hpp>
#include <lantern/tensor.hpp>

#include "cuda_budget.hpp"

using namespace lantern;
using lantern::test::Emulated;
using lantern::test::floats;
using lantern::test::labels;
using lantern::test::spends;
using Matrix = Rep<Tensor<float, dyn, dyn>>;
using Row = Rep<Tensor<float, dyn>>;
using Images = Rep<Tensor<float, dyn, dyn, dyn, dyn>>;
using Labels = Rep<Tensor<std::int64_t, dyn>>;

namespace {

Rep<float> loss(Matrix w1, Row b1, Matrix w2, Row b2, Matrix x, Labels y) {
  const Matrix h = relu(matmul(x, transpose(w1)) + b1);
  return nn::cross_entropy(Matrix(matmul(h, transpose(w2)) + b2), y);
}
Rep<float> norm_loss(Matrix x, Row g, Row b, Matrix t) {
  const auto mu = mean<1>(x, keep);
  const Matrix c = x - mu;
  const auto s = mean<1>(c * c, keep);
  return sum(softmax<1>(Matrix(c / sqrt(s + 1e-5F) * g + b)) * t);
}
Matrix stencil(Matrix u) {
  const auto m = u.dim(0), n = u.dim(1);
  return FOR(1, m - 1, u, [&](Rep<std::int64_t> i, Matrix rows) {
    return FOR(1, n - 1, rows, [&](Rep<std::int64_t> j, Matrix next) {
      return next.set(i, j, u(i, j) + 0.1F * (u(i - 1, j) + u(i + 1, j) + u(i, j - 1) + u(i, j + 1) - 4.0F * u(i, j)));
    });
  });
}

}  // namespace

TEST_CASE("budget of a training step", "[cuda]") {
  spends(
      "training_step",
      [](Matrix w1, Row b1, Matrix w2, Row b2, Matrix x, Labels y, Rep<float> rate) {
        const auto [l, g] = value_and_grad<0, 1, 2, 3>(loss)(w1, b1, w2, b2, x, y);
        const auto [g1, g2, g3, g4] = g;
        return std::tuple(l, Matrix(w1 - rate * g1), Row(b1 - rate * g2), Matrix(w2 - rate * g3), Row(b2 - rate * g4));
      },
      {.launches = 12, .waits = 1, .results = 20}, floats({20, 12}), floats({20}), floats({5, 20}), floats({5}), floats({16, 12}),
      labels(16, 5), 0.1F);
}

TEST_CASE("budget of the gradient of a norm and a softmax", "[cuda]") {
  spends("norm_slope", value_and_grad<0, 1, 2>(norm_loss), {.launches = 3, .waits = 1, .results = 4}, floats({40, 32}),
         floats({32}), floats({32}), floats({40, 32}));
}

TEST_CASE("budgets of stencils and embeddings", "[cuda]") {
  spends("stencil_slope", grad([](Matrix u) {
           const Matrix s = stencil(u);
           return sum(s * s);
         }),
         {.launches = 2, .waits = 0}, floats({12, 14}));
  spends("stencil_steps", grad<0>([](Matrix u, Rep<std::int64_t> steps) {
           const Matrix e = FOR(0, steps, u, [](Rep<std::int64_t>, Matrix v) {
             const Matrix w = stencil(v);
             return Matrix(w * w);
           });
           return sum(e * e);
         }),
         {.launches = 61, .waits = 0}, floats({12, 14}, 4), std::int64_t{20});
  spends("embedding_slope", grad<0>([](Matrix w, Labels at, Matrix t) {
           const Matrix d = Matrix(take<0>(w, at) - t);
           return sum(d * d);
         }),
         {.launches = 4, .waits = 0}, floats({50, 8}), labels(40, 50), floats({40, 8}));
}

TEST_CASE("sums into large tensors by their rows", "[cuda]") {
  // A block owns rows and adds in the order of the processor: no tensor for each block, equal bits.
  const auto embedding = grad<0>([](Matrix w, Labels at, Matrix t) {
    const Matrix d = Matrix(take<0>(w, at) - t);
    return sum(d * d);
  });
  const auto cubes = grad<0>([](Row w, Labels at) {
    const Row d = take<0>(w, at);
    return sum(d * d * d);
  });
  spends("embedding_of_a_large_table", embedding, {.launches = 3, .tolerance = 0}, floats({1100, 32}), labels(121, 35),
         floats({121, 32}));
  spends("elements_of_a_large_table", cubes, {.launches = 2, .tolerance = 0}, floats({36000}), labels(121, 1));
  if (!codegen::nvrtc_available()) return;
  const auto added = [](Matrix w, Labels at, Matrix t) { return scatter_add<0>(w, at, t); };
  const Emulated emulated(compile(added, {.target = Target::cuda, .name = "added"}).source("cuda"), "added");
  // A key that a branch guards is not read before the branch.
  const auto guarded = grad<0>([](Matrix w, Labels at, Matrix t) {
    Rep<float> total = 0.0F;
    FOR(0, t.dim(0), [&](Rep<std::int64_t> i) {
      IF(i < at.dim(0), [&] {
        const Rep<std::int64_t> k = at[i];
        FOR(0, t.dim(1), [&](Rep<std::int64_t> j) { total = total + w(k, j) * t(i, j); });
      });
    });
    return total;
  });
  const Emulated behind(compile(guarded, {.target = Target::cuda, .name = "behind"}).source("cuda"), "behind", true);
  lantern::test::compare(behind(floats({1100, 32}), labels(0, 1), floats({121, 32})).at(0),
                         compile(guarded, {.target = Target::c})(floats({1100, 32}), labels(0, 1), floats({121, 32})), 0);
  // A key that the iteration's number is taken from: in the kernel it is the first number and what was counted since.
  const auto shifted = grad<0>([](Matrix w, Rep<Tensor<std::int32_t, dyn>> at, Matrix t) {
    Rep<float> total = 0.0F;
    FOR(3, at.dim(0), [&](Rep<std::int64_t> i) {
      const Rep<std::int64_t> k = cast<std::int64_t>(at(i)) - i;
      FOR(0, t.dim(1), [&](Rep<std::int64_t> j) { total = total + w(k, j) * t(i, j); });
    });
    return total;
  });
  const std::string keyed = compile(shifted, {.target = Target::cuda, .name = "keyed"}).source("cuda");
  CHECK(keyed.find("lt_owned_row(") != std::string::npos);
  const Emulated emulated_keys(keyed, "keyed", true);
  std::vector<std::int32_t> numbers;
  for (std::int32_t i = 0; i < 121; ++i) numbers.push_back(i + i % 2);
  const TensorValue<std::int32_t> after(numbers, {121});
  for (const bool backwards : {false, true}) {
    emulated_keys.backwards(backwards);
    lantern::test::compare(emulated_keys(floats({1100, 32}), after, floats({121, 32})).at(0),
                           compile(shifted, {.target = Target::c})(floats({1100, 32}), after, floats({121, 32})), 0);
  }
  auto wrong = labels(121, 1100);
  wrong.data[45] = 1100;
  wrong.data[41] = -3;
  for (const bool backwards : {false, true}) {
    emulated.backwards(backwards);
    CHECK_THROWS_WITH(emulated(floats({1100, 32}), wrong, floats({121, 32})), Catch::StartsWith("index -3 is outside 0..1099"));
  }
}

TEST_CASE("budgets of sums and elements", "[cuda]") {
  spends("total", [](Row x) { return sum(x); }, {.launches = 1, .waits = 1, .results = 4}, floats({5000}));
  spends("columns", [](Matrix x) { return sum<0>(x); }, {.launches = 2}, floats({64, 24}));
  spends("rows", [](Matrix x) { return sum<1>(x); }, {.launches = 1}, floats({64, 24}));
  spends("largest", [](Row x) { return std::tuple(max(x), argmax(x)); }, {.launches = 1, .waits = 1, .results = 8}, floats({500}));
  spends("elements", [](Matrix x, Matrix y) { return exp(x) * y + 1.0F; }, {.launches = 1}, floats({64, 24}), floats({64, 24}));
  spends("turned", [](Matrix x) { return transpose(x) + 1.0F; }, {.launches = 1}, floats({64, 24}));
  spends("centred", [](Matrix x) { return x - mean<0>(x); }, {.launches = 4}, floats({64, 24}));
}

TEST_CASE("budgets of boxes in tensors, of scatters, and of what has nothing to do with each other", "[cuda]") {
  // The elements outside are the old ones: the kernel copies them.
  const auto inner = [](Matrix u) { return std::tuple(stencil(u), u * 2.0F); };
  for (const std::int64_t n : {1, 2, 3, 12}) spends("box_of_a_copy", inner, {.launches = 1}, floats({n, 14}));
  // Of zeros the kernel writes those.
  const auto edged = [](Row x) {
    return FOR(2, x.dim(0) - 3, zeros_like(x), [&](Rep<std::int64_t> i, Row t) { return t.set(i, x(i + 1) * x(i)); });
  };
  for (const std::int64_t n : {1, 4, 6, 300}) spends("box_of_zeros", edged, {.launches = 1}, floats({n}));
  spends("histogram",
         [](Row w, Labels at) {
           return FOR(0, at.dim(0), zeros<float>({10}),
                      [&](Rep<std::int64_t> i, Rep<Tensor<float, 10>> h) { return h.set(at(i), h(at(i)) + w(i)); });
         },
         {.launches = 2}, floats({300}), labels(300, 10));
  spends("side_by_side", [](Row x, Row y) { return std::tuple(Row(exp(x)), Row(x * y), Row(sin(y) + x)); }, {.launches = 1},
         floats({300}), floats({300}));
  // The backward part of a gather counts down.
  spends("gathered", grad([](Row x, Labels at) { return sum(Row(take<0>(x, at) * take<0>(x, at))); }), {.launches = 3}, floats({40}),
         labels(300, 40));
}

TEST_CASE("boxes that do not lie within their tensor fail as on the processor", "[cuda]") {
  if (!codegen::nvrtc_available()) return;
  const auto shifted = [](Row x, Rep<std::int64_t> by) {
    return FOR(0, x.dim(0), x, [&](Rep<std::int64_t> i, Row t) { return t.set(i + by, x(i)); });
  };
  const Emulated emulated(compile(shifted, {.target = Target::cuda, .name = "shifted"}).source("cuda"), "shifted");
  lantern::test::compare_all(emulated(floats({50}), std::int64_t{0}), floats({50}), 1e-6);
  CHECK_THROWS_WITH(emulated(floats({50}), std::int64_t{1}), Catch::StartsWith("index 50 is outside 0..49"));
}

TEST_CASE("budgets of pictures", "[cuda]") {
  const auto features = [](Images x, Images w) { return relu(conv(x, w, {.stride = 1, .padding = 1})); };
  spends("convolution_slope", grad<0, 1>([=](Images x, Images w) { return sum(Images(features(x, w) * features(x, w))); }),
         {.launches = 16, .waits = 0}, floats({2, 3, 6, 6}), floats({4, 3, 3, 3}));
  spends("pooling_slope", grad([](Images x) {
           const auto y = max_pool(x, 2);
           return sum(y * y);
         }),
         {.launches = 2, .waits = 0}, floats({2, 3, 6, 6}));
}

TEST_CASE("kernels for each architecture", "[cuda]") {
  if (!codegen::nvrtc_available()) return;
  const auto texts = {compile(value_and_grad<0, 1, 2>(norm_loss), {.target = Target::cuda}).source("cuda"),
                      compile(stencil, {.target = Target::cuda}).source("cuda")};
  for (const char* architecture : {"sm_75", "sm_80", "sm_90", "sm_100", "sm_120"})
    for (const std::string& text : texts) {
      INFO(architecture);
      CHECK(codegen::cubin_with_nvrtc(text, architecture).substr(1, 3) == "ELF");
    }
}

TEST_CASE("the emulator finds races", "[cuda]") {
  const std::string start = R"(
#include <cuda_runtime.h>
__global__ void k(float* x) {
  __shared__ float s[64];
)";
  const std::string end = R"(
}
extern "C" int run() {
  float* x = 0;
  cudaMalloc((void**)&x, 4096);
  cudaMemset(x, 0, 4096);
  k<<<4, 64>>>(x);
  const int status = cudaGetLastError();
  cudaFree(x);
  return status;
})";
  const auto report = [&](const std::string& body) {
    const auto code = codegen::compile_emulated(start + body + end, true);
    const int status = code->function<int()>("run")();
    const std::string said = code->function<const char*()>("lantern_emulator_report")();
    CHECK((status == 0) == said.empty());
    return said;
  };
  const std::string shared = "s[threadIdx.x] = 1; $ x[64 * blockIdx.x + threadIdx.x] = s[63 - threadIdx.x];";
  const auto with = [](std::string text, const std::string& what) { return text.replace(text.find('$'), 1, what); };
  CHECK(report(with(shared, "__syncthreads();")) == "");
  CHECK_THAT(report(with(shared, "")), Catch::StartsWith("race: thread "));
  CHECK_THAT(report(with(shared, "__syncwarp();")), Catch::StartsWith("race: thread "));  // of two warps
  CHECK(report("s[threadIdx.x] = 1; __syncwarp(); x[64 * blockIdx.x + threadIdx.x] = s[threadIdx.x ^ 1];") == "");
  // Between blocks.
  CHECK_THAT(report("x[threadIdx.x] = 1;"), Catch::Contains("stores at ") && Catch::EndsWith("stores"));
  CHECK_THAT(report("if (blockIdx.x == 0) x[threadIdx.x] = 1; else s[0] = x[threadIdx.x] + x[63];"), Catch::StartsWith("race: thread "));
  CHECK(report("atomicAdd(&x[0], 1.0f);") == "");
  // One thread after the other, of a block and of another one, by a lock; and where the lock is left too early.
  CHECK(report("while (atomicCAS((int*)&x[1], 0, 1) != 0) {} x[0] += 1; atomicExch((int*)&x[1], 0);") == "");
  CHECK_THAT(report("while (atomicCAS((int*)&x[1], 0, 1) != 0) {} atomicExch((int*)&x[1], 0); x[0] += 1;"), Catch::StartsWith("race: thread "));
  const auto last = [&](const std::string& asked) {
    return report("if (threadIdx.x == 0) { x[1 + blockIdx.x] = 1; __threadfence(); if (" + asked +
                  ") x[0] = x[1] + x[2] + x[3] + x[4]; }");
  };
  CHECK(last("atomicAdd(&x[9], 1.0f) == 3") == "");
  CHECK_THAT(last("blockIdx.x == 3"), Catch::StartsWith("race: thread "));
}
