// Structs, arrays and what is made of them, wherever a Rep may stand: arguments, results, states,
// derivatives.
#include <catch2/catch.hpp>
#include <cmath>
#include <utility>

#include "lantern/lantern.hpp"

using namespace lantern;

namespace {

using D = Rep<double>;
using I = Rep<std::int64_t>;
using A = Rep<Array<double>>;

/// A model's parameters: 64 members, by names and in arrays.
template <class T>
struct Many {
  T a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, b0, b1, b2, b3, b4, b5, b6, b7, b8, b9, c0, c1, c2, c3, c4, c5,
      c6, c7, c8, c9, d0, d1, d2, d3, d4, d5, d6, d7, d8, d9, e0, e1, e2, e3, e4, e5, e6, e7, e8, e9, f0, f1,
      f2, f3, f4, f5, f6, f7, f8, f9, g0, g1, g2, g3;
};
template <class T>
struct Seventeen {
  T a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q;
};

struct Named {};  ///< a tag
template <class T>
struct Body : Named {
  T mass;
  T at[3];
  std::array<T, 2> spin;
  Named tag;
};
template <class T>
struct Pair {
  Body<T> left, right;
  T spring;
};
/// All members in the base class.
template <class T>
struct Moving : Pair<T> {
  T stretch() const { return this->left.at[0] - this->right.at[0]; }
};
template <class T, int n>
struct Vector {
  T e[n];
};
/// Members in both classes, which are listed.
template <class T>
struct Charged : Vector<T, 2> {
  T charge;
  static auto lantern_fields(auto& self) { return std::tie(self.e[0], self.e[1], self.charge); }
};
/// No template: at the edge it is a tuple.
struct Plain {
  D x;
  A v;
};

D energy(Moving<D> m) {
  D sum = m.spring * m.stretch() * m.stretch();
  for (const auto* b : {&m.left, &m.right}) {
    for (const D& x : b->at) sum += b->mass * x * x;
    sum += b->spin[0] * sin(b->spin[1]);
  }
  return sum;
}
Moving<double> two_bodies() {
  Moving<double> m{};
  m.left = {{}, 2.0, {1.0, 2.0, 3.0}, {0.5, 0.25}, {}};
  m.right = {{}, 3.0, {-1.0, 0.5, 0.0}, {1.5, -0.5}, {}};
  m.spring = 4.0;
  return m;
}

/// Test(run): run(f) is f as a callable of plain types.
template <class Test>
void both_ways(Test test) {
  SECTION("eager") {
    test([](auto f) { return eager(f); });
  }
  SECTION("compiled") {
    test([](auto f) { return compile(f, {.target = Target::c}); });
  }
}

}  // namespace

TEST_CASE("members are counted", "[products]") {
  using namespace lantern::core::detail;
  struct None {};
  struct Reference {
    D a;
    const D& b;
  };
  struct Deep {
    None empty;
    Vector<D, 7> v;
    D matrix[2][3];
    std::vector<D> free;
    std::tuple<D, I> t;
    int plain;
    double* pointer;
  };
  STATIC_REQUIRE(bound_members<None>() == 0);
  STATIC_REQUIRE(bound_members<Many<D>>() == 64);
  STATIC_REQUIRE(bound_members<Seventeen<D>>() == 17);
  STATIC_REQUIRE(bound_members<Body<D>>() == 4);
  STATIC_REQUIRE(bound_members<Moving<D>>() == 3);
  STATIC_REQUIRE(bound_members<Reference>() == 2);
  STATIC_REQUIRE(bound_members<Deep>() == 7);
  STATIC_REQUIRE(leaf_count<Moving<D>>() == 13);
  STATIC_REQUIRE(leaf_count<Many<D>>() == 64);
  STATIC_REQUIRE(std::same_as<host_in<Moving<A>>, Moving<std::span<const double>>>);
  STATIC_REQUIRE(std::same_as<host_in<Vector<D, 3>>, Vector<double, 3>>);
  STATIC_REQUIRE(std::same_as<host_out<Plain>, std::tuple<double, std::vector<double>>>);
  STATIC_REQUIRE(std::same_as<rep_t<Vector<double, 3>>, Vector<D, 3>>);
}

TEST_CASE("structs of many members, of arrays and with bases as arguments and results", "[products]") {
  both_ways([](auto run) {
    Many<double> many{};
    many.a0 = 2.0;
    many.g3 = 3.0;
    const auto slopes = run(grad([](Many<D> x) { return x.a0 * x.g3 * x.g3 + x.e5; }))(many);
    CHECK(slopes.a0 == 9.0);
    CHECK(slopes.g3 == 12.0);
    CHECK(slopes.e5 == 1.0);
    CHECK(slopes.b0 == 0.0);
    CHECK(run(grad([](Seventeen<D> x) { return x.a * x.q; }))({}).q == 0.0);

    const Moving<double> m = two_bodies(), g = run(grad(energy))(m);
    CHECK(g.left.at[0] == 2 * 2.0 * 1.0 + 2 * 4.0 * 2.0);
    CHECK(g.right.at[1] == 2 * 3.0 * 0.5);
    CHECK(g.left.spin[1] == Approx(0.5 * std::cos(0.25)));
    CHECK(g.spring == 4.0);
    Moving<double> along{};
    along.spring = 1.0;
    const auto [value, slope] = run(jvp(energy))(m, along);
    CHECK(slope == 4.0);
    CHECK(std::get<1>(run(vjp(energy))(m, 2.0)).spring == 8.0);
    CHECK(run(hvp(energy))(m, along).left.at[0] == 4.0);

    const Charged<double> c = run([](Charged<D> p) {
      std::swap(p.e[0], p.e[1]);
      p.charge = -p.charge;
      return p;
    })(Charged<double>{{{1.0, 2.0}}, 3.0});
    CHECK(c.e[0] == 2.0);
    CHECK(c.charge == -3.0);
    const auto [x, v] = run([](Plain p) {
      return Plain{p.x * 2.0, p.v * p.x};
    })({3.0, std::vector{1.0, 2.0}});
    CHECK(x == 6.0);
    CHECK(v == std::vector{3.0, 6.0});
  });
}

TEST_CASE("structs as states of constructs and as arguments of FUN", "[products]") {
  both_ways([](auto run) {
    const auto steps = [](Body<D> start, I n) {
      const Body<D> last = FOR(0, n, start, [](I i, Body<D> b) {
        b.at[1] = b.at[1] + b.mass * cast<double>(i);
        return IF(
            b.at[1] > 2.0,
            [&] {
              Body<D> faster = b;
              faster.spin[0] = 2.0 * b.spin[0];
              return faster;
            },
            [&] { return b; });
      });
      return WHILE(
          last, [](Body<D> b) { return b.mass > 1.0; },
          [](Body<D> b) {
            b.mass = b.mass * 0.5;
            return b;
          });
    };
    const Body<double> b = run(steps)(Body<double>{{}, 2.0, {1, 0, 3}, {1, 1}, {}}, 4);
    CHECK(b.mass == 1.0);
    CHECK(b.at[1] == 12.0);
    CHECK(b.spin[0] == 4.0);
    const auto fold =
        FUN<double(Vector<double, 2>, std::int64_t)>("fold", [](auto self, Vector<D, 2> v, I n) {
          return IF(
              n == 0, [&] { return v.e[0]; },
              [&] {
                return self(Vector<D, 2>{{v.e[0] * v.e[1], v.e[1]}}, n - 1);
              });
        });
    CHECK(run(grad(fold))(Vector<double, 2>{{3.0, 2.0}}, 4).e[1] == 3.0 * 4 * 8);
  });
}

TEST_CASE("vmap maps structs member by member", "[products]") {
  const std::vector<double> x{1, 2, 3}, y{4, 5, 6};
  both_ways([&](auto run) {
    const auto turned = run(vmap([](Vector<D, 2> p) {
      return Vector<D, 2>{{p.e[0] * p.e[1], p.e[0] - p.e[1]}};
    }));
    const auto found = turned(Vector<std::span<const double>, 2>{{x, y}});
    CHECK(found.e[0] == std::vector<double>{4, 10, 18});
    CHECK(found.e[1] == std::vector<double>{-3, -3, -3});
    const auto [sums, products] = run(vmap([](std::pair<D, D> p) {
      return std::pair(p.first + p.second, p.first * p.second);
    }))(std::pair<std::span<const double>, std::span<const double>>(x, y));
    CHECK(sums == std::vector<double>{5, 7, 9});
    CHECK(products == found.e[0]);
  });
}

TEST_CASE("jacobians have the structure of the result, then of the argument", "[products][jacobian]") {
  const auto state = [](Pair<D> p, D t) {
    return Vector<D, 2>{
        {p.left.mass * sin(p.spring * t) + p.right.at[2] * p.right.at[2], exp(-t) * p.left.spin[1]}};
  };
  Pair<double> p{};
  p.left.mass = 1.5;
  p.left.spin[1] = 0.5;
  p.right.at[2] = 2.0;
  p.spring = 3.0;
  const double t = 0.25;
  both_ways([&](auto run) {
    const Vector<Pair<double>, 2> by_p = run(jacobian<0>(state))(p, t);
    CHECK(by_p.e[0].left.mass == Approx(std::sin(0.75)));
    CHECK(by_p.e[0].right.at[2] == Approx(4.0));
    CHECK(by_p.e[0].spring == Approx(1.5 * 0.25 * std::cos(0.75)));
    CHECK(by_p.e[1].left.spin[1] == Approx(std::exp(-0.25)));
    CHECK(by_p.e[1].spring == 0.0);
    const Vector<double, 2> by_t = run(jacobian<1, mode::reverse>(state))(p, t);
    CHECK(by_t.e[0] == Approx(4.5 * std::cos(0.75)));
    const Vector<std::tuple<Pair<double>, double>, 2> by_both = run(jacobian(state))(p, t);
    CHECK(std::get<0>(by_both.e[0]).spring == Approx(by_p.e[0].spring));
    CHECK(std::get<1>(by_both.e[1]) == Approx(by_t.e[1]));

    // Against differences, all of them.
    const auto value = run(state);
    const double h = 1e-6;
    std::size_t compared = 0;
    const auto each = [&](auto member) {
      Pair<double> more = p, less = p;
      member(more) += h;
      member(less) -= h;
      const auto up = value(more, t), down = value(less, t);
      for (std::size_t i = 0; i < 2; ++i, ++compared) {
        Pair<double> d = by_p.e[i];
        CHECK(member(d) == Approx((up.e[i] - down.e[i]) / (2 * h)).margin(1e-8));
      }
    };
    for (std::size_t k = 0; k < 3; ++k) each([k](auto& q) -> double& { return q.left.at[k]; });
    for (std::size_t k = 0; k < 3; ++k) each([k](auto& q) -> double& { return q.right.at[k]; });
    for (std::size_t k = 0; k < 2; ++k) each([k](auto& q) -> double& { return q.right.spin[k]; });
    each([](auto& q) -> double& { return q.left.mass; });
    each([](auto& q) -> double& { return q.spring; });
    CHECK(compared == 20);

    // Pairs and std::arrays, and arrays in structs.
    const auto [one, two] =
        run(jacobian([](std::array<D, 2> k) { return std::pair(k[0] * k[1], k[1]); }))({2.0, 3.0});
    CHECK(one == std::array{3.0, 2.0});
    CHECK(two == std::array{0.0, 1.0});
    const auto scaled =
        run(jacobian([](Vector<A, 1> v, D s) { return v.e[0] * s; }))({{std::vector{1.0, 2.0}}}, 3.0);
    CHECK(std::get<0>(scaled).e[0].data == std::vector{3.0, 0.0, 0.0, 3.0});
    CHECK(std::get<1>(scaled) == std::vector{1.0, 2.0});
    // What is not floating stays as it is.
    struct Counted {
      D x;
      I n;
    };
    const auto [dx, n] = run(jacobian([](Counted c) { return c.x * c.x * cast<double>(c.n); }))({3.0, 2});
    CHECK(dx == 12.0);
    CHECK(n == 2);
  });
}

TEST_CASE("the hessian of a function of a struct has its structure twice", "[products][jacobian]") {
  const auto f = [](Vector<D, 2> v, D t) { return v.e[0] * v.e[0] * v.e[1] + sin(t) * v.e[1]; };
  both_ways([&](auto run) {
    const auto [by_v, by_t] = run(hessian(f))({{2.0, 3.0}}, 0.5);
    CHECK(std::get<0>(by_v.e[0]).e[0] == 6.0);
    CHECK(std::get<0>(by_v.e[0]).e[1] == 4.0);
    CHECK(std::get<1>(by_v.e[1]) == Approx(std::cos(0.5)));
    CHECK(std::get<0>(by_t).e[1] == Approx(std::cos(0.5)));
    CHECK(std::get<1>(by_t) == Approx(-3.0 * std::sin(0.5)));
    const Vector<Vector<double, 2>, 2> own =
        run(hessian([&](Vector<D, 2> v) { return f(v, 0.0); }))({{2.0, 3.0}});
    CHECK(own.e[1].e[0] == 4.0);
    const auto series = run(taylor<2>([&](Vector<D, 2> v) { return f(v, 0.0); }))({{2.0, 3.0}}, {{1.0, 0.0}});
    CHECK(series == std::array{12.0, 12.0, 6.0});
  });
}

TEST_CASE("functions that are noexcept, and member functions", "[products]") {
  struct Spring {
    D stiffness, length;
    D energy(D x) const noexcept { return 0.5 * stiffness * (x - length) * (x - length); }
  };
  struct Callable {
    D operator()(D x) const noexcept { return x * x; }
  };
  struct Local {
    static D cube(D x) noexcept { return x * x * x; }
  };
  both_ways([](auto run) {
    CHECK(run(grad(&Local::cube))(2.0) == 12.0);
    CHECK(run(grad(Local::cube))(2.0) == 12.0);
    CHECK(run(hessian(Callable{}))(2.0) == 2.0);
    CHECK(run(grad([](D x) noexcept { return x * 3.0; }))(2.0) == 3.0);
    CHECK(run(vmap([](D x) noexcept { return x * 3.0; }))(std::vector{1.0}) == std::vector{3.0});
    const auto [spring, x] = run(grad(&Spring::energy))({2.0, 1.0}, 4.0);
    CHECK(spring == std::tuple(4.5, -6.0));
    CHECK(x == 6.0);
  });
}

TEST_CASE("std::max, std::min and their like over Reps", "[products]") {
  const auto f = [](D x, D y) {
    using std::max;
    using std::min;
    D a = std::max(x, y), b = min(x, D(0.5));
    std::swap(a, b);
    const D before = std::exchange(a, std::abs(y) + max(a, b));
    return std::tuple(a, b, before, std::min({x, y, D(-3.0)}),
                      std::sqrt(std::pow(x, 2.0)) + std::atan2(y, x));
  };
  both_ways([&](auto run) {
    const auto [a, b, before, least, rest] = run(f)(2.0, -1.0);
    CHECK(a == 3.0);
    CHECK(b == 2.0);
    CHECK(before == 0.5);
    CHECK(least == -3.0);
    CHECK(rest == Approx(2.0 + std::atan2(-1.0, 2.0)));
    CHECK(run([](I n, I m) { return std::max(n, m) - std::min(n, m); })(3, 8) == 5);
  });
  STATIC_REQUIRE(std::same_as<decltype(std::max(1, 2)), const int&>);
}

TEST_CASE("broadcasting gives the larger rank", "[products]") {
  using M = Rep<Tensor<double, dyn, dyn>>;
  using V = Rep<Tensor<double, dyn>>;
  using T = Rep<Tensor<double>>;
  STATIC_REQUIRE(std::same_as<decltype(M() + V()), M>);
  STATIC_REQUIRE(std::same_as<decltype(V() * M()), M>);
  STATIC_REQUIRE(std::same_as<decltype(T() - V()), T>);
  STATIC_REQUIRE(std::same_as<decltype(V() / T()), T>);
  STATIC_REQUIRE(std::same_as<decltype(max(M(), V())), M>);
  STATIC_REQUIRE(std::same_as<decltype(M() + Rep<Tensor<double, 3>>()), Rep<Tensor<double, dyn, 3>>>);
  STATIC_REQUIRE(std::same_as<decltype(Rep<Tensor<double, 2, dyn>>() + M()), Rep<Tensor<double, 2, dyn>>>);
  const auto layer = [](M x, M w, V b) {
    M h = matmul(x, w) + b;
    const auto again = matmul(x, w) + b;
    h += b;
    return sum(h * again) + sum(max(b - h, 0.5 * b));
  };
  const std::vector<double> x(6, 1.0), w(6, 0.5), b(2, 0.25);
  both_ways([&](auto run) {
    const auto f = run(layer);
    const auto at = [&](const std::vector<double>& bias) {
      return f(TensorView<const double>(x.data(), {2, 3}), TensorView<const double>(w.data(), {3, 2}),
               TensorView<const double>(bias.data(), {2}));
    };
    const auto db = run(grad<2>(layer))(TensorView<const double>(x.data(), {2, 3}),
                                        TensorView<const double>(w.data(), {3, 2}),
                                        TensorView<const double>(b.data(), {2}));
    CHECK(db.data[0] == Approx((at({0.25 + 1e-6, 0.25}) - at({0.25 - 1e-6, 0.25})) / 2e-6).epsilon(1e-7));
    CHECK(at(b) == Approx(4 * 1.75 * 2.0 + 4 * 0.125));
  });
}

TEST_CASE("set takes the value last", "[products]") {
  const auto f = [](Rep<Tensor<double, dyn, dyn>> t, I i) {
    const Rep<Tensor<double, dyn>> v = t.row(0);
    return sum(t.set(i, 1, 5.0).set(0, i, t(0, 0)).set(i, i, 2)) + 10.0 * sum(v.set(i, 7));
  };
  const std::vector<double> t{1, 2, 3, 4};
  both_ways([&](auto run) {
    CHECK(run(f)(TensorView<const double>(t.data(), {2, 2}), 1) == 1 + 1 + 3 + 2 + 10 * 8);
  });
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
  CHECK(eager([](Rep<Tensor<double, dyn, dyn>> m) { return m.set(7.0, 1, 0)(1, 0); })(
            TensorView<const double>(t.data(), {2, 2})) == 7.0);
#pragma GCC diagnostic pop
}
