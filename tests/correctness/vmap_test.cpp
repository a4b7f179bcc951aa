// vmap: batches against one call per example; per-example derivatives; nesting; sizes that disagree.
#include "agree.hpp"

using namespace lantern;
using namespace lantern::test;

namespace {

using D = Rep<double>;
using I = Rep<std::int64_t>;
using A = Rep<Array<double>>;
using M = Rep<Tensor<double, dyn, dyn>>;

D loss(D w, D x) {
  return IF(
      x > 0.0, [&] { return sin(w * x); },
      [&] {
        return WHILE(
            x, [](D t) { return t < 1.0; }, [&](D t) { return t + 0.4 + w * w; });
      });
}
D weighted_sum(A w, A x) { return sum(w * x * x); }
A squares(A x, D s) { return x * x * s; }

template <class T>
struct Pair {
  T a, b;
};

const std::vector<double> xs{0.5, -1.5, 2.0, 0.1, -0.3, 1.7, 2.2, -0.8, 0.9};

std::string error_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

/// `test` by every bottom handler, level and target.
template <class Test>
void by_all(Test test) {
  const auto named = [&](const char* name, auto run) {
    INFO(name);
    test(run);
  };
  named("eager", [](auto f) { return eager(f); });
  named("opt 0", [](auto f) { return compile(f, {.target = Target::c, .opt = 0}); });
  named("opt 3", [](auto f) { return compile(f, {.target = Target::c, .opt = 3}); });
  named("Clang", [](auto f) { return compile(f, {.target = Target::cpp, .opt = 3}); });
}

void check_vector(const std::vector<double>& found, const std::vector<double>& expected) {
  REQUIRE(found.size() == expected.size());
  for (std::size_t i = 0; i < found.size(); ++i)
    CHECK(found[i] == Approx(expected[i]).epsilon(1e-12).margin(1e-14));
}

}  // namespace

TEST_CASE("scalars become arrays", "[vmap]") {
  const double w = 0.6;
  std::vector<double> values, gradients, seconds;
  for (double x : xs) {
    values.push_back(eager(loss)(w, x));
    gradients.push_back(eager(grad<0>(loss))(w, x));
    seconds.push_back(eager(grad<0>(grad<0>(loss)))(w, x));
  }
  const std::vector<double> ws(xs.size(), w);
  by_all([&](auto run) {
    check_vector(run(vmap<1>(loss))(w, xs), values);
    check_vector(run(vmap(loss))(ws, xs), values);
    check_vector(run(vmap<1>(grad<0>(loss)))(w, xs), gradients);
    check_vector(run(vmap<1>(grad<0, mode::forward>(loss)))(w, xs), gradients);
    check_vector(run(vmap<1>(grad<0>(grad<0>(loss))))(w, xs), seconds);
    check_vector(run(vmap<1>(loss))(w, std::vector<double>{}), {});
  });
}

TEST_CASE("examples run in the lanes of vectors", "[vmap]") {
  const auto f = [](D w, D x) { return sin(w * x) * exp(-1.0 * x * x); };
  const auto batch = compile(vmap<1>(grad<0>(f)), {.target = Target::cpp, .lanes = 4});
  const std::string code = batch.source("cpp");
  CHECK(code.find("f64x") != std::string::npos);
  std::vector<double> expected;
  for (double x : xs) expected.push_back(x * std::cos(0.7 * x) * std::exp(-x * x));
  check_vector(batch(0.7, xs), expected);
}

TEST_CASE("derivatives of batches", "[vmap]") {
  check_all("by what is mapped", [](A x) { return sum(vmap<1>(loss)(D(0.6), x) * x); }, {0.5, -1.5, 2.0});
  check_all(
      "by what is not",
      [](D w) {
        const A x = fill(D(0.5), 5).set(1, -1.5).set(2, 2.0).set(4, -0.1);
        return sum(vmap<1>(loss)(w, x) * x);
      },
      0.6);
  check_all("arrays",
            [](A w) {
              const M x = outer(as_tensor(w), as_tensor(w));
              return sum(vmap<1>(weighted_sum)(w, x) * w);
            },
            {0.5, -1.5, 2.0});
  check_all("array results", [](A w) { return sum(vmap<1>(squares)(w, w * w)); }, {0.5, -1.5, 2.0});
}

TEST_CASE("arrays become matrices, and vmap nests", "[vmap]") {
  const std::vector<double> m{1, 2, 3, 4, 5, 6}, w{0.5, -1, 2};
  const std::vector<std::int64_t> shape{2, 3};
  const TensorView<const double> matrix(m.data(), shape);
  by_all([&](auto run) {
    check_vector(run(vmap<1>(weighted_sum))(w, matrix), {0.5 - 4 + 18, 8 - 25 + 72});
    const auto rows = run(vmap(squares))(matrix, std::vector<double>{2, 10});
    CHECK(rows.shape == shape);
    check_vector(rows.data, {2, 8, 18, 160, 250, 360});
    const auto gradients = run(vmap<1>(grad<0>(weighted_sum)))(w, matrix);
    CHECK(gradients.shape == shape);
    check_vector(gradients.data, {1, 4, 9, 16, 25, 36});
    const auto all = run(vmap(vmap(sig<double(double)>([](D x) { return x * x + 1.0; }))))(matrix);
    CHECK(all.shape == shape);
    check_vector(all.data, {2, 5, 10, 17, 26, 37});
    // The derivative of each of a matrix of examples.
    const auto slopes = run(vmap(vmap(grad(sig<double(double)>([](D x) { return x * x * x; })))))(matrix);
    check_vector(slopes.data, {3, 12, 27, 48, 75, 108});
  });
}

TEST_CASE("products, integers and truth values", "[vmap]") {
  const auto f = [](Pair<D> p, I n) { return std::tuple(p.a * cast<double>(n), p.b > 0.0, n + 1); };
  by_all([&](auto run) {
    const std::vector<double> a{1, 2}, b{-1, 1};
    const std::vector<std::int64_t> n{3, 4};
    const auto [product, positive, next] = run(vmap(f))(Pair<std::span<const double>>{a, b}, n);
    check_vector(product, {3, 8});
    CHECK(positive == std::vector<bool>{false, true});
    CHECK(next == std::vector<std::int64_t>{4, 5});
  });
}

TEST_CASE("vmap with rules, fixed points and stop_gradient", "[vmap]") {
  const auto root = [](D a) { return fixpoint([](D x, D s) { return 0.5 * (x + s / x); }, 1.0, a); };
  const auto tenfold = [](D x) {
    return custom_vjp(
               sig<double(double)>([](D a) { return a * a; }), [](D a) { return std::tuple(a * a, a); },
               [](D a, D g) { return 10.0 * a * g; })(x) +
           stop_gradient(x);
  };
  const std::vector<double> a{1, 4, 9};
  by_all([&](auto run) {
    check_vector(run(vmap(grad(root)))(a), {0.5, 0.25, 0.5 / 3});
    check_vector(run(vmap(grad(tenfold)))(a), {10, 40, 90});
    check_vector(run(grad(sig<double(Array<double>)>([=](A x) { return sum(vmap(root)(x)); })))(a),
                 {0.5, 0.25, 0.5 / 3});
  });
}

TEST_CASE("what vmap refuses", "[vmap][errors]") {
  const std::vector<double> two{1, 2}, three{1, 2, 3};
  const std::string size = error_of([&] { eager(vmap(loss))(two, three); });
  CHECK(size.find("vmap_test.cpp:") != std::string::npos);
  CHECK(size.find("vmap: expected as many examples in every argument, got 2 and 3") != std::string::npos);
  CHECK(error_of([&] {
          compile(vmap(loss), {.target = Target::c})(two, three);
        }).find("vmap: expected as many examples in every argument, got several numbers of them") !=
        std::string::npos);
  const auto ragged = [](D n) {
    return fill(n, IF(
                       n > 1.0, [] { return I(2); }, [] { return I(1); }));
  };
  const std::string results = "vmap: expected results of one size for every example, got several";
  CHECK(error_of([&] { eager(vmap(ragged))(two); }).find(results) != std::string::npos);
  CHECK(error_of([&] { compile(vmap(ragged), {.target = Target::c})(two); }).find(results) !=
        std::string::npos);
}
