// Products are made in the order of dimensions in which they are used, and begin with what they make.
#include <catch2/catch.hpp>

#include "../occurrences.hpp"
#include "lantern/lantern.hpp"
#include "lantern/tensor.hpp"
#include "same_tensors.hpp"

using namespace lantern;

namespace {

using D = Rep<double>;
using M = Rep<Tensor<double, dyn, dyn>>;
using B = Rep<Tensor<double, dyn, dyn, dyn>>;
using Host = TensorValue<double>;

Host numbers(std::vector<std::int64_t> shape, double start) {
  Host t(std::move(shape));
  for (std::size_t i = 0; i < t.data.size(); ++i) t.data[i] = start + 0.05 * static_cast<double>(i * 7 % 11);
  return t;
}

using lantern::test::same;

using lantern::test::count;

/// Two layers, of which each transposes its weight.
D loss(M w, M v, M x) {
  const M y = matmul(tanh(matmul(x, transpose(w))), transpose(v));
  return sum(y * y);
}

std::tuple<M, M> step(M w, M v, M x) {
  const auto [dw, dv] = grad<0, 1>(loss)(w, v, x);
  return {M(w - 0.1 * dw), M(v - 0.1 * dv)};
}

}  // namespace

TEST_CASE("the gradient of a transposed weight is not read by columns", "[products]") {
  const auto by_hand = eager(step);
  const auto fast = compile(step, {.target = Target::cpp}), small = compile(step, {.target = Target::c});
  const auto without = compile(step, {.target = Target::cpp, .opt = 0});
  for (const auto& [batch, in, out] : {std::tuple(3, 5, 4), {1, 1, 1}, {64, 70, 50}, {0, 3, 2}}) {
    const Host w = numbers({out, in}, 0.1), v = numbers({2, out}, -0.2), x = numbers({batch, in}, 0.05);
    const auto [w0, v0] = by_hand(w, v, x);
    for (const auto* f : {&fast, &small, &without}) {
      const auto [w1, v1] = (*f)(w, v, x);
      same(w1, w0);
      same(v1, v0);
    }
  }
  CHECK(count(fast.source("cpp"), "lt_load_strided_f64") == 0);
}

TEST_CASE("what products begin with is not cleared before", "[products]") {
  const auto code = compile(step, {.target = Target::cpp}).source("cpp");
  const std::size_t entry = code.rfind("lt_gemm_f64(lt_workspace");
  CHECK(count(code.substr(entry), "lt_gemm_f64(ws, 1, ") >= 4);
  CHECK(count(code.substr(entry), "lt_gemm_f64(ws, 0, ") == 0);
  CHECK(count(code.substr(entry), "lt_fill_f64(") == count(code.substr(entry), "lt_fill_f64(double"));
}

TEST_CASE("products of batches are permuted in their notation", "[products]") {
  const auto turned = [](B a, B b) { return B(permute<2, 0, 1>(B(einsum<"bij,bjk->bik">(a, b)))); };
  const auto twice = [](B a, B b) {  // of a product with two users each has its own order
    const B c(einsum<"bij,bjk->bik">(a, b));
    return std::tuple(B(permute<2, 0, 1>(c)), B(c + 1.0));
  };
  const auto second = [](B a, B b) { return D(sum(pow(B(permute<1, 2, 0>(B(einsum<"bij,bjk->bik">(a, b)))), 3.0))); };
  const Host a = numbers({2, 3, 4}, 0.1), b = numbers({2, 4, 5}, -0.3);
  for (const auto target : {Target::c, Target::cpp}) {
    same(compile(turned, {.target = target})(a, b), eager(turned)(a, b));
    const auto [p, q] = compile(twice, {.target = target})(a, b);
    const auto [p0, q0] = eager(twice)(a, b);
    same(p, p0);
    same(q, q0);
    const auto [da, db] = compile(grad<0, 1>(second), {.target = target})(a, b);
    const auto [da0, db0] = eager(grad<0, 1>(second))(a, b);
    same(da, da0);
    same(db, db0);
  }
}

TEST_CASE("a product whose order is changed is named by the message, where the user has written it",
          "[products]") {
  const auto turned = [](M a, M b) {
    const M product = matmul(a, b);
    return M(transpose(product));
  };
  const std::string line = std::to_string(__LINE__ - 3);
  for (const int opt : {0, 2})
    for (const auto target : {Target::c, Target::cpp}) {
      const auto f = compile(turned, {.target = target, .opt = opt});
      CHECK_THROWS_WITH(f(numbers({2, 3}, 0.1), numbers({2, 3}, 0.1)),
                        Catch::Contains("matmul: shapes [2, 3] and [2, 3]") && Catch::Contains(":" + line));
    }
}
