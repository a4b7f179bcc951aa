// Layers of a network row by row: the gradient adds up over the rows what runs in lanes, of all sizes.
#include "../lanes.hpp"
#include "lantern/tensor.hpp"
#include "row_programs.hpp"

using namespace lantern;
using namespace lantern::core;
using namespace lantern::test;

namespace {

/// A layer for each row of x: what comes back to w are sums over the rows.
D layer(M w, M x) {
  return total(x.dim(0), [&](I r) {
    return total(w.dim(0),
                 [&](I i) { return tanh(total(w.dim(1), [&](I j) { return w(i, j) * x(r, j); })); });
  });
}

/// The same from the second entry on, and of two tensors in one loop.
D two_layers(M w, M v, M x) {
  return total(x.dim(0), [&](I r) {
    return total(w.dim(0), [&](I i) {
      return tanh(FOR(1, w.dim(1), D(0.5),
                      [&](I j, D s) { return s + w(i, j) * x(r, j) - v(i, j - 1) * x(r, j - 1) * 0.5; }));
    });
  });
}

}  // namespace

TEST_CASE("layers by rows: the same numbers as without passes", "[passes]") {
  const auto one = grad<0>(layer);
  const auto two = grad<0, 1, 2>(two_layers);
  const CompileOptions slow{.target = Target::c, .opt = 0};
  const auto one_slow = compile(one, slow);
  const auto two_slow = compile(two, slow);
  for (const bool strict : {false, true}) {
    const CompileOptions options{
        .target = Target::cpp, .opt = 3, .strict_math = strict, .lanes = lanes_under_test()};
    const auto one_fast = compile(one, options);
    const auto two_fast = compile(two, options);
    for (const std::size_t n : {1u, 2u, 3u, 4u, 5u, 7u, 8u, 9u, 16u, 23u})
      for (const std::size_t rows : {1u, 4u, 33u, 70u}) {
        CAPTURE(strict, n, rows);
        const std::vector<double> x = numbers(rows * n, 0.4), w = numbers(6 * n, 0.9),
                                  v = numbers(6 * n, 0.1);
        const auto xs = matrix(x, rows, n), ws = matrix(w, 6, n), vs = matrix(v, 6, n);
        check_close(one_fast(ws, xs).data, one_slow(ws, xs).data);
        const auto [fw, fv, fx] = two_fast(ws, vs, xs);
        const auto [dw, dv, dx] = two_slow(ws, vs, xs);
        check_close(fw.data, dw.data);
        check_close(fv.data, dv.data);
        check_close(fx.data, dx.data);
      }
  }
}

TEST_CASE("short rows of a depthwise convolution run in lanes, not its channels", "[vectorise]") {
  using Planes = Rep<Tensor<float, 1, 24, 16, 16>>;
  using Weights = Rep<Tensor<float, 24, 1, 3, 3>>;
  const auto program = [](Planes x, Weights w) { return conv2d(x, w, {.groups = 24}); };
  // Sums that may be reassociated call a routine.
  const CompileOptions lanes{.target = Target::cpp, .opt = 3, .reassociate = false, .lanes = lanes_under_test()};
  CompileOptions scalar = lanes;
  scalar.disabled_passes = {"vectorise"};
  const auto fast = compile(program, lanes), slow = compile(program, scalar);
  const std::string text = fast.source("cpp");
  CHECK(text.find("lt_load_some_") != std::string::npos);
  for (const char* call : {"strided(", "strided_f32", "gather_f32"}) CHECK(text.find(call) == std::string::npos);
  std::vector<float> a(24 * 16 * 16), b(24 * 9);
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = std::sin(0.7F * static_cast<float>(i));
  for (std::size_t i = 0; i < b.size(); ++i) b[i] = std::cos(0.3F * static_cast<float>(i));
  const TensorView<const float> x(a.data(), {1, 24, 16, 16}), w(b.data(), {24, 1, 3, 3});
  const auto got = fast(x, w), expected = slow(x, w);
  REQUIRE(got.data.size() == 24 * 14 * 14);
  for (std::size_t i = 0; i < got.data.size(); ++i) CHECK(std::abs(got.data[i] - expected.data[i]) < 2e-6F);
}
