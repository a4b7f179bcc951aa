// kept_panels: which products get memory for panels, and that values and derivatives are those without the pass.
#include "lantern/compiler/passes/schedule/kept_panels.hpp"

#include <catch2/catch.hpp>
#include <cmath>

#include "../occurrences.hpp"
#include "around_pass.hpp"
#include "lantern/ir/parse.hpp"
#include "lantern/ir/verify.hpp"
#include "lantern/lantern.hpp"

using namespace lantern;
using lantern::test::count;

namespace {

using I = Rep<std::int64_t>;
template <class E>
using Matrix = Rep<Tensor<E, dyn, dyn>>;

template <class E>
TensorValue<E> numbers(std::int64_t m, std::int64_t n, double phase) {
  TensorValue<E> t{std::vector<E>(static_cast<std::size_t>(m * n)), {m, n}};
  for (std::size_t i = 0; i < t.data.size(); ++i)
    t.data[i] = static_cast<E>(0.3 * std::sin(1.3 * static_cast<double>(i) + phase));
  return t;
}

/// A recurrent network without inputs: h = tanh(h w^T + h v), some times.
template <class E>
Matrix<E> recurrence(Matrix<E> h, Matrix<E> w, Matrix<E> v, I steps) {
  return FOR(0, steps, h, [&](I, Matrix<E> now) {
    return Matrix<E>(tanh(matmul(now, transpose(w)) + matmul(now, v)));
  });
}
template <class E>
Rep<E> loss(Matrix<E> h, Matrix<E> w, Matrix<E> v, I steps) {
  const Matrix<E> last = recurrence<E>(h, w, v, steps);
  return sum(last * last);
}

/// Rows, columns and with them the ways through the routine: few rows, panels that stay in the cache, several blocks of sums.
template <class E>
void compare(Target target, std::int64_t rows, std::int64_t size, double tolerance) {
  INFO("rows " << rows << ", size " << size);
  const auto h = numbers<E>(rows, size, 0), w = numbers<E>(size, size, 1), v = numbers<E>(size, size, 2);
  TensorValue<E> scaled_w = w, scaled_v = v;
  for (E& x : scaled_w.data) x /= static_cast<E>(size);
  for (E& x : scaled_v.data) x /= static_cast<E>(size);
  const auto with = compile(value_and_grad<0, 1, 2>(loss<E>), {.target = target});
  const auto without = compile(value_and_grad<0, 1, 2>(loss<E>), {.target = target, .disabled_passes = {"kept_panels"}});
  for (const std::int64_t steps : {0, 1, 3}) {
    const auto [value, gradients] = with(h, scaled_w, scaled_v, steps);
    const auto [expected, expected_gradients] = without(h, scaled_w, scaled_v, steps);
    CHECK(value == Approx(expected).epsilon(tolerance));
    const auto near = [&](const TensorValue<E>& a, const TensorValue<E>& b) {
      REQUIRE(a.shape == b.shape);
      double worst = 0, largest = 0;
      for (std::size_t i = 0; i < a.data.size(); ++i) {
        worst = std::max(worst, std::abs(static_cast<double>(a.data[i]) - static_cast<double>(b.data[i])));
        largest = std::max(largest, std::abs(static_cast<double>(b.data[i])));
      }
      CHECK(worst <= tolerance * largest);
    };
    near(std::get<0>(gradients), std::get<0>(expected_gradients));
    near(std::get<1>(gradients), std::get<1>(expected_gradients));
    near(std::get<2>(gradients), std::get<2>(expected_gradients));
  }
}

}  // namespace

TEST_CASE("kept panels: loop-invariant second factors get memory before the outermost loop", "[kept_panels]") {
  const auto [before, after] = test::around_pass("kept_panels", recurrence<double>);
  CHECK(count(before, "add_einsum ") == 2);
  CHECK(count(after, "add_einsum ") == 0);
  CHECK(count(after, "gemm ") == 2);
  for (std::size_t at = after.find("gemm "); at != std::string::npos; at = after.find("gemm ", at + 1)) {
    const std::size_t end = after.find(" :", at), panels = after.rfind('%', end);
    INFO(after.substr(at, end - at));
    // Two columns of indentation: in the function's own block, which is before the loop.
    CHECK(after.find("\n  " + after.substr(panels, end - panels) + " = set ") != std::string::npos);
  }

  // A first factor that is invariant, one that the loop makes, and a product that no loop is around keep their form.
  const auto others = sig<Tensor<double, dyn, dyn>(Tensor<double, dyn, dyn>, Tensor<double, dyn, dyn>, std::int64_t)>(
      [](Matrix<double> w, Matrix<double> h, I steps) {
        const Matrix<double> once = matmul(h, w);
        return FOR(0, steps, once, [&](I, Matrix<double> now) { return Matrix<double>(matmul(w, now) + matmul(now, now)); });
      });
  CHECK(count(test::around_pass("kept_panels", others).second, "gemm ") == 0);
}

TEST_CASE("kept panels: values and gradients are those without the pass", "[kept_panels]") {
  for (const Target target : {Target::c, Target::cpp}) {
    for (const std::int64_t rows : {1, 3, 29}) {
      compare<double>(target, rows, 37, 1e-12);
      compare<float>(target, rows, 70, 1e-4);
    }
    compare<double>(target, 5, 300, 1e-12);
    compare<float>(target, 30, 290, 1e-4);
  }
}

TEST_CASE("kept panels: a product of parts takes memory of one dimension", "[kept_panels]") {
  const std::string head = "entry @f\n\nfun @f(%1: f64[?,?], %2: f64[?,?], %3: f64, %4: i64) -> f64[?,?] {\n";
  const std::string operands = "%1, %2, %2, %3, %4, %4, %4, %4, %4, %4, %4, %4, %4, %4, %4";
  const auto verify = [&](const std::string& panels) {
    ir::verify(*ir::parse(head + "  %5 = gemm " + operands + panels + " : f64[?,?]\n  yield %5\n}\n"));
  };
  CHECK_NOTHROW(verify(""));
  CHECK_THROWS_WITH(verify(", %2"), Catch::Contains("memory of one dimension and of that type"));
}
