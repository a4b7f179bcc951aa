// What compile() and eager() give back: types at the edge, memory, tiers, threads.
#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdlib>
#include <new>
#include <numeric>
#include <thread>

#include "lantern/lantern.hpp"
#include "lantern/runtime/dlpack.hpp"

using namespace lantern;

namespace {
thread_local std::size_t allocations = 0;
}  // namespace

[[gnu::noinline]] void* operator new(std::size_t bytes) {
  ++allocations;
  if (void* memory = std::malloc(bytes)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace {

template <class T>
struct Point {
  T x, y;
};

Rep<double> f(Rep<double> x) { return 2.0 * x + x * x * x; }
Rep<double> area(Point<Rep<double>> p) { return p.x * p.y + sin(p.x); }
std::tuple<Rep<double>, Rep<int64_t>> pair(Rep<double> x, Rep<int64_t> n) {
  return {x * cast<double>(n), n + 1};
}
Rep<Array<double>> scaled(Rep<Array<double>> a, Rep<double> s) { return a * s; }

LANTERN_FUNCTION(df, grad(f))
LANTERN_FUNCTION(scale, scaled)
LANTERN_FUNCTION(gradients, grad<0, 1>(sig<double(double, double)>([](auto x, auto y) { return x * y * y; })))

}  // namespace

TEST_CASE("a LANTERN_FUNCTION is callable, and its address is a function pointer") {
  CHECK(df(3.0) == 29.0);
  double (*pointer)(double) = &df;
  CHECK(pointer(2.0) == 14.0);
  const auto [dx, dy] = gradients(3.0, 2.0);
  CHECK(dx == 4.0);
  CHECK(dy == 12.0);
  double slope = 0;
  df.into(slope, 3.0);
  CHECK(slope == 29.0);
  df.accumulate_into(slope, 3.0);
  CHECK(slope == 58.0);
  const auto copy = df;
  CHECK(copy(3.0) == 29.0);
}

TEST_CASE("structs, tuples, arrays and integers at the edge") {
  for (const int opt : {0, 3}) {
    const CompileOptions options{.target = Target::c, .opt = opt};
    const Point<double> g = compile(grad(area), options)(Point<double>{1.0, 2.0});
    CHECK(g.x == Approx(2.0 + std::cos(1.0)));
    CHECK(g.y == 1.0);
    CHECK(compile(pair, options)(2.5, 4) == std::tuple(10.0, int64_t{5}));
    const std::vector<double> a{1, 2, 3};
    CHECK(compile(scaled, options)(a, 2.0) == std::vector<double>{2, 4, 6});
    CHECK(compile(scaled, options)({}, 2.0).empty());
  }
  CHECK(eager(pair)(2.5, 4) == std::tuple(10.0, int64_t{5}));
  const Point<double> g = eager(grad(area))(Point<double>{1.0, 2.0});
  CHECK(g.x == Approx(2.0 + std::cos(1.0)));
}

TEST_CASE("float, int32 and bool") {
  auto g = compile(
      [](Rep<float> x, Rep<int32_t> n, Rep<bool> b) {
        return IF(
            b, [&] { return x * 2.0; }, [&] { return cast<float>(n); });
      },
      {.target = Target::c});
  CHECK(g(1.5f, 7, true) == 3.0f);
  CHECK(g(1.5f, 7, false) == 7.0f);
}

TEST_CASE("into and accumulate_into") {
  auto g = compile(scaled, {.target = Target::c});
  const std::vector<double> a{1, 2, 3};
  std::vector<double> out{10, 10, 10};
  g.into(std::span<double>(out), a, 2.0);
  CHECK(out == std::vector<double>{2, 4, 6});
  g.accumulate_into(std::span<double>(out), a, 2.0);
  CHECK(out == std::vector<double>{4, 8, 12});
  double x = 0;
  int64_t n = 0;
  compile(pair, {.target = Target::c}).into(x, n, 2.5, 4);
  CHECK(x == 10.0);
  CHECK(n == 5);
}

TEST_CASE("into: results that lie in the memory they are written to, strided targets") {
  using A = Rep<Array<double>>;
  auto swap = compile([](A a, A b) { return std::tuple(b, a); }, {.target = Target::c});
  std::vector<double> a{1, 2, 3}, b{4, 5, 6};
  swap.into(std::span<double>(a), std::span<double>(b), a, b);
  CHECK(a == std::vector<double>{4, 5, 6});
  CHECK(b == std::vector<double>{1, 2, 3});
  auto tail = compile([](A x) { return x.slice(1, 3); }, {.target = Target::c});
  tail.into(std::span<double>(a).first(2), a);
  CHECK(a == std::vector<double>{5, 6, 6});

  auto table = compile([](Rep<double> x) { return fill(x, 2, 3).set(1, 2, -x); }, {.target = Target::c});
  std::vector<double> columns(6, 1.0);
  table.into(TensorView<double>(columns.data(), {2, 3}, {1, 2}), 7.0);
  CHECK(columns == std::vector<double>{7, 7, 7, 7, 7, -7});
  table.accumulate_into(TensorView<double>(columns.data(), {2, 3}, {1, 2}), 1.0);
  CHECK(columns == std::vector<double>{8, 8, 8, 8, 8, -8});
}

TEST_CASE("into: results are computed where they are wanted") {
  using A = Rep<Array<double>>;
  const auto squares = [](A a) {
    return FOR(0, a.size(), fill(Rep<double>(0.0), a.size()),
               [&](Rep<int64_t> i, A s) { return s.set(i, a[i] * a[i]); });
  };
  for (const Target target : {Target::c, Target::cpp}) {
    auto f = compile(squares, {.target = target});
    CHECK(f.source("c").find("lt_place(ws, 0,") != std::string::npos);
    std::vector<double> a{1, 2, 3}, out(3);
    f.into(std::span<double>(out), a);
    CHECK(out == std::vector<double>{1, 4, 9});
    CHECK(f(a) == out);  // no memory of an earlier call is wanted any more
    f.accumulate_into(std::span<double>(out), a);
    CHECK(out == std::vector<double>{2, 8, 18});
    f.into(std::span<double>(a), a);  // not in place: each element may be needed until the end
    CHECK(a == std::vector<double>{1, 4, 9});

    auto gradient = compile(grad([](A x) {
                              return FOR(0, x.size(), 0.0,
                                         [&](Rep<int64_t> i, Rep<double> s) { return s + x[i] * x[i]; });
                            }),
                            {.target = target});
    gradient.into(std::span<double>(out), a);
    CHECK(out == std::vector<double>{2, 8, 18});
    gradient.into(std::span<double>(out), a);  // starts from zero again
    CHECK(out == std::vector<double>{2, 8, 18});
    gradient.into(std::span<double>(a), a);
    CHECK(a == std::vector<double>{2, 8, 18});

    // One tensor, two results; results of one size in each other's place.
    auto both = compile(
        [&](A x) {
          const A y = squares(x);
          return std::tuple(y, y);
        },
        {.target = target});
    std::vector<double> left(3), right(3);
    both.into(std::span<double>(left), std::span<double>(right), a);
    CHECK(left == std::vector<double>{4, 64, 324});
    CHECK(right == left);
    auto swapped = compile(
        [&](A x, A y) {
          const A p = squares(x), q = squares(y);
          return IF(
              x[0] < y[0], [&] { return std::tuple(p, q); }, [&] { return std::tuple(q, p); });
        },
        {.target = target});
    const std::vector<double> small{1, 2, 3}, large{4, 5, 6};
    swapped.into(std::span<double>(left), std::span<double>(right), large, small);
    CHECK(left == std::vector<double>{1, 4, 9});
    CHECK(right == std::vector<double>{16, 25, 36});
  }
}

TEST_CASE("a call asks for no memory but that of the vectors it returns") {
  using A = Rep<Array<double>>;
  const auto made_by = [](auto&& call) {
    call();  // the workspace grows
    const std::size_t before = allocations;
    call();
    return allocations - before;
  };
  const auto length = [](Rep<Tensor<double, dyn, dyn>> t, A a) { return sum(t * t) + sum(a * a); };
  auto number = compile(grad(area));
  auto value = compile(length);
  auto gradient = compile(grad(length));
  number.wait();
  value.wait();
  gradient.wait();
  const std::vector<double> data{1, 2, 3, 4, 5, 6}, a{1, 2};
  std::vector<double> dt(6), da(2);
  const TensorView<const double> t(data.data(), {2, 3});
  const TensorView<double> out(dt.data(), {2, 3});
  double y = 0;
  Point<double> p{0, 0};
  CHECK(made_by([&] { p = number({1.0, 2.0}); }) == 0);
  CHECK(made_by([&] { number.into(p, Point<double>{1.0, 2.0}); }) == 0);
  CHECK(made_by([&] { y = value(t, a); }) == 0);
  CHECK(made_by([&] { value.into(y, t, a); }) == 0);
  CHECK(made_by([&] { scale.into(da, a, 3.0); }) == 0);
  CHECK(da == std::vector<double>{3, 6});
  CHECK(made_by([&] { gradient.into(out, da, t, a); }) == 0);
  std::tuple<TensorValue<double>, std::vector<double>> result;
  CHECK(made_by([&] { result = gradient(t, a); }) == 3);  // elements, shape, elements
  CHECK(p.x == Approx(2 + std::cos(1.0)));
  CHECK(y == 96);
  CHECK(dt == std::vector<double>{2, 4, 6, 8, 10, 12});
  CHECK(da == std::vector<double>{2, 4});
}

TEST_CASE("hundreds of numbers in one argument") {
  using Many = std::array<Rep<double>, 300>;
  const auto program = [](Many x) {
    std::reverse(x.begin(), x.end());
    return std::tuple(x, x[0] * x[1]);
  };
  std::array<double, 300> x;
  std::iota(x.begin(), x.end(), 0.0);
  // tcc takes no call of so many; neither tier knows.
  for (const Target target : {Target::c, Target::automatic, Target::cpp}) {
    auto reversed = compile(program, {.target = target});
    const auto [y, product] = reversed(x);
    CHECK(y.front() == 299);
    CHECK(y.back() == 0);
    CHECK(product == 299 * 298);
    std::array<double, 300> z;
    double p;
    reversed.into(z, p, x);
    CHECK(z == y);
    CHECK(p == product);
  }
}

TEST_CASE("hundreds of numbers between functions") {
  constexpr std::size_t n = 300;
  const auto program = [](Rep<double> x) {
    const auto many = FUN<std::array<double, n>(double, std::int64_t)>(
        "many", [](auto self, Rep<double> y, Rep<std::int64_t> left) {
          std::array<Rep<double>, n> r;
          for (std::size_t k = 0; k < n; ++k) r[k] = sin(y * static_cast<double>(k));
          return IF(
              left == 0, [&] { return r; }, [&] { return self(y * 0.5, left - 1); });
        });
    Rep<double> s = 0.0;
    for (const Rep<double>& v : many(x, 3)) s += v;
    return s;
  };
  // The loop's state goes from part to part of a function that is cut.
  const auto loop = [](Rep<double> x, Rep<std::int64_t> iterations) {
    std::array<Rep<double>, n> start;
    for (std::size_t k = 0; k < n; ++k) start[k] = x * static_cast<double>(k + 1);
    const auto end = FOR(0, iterations, start, [](Rep<std::int64_t>, std::array<Rep<double>, n> s) {
      for (std::size_t k = 0; k + 1 < n; ++k) s[k] = 0.5 * s[k] + 0.25 * s[k + 1];
      return s;
    });
    Rep<double> sum = 0.0;
    for (const Rep<double>& v : end) sum += v * v;
    return sum;
  };
  const double expected = eager(program)(0.01), slope = eager(grad<0>(loop))(0.01, 5);
  for (const Target target : {Target::c, Target::cpp})
    for (const int opt : {1, 3}) {
      CHECK(compile(program, {.target = target, .opt = opt})(0.01) == Approx(expected));
      CHECK(compile(grad<0>(loop), {.target = target, .opt = opt})(0.01, 5) == Approx(slope));
    }
}

TEST_CASE("into: structs and arrays of results") {
  using A = Rep<Array<double>>;
  auto shifted = compile(
      [](Point<A> p, Rep<double> by) {
        return std::tuple(Point<A>{p.x + by, p.y - by}, std::array<Rep<double>, 2>{by, -by});
      },
      {.target = Target::c});
  const std::vector<double> x{1, 2}, y{3, 4, 5};
  std::vector<double> to_x(2), to_y(3);
  std::array<double, 2> by;
  const Point<std::span<double>> out{to_x, to_y};
  shifted.into(out, by, Point<std::span<const double>>{x, y}, 1.0);
  CHECK(to_x == std::vector<double>{2, 3});
  CHECK(to_y == std::vector<double>{2, 3, 4});
  CHECK(by == std::array{1.0, -1.0});
  shifted.accumulate_into(out, by, Point<std::span<const double>>{x, y}, 1.0);
  CHECK(to_y == std::vector<double>{4, 6, 8});
  CHECK(by == std::array{2.0, -2.0});
}

TEST_CASE("tensors: strided views, ranks from the argument, DLPack") {
  auto total = compile([](Rep<Tensor<double>> t) { return sum(t * t); }, {.target = Target::c});
  const std::vector<double> data{1, 2, 3, 4, 5, 6};
  CHECK(total(TensorView<const double>(data.data(), {6})) == 91.0);
  CHECK(total(TensorView<const double>(data.data(), {2, 3})) == 91.0);
  // Every other column.
  CHECK(total(TensorView<const double>(data.data(), {2, 2}, {3, 2})) == 1 + 9 + 16 + 36);

  auto gradient = compile(grad([](Rep<Tensor<double>> t) { return sum(t * t); }), {.target = Target::c});
  TensorValue<double> g = gradient(TensorView<const double>(data.data(), {2, 3}));
  CHECK(g.shape == std::vector<int64_t>{2, 3});
  CHECK(g.data == std::vector<double>{2, 4, 6, 8, 10, 12});
  DLManagedTensor* managed = to_dlpack(std::move(g));
  const TensorView<const double> view = from_dlpack<const double>(managed->dl_tensor);
  CHECK(total(view) == 4 * 91.0);
  managed->deleter(managed);
}

TEST_CASE("optimised code is swapped in and gives the same") {
  auto g = compile(grad(f), {.target = Target::automatic});
  const double first = g(3.0);
  g.wait();
  CHECK(g(3.0) == Approx(first).epsilon(1e-15));
}

TEST_CASE("two threads stage, compile and call at once") {
  std::vector<double> results(4);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < results.size(); ++t)
    threads.emplace_back([t, &results] {
      for (int i = 0; i < 10; ++i)
        results[t] += compile(grad(grad(f)),
                              {.target = t % 2 ? Target::c : Target::cpp, .opt = 1})(static_cast<double>(t));
    });
  for (std::thread& t : threads) t.join();
  for (std::size_t t = 0; t < results.size(); ++t) CHECK(results[t] == 60.0 * static_cast<double>(t));
}

TEST_CASE("one compiled function in several threads, each with its own workspace") {
  auto g = compile(grad([](Rep<double> x) {
                     return WHILE(
                         Rep<double>(1.0), [](Rep<double> t) { return t < 1e6; },
                         [&](Rep<double> t) { return t * x; });
                   }),
                   {.target = Target::cpp});
  const double expected = g(1.01);
  std::vector<std::thread> threads;
  std::vector<double> wrong(4);
  for (std::size_t t = 0; t < wrong.size(); ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 200; ++i) wrong[t] += g(1.01) != expected;
    });
  for (std::thread& t : threads) t.join();
  for (double w : wrong) CHECK(w == 0);
}

TEST_CASE("source text of every kind") {
  auto g = compile(grad(f), {.target = Target::c});
  CHECK(g.source("ir").find("fun @") != std::string::npos);
  CHECK(g.source("c").find("double grad_f(double") != std::string::npos);
  CHECK(g.source("cpp").find("extern \"C\" double grad_f(double") != std::string::npos);
  CHECK(g.source("cuda").find("__global__") != std::string::npos);
}
