// Complex numbers beside std::complex, their derivatives beside differences of it, and the convention of
// gradients.
#include "lantern/complex.hpp"

#include <complex>

#include "agree.hpp"
#include "lantern/linalg.hpp"

using namespace lantern;
using namespace lantern::test;

namespace {

using D = Rep<double>;
using A = Rep<Array<double>>;
using C = lantern::Complex<D>;
using Z = std::complex<double>;

/// All functions of one number and another, over Reps or over std::complex.
template <class Number>
std::vector<Number> functions(const Number& z, const Number& w) {
  using std::acos, std::acosh, std::asin, std::asinh, std::atan, std::atanh, std::conj, std::cos, std::cosh,
      std::exp, std::log, std::pow, std::sin, std::sinh, std::sqrt, std::tan, std::tanh;
  return {z + w,       z - w,       z * w,        z / w,      -z,       conj(z),   exp(z),    log(z),
          sqrt(z),     sin(z),      cos(z),       tan(z),     sinh(z),  cosh(z),   tanh(z),   asin(z),
          acos(z),     atan(z),     asinh(z),     acosh(z),   atanh(z), pow(z, w), pow(z, 3), pow(z, -2),
          2.0 + z,     z + 2.0,     2.0 - z,      z - 0.5,    2.0 * z,  z * 0.5,   1.0 / z,   z / 4.0,
          Z(0, 1) * z, z - Z(1, 2), z / Z(2, -1), Z(2, 1) / z};
}
/// Their parts, one after the other, and abs, arg, norm and polar.
A of_parts(D x, D y, D u, D v) {
  const C z{x, y}, w{u, v};
  A all = fill(D(0.0), 76);
  std::int64_t i = 0;
  const auto add = [&](const D& e) { all = all.set(i++, e); };
  for (const C& f : functions(z, w)) add(f.re), add(f.im);
  add(abs(z)), add(arg(z)), add(norm(z)), add(polar(x, y).im);
  return all;
}
std::vector<double> of_parts(Z z, Z w) {
  std::vector<double> all;
  for (const Z& f : functions(z, w)) all.push_back(f.real()), all.push_back(f.imag());
  all.push_back(std::abs(z)), all.push_back(std::arg(z)), all.push_back(std::norm(z)),
      all.push_back(z.real() * std::sin(z.imag()));
  return all;
}

}  // namespace

TEST_CASE("complex functions beside those of std, with their slopes", "[complex]") {
  const auto f = [](D x, D y, D u, D v) { return of_parts(x, y, u, v); };
  const auto compiled = compile(f, {.target = Target::c});
  const auto slopes = compile(jacobian(f), {.target = Target::c});
  constexpr double h = 1e-5;
  for (const Z z :
       {Z(0.6, 0.7), Z(-0.8, 0.3), Z(-0.4, -1.5), Z(2.5, -0.25), Z(3.0, 4.0), Z(0.1, 1.0), Z(-3, 1e-2)}) {
    const Z w(0.75, -1.25);
    CAPTURE(z);
    const auto expected = of_parts(z, w);
    const auto got = compiled(z.real(), z.imag(), w.real(), w.imag()),
               now = eager(f)(z.real(), z.imag(), w.real(), w.imag());
    REQUIRE(expected.size() == got.size());
    const auto [by_x, by_y, by_u, by_v] = slopes(z.real(), z.imag(), w.real(), w.imag());
    const auto up = of_parts(z + h, w), down = of_parts(z - h, w), high = of_parts(z + Z(0, h), w),
               low = of_parts(z - Z(0, h), w);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      CAPTURE(i);
      CHECK(got[i] == Approx(expected[i]).epsilon(1e-12).margin(1e-13));
      CHECK(now[i] == Approx(expected[i]).epsilon(1e-12).margin(1e-13));
      CHECK(by_x[i] == Approx((up[i] - down[i]) / (2 * h)).epsilon(1e-6).margin(1e-6));
      CHECK(by_y[i] == Approx((high[i] - low[i]) / (2 * h)).epsilon(1e-6).margin(1e-6));
    }
  }
}

TEST_CASE("complex functions: all ways of derivatives, of second order", "[complex]") {
  // A sum with different weights of all parts but those of the last functions' trivial ones.
  const auto f = [](D x, D y, D u, D v) {
    const A all = of_parts(x, y, u, v);
    return FOR(0, all.size(), D(0.0),
               [&](Rep<std::int64_t> i, D s) { return s + cos(1.0 + cast<double>(i)) * all[i]; });
  };
  check_all({.order = 1, .without_unwind = false, .clang = false}, "complex", f, 0.6, 0.7, 0.75, -1.25);
  // Holomorphic: the slope along the imaginary axis is i times that along the real one, also of the slope
  // itself.
  const auto slope = [](D x, D y, D dx, D dy) {
    const auto g = [](D a, D b) {
      const C z{a, b}, v = sqrt(exp(z) + asin(z) * tanh(z)) / (1.0 + z * z);
      return std::tuple(v.re, v.im);
    };
    return std::get<1>(jvp(g)(x, y, dx, dy));
  };
  const auto [re, im] = eager(slope)(0.3, 0.4, 1.0, 0.0);
  const auto [re_i, im_i] = eager(slope)(0.3, 0.4, 0.0, 1.0);
  CHECK(re_i == Approx(-im));
  CHECK(im_i == Approx(re));
}

TEST_CASE("complex values at zeros, on cuts, large and near one", "[complex]") {
  const auto one = [](auto f) {
    return [f](D x, D y) {
      const C v = f(C{x, y});
      return std::tuple(v.re, v.im);
    };
  };
  const auto at = [&](auto f, double x, double y) {
    const auto [re, im] = eager(one(f))(x, y);
    return Z(re, im);
  };
  CHECK(at([](C z) { return sqrt(z); }, 0, 0) == Z(0, 0));
  CHECK(at([](C z) { return sqrt(z); }, -4, 0) == Z(0, 2));
  CHECK(at([](C z) { return pow(z, 0.5); }, 0, 0) == Z(0, 0));
  CHECK(at([](C z) { return pow(z, 0); }, 0, 0) == Z(1, 0));
  CHECK(at([](C z) { return z / C{D(1e300), D(1e300)}; }, 1e300, 0).real() == Approx(0.5));
  CHECK(at([](C z) { return tanh(z); }, 800, 1).real() == 1);
  CHECK(at([](C z) { return tan(z); }, 1, -800).imag() == -1);
  CHECK(at([](C z) { return log(z); }, 1, 1e-9).real() == Approx(5e-19).epsilon(1e-12));
  CHECK(at([](C z) { return atan(z); }, 1e-3, 1.0).imag() == Approx(0.25 * std::log(4e6 + 1)).epsilon(1e-14));
  CHECK(at([](C z) { return asinh(z); }, -1e9, 0.0).real() == Approx(-std::asinh(1e9)).epsilon(1e-14));
  // The slope of sqrt at i, where formulas with |re| have a kink: 1 / (2 sqrt(i)).
  const auto slope = eager([](D x, D y) {
    return std::get<1>(jvp([](D a, D b) { return sqrt(C{a, b}).re; })(x, y, D(1.0), D(0.0)));
  })(0.0, 1.0);
  CHECK(slope == Approx(0.5 * std::sqrt(0.5)));
}

TEST_CASE("the gradient by a complex number is dL/dre + i dL/dim", "[complex]") {
  const auto loss = [](C z) { return norm(z - Z(1, 2)); };  // gradient 2 (z - 1 - 2 i)
  const auto check = [](const lantern::Complex<double>& g) { CHECK(Z(g) == Z(4, -6)); };
  check(eager(grad(loss))(as_complex(Z(3, -1))));
  check(compile(grad(loss), {.target = Target::c})(lantern::Complex<double>{3, -1}));
  check(eager(grad<mode::forward>(loss))(as_complex(Z(3, -1))));
  CHECK(Z(eager([](C z) { return z * z; })(as_complex(Z(1, 2)))) == Z(-3, 4));
  // z minus the gradient's half is the minimum.
  const Z z(3, -1), minimum = z - 0.5 * Z(eager(grad(loss))(as_complex(z)));
  CHECK(minimum == Z(1, 2));
}

TEST_CASE("complex arrays, matrices and Fourier transforms", "[complex]") {
  using CA = lantern::Complex<A>;
  using M = Rep<Tensor<double, dyn, dyn>>;
  using CM = lantern::Complex<M>;
  const lantern::Complex<std::vector<double>> x{{1, -2, 0.5, 3}, {0, 1, 2, -1}};
  const auto test = [&](const auto& run) {
    const auto y = run([](CA z) { return linalg::ifft(linalg::fft(z)); })(x);
    for (std::size_t i = 0; i < 4; ++i) {
      CHECK(y.re[i] == Approx(x.re[i]));
      CHECK(y.im[i] == Approx(x.im[i]));
    }
    // Parseval: the sum of |fft(z)|^2 is n times that of |z|^2, and its gradient 2 n z.
    const auto energy = [](CA z) { return sum(norm(linalg::fft(z))); };
    const auto g = run(grad(energy))(x);
    for (std::size_t i = 0; i < 4; ++i) {
      CHECK(g.re[i] == Approx(8 * x.re[i]).margin(1e-12));
      CHECK(g.im[i] == Approx(8 * x.im[i]).margin(1e-12));
    }
    const auto filtered =
        run([](A v, D s) { return linalg::irfft(linalg::rfft(v) * polar(D(1.0), s), v.size()); })(x.re, 0.0);
    for (std::size_t i = 0; i < 4; ++i) CHECK(filtered[i] == Approx(x.re[i]));
    const auto inner = run([](CA a) { return dot(conj(a), a); })(x);
    CHECK(Z(inner) == Z(20.25, 0));
    CHECK(Z(run([](CA a) { return sum(exp(a)) * a[1] + a.set(0, a[2])[0]; })(x)).real() ==
          Approx(
              (Z(-2, 1) * (std::exp(Z(1, 0)) + std::exp(Z(-2, 1)) + std::exp(Z(0.5, 2)) + std::exp(Z(3, -1))))
                  .real() +
              0.5));
  };
  test([](auto f) { return eager(f); });
  test([](auto f) { return compile(f, {.target = Target::c}); });
  const TensorValue<double> re({1, 2, 3, 4}, {2, 2}), im({0, 1, -1, 2}, {2, 2});
  const auto product = eager([](M a, M b) {
    const CM m{a, b};
    return matmul(m, transpose(conj(m)));
  })(re, im);
  CHECK(product.re.data[0] == Approx(6));  // |1|^2 + |2 + i|^2
  CHECK(product.im.data[0] == Approx(0).margin(1e-14));
  CHECK(product.re.data[1] == Approx(13));  // 1 (3 + i) + (2 + i) (4 - 2 i)
  CHECK(product.im.data[1] == Approx(1));
}

TEST_CASE("vjp of a holomorphic function is the conjugate of its derivative", "[complex]") {
  const auto square = [](C z) { return z * z; };
  const auto [y, back] = eager(vjp(square))(lantern::Complex<double>{1, 2}, lantern::Complex<double>{0.5, -1});
  CHECK(Z(y) == Z(-3, 4));
  CHECK(Z(back) == std::conj(Z(2, 4)) * Z(0.5, -1));
  const auto [value, along] = eager(jvp(square))(lantern::Complex<double>{1, 2}, lantern::Complex<double>{0.5, -1});
  CHECK(Z(value) == Z(-3, 4));
  CHECK(Z(along) == Z(2, 4) * Z(0.5, -1));
}
