// Programs over numbers and tensors, networks, loops and derivatives, for tests of the exporter.
#include "onnx_programs.hpp"

#include <lantern/tensor.hpp>

namespace onnx_programs {

namespace {

using D = Rep<double>;
using N = Rep<std::int64_t>;
using V = Rep<Tensor<float, dyn>>;
using M = Rep<Tensor<float, dyn, dyn>>;
using T3 = Rep<Tensor<float, dyn, dyn, dyn>>;
using Labels = Rep<Tensor<std::int64_t, dyn>>;

}  // namespace

std::vector<Case> elementwise_programs() {
  std::vector<Case> cases;
  const auto x = tensor<float>({3, 4}), y = tensor<float>({3, 4}, 2);
  cases.push_back(make(
      "chain", [](M a, M b) { return exp(sin(a) * b) - tanh(a / (2.0f + b * b)) + sqrt(abs(a)); }, weights(),
      {.arguments = {"a", "b"}, .results = {"y"}}, x, y));
  cases.push_back(make(
      "numbers",
      [](D a, D b) { return std::tuple(a * b + pow(abs(a), b), hypot(a, b), log1p(a * a), expm1(b * 1e-3)); },
      weights(), {}, 1.5, -0.75));
  cases.push_back(make(
      "angles",
      [](M a, M b) {
        return std::tuple(atan2(a, b), asin(a), acosh(2.0f + a), cbrt(b), erf(a), tan(b), exp2(a),
                          log2(2.0f + b));
      },
      weights(), {}, x, y));
  cases.push_back(make(
      "rounding", [](M a) { return round(4.0f * a) + trunc(3.0f * a) + floor(a) * ceil(a) + sign(a); },
      weights(), {}, x));
  cases.push_back(make(
      "integers",
      [](Rep<Tensor<std::int64_t, dyn>> a, N n) {
        return std::tuple(a / 3 + a % 3 * n, (a << 2) + (a >> 1), max(a, -a));
      },
      weights(), {}, tensor<std::int64_t>({9}), std::int64_t{7}));
  cases.push_back(make(
      "choices",
      [](M a, M b) {
        const auto c = a < b;
        return std::tuple(where(c, a, b * 2.0f), c, clip(a, -0.5f, 0.5f), max(a, b), cast<double>(a));
      },
      weights(), {}, x, y));
  cases.push_back(make(
      "broadcast", [](M a, V b) { return (a + b) * 2.0f - sum(b); }, weights(), {}, x, tensor<float>({4})));
  cases.push_back(make(
      "smooth", [](M a) { return sigmoid(a) + softplus(a) + gelu(a) + silu(a) + relu(a); }, weights(), {},
      x));
  return cases;
}

std::vector<Case> tensor_programs() {
  std::vector<Case> cases;
  const auto a = tensor<float>({3, 4}), b = tensor<float>({4, 5}, 2);
  cases.push_back(make(
      "matmul", [](M x, M w) { return std::tuple(matmul(x, w), matmul(transpose(w), transpose(x))); },
      weights(), {.arguments = {"x", "w"}, .sizes = {{"x", {"batch"}}}}, a, b));
  cases.push_back(make(
      "einsum", [](T3 x, T3 w) { return einsum<"bij,bjk->bik">(x, w); }, weights(), {},
      tensor<float>({2, 3, 4}), tensor<float>({2, 4, 5})));
  cases.push_back(make(
      "einsum_many", [](T3 x, M w, V v) { return einsum<"bij,jk,k->ki">(x, w, v); }, weights(), {},
      tensor<float>({2, 3, 4}), b, tensor<float>({5})));
  cases.push_back(make(
      "diagonal", [](M x) { return std::tuple(einsum<"ii->i">(x), einsum<"ii->">(x)); }, weights(), {},
      tensor<float>({4, 4})));
  cases.push_back(make(
      "products",
      [](M x, V v) {
        return std::tuple(matmul(x, v), dot(v, v), outer(v, v), sum<0>(x), mean<1>(x), permute<1, 0>(x));
      },
      weights(), {}, a, tensor<float>({4})));
  cases.push_back(make(
      "shapes",
      [](M x) {
        return std::tuple(reshape(x, x.dim(1), x.dim(0)), expand(reshape(x, 1, 3, 4), 2, 3, 4),
                          concat<1>(x, x), flip<0>(x), roll<1>(x, 1));
      },
      weights(), {}, a));
  cases.push_back(make(
      "parts",
      [](M x) {
        return std::tuple(x(all, range(1, 3)), x(1, all), x.row(2), pad(x, {{1, 0}, {0, 2}}),
                          x.set_part({all, 0}, sum<1>(x)));
      },
      weights(), {}, a));
  cases.push_back(make(
      "elements", [](M x, N i) { return std::tuple(x(i, 2), x.set(i, 1, Rep<float>(5.0f)), x(0, 0)); },
      weights(), {}, a, std::int64_t{1}));
  cases.push_back(make(
      "extrema", [](M x) { return std::tuple(max<1>(x), min<0>(x), argmax<1>(x), argmax(x), max(x)); },
      weights(), {}, a));
  cases.push_back(make(
      "chosen", [](M x, Labels i) { return std::tuple(take<0>(x, i), one_hot<float>(i, 5)); }, weights(), {},
      a, labels({2, 0, 1, 2})));
  cases.push_back(make(
      "sorted", [](V x) { return std::tuple(sort(x), cumsum<0>(x)); }, weights(), {}, tensor<float>({9})));
  return cases;
}

}  // namespace onnx_programs
