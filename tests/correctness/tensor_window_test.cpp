// Convolutions and pooling: values against plain loops, derivatives against differences, forward against reverse,
// eager against compiled.
#include <cmath>
#include <functional>
#include <lantern/tensor.hpp>
#include <numeric>

#include "catch2/catch.hpp"

using namespace lantern;

namespace {

using T = Rep<Tensor<double>>;
using Values = TensorValue<double>;
using Shape = std::vector<std::int64_t>;
using Function = std::function<T(const T&, const T&)>;

Values numbers(const Shape& shape, double phase) {
  Values t(shape);
  for (std::size_t i = 0; i < t.data.size(); ++i) t.data[i] = std::sin(1.3 * static_cast<double>(i) + phase);
  return t;
}

void same(const Values& a, const Values& b, double tolerance) {
  CHECK(a.shape == b.shape);
  REQUIRE(a.data.size() == b.data.size());
  for (std::size_t i = 0; i < a.data.size(); ++i) {
    INFO("element " << i);
    CHECK(a.data[i] == Approx(b.data[i]).epsilon(tolerance).margin(tolerance));
  }
}

Values check(const char* name, const Function& f, const Values& x, const Values& w) {
  INFO(name);
  const auto program = [f](T a, T b) { return f(a, b); };
  const auto scalar = [f](T a, T b) {
    const T y = f(a, b);
    return sum(y * y) + sum(sin(y));
  };
  const Values y = eager(program)(x, w);
  const auto gradient = eager(grad(scalar))(x, w);
  for (const Target target : {Target::c, Target::cpp}) {
    INFO((target == Target::c ? "C" : "C++"));
    const CompileOptions options = {.target = target, .opt = target == Target::c ? 0 : 2};
    same(compile(program, options)(x, w), y, 1e-12);
    const auto other = compile(grad(scalar), options)(x, w);
    same(std::get<0>(other), std::get<0>(gradient), 1e-9);
    same(std::get<1>(other), std::get<1>(gradient), 1e-9);
  }
  const Values dx = numbers(x.shape, 0.2), dw = numbers(w.shape, 0.9);
  const auto dot = [](const Values& a, const Values& b) {
    return std::inner_product(a.data.begin(), a.data.end(), b.data.begin(), 0.0);
  };
  const double slope = dot(dx, std::get<0>(gradient)) + dot(dw, std::get<1>(gradient));
  CHECK(std::get<1>(eager(jvp(scalar))(x, w, dx, dw)) == Approx(slope).epsilon(1e-9).margin(1e-9));
  const auto moved = [](const Values& at, const Values& d, double h) {
    Values to = at;
    for (std::size_t i = 0; i < to.data.size(); ++i) to.data[i] += h * d.data[i];
    return to;
  };
  const auto value = compile(scalar);
  const double difference =
      (value(moved(x, dx, 1e-5), moved(w, dw, 1e-5)) - value(moved(x, dx, -1e-5), moved(w, dw, -1e-5))) / 2e-5;
  CHECK(slope == Approx(difference).epsilon(1e-6).margin(1e-6));
  return y;
}

/// A convolution of two sizes, as a definition says it.
Values reference(const Values& x, const Values& w, std::int64_t stride, std::int64_t padding, std::int64_t dilation,
                 std::int64_t groups) {
  const auto out = [&](std::size_t d) {
    return (x.shape[d] + 2 * padding - dilation * (w.shape[d] - 1) - 1) / stride + 1;
  };
  Values y(Shape{x.shape[0], w.shape[0], out(2), out(3)});
  std::size_t at = 0;
  const std::int64_t per_group = w.shape[0] / groups;
  for (std::int64_t n = 0; n < y.shape[0]; ++n)
    for (std::int64_t o = 0; o < y.shape[1]; ++o)
      for (std::int64_t i = 0; i < y.shape[2]; ++i)
        for (std::int64_t j = 0; j < y.shape[3]; ++j, ++at)
          for (std::int64_t c = 0; c < w.shape[1]; ++c)
            for (std::int64_t p = 0; p < w.shape[2]; ++p)
              for (std::int64_t q = 0; q < w.shape[3]; ++q) {
                const std::int64_t u = i * stride + p * dilation - padding, v = j * stride + q * dilation - padding;
                if (u < 0 || u >= x.shape[2] || v < 0 || v >= x.shape[3]) continue;
                const std::int64_t channel = o / per_group * w.shape[1] + c;
                y.data[at] += x.data[static_cast<std::size_t>(((n * x.shape[1] + channel) * x.shape[2] + u) * x.shape[3] + v)] *
                              w.data[static_cast<std::size_t>(((o * w.shape[1] + c) * w.shape[2] + p) * w.shape[3] + q)];
              }
  return y;
}

double dot(const Values& a, const Values& b) {
  return std::inner_product(a.data.begin(), a.data.end(), b.data.begin(), 0.0);
}

}  // namespace

TEST_CASE("convolutions are what their definition says") {
  struct Case {
    std::int64_t stride, padding, dilation, groups, height, width;
  };
  for (const Case& c : {Case{1, 0, 1, 1, 3, 2}, Case{2, 1, 1, 1, 3, 3}, Case{1, 2, 2, 1, 2, 3}, Case{2, 0, 1, 2, 1, 1},
                        Case{3, 2, 2, 2, 3, 2}}) {
    INFO("stride " << c.stride << ", padding " << c.padding << ", dilation " << c.dilation << ", groups " << c.groups);
    const Values x = numbers({2, 4, 6, 5}, 0.1), w = numbers({6, 4 / c.groups, c.height, c.width}, 0.7);
    const ConvolutionOptions options = {
        .stride = c.stride, .padding = c.padding, .dilation = c.dilation, .groups = c.groups};
    const Values y = check("conv2d", [&](const T& a, const T& b) { return conv2d(a, b, options); }, x, w);
    same(y, reference(x, w, c.stride, c.padding, c.dilation, c.groups), 1e-12);
  }
  const Values x = numbers({2, 2, 7}, 0.1), w = numbers({3, 2, 3}, 0.4);
  const Values y = check("conv1d", [](const T& a, const T& b) { return conv1d(a, b, {.padding = 1}); }, x, w);
  CHECK(y.shape == Shape{2, 3, 7});
  check("conv3d", [](const T& a, const T& b) { return conv3d(a, b, {.stride = {1, 2, 1}}); }, numbers({1, 2, 3, 4, 3}, 0),
        numbers({2, 2, 2, 2, 2}, 1));
  check("with a bias", [](const T& a, const T& b) { return conv(a, b, T(sum<1, 2>(b)), {.stride = 2}); }, x, w);
}

TEST_CASE("a transposed convolution is the transpose of a convolution") {
  for (const std::int64_t groups : {1, 2}) {
    const ConvolutionOptions options = {.stride = 2, .padding = 1, .dilation = {1, 2}, .groups = groups, .output_padding = {1, 0}};
    const Values x = numbers({2, 4, 6, 7}, 0.3), w = numbers({6, 4 / groups, 3, 2}, 0.8);
    const Values y = compile([&](T a, T b) { return conv2d(a, b, options); })(x, w), z = numbers(y.shape, 0.5);
    const Function back = [&](const T& a, const T& b) { return conv_transpose(a, b, options); };
    const Values xbar = check("conv_transpose", back, z, w);
    CHECK(xbar.shape == x.shape);
    CHECK(dot(y, z) == Approx(dot(x, xbar)));
  }
}

TEST_CASE("pooling") {
  const Values x = numbers({2, 3, 5, 6}, 0.3), one({1}, 1.0);
  const auto pooled = [&](const char* name, const std::function<T(const T&)>& f) {
    return check(name, [&](const T& a, const T& b) { return f(a) * sum(b); }, x, one);
  };
  const Values largest = pooled("max_pool", [](const T& a) { return max_pool(a, 2); });
  CHECK(largest.shape == Shape{2, 3, 2, 3});
  CHECK(largest.data[0] == std::max({x.data[0], x.data[1], x.data[6], x.data[7]}));
  const Values padded = pooled("max_pool, padded", [](const T& a) {
    return max_pool(a, {3, 2}, {.stride = {2, 1}, .padding = 1});
  });
  CHECK(padded.shape == Shape{2, 3, 3, 7});
  CHECK(padded.data[0] == std::max(x.data[0], x.data[6]));
  const Values means = pooled("average_pool", [](const T& a) { return average_pool(a, 2, {.padding = 1}); });
  CHECK(means.data[0] == Approx(x.data[0] / 4));
  const Values inside = pooled("average_pool of what is there", [](const T& a) {
    return average_pool(a, 2, {.padding = 1, .count_padding = false});
  });
  CHECK(inside.data[0] == Approx(x.data[0]));
  const Values adaptive = pooled("adaptive_average_pool", [](const T& a) { return adaptive_average_pool(a, {2, 4}); });
  CHECK(adaptive.shape == Shape{2, 3, 2, 4});
  double mean = 0;  // rows 0 to 2, columns 0 and 1
  for (const std::size_t i : {0, 1, 6, 7, 12, 13}) mean += x.data[i] / 6;
  CHECK(adaptive.data[0] == Approx(mean));
  const Values windows = pooled("unfold", [](const T& a) { return unfold(a, {2, 3}, {.stride = 2, .padding = 1}); });
  CHECK(windows.shape == Shape{2, 3, 2, 3, 3, 3});
  CHECK(windows.data[0] == 0);
}

TEST_CASE("what does not fit is said") {
  const auto fails = [](auto f, const Values& x, const Values& w, const char* text) {
    CHECK_THROWS_WITH(compile(f)(x, w), Catch::Contains(text));
    CHECK_THROWS_WITH(eager(f)(x, w), Catch::Contains(text));
  };
  const Values x = numbers({1, 2, 4, 4}, 0);
  fails([](T a, T b) { return conv2d(a, b); }, x, numbers({1, 3, 2, 2}, 0), "as many channels as the weights have inputs");
  fails([](T a, T b) { return conv2d(a, b); }, x, numbers({1, 2, 5, 2}, 0), "the window is larger than the padded tensor");
  fails([](T a, T b) { return conv1d(a, b); }, x, x, "conv: expected a tensor [batch, channels, 1 sizes], got");
  fails([](T a, T b) { return conv(a, b, {.stride = 0}); }, x, x, "conv: expected stride of 1 or more, got 0");
  fails([](T a, T b) { return conv(a, b, {.padding = {1, 2, 3}}); }, x, x, "one for each of the 2 spatial dimensions");
  fails([](T a, T b) { return max_pool(a, 2, {.padding = 2}) * sum(b); }, x, x, "expected a padding below the window's size 2");
}
