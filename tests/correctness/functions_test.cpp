// Functions composed of those of the table: values in closed form, corners, and derivatives in every
// way.
#include <catch2/catch.hpp>
#include <limits>

#include "agree.hpp"

using namespace lantern;
using namespace lantern::core;
using namespace lantern::test;

namespace {

using D = Rep<double>;
using A = Rep<Array<double>>;
constexpr double inf = std::numeric_limits<double>::infinity();

void check(const char* name, const std::function<D(D)>& f, const std::function<A(A)>& of_array,
           const std::vector<std::array<double, 3>>& points) {
  INFO(name);
  std::vector<double> x;
  for (const auto& [at, value, slope] : points) {
    INFO(at);
    x.push_back(at);
    CHECK(eager(f)(at) == Approx(value).epsilon(1e-14).margin(1e-300));
    CHECK(eager(grad(f))(at) == Approx(slope).epsilon(1e-14).margin(1e-300));
    CHECK(compile(f, {.target = Target::c})(at) == Approx(value).epsilon(1e-14).margin(1e-300));
    CHECK(compile(grad(f), {.target = Target::c})(at) == Approx(slope).epsilon(1e-14).margin(1e-300));
  }
  const std::function<D(A)> total = [of_array](A a) { return sum(of_array(a)); };
  for (const Target target : {Target::c, Target::cpp}) {
    const auto values = compile(of_array, {.target = target})(x);
    const auto slopes = compile(grad(total), {.target = target})(x);
    for (std::size_t i = 0; i < x.size(); ++i) {
      INFO(x[i]);
      CHECK(values[i] == Approx(points[i][1]).epsilon(1e-13).margin(1e-300));
      CHECK(slopes[i] == Approx(points[i][2]).epsilon(1e-13).margin(1e-300));
    }
  }
  check_all({.order = 2, .clang = false}, name, f, 0.7);
  check_all({.order = 2, .clang = false}, name, total, std::vector<double>{0.3, -1.2, 2.5});
}

}  // namespace

#define FUNCTION(name) #name, [](D x) { return name(x); }, [](A a) { return name(a); }

TEST_CASE("activations, far from zero and at it", "[functions]") {
  check(FUNCTION(sigmoid), {{0, 0.5, 0.25},
                            {2, 0.88079707797788243, 0.10499358540350652},
                            {-2, 0.11920292202211755, 0.10499358540350652},
                            {-40, 4.2483542552915889e-18, 4.2483542552915889e-18},
                            {-800, 0, 0},
                            {800, 1, 0}});
  check(FUNCTION(softplus), {{0, 0.69314718055994529, 0.5},
                             {2, 2.1269280110429727, 0.88079707797788243},
                             {-2, 0.12692801104297249, 0.11920292202211755},
                             {-800, 0, 0},
                             {800, 800, 1}});
  check(FUNCTION(relu), {{0, 0, 0}, {1.5, 1.5, 1}, {-1.5, 0, 0}});
  check(FUNCTION(gelu), {{0, 0, 0.5},
                         {1, 0.84134474606854293, 1.0833154705876864},
                         {-1, -0.15865525393145707, -0.083315470587686291}});
  check(FUNCTION(gelu_tanh), {{0, 0, 0.5},
                              {1, 0.84119199060827676, 1.0829640838457826},
                              {-1, -0.15880800939172324, -0.082964083845782521}});
  check(FUNCTION(silu), {{0, 0, 0.5}, {2, 1.7615941559557649, 1.0907842487848955}});
  check(FUNCTION(digamma),
        {{1, -0.57721566490153286, 1.6449340668482264}, {2.5, 0.70315664064524319, 0.49035775610023486}});
}

TEST_CASE("clip, and what is not a number", "[functions]") {
  const std::function<D(D)> f = [](D x) { return clip(x, -1.0, 2.0) * x; };
  CHECK(eager(f)(5.0) == 10);
  CHECK(eager(f)(-5.0) == 5);
  CHECK(eager(grad(f))(0.5) == 1);
  CHECK(eager(grad(f))(2.0) == 4);
  CHECK(compile(grad(f), {.target = Target::c})(5.0) == 2);
  const std::function<D(D)> r = [](D x) { return relu(x); };
  CHECK(std::isnan(eager(r)(inf - inf)));
  CHECK(std::isnan(compile(r, {.target = Target::c})(inf - inf)));
}

TEST_CASE("clip by numbers, by tensors and of whole numbers", "[functions]") {
  using T = Rep<Tensor<double, dyn, dyn>>;
  const auto by_numbers = [](T x, Rep<double> lo, Rep<double> hi) { return clip(x, lo, hi); };
  const auto by_tensors = [](T x, Rep<Tensor<double, dyn>> lo, T hi) { return clip(x, lo, hi); };
  const auto of_whole = [](Rep<Tensor<std::int64_t, dyn>> x, Rep<std::int64_t> hi) {
    return clip(x, -2, hi);
  };
  const TensorValue<double> x(std::vector<double>{-3, 0.5, 4, 1, -1, 2}, {2, 3}),
      hi(std::vector<double>{1, 1, 1, 0, 0, 0}, {2, 3}), lo(std::vector<double>{-2, -2, 2}, {3});
  const TensorValue<std::int64_t> n(std::vector<std::int64_t>{-5, 0, 9}, {3});
  const auto total = [&](T v, Rep<double> a, Rep<double> b) { return sum(clip(v, a, b) * v); };
  const auto all = [&](const auto& run) {
    CHECK(run(by_numbers)(x, -1.0, 2.0).data == std::vector<double>{-1, 0.5, 2, 1, -1, 2});
    CHECK(run(by_tensors)(x, lo, hi).data == std::vector<double>{-2, 0.5, 1, 0, -1, 0});
    CHECK(run(of_whole)(n, std::int64_t{7}).data == std::vector<std::int64_t>{-2, 0, 7});
    CHECK(run([](Rep<Tensor<std::int64_t, dyn>> v) { return abs(v); })(n).data ==
          std::vector<std::int64_t>{5, 0, 9});
    CHECK(run([](Rep<std::int32_t> v) { return abs(v); })(-3) == 3);
    const auto [dx, dlo, dhi] = run(grad(total))(x, -2.0, 3.0);
    CHECK(dx.data == std::vector<double>{-2, 1, 3, 2, -2, 4});
    CHECK(dlo == -3);
    CHECK(dhi == 4);
  };
  all([](const auto& f) { return eager(f); });
  all([](const auto& f) { return compile(f, {.target = Target::c, .opt = 0}); });
  all([](const auto& f) { return compile(f, {.target = Target::cpp}); });
}
