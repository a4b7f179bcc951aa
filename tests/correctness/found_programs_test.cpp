// Programs that random ones have shown to be compiled wrongly once, made small: each agrees with eager
// evaluation, in both tool chains.
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <vector>

#include "lantern/lantern.hpp"

using namespace lantern;

// Names that users give to their own beside `using namespace lantern`.
using Real = Rep<double>;
using Number = Real;
using Scalar = Number;
struct Box {
  double width = 2.0;
};
struct Data {
  Box box;
};

namespace {

using D = Rep<double>;
using I = Rep<std::int64_t>;
using J = Rep<std::int32_t>;
using A = Rep<Array<double>>;

const CompileOptions ways[] = {{.target = Target::c, .opt = 3}, {.target = Target::cpp, .opt = 3}};

}  // namespace

TEST_CASE("a call that works on a tape is made whatever select chooses", "[codegen]") {
  const auto f = [](D x) {
    const auto twice = FUN<double(double, std::int64_t)>("twice", [](auto self, D y, I depth) {
      return IF(
          depth == 0, [&] { return y; },
          [&] { return self(0.5 * y, depth - 1) * tanh(self(y + 0.1, depth - 1)); });
    });
    return select(x < 0.5, twice(x, 2), 0.75 * x) + select(x < 0.7, 0.2 * x, tanh(twice(x, 1)));
  };
  const auto expected = eager(value_and_grad(f));
  for (const CompileOptions& way : ways) {
    const auto compiled = compile(value_and_grad(f), way);
    for (const double x : {0.3, 0.6, 0.9, 0.4}) {
      CHECK(std::get<0>(compiled(x)) == Approx(std::get<0>(expected(x))).epsilon(1e-13));
      CHECK(std::get<1>(compiled(x)) == Approx(std::get<1>(expected(x))).epsilon(1e-13));
    }
  }
}

TEST_CASE("what is outside is said in the same words by eager evaluation and compiled code", "[errors]") {
  const std::vector<double> a{1, 2, 3};
  const auto words = [](const auto& f, const auto&... arguments) {
    try {
      f(arguments...);
      return std::string("nothing");
    } catch (const Error& e) {
      return std::string(e.what());
    }
  };
  const auto both = [&](const auto& f, const std::vector<double>& x, std::int64_t n,
                        const std::string& expected) {
    CHECK_THAT(words(eager(f), x, n), Catch::EndsWith("error: " + expected));
    CHECK_THAT(words(compile(f, {.target = Target::c}), x, n), Catch::StartsWith(expected));
  };
  both([](A x, I n) { return sum(x.slice(n, x.size())); }, a, 4, "rows 4 to 3 (exclusive) are outside 0..3");
  both([](A x, I n) { return sum(x.slice(n, n + 2)); }, a, 2, "rows 2 to 4 (exclusive) are outside 0..3");
  both([](A x, I n) { return sum(fill(x[0], n)); }, a, -3, "a tensor of negative size, -3");
  both([](A x, I n) { return max(x.slice(n, n)); }, a, 1, "max of an empty tensor");
  both([](A x, I n) { return x.slice(n, n)[0]; }, a, 1, "index 0 is outside an empty dimension");
}

TEST_CASE("a fused iteration in a backward half finds what an inner loop counts to", "[unwind]") {
  // The gradient becomes a function with halves; its second derivative asked for sizes there.
  const auto f = [](D x, A a, A b) {
    const I n = a.size();
    const A moved = FOR(0, n, b, [&](I i, A to) {
      return IF(
          a[i] < b[i] + 0.017, [&] { return to.set(max(i - 1, 0), sin(a[i])); }, [&] { return to; });
    });
    const A powers = FOR(0, n, fill(D(0.0), n), [&](I i, A all) {
      const D base = FOR(0, n, 0.0, [&](I, D s) { return s + moved[n - 1 - i]; });
      const D exponent = FOR(0, 2, x, [&](I j, D y) {
        const auto [z, iterations] = WHILE(
            std::tuple(b[(j + i) % n], I(0)),
            [](D at, I iteration) { return AND(abs(at) > 0.3, [&] { return iteration < 7; }); },
            [&](D at, I iteration) { return std::tuple(0.6 * at + 0.1 * sin(a[min(i + 1, n - 1)]), iteration + 1); });
        return sin(z) + 0.5 * y;
      });
      const D p = pow(1.0 + abs(tanh(base)), tanh(exponent));
      return all.set(i, p / (1.0 + 0.1 * p * p));
    });
    return FOR(0, n, 0.0, [&](I i, D s) { return s + powers[i] * powers[i]; });
  };
  const auto squares = [f](D x, A a, A b) {
    const auto [dx, da] = grad<0, 1>(f)(x, a, b);
    return dx * dx + FOR(0, da.size(), 0.0, [&](I i, D s) { return s + da[i] * da[i]; });
  };
  const std::vector<double> a{0.3, -0.8, 1.1}, b{0.9, 0.4, -0.7};
  const auto [dx, da] = eager(grad<0, 1>(squares))(0.6, a, b);
  for (const CompileOptions& way : ways) {
    const auto [x, found] = compile(grad<0, 1>(squares), way)(0.6, a, b);
    CHECK(x == Approx(dx).epsilon(1e-10));
    for (std::size_t i = 0; i < a.size(); ++i) CHECK(found[i] == Approx(da[i]).epsilon(1e-10));
  }
}

TEST_CASE("users' names are theirs", "[names]") {
  const Data data;
  const auto area = [](Scalar side, Number other) -> Real { return side * other; };
  const auto slope = compile(grad<0>(area), {.target = Target::c});
  CHECK(slope(3.0, data.box.width) == 2.0);
}

TEST_CASE("loops count in 32 bits too, forward and backward", "[unwind]") {
  using J = Rep<std::int32_t>;
  const auto up = [](D x, J n) {
    return std::get<1>(WHILE(
        std::tuple(J(0), x), [=](J i, D) { return i < n; },
        [](J i, D y) { return std::tuple(i + 1, sin(y) * cast<double>(i + 1)); }));
  };
  const auto down = [](D x, J n) {
    return std::get<1>(WHILE(
        std::tuple(n, x), [=](J i, D) { return i >= 1; },
        [](J i, D y) { return std::tuple(i - 1, sin(y) + y * cast<double>(i)); }));
  };
  const auto by_threes = [](D x, J n) {
    return std::get<2>(WHILE(
        std::tuple(J(2147483640), J(-4), x), [=](J, J i, D) { return i <= n; },
        [](J k, J i, D y) {
          return std::tuple(k + 5, i + 3, sin(y * cast<double>(i)) + 1e-9 * y * cast<double>(k));
        }));
  };
  const auto search = [](D x, J n) {  // how often shows at the end alone
    return std::get<1>(WHILE(
        std::tuple(J(0), x), [=](J i, D y) { return AND(y < 5.0, [&] { return i < n; }); },
        [](J i, D y) { return std::tuple(i + 1, y * y + cast<double>(i)); }));
  };
  const auto bounded = [](D x, J n) {
    return std::get<1>(WHILE(
        std::tuple(J(0), x), [=](J i, D) { return i < n; },
        [](J i, D y) { return std::tuple(i + 1, sin(y) * cast<double>(i + 1)); }, {.checkpoints = 2}));
  };
  const auto check = [](const auto& f) {
    const auto expected = eager(value_and_grad<0>(sig<double(double, std::int32_t)>(f)));
    for (const Target target : {Target::c, Target::cpp})
      for (const int opt : {0, 1, 3}) {
        const auto compiled =
            compile(value_and_grad<0>(sig<double(double, std::int32_t)>(f)), {.target = target, .opt = opt});
        for (const int n : {0, 1, 3, 6, -7}) {
          INFO("opt " << opt << ", n " << n);
          CHECK(std::get<0>(compiled(1.25, n)) == Approx(std::get<0>(expected(1.25, n))).epsilon(1e-12));
          CHECK(std::get<1>(compiled(1.25, n)) == Approx(std::get<1>(expected(1.25, n))).epsilon(1e-12));
        }
      }
  };
  check(up);
  check(down);
  check(by_threes);
  check(search);
  check(bounded);
}

TEST_CASE("a range whose end comes long before its start has no iteration", "[counting]") {
  constexpr std::int64_t least = std::numeric_limits<std::int64_t>::min(),
                         most = std::numeric_limits<std::int64_t>::max();
  const auto iterations = [](I from, I to) {
    const auto one_more = [](auto step) { return [=](I i, I n) { return std::tuple(i + step, n + 1); }; };
    const I up = std::get<1>(WHILE(
        std::tuple(from, I(0)), [=](I i, I) { return i < to; }, one_more(1)));
    const I by_twos = std::get<1>(WHILE(
        std::tuple(from, I(0)), [=](I i, I) { return i < to; }, one_more(2)));
    const I down = std::get<1>(WHILE(
        std::tuple(to, I(0)), [=](I i, I) { return i > from; }, one_more(-1)));
    const A filled = FOR(from, to, fill(D(0.0), 4), [](I i, A a) { return a.set(i - (i / 4) * 4, 1.0); });
    return up + 10 * by_twos + 100 * down + 1000 * cast<std::int64_t>(sum(filled));
  };
  for (const CompileOptions& way : ways) {
    const auto f = compile(iterations, way);
    CHECK(f(most, least) == 0);
    CHECK(f(3, least) == 0);
    CHECK(f(most, 0) == 0);
    CHECK(f(2, 5) == 3323);
    CHECK(f(most - 4, most) == eager(iterations)(most - 4, most));
  }
}

TEST_CASE("a derivative of a loop that ends before it starts keeps nothing, however long before", "[tape]") {
  constexpr std::int64_t least = std::numeric_limits<std::int64_t>::min();
  const auto steps = [](D x, I from, I to) { return FOR(from, to, x, [](I, D y) { return sin(y) * y; }); };
  const auto short_steps = [](D x, J to) {
    return std::get<1>(WHILE(
        std::tuple(J(0), x), [=](J i, D) { return i < to; },
        [](J i, D y) { return std::tuple(i + 1, sin(y) * y); }));
  };
  for (const CompileOptions& way : ways) {
    const auto f = compile(grad<0>(steps), way);
    // The number of iterations, times the two numbers that each keeps, is in 64 bits one that a tape could have.
    for (const std::int64_t to :
         {least, least + (std::int64_t{1} << 40), least / 2 + (std::int64_t{1} << 40)}) {
      CHECK(f(0.5, 0, to) == 1);
      CHECK(f(0.5, 3, to) == 1);
    }
    CHECK(f(0.5, -1, 1) == Approx(eager(grad<0>(steps))(0.5, -1, 1)));
    const auto g = compile(grad<0>(short_steps), way);
    CHECK(g(0.5, -1200000000) == 1);
    CHECK(g(0.5, 2) == Approx(eager(grad<0>(short_steps))(0.5, 2)));
  }
}
