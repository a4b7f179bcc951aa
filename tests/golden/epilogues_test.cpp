// epilogues: which nests become part of a product, and that values and derivatives are those without the
// pass.
#include "lantern/compiler/passes/array/epilogues.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <limits>

#include "../occurrences.hpp"
#include "around_pass.hpp"
#include "lantern/ir/parse.hpp"
#include "lantern/lantern.hpp"
#include "lantern/tensor.hpp"

using namespace lantern;
using lantern::test::count;

namespace {

template <class E>
using Matrix = Rep<Tensor<E, dyn, dyn>>;
template <class E>
using Row = Rep<Tensor<E, dyn>>;
template <class E>
using Pictures = Rep<Tensor<E, dyn, dyn, dyn, dyn>>;

template <class E>
TensorValue<E> numbers(std::vector<std::int64_t> shape, double phase) {
  std::int64_t n = 1;
  for (const std::int64_t d : shape) n *= d;
  TensorValue<E> t{std::vector<E>(static_cast<std::size_t>(n)), std::move(shape)};
  for (std::size_t i = 0; i < t.data.size(); ++i)
    t.data[i] = static_cast<E>(std::sin(1.3 * static_cast<double>(i) + phase));
  return t;
}

template <class E>
Matrix<E> layer(Matrix<E> x, Matrix<E> w, Row<E> b) {
  return relu(matmul(x, w) + b);
}
template <class E>
Matrix<E> with_residual(Matrix<E> x, Matrix<E> w, Row<E> b) {
  return min(max(matmul(x, w) + b + x, -0.5), 0.75);
}

/// The same bits, NaNs too.
template <class E>
void same(const TensorValue<E>& a, const TensorValue<E>& b) {
  REQUIRE(a.shape == b.shape);
  std::size_t differ = 0;
  for (std::size_t i = 0; i < a.data.size(); ++i)
    differ +=
        std::isnan(a.data[i]) ? !std::isnan(b.data[i]) : std::memcmp(&a.data[i], &b.data[i], sizeof(E)) != 0;
  CHECK(differ == 0);
}

/// A function with the pass and without it; called with arguments it compares what they give.
template <class F>
auto both(F f, bool strict = false) {
  const auto compiled = [&](std::vector<std::string> disabled) {
    return compile(f, {.target = Target::cpp, .strict_math = strict, .disabled_passes = std::move(disabled)});
  };
  return [with = compiled({}), without = compiled({"epilogues"})](const auto&... arguments) {
    same(with(arguments...), without(arguments...));
  };
}

template <class E>
auto convolution_layer(core::ConvolutionOptions options) {
  return sig<Tensor<E, dyn, dyn, dyn, dyn>(Tensor<E, dyn, dyn, dyn, dyn>, Tensor<E, dyn, dyn, dyn, dyn>,
                                           Tensor<E, dyn>)>(
      [options](Pictures<E> x, Pictures<E> w, Row<E> b) {
        return Pictures<E>(relu(conv2d(x, w, b, options)));
      });
}

}  // namespace

TEST_CASE("epilogues: what is done with each element of a product becomes a call", "[epilogues]") {
  const auto calls = [](auto f) { return count(test::around_pass("epilogues", f).second, "call[epilogue]"); };
  CHECK(calls(layer<double>) == 1);
  CHECK(calls(with_residual<float>) == 1);
  CHECK(calls(convolution_layer<float>({.padding = 1})) == 1);
  using M = Matrix<double>;
  using T2 = Tensor<double, dyn, dyn>;
  // Another reader, another element, a sum over elements, and no product.
  CHECK(calls(sig<T2(T2, T2)>([](M x, M w) {
          const M y = matmul(x, w);
          return M(matmul(relu(y), y));
        })) == 0);
  CHECK(calls(sig<T2(T2, T2)>([](M x, M w) { return M(transpose(relu(transpose(matmul(x, w))))); })) <= 1);
  CHECK(calls(sig<double(T2, T2)>([](M x, M w) { return Rep<double>(sum(relu(matmul(x, w)))); })) == 0);
  CHECK(calls(sig<T2(T2, T2)>([](M x, M w) { return M(relu(x + w)); })) == 0);
}

TEST_CASE("epilogues: the attribute is text", "[epilogues]") {
  const std::string text =
      "entry @f\n\nfun @g(%1: i64, %2: i64, %3: i64, %4: i64, %5: f64[?]) -> f64[?] {\n  yield %5\n}\n\n"
      "fun @f(%1: i64, %2: f64[?]) -> f64[?] {\n  %3 = call[epilogue] @g(%1, %1, %1, %1, %2) : f64[?]\n  "
      "yield %3\n}\n";
  CHECK(count(ir::print(*ir::parse(text)), "call[epilogue] @g(") == 1);
}

TEST_CASE("epilogues: what a call is given, it has until it ends", "[epilogues]") {
  // The bias ends with the call, which runs for each box: the caller gives its memory back, and the last call
  // too.
  const std::string text =
      test::around_pass("inplace", [](Matrix<double> x, Matrix<double> w, Row<double> b) {
        return Matrix<double>(relu(matmul(x, w) + tanh(b)));
      }).second;
  const std::string part = text.substr(text.find("fun @f_epilogue("));
  REQUIRE(count(text, "call[epilogue]") == 1);
  CHECK(count(part, "forget") == 0);
  CHECK(count(text.substr(text.find("call[epilogue]")), "forget") == 1);
}

TEST_CASE("epilogues: products have the values that they have without the pass", "[epilogues]") {
  const auto products = []<class E>(E, bool strict) {
    const auto layers = both(layer<E>, strict), residuals = both(with_residual<E>, strict);
    // Rows and columns of tiles and of none, several blocks of sums, few rows, no elements, no sums.
    const std::int64_t sizes[][3] = {{1, 1, 1},      {3, 70, 37}, {4, 300, 260}, {29, 290, 75},
                                     {200, 31, 300}, {0, 5, 4},   {5, 0, 4},     {5, 4, 0}};
    for (const auto& [m, k, n] : sizes) {
      INFO(m << " " << k << " " << n);
      layers(numbers<E>({m, k}, 0), numbers<E>({k, n}, 1), numbers<E>({n}, 2));
    }
    for (const std::int64_t n : {1, 7, 64, 130})
      residuals(numbers<E>({n, n}, 0), numbers<E>({n, n}, 1), numbers<E>({n}, 2));
    TensorValue<E> odd = numbers<E>({40, 50}, 0);
    odd.data[7] = std::numeric_limits<E>::quiet_NaN();
    odd.data[1777] = std::numeric_limits<E>::infinity();
    odd.data[1999] = -std::numeric_limits<E>::infinity();
    layers(odd, numbers<E>({50, 60}, 1), numbers<E>({60}, 2));
  };
  products(1.0, false);
  products(1.0F, true);
}

TEST_CASE("epilogues: convolutions have the values that they have without the pass", "[epilogues]") {
  struct Sizes {
    std::int64_t pictures, in, out, size, window;
  };
  const auto of = [](core::ConvolutionOptions options, const std::vector<Sizes>& all) {
    const auto layers = both(convolution_layer<float>(options));
    for (const auto& [pictures, in, out, size, window] : all) {
      INFO(pictures << " " << in << " " << out << " " << size << " " << window);
      layers(numbers<float>({pictures, in, size, size + 2}, 0),
             numbers<float>({out, in / options.groups, window, window}, 1), numbers<float>({out}, 2));
    }
  };
  // Minimal filtering, also of several chunks of tiles; products of matrices; a picture smaller than its
  // pads.
  of({.padding = 1}, {{1, 16, 24, 21, 3}, {1, 64, 13, 33, 3}, {2, 13, 17, 40, 3}, {1, 4, 4, 2, 3}});
  of({}, {{2, 13, 17, 40, 3}, {1, 16, 40, 56, 1}, {3, 5, 7, 9, 1}});
  of({.stride = 2, .padding = 3}, {{1, 3, 40, 50, 7}});
  of({.padding = 1, .groups = 4}, {{1, 8, 24, 10, 3}});
}

TEST_CASE("epilogues: sums over a window of each channel have the values that they have without the pass",
          "[epilogues]") {
  using X = Tensor<float, 2, 12, 15, 40>;
  using W = Tensor<float, 12, 1, 3, 3>;
  using Y = Tensor<float, 12>;
  const auto layers = both(sig<Tensor<float, dyn, dyn, dyn, dyn>(X, W, Y)>([](Rep<X> x, Rep<W> w, Rep<Y> b) {
    return Pictures<float>(min(relu(conv2d(x, w, b, {.padding = 1, .groups = 12})), 1.0F));
  }));
  layers(numbers<float>({2, 12, 15, 40}, 0), numbers<float>({12, 1, 3, 3}, 1), numbers<float>({12}, 2));
}

TEST_CASE("epilogues: functions other than sums and choices, in loops, and derivatives", "[epilogues]") {
  using M = Matrix<double>;
  using T2 = Tensor<double, dyn, dyn>;
  const auto network = sig<double(T2, T2, std::int64_t)>([](M x, M w, Rep<std::int64_t> steps) {
    const M last = FOR(0, steps, x,
                       [&](Rep<std::int64_t>, M h) { return M(tanh(matmul(h, w) * 0.1 + 0.25) * exp(-h)); });
    return Rep<double>(sum(last * last));
  });
  const auto with = compile(value_and_grad<0, 1>(network), {.target = Target::cpp});
  const auto without =
      compile(value_and_grad<0, 1>(network), {.target = Target::cpp, .disabled_passes = {"epilogues"}});
  for (const std::int64_t steps : {0, 1, 3})
    for (const std::int64_t n : {3, 45}) {
      const auto x = numbers<double>({n, n}, 0), w = numbers<double>({n, n}, 1);
      const auto [value, gradients] = with(x, w, steps);
      const auto [expected, expected_gradients] = without(x, w, steps);
      CHECK(value == Approx(expected).epsilon(1e-12));
      for (std::size_t i = 0; i < w.data.size(); ++i)
        CHECK(
            std::get<1>(gradients).data[i] ==
            Approx(std::get<1>(expected_gradients).data[i]).epsilon(1e-9).margin(1e-9 * std::abs(expected)));
    }
}
