// Tensor functions at their edges: over all elements and of any rank, of none and of one, of whole numbers and bools,
// in declared shapes that only the compiled program can check.
#include <algorithm>
#include <cmath>
#include <lantern/tensor.hpp>
#include <limits>
#include <numeric>

#include "catch2/catch.hpp"

using namespace lantern;

namespace {

using T = Rep<Tensor<double>>;
using Whole = Rep<Tensor<std::int64_t>>;
using Shape = std::vector<std::int64_t>;
using Catch::Contains;

TensorValue<double> numbers(const Shape& shape) {
  TensorValue<double> t(shape);
  for (std::size_t i = 0; i < t.data.size(); ++i) t.data[i] = 0.3 + std::sin(1.7 * static_cast<double>(i) + 0.4) * 1.5;
  return t;
}

/// run(f) is f as a callable of plain types.
template <class Test>
void in_all_ways(Test test) {
  {
    INFO("eager");
    test([](auto f) { return eager(f); });
  }
  {
    INFO("C");
    test([](auto f) { return compile(f, {.target = Target::c, .opt = 0}); });
  }
  {
    INFO("C++");
    test([](auto f) { return compile(f, {.target = Target::cpp}); });
  }
}

}  // namespace

TEST_CASE("reductions without dimensions are over all elements, whatever the rank") {
  const auto all = [](T t) {
    return std::tuple(sum(t), mean(t), var(t), sample_var(t), prod(t), max(t), min(t), norm(t), logsumexp(t),
                      argmax(t), argmin(t), any_of(t > 1.0), all_of(t > -9.0), count(t > 0.0));
  };
  for (const Shape& shape : {Shape{6}, {2, 3}, {1, 2, 3}, {2, 1, 3, 1}, {1}, {1, 1}}) {
    INFO("rank " << shape.size());
    const TensorValue<double> x = numbers(shape);
    const auto n = static_cast<double>(x.data.size());
    double total = 0, squares = 0, product = 1, exponentials = 0, off = 0;
    for (const double v : x.data) {
      total += v;
      squares += v * v;
      product *= v;
      exponentials += std::exp(v);
    }
    for (const double v : x.data) off += (v - total / n) * (v - total / n);
    const auto largest = std::ranges::max_element(x.data), least = std::ranges::min_element(x.data);
    in_all_ways([&](auto run) {
      const auto [s, m, v, sv, p, high, low, length, lse, at_high, at_low, any, every, positive] = run(all)(x);
      CHECK(s == Approx(total));
      CHECK(m == Approx(total / n));
      CHECK(v == Approx(off / n).margin(1e-14));
      if (n > 1) CHECK(sv == Approx(off / (n - 1)));
      CHECK(p == Approx(product));
      CHECK(high == *largest);
      CHECK(low == *least);
      CHECK(length == Approx(std::sqrt(squares)));
      CHECK(lse == Approx(std::log(exponentials)));
      CHECK(at_high == largest - x.data.begin());
      CHECK(at_low == least - x.data.begin());
      CHECK(any == (*largest > 1));
      CHECK(every);
      CHECK(positive == std::ranges::count_if(x.data, [](double e) { return e > 0; }));
    });
  }
  // Of a number of them all the derivative is checked by differences, forward and reverse, to the second order.
  const auto nonlinear = [](Rep<Tensor<double, dyn, dyn, dyn>> t) {
    return logsumexp(t) * var(t) + prod(t) / norm(t) + max(t) * min(t) + sample_var(t) * mean(t);
  };
  CHECK(check_derivative(nonlinear)(numbers({2, 1, 3})) < 1e-6);
  CHECK(check_derivative(grad(nonlinear))(numbers({2, 1, 3})) < 1e-5);
  const TensorValue<double> slope = eager(grad(nonlinear))(numbers({2, 1, 3}));
  const TensorValue<double> compiled = compile(grad(nonlinear), {.target = Target::cpp})(numbers({2, 1, 3}));
  for (std::size_t i = 0; i < slope.data.size(); ++i) CHECK(compiled.data[i] == Approx(slope.data[i]));
}

TEST_CASE("reductions of no elements") {
  in_all_ways([](auto run) {
    const TensorValue<double> none({0, 3}), columns({3, 0});
    CHECK(run([](T t) { return std::tuple(sum(t), prod(t), norm(t)); })(none) == std::tuple(0.0, 1.0, 0.0));
    CHECK(run([](T t) { return std::tuple(any_of(t > 0.0), all_of(t > 0.0), count(t > 0.0)); })(none) ==
          std::tuple(false, true, std::int64_t{0}));
    CHECK(std::isnan(run([](T t) { return mean(t); })(none)));
    CHECK(std::isnan(run([](T t) { return var(t); })(none)));
    for (const auto& empty : {none, columns}) {
      CHECK_THROWS_WITH(run([](T t) { return max(t); })(empty), Contains("max of an empty tensor"));
      CHECK_THROWS_WITH(run([](T t) { return min(t); })(empty), Contains("min of an empty tensor"));
      CHECK_THROWS_WITH(run([](T t) { return logsumexp(t); })(empty), Contains("logsumexp of an empty tensor"));
      CHECK_THROWS_WITH(run([](T t) { return argmax(t); })(empty), Contains("argmax of an empty tensor"));
      CHECK_THROWS_WITH(run(grad([](T t) { return max(t); }))(empty), Contains("max of an empty tensor"));
    }
    CHECK(run([](T t) { return sum<0>(t); })(none).data == std::vector<double>(3));
    CHECK(run([](T t) { return prod<1>(t); })(columns).data == std::vector<double>(3, 1.0));
    CHECK(run([](T t) { return logsumexp<1>(t); })(columns).data ==
          std::vector<double>(3, -std::numeric_limits<double>::infinity()));
    CHECK(run([](T t) { return cumsum<0>(t); })(none).shape == Shape{0, 3});
    CHECK(run([](T t) { return softmax<0>(t); })(none).shape == Shape{0, 3});
    CHECK(run(grad([](T t) { return sum(exp(t)); }))(none).shape == Shape{0, 3});
  });
}

TEST_CASE("what a tensor is declared as is checked as the program runs") {
  const auto column = [](Rep<Tensor<double, dyn, dyn>> t) {
    const Rep<Tensor<double, dyn, 1>> c(t);
    return c * T(ones<double>({1, 3}));
  };
  const TensorValue<double> fits({1, 2}, {2, 1}), wide({1, 2, 3, 4}, {2, 2});
  in_all_ways([&](auto run) {
    const auto y = run(column)(fits);
    CHECK(y.shape == Shape{2, 3});
    CHECK(y.data == std::vector<double>{1, 1, 1, 2, 2, 2});
    CHECK_THROWS_WITH(run(column)(wide), Contains("tensor_edges_test.cpp:"));
    // As many elements do not make it one.
    const auto turned = [](Rep<Tensor<double, dyn, dyn>> t) { return sum(Rep<Tensor<double, 3, 4>>(t)); };
    CHECK_THROWS(run(turned)(TensorValue<double>({2, 6})));
    CHECK(run(turned)(TensorValue<double>({3, 4}, 2.0)) == 24);
  });
  CHECK_THROWS_WITH(eager(column)(wide), Contains("expected a tensor of shape f64[?,1], got f64[2,2]"));
  CHECK_THROWS_WITH(compile(column)(wide),
                    Contains("a tensor declared as f64[?,1]: shapes [2, 2] and [2, 1] do not fit"));
  // The size is known from there on: of another rank, in a state and in derivatives.
  const auto known = [](T t) {
    const Rep<Tensor<double, 2, 2>> m(t);
    return sum(matmul(m, FOR(0, 3, m, [&](Rep<std::int64_t>, Rep<Tensor<double, 2, 2>> s) {
      return Rep<Tensor<double, 2, 2>>(matmul(m, s));
    })));
  };
  const TensorValue<double> square({0.5, 0.25, -0.5, 1}, {2, 2});
  const TensorValue<double> slope = eager(grad(known))(square);
  CHECK(check_derivative(known)(square) < 1e-6);
  for (const Target target : {Target::c, Target::cpp}) {
    const auto compiled = compile(grad(known), {.target = target});
    const TensorValue<double> g = compiled(square);
    for (std::size_t i = 0; i < 4; ++i) CHECK(g.data[i] == Approx(slope.data[i]));
    CHECK_THROWS_WITH(compiled(TensorValue<double>({2, 3})), Contains("shapes [2, 3] and [2, 2] do not fit"));
  }
}

TEST_CASE("what does not fit is said, not left out") {
  using Matrix = Rep<Tensor<double, dyn, dyn>>;
  using Places = Rep<Tensor<std::int64_t, dyn>>;
  const TensorValue<double> x = numbers({2, 3});
  const TensorValue<std::int64_t> two(std::vector<std::int64_t>{1, 0}, Shape{2});
  in_all_ways([&](auto run) {
    const auto added = [](Matrix t, Places i, Matrix v) { return scatter_add(t, i, v); };
    CHECK(run(added)(x, two, x).data[0] == x.data[0] + x.data[3]);
    CHECK_THROWS_WITH(run(added)(x, two, numbers({3, 3})), Contains("as many values along the dimension as indices"));
    CHECK_THROWS_WITH(run(added)(x, two, numbers({2, 4})), Contains("values of the tensor's sizes in the other dimensions"));
    const auto best = [](Matrix t, Rep<std::int64_t> k) { return topk(t, k).first; };
    CHECK(run(best)(x, std::int64_t{3}).shape == Shape{2, 3});
    CHECK_THROWS_WITH(run(best)(x, std::int64_t{-1}), Contains("topk: expected a number from 0"));
    CHECK_THROWS_WITH(run(best)(x, std::int64_t{4}), Contains("topk: expected a number from 0"));
    const auto tiled = [](Matrix t, Rep<std::int64_t> n) { return tile(t, n, 1); };
    CHECK_THROWS_WITH(run(tiled)(x, std::int64_t{-1}), Contains("tile: expected numbers of 0 or more"));
    const auto joined = [](Matrix a, Matrix b) { return concat<1>(a, b); };
    CHECK_THROWS_WITH(run(joined)(x, numbers({3, 3})), Contains("tensor_edges_test.cpp:") && Contains("concat: expected"));
    CHECK_THROWS_WITH(run([](Matrix t) { return T(t(range(0, 2, 0))); })(x), Contains("a step of 1 or more, got 0"));
  });
}

TEST_CASE("the elements of a tensor of the host's, by their indices") {
  TensorValue<double> t = numbers({2, 3});
  const TensorValue<double>& fixed = t;
  CHECK(fixed(1, 2) == t.data[5]);
  t(0, std::int64_t{1}) = 7.0;
  CHECK(t.data[1] == 7.0);
  TensorValue<bool> marks({2, 2});
  marks(1, 0) = true;
  CHECK(marks.data == std::vector<bool>{false, false, true, false});
  CHECK(TensorValue<double>({}, 4.0)() == 4.0);
  CHECK((TensorValue<double>({2, 3}, 1.0) == TensorValue<double>({2, 3}, 1.0)));
  CHECK((TensorValue<double>({2, 3}, 1.0) != TensorValue<double>({3, 2}, 1.0)));
  CHECK((TensorValue<double>({2, 3}, 1.0) != TensorValue<double>({2, 3}, 2.0)));
  const std::string element = "TensorValue: the element (";
  CHECK_THROWS_WITH(t(2, 0), element + "2, 0) of a tensor of shape [2, 3]: expected indices of 0 or more, below the sizes");
  CHECK_THROWS_WITH(fixed(0, -1), element + "0, -1) of a tensor of shape [2, 3]: expected indices of 0 or more, below the sizes");
  CHECK_THROWS_WITH(t(1), element + "1) of a tensor of shape [2, 3]: expected 2 indices");
}
