// What layers of networks cost on a GPU: launches, and bytes of the GPU's memory beside the least that any
// kernels could move.
#include <lantern/nn.hpp>
#include <lantern/tensor.hpp>

#include "cuda_budget.hpp"

using namespace lantern;
using lantern::test::floats;
using lantern::test::spends;
using Matrix = Rep<Tensor<float, dyn, dyn>>;
using Row = Rep<Tensor<float, dyn>>;
using Images = Rep<Tensor<float, dyn, dyn, dyn, dyn>>;

namespace {

/// By the emulator with and without recomputation, and on the processor; the bytes that are moved with and
/// without.
template <class F, class... A>
std::pair<std::int64_t, std::int64_t> moved(const char* name, F f, const A&... args) {
  INFO(name);
  const auto expected = compile(f, {.target = Target::c, .name = name})(args...);
  const auto run = [&](const std::vector<std::string>& without) {
    const lantern::test::Emulated emulated(
        compile(f, {.target = Target::cuda, .disabled_passes = without, .name = name}).source("cuda"), name,
        true);
    for (const bool backwards : {false, true}) {
      emulated.backwards(backwards);
      lantern::test::compare_all(emulated(args...), expected, 2e-5);
    }
    return emulated.spent().moved;
  };
  return {run({}), run({"rematerialise"})};
}

}  // namespace

TEST_CASE("elements are computed again where fewer bytes move then", "[cuda]") {
  if (!codegen::nvrtc_available()) return;
  const auto x = floats({4, 3, 5, 6}), y = floats({4, 3, 5, 6}, 2);
  const auto row = floats({3}, 3);
  const auto less = [&](const char* name, auto f, const auto&... args) {
    const auto [with, without] = moved(name, f, args...);
    CHECK(with < without);
  };
  const auto equal = [&](const char* name, auto f, const auto&... args) {
    const auto [with, without] = moved(name, f, args...);
    CHECK(with == without);
  };
  const auto channels = [](Row m) { return reshape(m, m.dim(0), 1, 1); };
  const auto sums = [](Images a) { return sum<0, 2, 3>(a); };
  const auto normalised = [=](Images a) {
    const Images c = a - channels(Row(mean<0, 2, 3>(a)));
    return Images(c / channels(Row(sqrt(Row(mean<0, 2, 3>(Images(c * c))) + 1e-3F))));
  };
  // Of one reader over other loops, of two, of one that reads what another one made, and of sizes whose products are compared.
  less(
      "channel_squares", [=](Images a, Row m) { return sums((a - channels(m)) * (a - channels(m))); }, x,
      row);
  less("normalised", normalised, x);
  less(
      "two_sums",
      [=](Images a, Row m) {
        const Images c = a * channels(m);
        return std::tuple(sums(c), sums(c * c));
      },
      x, row);
  moved(
      "of_two", [=](Images a, Images b) { return sums(a * b); }, x, y);
  // Of what it updates it reads the element that it replaces.
  moved(
      "in_place",
      [=](Matrix a, Matrix b) {
        const Matrix c = matmul(a, b);
        const Matrix d = (c + 1.0F) * c;
        return std::tuple(Row(sum<0>(d)), Row(sum<0>(Matrix(d * d))));
      },
      floats({50, 60}), floats({60, 70}, 2));
  // What the caller gets is made, and what is dear.
  equal(
      "kept",
      [=](Images a, Row m) {
        const Images c = a - channels(m);
        return std::tuple(c, sums(c));
      },
      x, row);
  equal(
      "dear",
      [=](Images a, Row m) {
        Images c = a - channels(m);
        for (int i = 0; i < 6; ++i) c = sin(exp(c)) * c;
        return sums(c);
      },
      x, row);
  // What was read is updated between: by a kernel that needs a sum of what was made.
  moved(
      "updated",
      [=](Images a, Row m) {
        const Images c = a - channels(m);
        const Row s = sums(c * c);
        const Images b = FOR(0, a.dim(0), a,
                             [&](Rep<std::int64_t> i, Images t) { return t.set(i, i % 3, 0, 0, s(i % 3)); });
        return std::tuple(b, sums(c));
      },
      x, row);
  // Derivatives, a loop of the host, and a view.
  less("slope", grad<0, 1>([=](Images a, Images b) { return sum(normalised(a) * b); }), x, y);
  less(
      "steps",
      [=](Images a, Rep<std::int64_t> n) {
        return FOR(0, n, a, [&](Rep<std::int64_t>, Images t) { return normalised(t); });
      },
      x, std::int64_t{3});
  moved(
      "viewed",
      [=](Images a, Images b) {
        const Images c = reshape(Images(a * 2.0F), b.dim(0), b.dim(1), b.dim(2), b.dim(3));
        return std::tuple(sums(c * b), sums(c));
      },
      x, floats({3, 4, 6, 5}));
  // No element.
  moved(
      "empty", [=](Images a, Row m) { return sums((a - channels(m)) * (a - channels(m))); },
      floats({0, 3, 5, 6}), row);
}

TEST_CASE("what windows give to their elements is gathered", "[cuda]") {
  if (!codegen::nvrtc_available()) return;
  const auto scale = floats({1, 1, 1, 1}, 5);
  const auto gathered = [&](const char* name, auto f) {
    INFO(name);
    const auto here = compile(f, {.target = Target::c, .name = name});
    const auto launches = [&](const std::vector<std::string>& without) {
      const lantern::test::Emulated emulated(
          compile(f, {.target = Target::cuda, .disabled_passes = without, .name = name}).source("cuda"), name, true);
      for (const auto& shape : {std::vector<std::int64_t>{0, 2, 6, 6}, {1, 2, 7, 9}, {2, 1, 5, 6}, {2, 3, 8, 8}}) {
        const auto x = floats(shape);
        emulated.backwards(shape[0] == 1);
        const auto results = emulated(x, scale);
        lantern::test::compare_all(results, here(x, scale), 2e-5);
        lantern::test::compare_all(results, eager(f)(x, scale), 2e-5);
      }
      return emulated.spent().launches;
    };
    return std::pair(launches({}), launches({"window_gather"}));
  };
  // Elements that are equal share what a window gives.
  const auto slope = [](std::int64_t window, core::PoolOptions options) {
    return grad<0>([=](Images a, Images s) {
      const Images pooled = max_pool(Images(clip(a, -0.5F, 0.5F)), window, options);
      return sum(pooled * pooled * s(0, 0, 0, 0));
    });
  };
  const auto fewer = [](const auto& launches) { CHECK(launches.first < launches.second); };
  fewer(gathered("halves", slope(2, {})));
  fewer(gathered("overlapping", slope(3, {.stride = 2})));
  fewer(gathered("gaps", slope(2, {.stride = 3})));
  gathered("steps", slope(2, {.stride = 1}));  // scatter_to_gather has done it
}

TEST_CASE("budgets of pooling", "[cuda]") {
  const auto x = floats({2, 3, 8, 8}), t = floats({2, 3, 4, 4});
  const std::int64_t all = 4 * 384, pooled = 4 * 96;  // bytes
  // One kernel, which loads each element and stores each result: no library moves less.
  spends(
      "max_pool", [](Images a) { return max_pool(a, 2); }, {.launches = 1, .moved = all + pooled}, x);
  spends(
      "max_pool_overlapping", [](Images a) { return max_pool(a, 3, {.stride = 2, .padding = 1}); },
      {.launches = 1, .moved = all + pooled}, x);
  spends(
      "global_pool", [](Images a) { return mean<2, 3>(a); }, {.launches = 1, .moved = all + 24}, x);
  // What the sum gives, and a kernel that loads and stores each element once.
  spends("max_pool_slope", grad<0>([](Images a, Images s) { return sum(max_pool(a, 2) * s); }),
         {.launches = 2, .moved = 2 * all + 3 * pooled}, x, t);
  // This moves more than the least, all + pooled.
  spends(
      "average_pool", [](Images a) { return average_pool(a, 2); }, {.launches = 3, .moved = all + 3 * pooled},
      x);
}

TEST_CASE("budgets of batch normalisation", "[cuda]") {
  const auto x = floats({4, 3, 8, 8}), t = floats({4, 3, 8, 8}, 2);
  const auto w = floats({3}, 3), m = floats({3}), v = floats({3}, 2);
  const std::int64_t all = 4 * 768;
  const auto train = [](Images a, Row weight, Row mean, Row variance) {
    const auto [y, after] =
        nn::BatchNorm<Rep<float>>{weight, weight}.train(a, nn::RunningStatistics<Rep<float>>{mean, variance});
    return std::tuple(Images(y), Row(after.mean), Row(after.variance));
  };
  // Sums, then the result: a channel is loaded twice, and stored once. The gradient takes the sums of two
  // products and of two adjoints.
  spends("batch_norm", train, {.launches = 2, .moved = 3 * all + 120}, x, w, m, v);
  spends("batch_norm_slope", grad<0, 1>([=](Images a, Row weight, Images s) {
           return sum(std::get<0>(train(a, weight, weight, weight)) * s);
         }),
         {.launches = 5, .moved = 7 * all + 168}, x, w, t);
  spends("batch_norm_relu_slope", grad<0, 1>([=](Images a, Row weight, Images s) {
           return sum(relu(std::get<0>(train(a, weight, weight, weight))) * s);
         }),
         {.launches = 4, .moved = 7 * all + 145}, x, w, t);
}

TEST_CASE("budgets of attention", "[cuda]") {
  const auto q = floats({2, 8, 2, 4}), k = floats({2, 8, 2, 4}), v = floats({2, 8, 2, 4}),
             t = floats({2, 8, 2, 4});
  spends(
      "attention", [](Images a, Images b, Images c) { return nn::attention(a, b, c); }, {.launches = 5}, q, k,
      v);
  spends(
      "attention_causal", [](Images a, Images b, Images c) { return nn::attention(a, b, c, true); },
      {.launches = 6}, q, k, v);
  spends("attention_slope", grad<0, 1, 2>([](Images a, Images b, Images c, Images s) {
           return sum(nn::attention(a, b, c) * s);
         }),
         {.launches = 9}, q, k, v, t);
  spends("attention_causal_slope", grad<0, 1, 2>([](Images a, Images b, Images c, Images s) {
           return sum(nn::attention(a, b, c, true) * s);
         }),
         {.launches = 11}, q, k, v, t);
}
