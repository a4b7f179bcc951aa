// The tensor functions: values against what NumPy and PyTorch give, each derivative against differences, forward
// against reverse, eager against compiled, second derivatives, sizes 0 and 1, sizes known and not.
#include <cmath>
#include <functional>
#include <lantern/tensor.hpp>
#include <limits>
#include <numeric>

#include "catch2/catch.hpp"

using namespace lantern;

namespace {

using T = Rep<Tensor<double>>;
using Function = std::function<T(const T&)>;
using Shape = std::vector<std::int64_t>;

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

/// Distinct numbers of both signs.
TensorValue<double> numbers(const Shape& shape, double scale = 1) {
  TensorValue<double> t(shape);
  for (std::size_t i = 0; i < t.data.size(); ++i)
    t.data[i] = scale * (0.3 + std::sin(1.7 * static_cast<double>(i) + 0.4) * 1.5);
  return t;
}

void same(const std::vector<double>& a, const std::vector<double>& b, double tolerance) {
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    INFO("element " << i);
    if (std::isnan(b[i])) CHECK(std::isnan(a[i]));
    else if (std::isinf(b[i])) CHECK(a[i] == b[i]);
    else CHECK(a[i] == Approx(b[i]).epsilon(tolerance).margin(tolerance));
  }
}

/// A number that depends on every element of f(x), and not linearly.
Rep<double> weighed(const T& y) {
  T flat = ravel(y);
  Rep<double> s = 0.0;
  s = FOR(0, flat.dim(0), s, [&](Rep<std::int64_t> i, Rep<double> now) {
    return now + cos(cast<double>(i) + 1.0) * flat(i) + 0.25 * flat(i) * flat(i);
  });
  return s;
}

/// Everything about f at x but its value, which is returned.
TensorValue<double> check(const char* name, const Function& f, const TensorValue<double>& x, bool smooth = true) {
  INFO(name);
  const auto program = [f](T t) { return f(t); };
  const TensorValue<double> y = eager(program)(x);
  for (const Target target : {Target::c, Target::cpp}) {
    INFO((target == Target::c ? "C" : "C++"));
    const auto compiled = compile(program, {.target = target, .opt = target == Target::c ? 0 : 2});
    const TensorValue<double> z = compiled(x);
    CHECK(z.shape == y.shape);
    same(z.data, y.data, 1e-12);
  }
  if (!smooth) return y;
  const auto scalar = [f](T t) { return weighed(f(t)); };
  const auto run = eager(scalar);
  const TensorValue<double> reverse = eager(grad(scalar))(x);
  const TensorValue<double> v = numbers(x.shape, 0.5);
  const double slope = std::inner_product(v.data.begin(), v.data.end(), reverse.data.begin(), 0.0);
  CHECK(std::get<1>(eager(jvp(scalar))(x, v)) == Approx(slope).epsilon(1e-9).margin(1e-9));
  CHECK(std::get<1>(compile(jvp(scalar), {.target = Target::c, .opt = 0})(x, v)) == Approx(slope).epsilon(1e-9).margin(1e-9));
  for (std::size_t i = 0; i < x.data.size(); ++i) {
    TensorValue<double> up = x, down = x;
    up.data[i] += 1e-5;
    down.data[i] -= 1e-5;
    INFO("derivative by element " << i);
    CHECK(reverse.data[i] == Approx((run(up) - run(down)) / 2e-5).epsilon(1e-5).margin(1e-6));
  }
  for (const Target target : {Target::c, Target::cpp}) {
    INFO((target == Target::c ? "gradient in C" : "gradient in C++"));
    const auto gradient = compile(grad(scalar), {.target = target, .opt = target == Target::c ? 0 : 2});
    same(gradient(x).data, reverse.data, 1e-9);
  }
  // Second order: the Hessian times a vector, against differences of gradients.
  TensorValue<double> up = x, down = x;
  const TensorValue<double> product = eager(hvp(scalar))(x, v);
  for (std::size_t i = 0; i < x.data.size(); ++i) {
    up.data[i] += 1e-5 * v.data[i];
    down.data[i] -= 1e-5 * v.data[i];
  }
  const auto gradient = eager(grad(scalar));
  const TensorValue<double> high = gradient(up), low = gradient(down);
  for (std::size_t i = 0; i < x.data.size(); ++i) {
    INFO("second derivative " << i);
    CHECK(product.data[i] == Approx((high.data[i] - low.data[i]) / 2e-5).epsilon(1e-4).margin(1e-5));
  }
  return y;
}

TensorValue<double> counted(const Shape& shape) {
  TensorValue<double> t(shape);
  std::iota(t.data.begin(), t.data.end(), 0.0);
  return t;
}

/// The value alone, of 0, 1, 2, ... in this shape: shape and elements.
void gives(const char* name, const Function& f, const Shape& in, const Shape& shape, const std::vector<double>& data) {
  const TensorValue<double> y = check(name, f, counted(in), false);
  INFO(name);
  CHECK(y.shape == shape);
  same(y.data, data, 1e-12);
}

Rep<Tensor<std::int64_t>> whole(const T& t) {
  return Rep<Tensor<std::int64_t>>(
      tabulate([&](auto i) { return cast<std::int64_t>(t(i)); }, t.dim(0)));
}
T real(const Rep<Tensor<std::int64_t>>& t) {
  if (t.rank() == 1) return T(tabulate([&](auto i) { return cast<double>(t(i)); }, t.dim(0)));
  return T(tabulate([&](auto i, auto j) { return cast<double>(t(i, j)); }, t.dim(0), t.dim(1)));
}
T real(const Rep<Tensor<bool>>& t) { return where(t, 1.0, T(zeros<double>({1}))); }
T one(const Rep<double>& v) { return T(as_tensor(fill(v, 1))); }

}  // namespace

TEST_CASE("broadcasting stretches dimensions of one") {
  check("columns", [](const T& x) { return x * mean<1>(x, keep); }, numbers({3, 4}));
  check("both", [](const T& x) { return sum<0>(x, keep) * mean<1>(x, keep); }, numbers({3, 4}));
  check("leading", [](const T& x) { return x + T(unsqueeze<1>(sum<0>(x))); }, numbers({3, 3}));
  const auto columns = [](Rep<Tensor<double, dyn, 1>> a, Rep<Tensor<double, 1, dyn>> b) { return a - b; };
  static_assert(std::same_as<decltype(columns({}, {})), Rep<Tensor<double, dyn, dyn>>>);
  const TensorValue<double> a({1, 2}, {2, 1}), b({10, 20, 30}, {1, 3});
  CHECK(compile(columns)(a, b).data == std::vector<double>{-9, -19, -29, -8, -18, -28});
}

TEST_CASE("element-wise comparisons, bits and choices") {
  gives("where", [](const T& x) { return where(x > 2.0, x, -x); }, {5}, {5}, {0, -1, -2, 3, 4});
  gives("where with numbers", [](const T& x) { return where((x > 1.0) & !(x == 3.0), x, 7.0); }, {5}, {5},
        {7, 7, 2, 7, 4});
  gives("where broadcasts", [](const T& x) { return where(sum<1>(x, keep) > 4.0, x, 0.0); }, {2, 3}, {2, 3},
        {0, 0, 0, 3, 4, 5});
  check("where", [](const T& x) { return where(x > 0.5, x * x, exp(x)); }, numbers({2, 3}));
  const auto bits = [](Rep<Tensor<std::int64_t, dyn>> x, Rep<std::int64_t> n) {
    return (((x << n) ^ (x >> 1)) & ~x) | (x % 3);
  };
  const std::vector<std::int64_t> in = {5, -7, std::int64_t{1} << 40, 0};
  std::vector<std::int64_t> want;
  for (const std::int64_t x : in) want.push_back((((x << 3) ^ (x >> 1)) & ~x) | (x % 3));
  const TensorView<const std::int64_t> view(in.data(), {4});
  CHECK(eager(bits)(view, 3).data == want);
  CHECK(compile(bits, {.target = Target::c})(view, 3).data == want);
  CHECK(compile(bits, {.target = Target::cpp})(view, 3).data == want);
  CHECK(compile(bits, {.target = Target::cpp})(view, 67).data == want);  // by its lowest bits
  const auto scalar = [](Rep<std::int32_t> x, Rep<std::int32_t> n) { return (1 << n) | (x & 6) | (x >> 31); };
  CHECK(compile(scalar)(5, 4) == 20);
  CHECK(compile(scalar)(-1, 31) == -1);
  CHECK(eager(scalar)(5, 4) == 20);
  const auto truths = [](Rep<bool> a, Rep<bool> b) { return (a & b) | (a ^ b); };
  CHECK(compile(truths)(true, false));
  CHECK(!compile(truths)(false, false));
}

TEST_CASE("creation") {
  gives("tabulate", [](const T& x) { return T(tabulate<2, 2>([&](auto i, auto j) { return x(j, i); })); }, {2, 2},
        {2, 2}, {0, 2, 1, 3});
  gives("tabulate by sizes",
        [](const T& x) { return T(tabulate([&](auto i, auto j) { return x(i) * cast<double>(j); }, x.dim(0), 2)); },
        {3}, {3, 2}, {0, 0, 0, 1, 0, 2});
  gives("eye", [](const T& x) { return T(eye<double>(x.dim(0))); }, {2}, {2, 2}, {1, 0, 0, 1});
  gives("arange", [](const T& x) { return real(Rep<Tensor<std::int64_t>>(arange(x.dim(0)))); }, {4}, {4}, {0, 1, 2, 3});
  gives("linspace", [](const T& x) { return T(linspace<double>(x(1), 3.0, 5)); }, {2}, {5}, {1, 1.5, 2, 2.5, 3});
  gives("linspace of one", [](const T& x) { return T(linspace<double>(x(1), 3.0, 1)); }, {2}, {1}, {1});
  check("tabulate", [](const T& x) { return T(tabulate<3, 2>([&](auto i, auto j) { return x(i) * x(j); })); },
        numbers({3}));
  check("linspace", [](const T& x) { return T(linspace<double>(x(0), x(1), 4)); }, numbers({2}));
}

TEST_CASE("parts of tensors") {
  gives("rows", [](const T& x) { return x(range(1, -1)); }, {4, 2}, {2, 2}, {2, 3, 4, 5});
  gives("columns", [](const T& x) { return x(all, range(1, to_end, 2)); }, {2, 5}, {2, 2}, {1, 3, 6, 8});
  gives("an index", [](const T& x) { return x(all, 1); }, {3, 2}, {3}, {1, 3, 5});
  gives("from the end", [](const T& x) { return x(-1, all); }, {3, 2}, {2}, {4, 5});
  gives("three", [](const T& x) { return x(all, 0, range(-2, to_end)); }, {2, 2, 3}, {2, 2}, {1, 2, 7, 8});
  gives("a range of nothing", [](const T& x) { return x(range(2, 2)); }, {3}, {0}, {});
  gives("by Reps", [](const T& x) { return x(range(x.dim(0) / 2, x.dim(0))); }, {4}, {2}, {2, 3});
  gives("set", [](const T& x) { return x.set_part({all, range(0, 2)}, 9.0); }, {2, 3}, {2, 3}, {9, 9, 2, 9, 9, 5});
  gives("set by a row", [](const T& x) { return x.set_part({range(0, 2)}, x(2, all)); }, {3, 2}, {3, 2},
        {4, 5, 4, 5, 4, 5});
  check("part", [](const T& x) { return x(range(0, to_end, 2), 1); }, numbers({5, 2}));
  check("set_part", [](const T& x) { return x.set_part({all, 1}, x(all, 0) * x(all, 1)); }, numbers({3, 2}));
  const TensorValue<double> x = numbers({3});
  const auto outside = [](Rep<Tensor<double, dyn>> t) { return t(range(1, 5)); };
  CHECK_THROWS_WITH(eager(outside)(x), Catch::Contains("range: expected 0 <= lo <= hi"));
  CHECK_THROWS_WITH(compile(outside)(x), Catch::Contains("range: expected 0 <= lo <= hi"));
  const auto many = [](Rep<Tensor<double, dyn>> t) { return t(all, all); };
  CHECK_THROWS_WITH(compile(many), Catch::Contains("at most 1 indices"));
  const auto shape = [](Rep<Tensor<double, dyn>> t) { return t.set_part({range(0, 2)}, T(t)); };
  CHECK_THROWS_WITH(compile(shape)(x),
                    Catch::Contains("set_part: the value's shape is not that of the part: dimension 0 is 3, expected 2"));
}

TEST_CASE("numbers of C++ count from the end, Reps do not, eagerly as compiled") {
  using Matrix = Rep<Tensor<double, dyn, dyn>>;
  using Index = Rep<std::int64_t>;
  const TensorValue<double> x = counted({2, 3});
  const auto in_both = [&](auto test) {
    test([](auto f) { return eager(f); });
    test([](auto f) { return compile(f, {.target = Target::c, .opt = 0}); });
  };
  in_both([&](auto run) {
    const auto column = [](Matrix t, Index i) { return T(t(all, i)); };
    CHECK(run(column)(x, std::int64_t{2}).data == std::vector<double>{2, 5});
    for (const std::int64_t i : {-1, -3}) {
      INFO("index " << i);
      CHECK_THROWS_WITH(run(column)(x, i), Catch::Contains("index " + std::to_string(i) + " is outside 0..2"));
    }
    CHECK_THROWS_WITH(run(column)(x, std::int64_t{3}), Catch::Contains("index 3 "));
    const auto replaced = [](Matrix t, Index i) { return t.set_part({all, i}, 9.0); };
    CHECK(run(replaced)(x, std::int64_t{1}).data == std::vector<double>{0, 9, 2, 3, 9, 5});
    CHECK_THROWS_WITH(run(replaced)(x, std::int64_t{-1}), Catch::Contains("index -1 is outside 0..2"));
    const auto ranged = [](Matrix t, Index lo, Index hi) { return T(t(all, range(lo, hi))); };
    CHECK(run(ranged)(x, std::int64_t{0}, std::int64_t{2}).shape == Shape{2, 2});
    CHECK_THROWS_WITH(run(ranged)(x, std::int64_t{-2}, std::int64_t{3}),
                      Catch::Contains("range: expected 0 <= lo <= hi <= the dimension's size, got -2 to 3 of 3"));
    CHECK_THROWS_WITH(run(ranged)(x, std::int64_t{0}, std::int64_t{-1}), Catch::Contains("got 0 to -1 of 3"));
    CHECK(run([](Matrix t) { return T(t(all, -1)); })(x).data == std::vector<double>{2, 5});
    CHECK(run([](Matrix t) { return T(t(all, range(-2, -1))); })(x).data == std::vector<double>{1, 4});
  });
}

TEST_CASE("elements and parts of tensors of many dimensions") {
  const auto five = [](const T& x) { return reshape(x, 2, 1, 3, 2, 2); };
  const auto six = [](const T& x) { return reshape(x, 2, 1, 3, 2, 1, 2); };
  gives("element of five", [&](const T& x) { return one(five(x)(1, 0, 2, 1, 0)); }, {24}, {1}, {22});
  gives("element of six", [&](const T& x) { return one(six(x)(1, 0, 2, 1, 0, 1)); }, {24}, {1}, {23});
  gives("element of seven", [&](const T& x) { return one(reshape(x, 2, 1, 3, 2, 1, 2, 1).at({1, 0, 2, 1, 0, 1, 0})); },
        {24}, {1}, {23});
  gives("part of five", [&](const T& x) { return five(x)(0, all, -1, range(0, 2), 1); }, {24}, {1, 2}, {9, 11});
  gives("part of six", [&](const T& x) { return six(x)(0, all, -1, range(0, 2), 0, 1); }, {24}, {1, 2}, {9, 11});
  gives("set of five", [&](const T& x) { return ravel(reshape(x, 1, 1, 1, 2, 2).set(0, 0, 0, 1, 0, 9.0)); }, {4}, {4},
        {0, 1, 9, 3});
  gives("set of six", [&](const T& x) { return ravel(reshape(x, 1, 1, 1, 2, 1, 2).set(0, 0, 0, 1, 0, 0, x(3))); }, {4},
        {4}, {0, 1, 3, 3});
  gives("set of seven",
        [&](const T& x) { return ravel(reshape(x, 1, 1, 1, 2, 1, 2, 1).set_at({0, 0, 0, 1, 0, 0, 0}, 9.0)); }, {4}, {4},
        {0, 1, 9, 3});
  check("elements of six", [&](const T& x) { return one(six(x)(0, 0, 0, 1, 0, 1) * six(x)(1, 0, 2, 1, 0, 1)); },
        numbers({24}));
  check("set of five", [](const T& x) { return ravel(reshape(x, 1, 1, 1, 2, 2).set(0, 0, 0, 1, 0, x(0) * x(1))); },
        numbers({4}));
  const auto few = [](Rep<Tensor<double, dyn, dyn>> t) { return t(0, 0, 0, 0, 0); };
  CHECK_THROWS_WITH(compile(few), Catch::Contains("tensor_test.cpp:"));
  CHECK_THROWS_WITH(eager(few)(numbers({2, 2})), Catch::Contains("tensor_test.cpp:"));
}

TEST_CASE("a whole number in a tensor of whole numbers is replaced by a Rep as by a number") {
  using Numbers = Rep<Tensor<std::int64_t, dyn>>;
  const auto f = [](Numbers t, Rep<std::int64_t> i, Rep<std::int64_t> v) { return t.set(i, v).set(0, v + 1); };
  const TensorValue<std::int64_t> t({7, 7, 7}, {3});
  CHECK(eager(f)(t, std::int64_t{2}, std::int64_t{1}).data == std::vector<std::int64_t>{2, 7, 1});
  CHECK(compile(f, {.target = Target::c})(t, std::int64_t{2}, std::int64_t{1}).data == std::vector<std::int64_t>{2, 7, 1});
}

TEST_CASE("shapes") {
  gives("reshape", [](const T& x) { return reshape(x, 3, 2); }, {2, 3}, {3, 2}, {0, 1, 2, 3, 4, 5});
  gives("ravel", [](const T& x) { return ravel(x); }, {2, 2}, {4}, {0, 1, 2, 3});
  gives("expand", [](const T& x) { return expand(unsqueeze<1>(x), 2, 2, 3); }, {2}, {2, 2, 3},
        {0, 0, 0, 1, 1, 1, 0, 0, 0, 1, 1, 1});
  gives("squeeze", [](const T& x) { return squeeze<1>(unsqueeze<1>(x)); }, {3}, {3}, {0, 1, 2});
  gives("unsqueeze", [](const T& x) { return unsqueeze<0, -1>(x); }, {3}, {1, 3, 1}, {0, 1, 2});
  gives("flip", [](const T& x) { return flip<0, 1>(x); }, {2, 3}, {2, 3}, {5, 4, 3, 2, 1, 0});
  gives("roll", [](const T& x) { return roll<1>(x, 1); }, {2, 3}, {2, 3}, {2, 0, 1, 5, 3, 4});
  gives("roll back", [](const T& x) { return roll(x, -4); }, {3}, {3}, {1, 2, 0});
  gives("pad", [](const T& x) { return pad(x, {{1, 0}, {0, 2}}, Pad::constant, 7.0); }, {1, 2}, {2, 4},
        {7, 7, 7, 7, 0, 1, 7, 7});
  gives("reflect", [](const T& x) { return pad(x, {{2, 2}}, Pad::reflect); }, {3}, {7}, {2, 1, 0, 1, 2, 1, 0});
  gives("edge", [](const T& x) { return pad(x, {{1, 2}}, Pad::edge); }, {3}, {6}, {0, 0, 1, 2, 2, 2});
  gives("concat", [](const T& x) { return concat<1>(x, x * 10.0); }, {2, 2}, {2, 4}, {0, 1, 0, 10, 2, 3, 20, 30});
  gives("stack", [](const T& x) { return stack<1>(x, -x); }, {3}, {3, 2}, {0, 0, 1, -1, 2, -2});
  gives("split", [](const T& x) { return split<-1, 2>(x)[1]; }, {2, 4}, {2, 2}, {2, 3, 6, 7});
  gives("tile", [](const T& x) { return tile(x, 2, 2); }, {1, 2}, {2, 4}, {0, 1, 0, 1, 0, 1, 0, 1});
  gives("repeat", [](const T& x) { return repeat<0>(x, 2); }, {3}, {6}, {0, 0, 1, 1, 2, 2});
  gives("permute from the last", [](const T& x) { return permute<-1, 0>(x); }, {2, 2}, {2, 2}, {0, 2, 1, 3});
  const TensorValue<double> x = numbers({2, 3});
  check("flip", [](const T& t) { return flip<-1>(t); }, x);
  check("roll", [](const T& t) { return roll<1>(t, 2); }, x);
  check("pad", [](const T& t) { return pad(t, {{1, 0}, {0, 2}}); }, x);
  check("reflect", [](const T& t) { return pad(t, {{1, 1}, {2, 1}}, Pad::reflect); }, x);
  check("edge", [](const T& t) { return pad(t, {{1, 1}, {2, 1}}, Pad::edge); }, x);
  check("concat", [](const T& t) { return concat<1>(t, t * t); }, x);
  check("stack", [](const T& t) { return stack<2>(t, sin(t)); }, x);
  check("split", [](const T& t) { return split<0, 2>(t)[0] * split<0, 2>(t)[1]; }, x);
  check("tile", [](const T& t) { return tile(t, 2, 1); }, x);
  check("repeat", [](const T& t) { return repeat<1>(t, 2); }, x);
  check("expand", [](const T& t) { return expand(unsqueeze<1>(t), 2, 4, 3); }, x);
  check("reshape", [](const T& t) { return reshape(t * t, 3, 2); }, x);
  // A size of -1 is what the others leave.
  gives("reshape by the rest", [](const T& t) { return reshape(t, -1, 2); }, {2, 3}, {3, 2}, {0, 1, 2, 3, 4, 5});
  gives("all in a row", [](const T& t) { return reshape(t, -1); }, {2, 2}, {4}, {0, 1, 2, 3});
  gives("the rest of one", [](const T& t) { return reshape(t, 2, -1, t.dim(1)); }, {2, 3}, {2, 1, 3}, {0, 1, 2, 3, 4, 5});
  gives("the rest of none", [](const T& t) { return reshape(t, -1, 3); }, {0, 3}, {0, 3}, {});
  check("reshape by the rest", [](const T& t) { return reshape(t * t, 3, -1); }, x);
  CHECK(eager([](Rep<Tensor<double, 2, 3>> t) { return Rep<Tensor<double, 3, 2>>(reshape(t, 3, -1)); })(x).shape ==
        Shape{3, 2});
  CHECK(compile([](Rep<Tensor<double, 2, 3>> t) { return Rep<Tensor<double, 3, 2>>(reshape(t, 3, -1)); })(x).shape ==
        Shape{3, 2});
  using Matrix = Rep<Tensor<double, dyn, dyn>>;
  const auto refuses = [&](auto f, const TensorValue<double>& t, const char* text) {
    CHECK_THROWS_WITH(eager(f)(t), Catch::Contains(text) && Catch::Contains("tensor_test.cpp:"));
    CHECK_THROWS_WITH(compile(f)(t), Catch::Contains(text) && Catch::Contains("tensor_test.cpp:"));
  };
  refuses([](Matrix t) { return reshape(t, -1, 4); }, x,
          "reshape: expected sizes that divide the 6 elements of the tensor, beside one of -1, got 4 elements without it");
  refuses([](Matrix t) { return reshape(t, -1, -1); }, x, "reshape: expected one size of -1 at most, got one in dimensions 0 and 1");
  refuses([](Matrix t) { return reshape(t, -1, t.dim(0)); }, numbers({0, 2}),
          "reshape: expected sizes above 0 beside one of -1, got 0 elements without it");
  refuses([](Matrix t) { return reshape(t, t.dim(0) - 3, 2); }, x, "a tensor of negative size");
  const auto wrong = [](Rep<Tensor<double, 2, 3>> t) { return reshape(t, 4, 2); };
  CHECK_THROWS_WITH(compile(wrong), Catch::Contains("reshape: expected a shape of 6 elements"));
  const auto thin = [](Rep<Tensor<double, dyn>> t) { return pad(t, {{3, 0}}, Pad::reflect); };
  CHECK_THROWS_WITH(compile(thin)(numbers({2})), Catch::Contains("a reflection is as wide as there are elements, less one, at most, got 3 of 2"));
  const auto uneven = [](Rep<Tensor<double, dyn>> t) { return split<0, 2>(t)[0]; };
  CHECK_THROWS_WITH(compile(uneven)(numbers({3})), Catch::Contains("expected a size that 2 divides, got 3"));
  // The line is named however many there are.
  const auto joined = [](Matrix t) { return concat<1>(t, t, t, t, t, t(range(0, 1), all)); };
  refuses(joined, x, "concat: expected the same sizes but along the dimension that grows, got 2 and 1");
  const auto stacked = [](Matrix t) { return stack<0>(t, t, t, t, t(range(0, 1), all)); };
  refuses(stacked, x, "stack: expected the same sizes but along the dimension that grows, got 2 and 1");
  gives("concat of five", [](const T& t) { return concat<0>(t, t, -t, t, t); }, {1}, {5}, {0, 0, 0, 0, 0});
  gives("stack of one", [](const T& t) { return stack(t); }, {2}, {1, 2}, {0, 1});
  gives("stack of five", [](const T& t) { return stack<1>(t, t, t, t, -t); }, {2}, {2, 5}, {0, 0, 0, 0, 0, 1, 1, 1, 1, -1});
}

TEST_CASE("reductions") {
  gives("sum, kept", [](const T& x) { return sum<1>(x, keep); }, {2, 3}, {2, 1}, {3, 12});
  gives("mean from the last", [](const T& x) { return mean<-1>(x); }, {2, 3}, {2}, {1, 4});
  gives("mean of all", [](const T& x) { return one(mean(x)); }, {2, 3}, {1}, {2.5});
  gives("all dimensions, kept", [](const T& x) { return max<0, 1>(x, keep); }, {2, 3}, {1, 1}, {5});
  gives("max", [](const T& x) { return max<0>(x); }, {2, 3}, {3}, {3, 4, 5});
  gives("min", [](const T& x) { return min<1>(x, keep); }, {2, 3}, {2, 1}, {0, 3});
  gives("max of all", [](const T& x) { return one(max(x) - min(x)); }, {2, 3}, {1}, {5});
  gives("argmax", [](const T& x) { return real(argmax<1>(x * (3.0 - x))); }, {2, 4}, {2}, {1, 0});
  gives("argmin of two dimensions", [](const T& x) { return real(argmin<0, 2>((x - 4.0) * (x - 4.0))); }, {2, 2, 2},
        {2}, {2, 1});
  gives("prod", [](const T& x) { return prod<1>(x + 1.0); }, {2, 2}, {2}, {2, 12});
  gives("var", [](const T& x) { return var<1>(x); }, {2, 3}, {2}, {2.0 / 3, 2.0 / 3});
  gives("sample_var", [](const T& x) { return one(sample_var(x)); }, {4}, {1}, {5.0 / 3});
  gives("norm", [](const T& x) { return one(norm(x)); }, {3}, {1}, {std::sqrt(5.0)});
  gives("norm of zeros", [](const T& x) { return norm<1>(x * 0.0); }, {2, 2}, {2}, {0, 0});
  gives("any", [](const T& x) { return real(any_of<1>(x > 4.0)); }, {2, 3}, {2}, {0, 1});
  gives("all", [](const T& x) { return real(all_of<0>(x > 0.0)); }, {2, 3}, {3}, {0, 1, 1});
  gives("count", [](const T& x) { return one(cast<double>(count(x > 1.0))); }, {4}, {1}, {2});
  gives("cumsum", [](const T& x) { return cumsum<1>(x); }, {2, 3}, {2, 3}, {0, 1, 3, 3, 7, 12});
  gives("cumprod", [](const T& x) { return cumprod(x + 1.0); }, {3}, {3}, {1, 2, 6});
  gives("softmax", [](const T& x) { return softmax<0>(x * 1000.0); }, {2}, {2}, {0, 1});
  gives("logsumexp", [](const T& x) { return logsumexp<1>(x * 1000.0); }, {2, 2}, {2}, {1000, 3000});
  const TensorValue<double> x = numbers({3, 4});
  check("max", [](const T& t) { return max<1>(t); }, x);
  check("min", [](const T& t) { return min<0>(t, keep) * t; }, x);
  check("max of two dimensions", [](const T& t) { return max<0, 2>(t); }, numbers({2, 3, 2}));
  check("max of all", [](const T& t) { return one(max(t) * min(t)); }, x);
  check("prod", [](const T& t) { return prod<1>(t); }, x);
  check("prod with a zero", [](const T& t) { return one(prod(t - 0.3)); }, TensorValue<double>(std::vector<double>{0.3, 1, 2}, {3}));
  check("var", [](const T& t) { return var<0>(t); }, x);
  check("var of all", [](const T& t) { return one(var(t)); }, x);
  check("norm", [](const T& t) { return norm<1>(t, keep); }, x);
  check("logsumexp", [](const T& t) { return logsumexp<0>(t); }, x);
  check("softmax", [](const T& t) { return softmax<1>(t); }, x);
  check("log_softmax", [](const T& t) { return log_softmax<0>(t); }, x);
  check("cumsum", [](const T& t) { return cumsum<0>(t * t); }, x);
  check("cumprod", [](const T& t) { return cumprod<1>(t); }, x);
  check("layer norm", [](const T& t) { return (t - mean<1>(t, keep)) / sqrt(var<1>(t, keep) + 1e-5); }, x);
  // NaN is less than every number; without elements there is no largest.
  const TensorValue<double> holes(std::vector<double>{not_a_number, 2, 1, not_a_number, not_a_number, not_a_number}, {2, 3});
  CHECK(eager([](T t) { return argmax<1>(t); })(holes).data == std::vector<std::int64_t>{1, 0});
  CHECK(compile([](T t) { return argmin<1>(t); })(holes).data == std::vector<std::int64_t>{2, 0});
  CHECK_THROWS_WITH(compile([](T t) { return max<1>(t); })(TensorValue<double>(Shape{2, 0})),
                    Catch::Contains("outside an empty dimension"));
  CHECK(compile([](T t) { return max<1>(t); })(TensorValue<double>(Shape{0, 2})).data.empty());
  CHECK(compile([](T t) { return sum<1>(t); })(TensorValue<double>(Shape{2, 0})).data == std::vector<double>{0, 0});
  CHECK_THROWS_WITH(compile([](Rep<Tensor<double, dyn>> t) { return max<0>(t); }),
                    Catch::Contains("over all dimensions it is written max(t)"));
  CHECK_THROWS_WITH(compile([](Rep<Tensor<double, dyn>> t) { return var<1>(t, keep); }),
                    Catch::Contains("expected dimensions of"));
  const auto zeros_norm = [](Rep<Tensor<double, dyn>> t) { return norm(t); };
  CHECK(compile(grad(zeros_norm))(TensorValue<double>(Shape{2})).data == std::vector<double>{0, 0});
  const std::vector<std::int64_t> few = {std::numeric_limits<std::int64_t>::min(), 5, -3};
  const TensorView<const std::int64_t> integers(few.data(), {3});
  CHECK(compile([](Rep<Tensor<std::int64_t, dyn>> t) { return min(t); })(integers) == few[0]);
  CHECK(compile([](Rep<Tensor<std::int64_t, dyn>> t) { return max(t); })(integers) == 5);
}

TEST_CASE("indices") {
  gives("take", [](const T& x) { return take<1>(x, whole(T(tabulate<2>([](auto i) { return 1.0 - cast<double>(i); })))); },
        {2, 3}, {2, 2}, {1, 0, 4, 3});
  gives("argsort", [](const T& x) { return real(argsort<0>(abs(x - 2.2))); }, {5}, {5}, {2, 3, 1, 4, 0});
  gives("descending", [](const T& x) { return sort(x, true); }, {2, 3}, {2, 3}, {2, 1, 0, 5, 4, 3});
  gives("topk", [](const T& x) { return topk(x * (4.0 - x), 2).first; }, {5}, {2}, {4, 3});
  gives("one_hot", [](const T& x) { return T(one_hot<double>(whole(x), 3)); }, {2}, {2, 3}, {1, 0, 0, 0, 1, 0});
  gives("one_hot of a matrix",
        [](const T& x) { return T(one_hot<double>(reshape(whole(ravel(x)), 1, 3), 2)); }, {1, 3}, {1, 3, 2},
        {1, 0, 0, 1, 0, 0});  // 2 is outside
  gives("index_select",
        [](const T& x) {
          return index_select<-1>(x, whole(T(tabulate<3>([](auto i) { return cast<double>(i % 2); }))));
        },
        {2, 1, 2}, {2, 1, 3}, {0, 1, 0, 2, 3, 2});
  check(
      "index_select",
      [](const T& t) {
        return index_select(t, whole(T(tabulate<3>([](auto i) { return 2.0 - cast<double>(i); }))));
      },
      numbers({3, 2}));
  check("sort", [](const T& t) { return sort<0>(t); }, numbers({7}));
  check("sort columns", [](const T& t) { return sort<0>(t); }, numbers({5, 3}));
  check("topk", [](const T& t) { return topk(t, 2).first; }, numbers({2, 5}));
  check("gather", [](const T& t) { return gather<1>(t, argsort<1>(t)); }, numbers({3, 4}));
  check("take", [](const T& t) { return take(t, whole(T(tabulate<4>([](auto i) { return cast<double>(i % 2); })))); },
        numbers({3, 2}));
  check("scatter_add", [](const T& t) {
    return scatter_add(t, whole(T(tabulate<3>([](auto i) { return cast<double>(i % 2); }))), t * t);
  }, numbers({3, 2}));
  // Many sizes, repeated elements and NaN against the standard library.
  const auto order = compile([](Rep<Tensor<double, dyn>> t) { return argsort(t); }, {.target = Target::cpp});
  for (const std::size_t n : {0, 1, 2, 3, 7, 8, 100, 257}) {
    TensorValue<double> x({static_cast<std::int64_t>(n)});
    for (std::size_t i = 0; i < n; ++i) x.data[i] = i % 11 == 3 ? not_a_number : std::floor(7 * std::sin(double(i)));
    std::vector<std::int64_t> want(n);
    std::iota(want.begin(), want.end(), 0);
    std::stable_sort(want.begin(), want.end(), [&](std::int64_t a, std::int64_t b) {
      const double u = x.data[static_cast<std::size_t>(a)], v = x.data[static_cast<std::size_t>(b)];
      return u < v || (u == u && v != v);
    });
    CHECK(order(x).data == want);
  }
}

TEST_CASE("products") {
  const TensorValue<double> x = numbers({2, 3, 3});
  check("batched", [](const T& t) { return matmul(t, t); }, x);
  check("batched with one", [](const T& t) { return matmul(t, T(t.row(0))); }, x);
  check("one with batched", [](const T& t) { return matmul(T(t.row(1)), t); }, x);
  gives("batched", [](const T& t) { return matmul(t, t); }, {2, 2, 2}, {2, 2, 2}, {2, 3, 6, 11, 46, 55, 66, 79});
  CHECK_THROWS_WITH(compile([](Rep<Tensor<double, dyn, dyn, dyn>> t, Rep<Tensor<double, dyn, dyn, dyn, dyn>> u) {
                      return matmul(t, u);
                    }),
                    Catch::Contains("matmul: expected as many dimensions before the matrices"));
}

TEST_CASE("scan keeps an output of each iteration") {
  const Function running = [](const T& x) {
    const auto [last, all_of_them] = scan(x.dim(0), Rep<double>(1.0), [&](auto i, Rep<double> s) {
      const Rep<double> next = s * x(i);
      return std::pair(next, std::tuple(next, T(as_tensor(fill(next, 2)))));
    });
    return concat(T(std::get<0>(all_of_them)) + last, ravel(std::get<1>(all_of_them)));
  };
  check("scan", running, numbers({4}));
  gives("scan", [](const T& x) {
    return T(scan(x.dim(0), Rep<double>(0.0), [&](auto i, Rep<double> s) {
      return std::pair(s + x(i), s);
    }).second);
  }, {4}, {4}, {0, 0, 1, 3});
  const auto none = [](Rep<Tensor<double, dyn>> x) {
    return scan(x.dim(0), Rep<double>(0.0), [&](auto i, Rep<double> s) { return std::pair(s + x(i), s); }).second;
  };
  CHECK_THROWS_WITH(compile(none)(TensorValue<double>(Shape{0})), Catch::Contains("scan: expected at least one iteration"));
}

TEST_CASE("tensor functions in batches, threads, checkpoints and declared shapes") {
  const TensorValue<double> x = numbers({40, 6}), v = numbers({40, 6}, 0.3);
  const auto rows = [](Rep<Tensor<double, dyn, dyn>> t) { return sum(softmax<1>(t) * cumsum<1>(t * t)); };
  const auto row = [](Rep<Tensor<double, dyn>> t) { return sum(softmax<0>(t) * cumsum<0>(t * t)); };
  const auto batch = [&](Rep<Tensor<double, dyn, dyn>> t) { return sum(vmap(row)(t)); };
  const auto again = [&](Rep<Tensor<double, dyn, dyn>> t) { return checkpoint(rows)(t); };
  const TensorValue<double> want = eager(grad(rows))(x);
  same(compile(grad(batch), {.target = Target::cpp})(x).data, want.data, 1e-10);
  same(eager(grad(batch))(x).data, want.data, 1e-10);
  same(compile(grad(again))(x).data, want.data, 1e-10);
  for (const int threads : {1, 2, 3})
    same(compile(grad(rows), {.target = Target::cpp, .threads = threads})(x).data, want.data, 1e-10);
  same(compile(grad(rows), {.target = Target::cpp, .strict_math = true, .reassociate = false})(x).data, want.data, 1e-10);
  const auto declared = [](Rep<Tensor<double, 40, 6>> t) { return sum(softmax<1>(t) * cumsum<1>(t * t)); };
  same(compile(grad(declared), {.target = Target::cpp})(x).data, want.data, 1e-10);
  const TensorView<const double> transposed(x.data.data(), {6, 40}, {1, 6});  // not contiguous
  const auto turned = [&](Rep<Tensor<double, dyn, dyn>> t) { return rows(Rep<Tensor<double, dyn, dyn>>(transpose(t))); };
  CHECK(compile(turned)(transposed) == Approx(compile(rows)(x)));
}

TEST_CASE("what lies outside is zero also of tensors that are repeated, filled or parts") {
  const auto everywhere = [](auto f, const auto&... x) {
    const auto want = eager(f)(x...).data;
    for (const int opt : {0, 2}) same(compile(f, {.target = Target::cpp, .opt = opt})(x...).data, want, 1e-12);
    return want;
  };
  const auto ends = [](const T& x) { return einsum<"[i+k-1],kj->i;i">(x, T(ones<double>({3, 1})), x.dim(0)); };
  const TensorValue<double> x = numbers({6});
  CHECK(everywhere([&](Rep<Tensor<double, dyn>> t) { return ends(T(expand(unsqueeze<0>(t), 4, t.dim(0))(0, all))); }, x)
            .front() == Approx(x.data[0] + x.data[1]));
  CHECK(everywhere([&](Rep<Tensor<double, dyn>> t) { return ends(T(as_tensor(fill(t(0), t.dim(0))))); }, x).front() ==
        Approx(2 * x.data[0]));
  CHECK(everywhere([&](Rep<Tensor<double, dyn>> t) { return ends(t(range(2, -1))); }, x).front() ==
        Approx(x.data[2] + x.data[3]));
  const auto repeated = [](Rep<Tensor<double, dyn>> t, Rep<std::int64_t> n) {
    return einsum<"j[i+k-1],k->ji;i">(T(expand(unsqueeze<1>(t), t.dim(0), n)), T(ones<double>({3})), n);
  };
  CHECK(everywhere(repeated, x, std::int64_t{4})[0] == Approx(2 * x.data[0]));
  CHECK(everywhere(grad([&](Rep<Tensor<double, dyn>> t) { return sum(repeated(t, 4)); }), x)[0] == Approx(10));
}

TEST_CASE("operations of several element types share a nest, and an iteration's zeros have the element of what they are for") {
  const auto several = [](Rep<Tensor<double, dyn, dyn>> t) {
    return std::tuple(Rep<Tensor<bool>>(t > 0.5), sigmoid(t), t + 1.0, silu(t));
  };
  const TensorValue<double> x = numbers({3, 2});
  const auto want = eager(several)(x);
  const auto made = compile(several, {.target = Target::cpp})(x);
  CHECK(std::get<0>(made).data == std::get<0>(want).data);
  same(std::get<1>(made).data, std::get<1>(want).data, 1e-12);
  same(std::get<3>(made).data, std::get<3>(want).data, 1e-12);
  const auto masked = grad([](Rep<Tensor<double, dyn, dyn>> h0, Rep<Tensor<double, dyn, dyn, dyn>> xs,
                              Rep<Tensor<std::int64_t, dyn>> lengths) {
    const auto [h, ys] = FOR(0, xs.dim(0), std::tuple(T(h0), T(zeros_like(xs))), [&](Rep<std::int64_t> i, T now, T out) {
      const Rep<Tensor<bool>> works(unsqueeze<1>(lengths > i));
      const T next = tanh(now + xs.row(i));
      return std::tuple(T(where(works, next, now)), T(out.set_part({i}, T(where(works, next, 0.0)))));
    });
    return sum(h * h) + sum(ys * ys);
  });
  const TensorValue<double> start = numbers({2, 3}), steps = numbers({4, 2, 3});
  const std::vector<std::int64_t> lengths = {2, 4};
  const TensorView<const std::int64_t> view(lengths.data(), {2});
  const auto slope = eager(masked)(start, steps, view);
  const auto compiled = compile(masked, {.target = Target::cpp})(start, steps, view);
  same(std::get<0>(compiled).data, std::get<0>(slope).data, 1e-10);
  same(std::get<1>(compiled).data, std::get<1>(slope).data, 1e-10);
  const auto stacked = compile([](Rep<Tensor<double, dyn, dyn>> t) { return stack<0>(t, t, t); })(numbers({2, 1}));
  CHECK(stacked.shape == Shape{3, 2, 1});
  const auto joined = compile([](Rep<Tensor<double, 2, 1>> t) { return concat<0>(T(t), T(t(range(0, 1)))); })(numbers({2, 1}));
  CHECK(joined.shape == Shape{3, 1});
}

TEST_CASE("cast, erfinv and tensordot") {
  const auto inverse = [](Rep<double> y) { return erfinv(y); };
  const auto value = compile(inverse);
  const auto slope = compile(grad(inverse));
  const auto bend = compile(grad(grad(inverse)));
  for (const double y : {0.0, 1e-300, 1e-3, 0.1, 0.5, 0.50001, -0.7, 0.9, -0.999, 1 - 1e-10, 1 - 1.2e-16}) {
    INFO(y);
    const double x = value(y), first = 0.886226925452758 * std::exp(x * x);
    if (std::abs(y) < 0.5) CHECK(std::erf(x) == Approx(y).epsilon(1e-14).margin(1e-310));
    else CHECK(std::erfc(std::abs(x)) == Approx(1 - std::abs(y)).epsilon(1e-9));
    CHECK(slope(y) == Approx(first).epsilon(1e-8));
    CHECK(bend(y) == Approx(2 * x * first * first).epsilon(1e-6).margin(1e-290));
    CHECK(eager(inverse)(y) == Approx(x).epsilon(1e-14));
  }
  CHECK(std::isinf(value(1.0)));
  CHECK(value(-1.0) == -value(1.0));
  CHECK(std::isnan(value(1.5)));
  CHECK(std::isnan(value(not_a_number)));
  check("erfinv", [](const T& x) { return erfinv(x * 0.5); }, numbers({2, 3}));
  gives("cast", [](const T& x) { return cast<double>(cast<std::int64_t>(x * 0.6)); }, {4}, {4}, {0, 0, 1, 1});
  check("cast", [](const T& x) { return cast<double>(x) * x; }, numbers({3}));
  gives("tensordot", [](const T& x) { return tensordot<1>(x, x); }, {2, 2}, {2, 2}, {2, 3, 6, 11});
  gives("an outer product", [](const T& x) { return tensordot<0>(x, x); }, {2}, {2, 2}, {0, 0, 0, 1});
  check("tensordot", [](const T& x) { return tensordot<2>(x, T(permute<1, 2, 0>(x))); }, numbers({2, 3, 2}));
  CHECK_THROWS_WITH(compile([](Rep<Tensor<double, dyn>> t) { return tensordot<1>(t, t); }), Catch::Contains("dot(a, b)"));
}

TEST_CASE("expand repeats what is 1 only at run time") {
  const auto f = [](Rep<Tensor<double, dyn, dyn>> a, Rep<Tensor<double, dyn, dyn>> b) {
    return expand(a * 2.0, 2, b.dim(0), b.dim(1)) * b;
  };
  const auto slope = grad<0>([f](Rep<Tensor<double, dyn, dyn>> a, Rep<Tensor<double, dyn, dyn>> b) {
    const T y = f(a, b);
    return sum(y * y);
  });
  const TensorValue<double> b({1, 2, 3, 4, 5, 6}, {2, 3});
  const std::pair<TensorValue<double>, std::vector<double>> cases[] = {
      {TensorValue<double>({1, 10, 100, 1000, 10000, 100000}, {2, 3}), {2, 40, 600, 8000, 100000, 1200000}},
      {TensorValue<double>({1, 10}, {2, 1}), {2, 4, 6, 80, 100, 120}},
      {TensorValue<double>({1, 10, 100}, {1, 3}), {2, 40, 600, 8, 100, 1200}},
      {TensorValue<double>({3}, {1, 1}), {6, 12, 18, 24, 30, 36}}};
  const auto all = [&](const auto& run) {
    for (const auto& [a, half] : cases) {
      std::vector<double> want = half;
      want.insert(want.end(), half.begin(), half.end());
      const TensorValue<double> y = run(f)(a, b);
      CHECK(y.shape == Shape{2, 2, 3});
      same(y.data, want, 1e-12);
      // sum y^2 is of second degree in a: a . slope = 2 sum y^2.
      const TensorValue<double> g = run(slope)(a, b);
      CHECK(g.shape == a.shape);
      const double squares = std::inner_product(want.begin(), want.end(), want.begin(), 0.0);
      CHECK(std::inner_product(a.data.begin(), a.data.end(), g.data.begin(), 0.0) == Approx(2 * squares));
    }
    CHECK_THROWS_WITH(run(f)(TensorValue<double>(Shape{2, 2}), b),
                      Catch::Contains("expand: expected the size of dimension 1, or that to be 1"));
    CHECK(run(f)(TensorValue<double>(Shape{1, 0}), TensorValue<double>(Shape{2, 0})).data.empty());
  };
  all([](const auto& g) { return eager(g); });
  all([](const auto& g) { return compile(g, {.target = Target::c, .opt = 0}); });
  all([](const auto& g) { return compile(g, {.target = Target::cpp}); });
}

TEST_CASE("both operands are repeated: one gets a dimension, the other has one of 1") {
  const auto f = [](Rep<Tensor<double, dyn>> a, Rep<Tensor<double, dyn, 1>> b) {
    return std::tuple(a + b, b * a, where(a <= b, a, b));
  };
  const TensorValue<double> a(std::vector<double>{0.2, -1.5, 3.0}, {3}), b(std::vector<double>{0.5, -2.0}, {2, 1});
  const auto check_all = [&](const auto& all) {
    const auto& [sums, products, least] = all;
    REQUIRE(sums.shape == std::vector<std::int64_t>{2, 3});
    for (std::size_t i = 0; i < 2; ++i)
      for (std::size_t j = 0; j < 3; ++j) {
        CHECK(sums[i * 3 + j] == a[j] + b[i]);
        CHECK(products[i * 3 + j] == a[j] * b[i]);
        CHECK(least[i * 3 + j] == std::min(a[j], b[i]));
      }
  };
  check_all(eager(f)(a, b));
  check_all(compile(f, {.target = Target::c, .opt = 0})(a, b));
  check_all(compile(f, {.target = Target::cpp})(a, b));
}

TEST_CASE("tensors of two types are equal or not, in either order") {
  const auto f = [](Rep<Tensor<double, dyn>> a) {
    const T b = a * a;
    return sum(where(a == b, b, -b)) + 10.0 * sum(where(b == a, b, -b)) + 100.0 * sum(where(b != a, b, -b)) +
           1000.0 * sum(where(a != b, b, -b));
  };
  const std::vector<double> a{0.0, 1.0, 2.0, -1.0};
  // b is 0, 1, 4, 1: it equals a in the first two.
  CHECK(compile(f, {.target = Target::c})(a) == 11.0 * (1.0 - 5.0) + 1100.0 * (5.0 - 1.0));
  const auto compiled = compile(grad(f), {.target = Target::c})(a), evaluated = eager(grad(f))(a);
  for (std::size_t i = 0; i < a.size(); ++i) CHECK(compiled[i] == evaluated[i]);
}
