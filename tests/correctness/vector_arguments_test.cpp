// Derivatives of functions over std::vector<Rep>: how many there are is part of the arguments at hand.
#include <catch2/catch.hpp>
#include <vector>

#include "lantern/lantern.hpp"

using namespace lantern;

namespace {

using D = Rep<double>;
using Ds = std::vector<D>;

/// c[0] + c[1] x + c[2] x^2 + ...
D polynomial(Ds c, D x) {
  D sum = 0.0;
  for (std::size_t i = c.size(); i-- > 0;) sum = sum * x + c[i];
  return sum;
}

struct Layers {
  Ds weights;
  D bias;
};
D network(Layers l, D x) {
  D y = x;
  for (const D& w : l.weights) y = tanh(w * y + l.bias);
  return y;
}

D cubes(Ds v) {
  D sum = 0.0;
  for (std::size_t i = 0; i < v.size(); ++i) sum += static_cast<double>(i + 1) * v[i] * v[i] * v[i];
  return sum;
}
Ds doubled(Ds v) {
  Ds out = v;
  for (D& x : out) x = 2.0 * x * x;
  return out;
}

/// Eagerly, and compiled.
template <class F>
void check(const F& f, const std::vector<double>& expected) {
  const auto of = [&](const auto& call) {
    const std::vector<double> got = call(3.0);
    REQUIRE(got.size() == expected.size());
    for (std::size_t i = 0; i < got.size(); ++i) CHECK(got[i] == Approx(expected[i]).epsilon(1e-12));
  };
  of(eager(f));
  of(compile(f, {.target = Target::c}));
}

/// The numbers in a row.
Rep<Array<double>> row(const Ds& values) {
  auto a = fill(D(0.0), static_cast<std::int64_t>(values.size()));
  for (std::size_t i = 0; i < values.size(); ++i) a = a.set(static_cast<std::int64_t>(i), values[i]);
  return a;
}
Ds three(const D& x) { return {x, x + 1.0, x + 2.0}; }

}  // namespace

TEST_CASE("gradients by the elements of a vector") {
  check([](D x) { return row(grad<0>(polynomial)({x, x, x, x}, x)); }, {1, 3, 9, 27});
  check(
      [](D x) {
        const auto [y, g] = value_and_grad(polynomial)({x, D(1.0), D(2.0)}, x);
        return row({y, std::get<0>(g)[2], std::get<1>(g)});
      },
      {3 + 3 + 18, 9, 1 + 12});
  check([](D x) { return row(grad<mode::forward>(cubes)(three(x))); }, {27, 96, 225});
  check([](D x) { return row(grad<mode::taped>(cubes)(three(x))); }, {27, 96, 225});
  check([](D) { return row(grad(cubes)({})); }, {});
}

TEST_CASE("products and series of functions over vectors") {
  check(
      [](D x) {
        const auto [y, dy] = jvp(doubled)(three(x), {D(1.0), D(0.0), D(-1.0)});
        Ds all = y;
        all.insert(all.end(), dy.begin(), dy.end());
        return row(all);
      },
      {18, 32, 50, 12, 0, -20});
  check(
      [](D x) {
        const auto [y, xbar] = vjp(doubled)(three(x), {D(1.0), D(1.0), D(0.5)});
        Ds all = y;
        all.insert(all.end(), xbar.begin(), xbar.end());
        return row(all);
      },
      {18, 32, 50, 12, 16, 10});
  check([](D x) { return row(hvp(cubes)(three(x), {D(1.0), D(0.0), D(1.0)})); }, {18, 0, 90});
  check(
      [](D x) {
        const auto orders = taylor<2>(doubled)(Ds{x, x}, Ds{D(1.0), D(2.0)});
        return row({orders[0][1], orders[1][0], orders[1][1], orders[2][0], orders[2][1]});
      },
      {18, 12, 24, 4, 16});
}

TEST_CASE("vectors in structs, beside other arguments, and in derivatives of derivatives") {
  check(
      [](D x) {
        const Layers g = grad<0>(network)({{D(0.5), D(-0.25)}, D(0.1)}, x);
        const auto by_hand = [&] {
          const D a = tanh(0.5 * x + 0.1), y = tanh(-0.25 * a + 0.1);
          const D dy = 1.0 - y * y, da = 1.0 - a * a;
          return Ds{dy * -0.25 * da * x, dy * a, dy * (1.0 + -0.25 * da)};
        }();
        return row({g.weights[0] - by_hand[0], g.weights[1] - by_hand[1], g.bias - by_hand[2]});
      },
      {0, 0, 0});
  check(
      [](D x) {
        const auto slope = [](D y) { return grad<1>(polynomial)({y, y, y}, y); };
        return row({slope(x), grad(sig<double(double)>(slope))(x)});
      },
      {3 + 18, 1 + 12});
  check([](D x) { return row({jacobian<1>(polynomial)({x, x, x}, x)}); }, {21});
}

TEST_CASE("as many tangents as there are arguments") {
  const auto message = [](const auto& f) {
    try {
      eager(f)(3.0);
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  CHECK_THAT(message([](D x) {
               return std::get<1>(jvp(cubes)({x, x}, {x}));
             }),
             Catch::Contains("jvp: expected as many tangents as floating arguments, 2, got 1"));
  CHECK_THAT(message([](D x) {
               return taylor<1>(cubes)({x}, {x, x})[1];
             }),
             Catch::Contains("taylor: expected as many tangents as floating arguments, 1, got 2"));
  CHECK_THAT(message([](D x) {
               return std::get<1>(vjp(doubled)({x, x}, {x}))[0];
             }),
             Catch::Contains("vjp: expected a cotangent for every floating result"));
  CHECK_THAT(message([](D x) {
               return FOR(0, 2, Ds{x, x}, [](Rep<std::int64_t>, Ds s) { return Ds{s[0]}; })[0];
             }),
             Catch::Contains("the body of a loop must return the state's components"));
}
