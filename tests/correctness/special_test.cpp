// Special functions beside stored references, their derivatives beside references and differences, in every
// way of computing.
#include "lantern/special.hpp"

#include "agree.hpp"

using namespace lantern;
using namespace lantern::test;

namespace {

using D = Rep<double>;
using I = Rep<std::int64_t>;
using A = Rep<Array<double>>;

/// mpmath 1.4.1 with 40 digits: a, x, P(a, x), Q(a, x), and the first two derivatives of P by a.
const std::vector<std::array<double, 6>> gammas = {
    {0.5, 0.25, 0.5204998778130465, 0.4795001221869535, -0.797947316783223, 0.8096615461928606},
    {1.0, 0.75, 0.5276334472589853, 0.4723665527410147, -0.4771067978794412, 0.18506705248166272},
    {2.5, 1.0, 0.15085496391539036, 0.8491450360846097, -0.1800996069540415, 0.17286396981617788},
    {2.5, 9.0, 0.9970535954121197, 0.0029464045878802906, -0.004741679548193881, -0.006217598371257099},
    {0.1, 3.0, 0.9984347282528856, 0.001565271747114354, -0.018386756430579753, -0.0572712290871154},
    {10.0, 4.0, 0.008132242796933864, 0.9918677572030662, -0.008213995872237279, 0.007595492326905587},
    {30.0, 45.0, 0.9926628007022035, 0.007337199297796504, -0.0034741570951297633, -0.0014122483428958034},
    {200.0, 190.0, 0.2433474271006238, 0.7566525728993762, -0.02235282834155004, 0.0011470748278582699},
    {0.001, 0.5, 0.9994399333435292, 0.0005600666564707498, -0.5603594001080031, -0.5848512398697082},
};
/// a, b, x, I_x(a, b), and its derivatives by a and b.
const std::vector<std::array<double, 6>> betas = {
    {2.5, 1.5, 0.3, 0.0889437231706656, -0.0948427191535116, 0.08702731862242216},
    {0.5, 0.5, 0.9, 0.7951672353008665, -0.2768155243583512, 0.5926200221433794},
    {1.0, 3.0, 0.25, 0.578125, -0.40301392752243675, 0.12136587431559508},
    {20.0, 30.0, 0.4, 0.507700199657648, -0.06977511922457008, 0.04638767884524421},
    {5.0, 0.2, 0.99, 0.4153301468245942, -0.024363460938121525, 1.6338075361393902},
    {0.01, 4.0, 0.001, 0.9504292267242804, -4.838499669919191, 0.002684341156585106},
    {300.0, 200.0, 0.62, 0.8190699881577962, -0.009405818461034037, 0.014717452632618075},
};
struct Orders {
  std::int64_t n;
  double x, j, y, i, k;
};
const std::vector<Orders> orders = {
    {0, 0.001, 0.9999997500000156, -4.471416611375923, 1.0000002500000156, 7.023688800562382},
    {0, 2.5, -0.048383776468198, 0.4980703596152319, 3.289839144050123, 0.06234755320036619},
    {1, 0.1, 0.049937526036242, -6.4589510947020266, 0.050062526047092694, 9.853844780870606},
    {1, 40.0, 0.126038318037585, -0.005793505821549633, 1.4707396163259352e+16, 8.497131954861039e-19},
    {2, 5.0, 0.046565116277752214, 0.36766288260552454, 17.505614966624236, 0.00530894371222346},
    {5, 0.01, 2.604155815991599e-14, -2444635204829.711, 2.6041775173804877e-14, 3839976000099.999},
    {7, 10.0, 0.21671091768505152, 0.201020023779585, 238.025584775782, 0.0001720257945607574},
    {20, 3.0, 1.2275946737992987e-15, -13113540041757.447, 1.5209660019426694e-15, 16254643952204.365},
    {3, 100.0, 0.07628420172033194, 0.02344578668776091, 1.02627401756519e+42, 4.869862747792455e-45},
    {50, 30.0, 2.0581656631564178e-08, -386759.32602734736, 0.00014590106916468948, 58.77068625800724},
    {0, 600.0, -0.02198778917213195, 0.0240326801013818, 6.1463054039368444e+258, 1.3558285309948523e-262},
};

D lower(D a, D x) { return special::gammainc(a, x); }
D upper(D a, D x) { return special::gammaincc(a, x); }
D beta(D a, D b, D x) { return special::betainc(a, b, x); }

template <class Test>
void eagerly_and_by_tcc(const Test& test) {
  test([](auto f) { return eager(f); });
  test([](auto f) { return compile(f, {.target = Target::c, .opt = 0}); });
}

}  // namespace

TEST_CASE("incomplete gamma functions and their derivatives beside references", "[special]") {
  eagerly_and_by_tcc([](const auto& run) {
    const auto p = run(lower);
    const auto q = run(upper);
    const auto by_a = run(grad<0>(lower));
    const auto by_x = run(grad<1>(lower));
    const auto complement_by_a = run(grad<0, mode::forward>(upper));
    const auto twice = run(grad<0, mode::forward>(grad<0>(lower)));
    for (const auto& [a, x, lo, up, slope, curvature] : gammas) {
      CAPTURE(a, x);
      CHECK(p(a, x) == Approx(lo).epsilon(1e-12));
      CHECK(q(a, x) == Approx(up).epsilon(1e-12));
      CHECK(by_a(a, x) == Approx(slope).epsilon(1e-10));
      CHECK(complement_by_a(a, x) == Approx(-slope).epsilon(1e-10));
      CHECK(by_x(a, x) == Approx(std::exp((a - 1) * std::log(x) - x - std::lgamma(a))).epsilon(1e-11));
      CHECK(twice(a, x) == Approx(curvature).epsilon(1e-8));
    }
  });
}

TEST_CASE("incomplete gamma functions at the ends", "[special]") {
  constexpr double inf = std::numeric_limits<double>::infinity();
  const auto p = eager(lower);
  const auto q = eager(upper);
  const auto by_x = eager(grad<1>(lower));
  CHECK(p(2.0, 0.0) == 0);
  CHECK(q(2.0, 0.0) == 1);
  CHECK(p(2.0, inf) == 1);
  CHECK(q(2.0, inf) == 0);
  CHECK(p(0.0, 1.0) == 1);
  CHECK(std::isnan(p(-1.0, 1.0)));
  CHECK(std::isnan(p(1.0, -1.0)));
  CHECK(std::isnan(p(1.0, std::nan(""))));
  CHECK(by_x(2.0, 0.0) == 0);
  CHECK(by_x(1.0, 0.0) == 1);
  CHECK(by_x(0.5, 0.0) == inf);
  CHECK(eager(grad<0>(lower))(0.5, 0.0) == 0);
}

TEST_CASE("the incomplete beta function and its derivatives beside references", "[special]") {
  eagerly_and_by_tcc([](const auto& run) {
    const auto value = run(beta);
    const auto by_a = run(grad<0>(beta));
    const auto by_b = run(grad<1>(beta));
    for (const auto& [a, b, x, expected, slope_a, slope_b] : betas) {
      CAPTURE(a, b, x);
      CHECK(value(a, b, x) == Approx(expected).epsilon(1e-11));
      CHECK(by_a(a, b, x) == Approx(slope_a).epsilon(1e-9));
      CHECK(by_b(a, b, x) == Approx(slope_b).epsilon(1e-9));
    }
  });
  CHECK(eager(beta)(2.0, 3.0, 0.0) == 0);
  CHECK(eager(beta)(2.0, 3.0, 1.0) == 1);
  CHECK(std::isnan(eager(beta)(2.0, 3.0, 1.5)));
  CHECK(std::isnan(eager(beta)(0.0, 3.0, 0.5)));
  CHECK(eager(grad<2>(beta))(1.0, 3.0, 0.0) == Approx(3));
}

TEST_CASE("Bessel functions of whole order beside references", "[special]") {
  eagerly_and_by_tcc([](const auto& run) {
    const auto j = run([](I n, D x) { return special::bessel_j(n, x); });
    const auto y = run([](I n, D x) { return special::bessel_y(n, x); });
    const auto i = run([](I n, D x) { return special::bessel_i(n, x); });
    const auto k = run([](I n, D x) { return special::bessel_k(n, x); });
    for (const Orders& o : orders) {
      CAPTURE(o.n, o.x);
      const double odd = o.n % 2 == 0 ? 1 : -1;
      CHECK(j(o.n, o.x) == Approx(o.j).epsilon(1e-12));
      CHECK(j(-o.n, o.x) == Approx(odd * o.j).epsilon(1e-12));
      CHECK(j(o.n, -o.x) == Approx(odd * o.j).epsilon(1e-12));
      CHECK(j(-o.n, -o.x) == Approx(o.j).epsilon(1e-12));
      CHECK(y(o.n, o.x) == Approx(o.y).epsilon(2e-12));
      CHECK(y(-o.n, o.x) == Approx(odd * o.y).epsilon(2e-12));
      CHECK(i(o.n, o.x) == Approx(o.i).epsilon(1e-12));
      CHECK(i(-o.n, -o.x) == Approx(odd * o.i).epsilon(1e-12));
      CHECK(k(o.n, o.x) == Approx(o.k).epsilon(1e-12));
      CHECK(k(-o.n, o.x) == Approx(o.k).epsilon(1e-12));
    }
    constexpr double inf = std::numeric_limits<double>::infinity();
    CHECK(j(0, 0.0) == 1);
    CHECK(j(3, 0.0) == 0);
    CHECK(j(3, inf) == 0);
    CHECK(y(2, 0.0) == -inf);
    CHECK(std::isnan(y(2, -1.0)));
    CHECK(i(0, 0.0) == 1);
    CHECK(i(1, 1000.0) == inf);
    CHECK(k(1, 0.0) == inf);
    CHECK(k(0, 1e5) == 0);
    CHECK(std::isnan(k(1, -1.0)));
    CHECK(k(0, 1e-200) == Approx(200 * std::log(10.0) + std::log(2.0) - 0.5772156649015329).epsilon(1e-13));
    CHECK(std::isnan(j(1, std::nan(""))));
    CHECK(std::isnan(i(1, std::nan(""))));
  });
}

TEST_CASE("derivatives of special functions in every way of computing", "[special]") {
  check_all({.order = 1, .without_unwind = false}, "gammainc", lower, 2.5, 1.25);
  check_all({.order = 1, .without_unwind = false, .clang = false}, "gammaincc", upper, 1.5, 4.0);
  check_all({.order = 1, .without_unwind = false, .clang = false}, "betainc", beta, 2.5, 1.5, 0.25);
  const auto all = [](D x) {
    return special::bessel_j(2, x) + special::bessel_y(1, x) + special::bessel_i(0, x) +
           3.0 * special::bessel_k(3, x);
  };
  check_all({.order = 2, .without_unwind = false, .clang = false}, "bessel", all, 1.75);
}

TEST_CASE("special functions of tensors and floats", "[special]") {
  using M = Rep<Tensor<double, dyn, dyn>>;
  const auto f = [](M x, M a, D b) {
    return std::tuple(special::gammainc(a, x), special::betainc(2.0, b, x), special::bessel_j(1, x));
  };
  const TensorValue<double> x({0.25, 0.5, 0.75, 0.125}, {2, 2}), a({1, 2, 3, 4}, {2, 2});
  const auto one = eager(lower);
  eagerly_and_by_tcc([&](const auto& run) {
    const auto [p, i, j] = run(f)(x, a, 1.5);
    for (std::size_t k = 0; k < 4; ++k) {
      CHECK(p.data[k] == Approx(one(a.data[k], x.data[k])).epsilon(1e-14));
      CHECK(i.data[k] == Approx(eager(beta)(2.0, 1.5, x.data[k])).epsilon(1e-14));
      CHECK(j.data[k] == Approx(std::cyl_bessel_j(1.0, x.data[k])).epsilon(1e-13));
    }
    const auto [by_x, by_a] = run(grad([](M v, M b) { return sum(special::gammainc(b, v)); }))(x, a);
    CHECK(by_x.data[3] == Approx(eager(grad<1>(lower))(4.0, 0.125)).epsilon(1e-13));
    CHECK(by_a.data[2] == Approx(eager(grad<0>(lower))(3.0, 0.75)).epsilon(1e-13));
    using F = Rep<float>;
    CHECK(run([](F v) { return special::gammaincc(2.0F, v); })(1.5F) ==
          Approx(2.5 * std::exp(-1.5)).epsilon(1e-6));
  });
  CHECK_THROWS_WITH(
      eager([](A v, A b) { return special::gammainc(b, v); })(std::vector<double>{1, 2},
                                                              std::vector<double>{1}),
      Catch::Contains("special_test.cpp:") && Catch::Contains("expected a parameter of x's shape"));
}
