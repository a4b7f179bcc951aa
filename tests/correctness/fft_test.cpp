// Fourier transforms of <lantern/linalg.hpp>: beside sums of the definition; their inverses; derivatives;
// threads.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <complex>
#include <functional>
#include <lantern/lantern.hpp>
#include <lantern/linalg.hpp>
#include <numbers>
#include <random>
#include <string>
#include <thread>
#include <vector>

using namespace lantern;
namespace la = lantern::linalg;
using Catch::Matchers::Contains;

namespace {

template <class T>
using X = Rep<Tensor<T>>;
using Shape = std::vector<int64_t>;
using Numbers = std::vector<std::complex<double>>;

template <class T>
TensorValue<T> random_tensor(const Shape& shape, unsigned seed) {
  std::mt19937 engine(seed);
  std::uniform_real_distribution<double> number(-1, 1);
  TensorValue<T> t(shape);
  for (T& x : t.data) x = static_cast<T>(number(engine));
  return t;
}

/// The definition, of the last dimensions, without a factor.
template <class T>
Numbers transform(const TensorValue<T>& re, const TensorValue<T>& im, int dimensions, int sign) {
  Numbers x;
  for (std::size_t i = 0; i < re.data.size(); ++i)
    x.emplace_back(static_cast<double>(re[i]), static_cast<double>(im[i]));
  int64_t stride = 1;
  for (int d = 0; d < dimensions; ++d) {
    const int64_t n = re.shape[re.shape.size() - 1 - static_cast<std::size_t>(d)];
    Numbers y(x.size());
    for (int64_t at = 0; at < static_cast<int64_t>(x.size()); ++at) {
      const int64_t k = at / stride % n, start = at - k * stride;
      for (int64_t j = 0; j < n; ++j)
        y[static_cast<std::size_t>(at)] +=
            x[static_cast<std::size_t>(start + j * stride)] *
            std::polar(1.0,
                       sign * 2 * std::numbers::pi * static_cast<double>(j * k % n) / static_cast<double>(n));
    }
    x = y;
    stride *= n;
  }
  return x;
}

/// Of 1, 2 and 3 dimensions.
template <class T>
la::Complex<X<T>> fft(int dimensions, const X<T>& re, const X<T>& im) {
  return dimensions == 1 ? la::fft(re, im) : dimensions == 2 ? la::fft2(re, im) : la::fft3(re, im);
}
template <class T>
la::Complex<X<T>> ifft(int dimensions, const X<T>& re, const X<T>& im) {
  return dimensions == 1 ? la::ifft(re, im) : dimensions == 2 ? la::ifft2(re, im) : la::ifft3(re, im);
}
template <class T>
la::Complex<X<T>> rfft(int dimensions, const X<T>& x) {
  return dimensions == 1 ? la::rfft(x) : dimensions == 2 ? la::rfft2(x) : la::rfft3(x);
}
template <class T>
X<T> irfft(int dimensions, const X<T>& re, const X<T>& im, const Rep<int64_t>& n) {
  return dimensions == 1   ? la::irfft(re, im, n)
         : dimensions == 2 ? la::irfft2(re, im, n)
                           : la::irfft3(re, im, n);
}

/// Shapes with the number of dimensions that are transformed.
const std::vector<std::pair<int, Shape>>& shapes() {
  static const std::vector<std::pair<int, Shape>> all{
      {1, {1}},    {1, {2}},    {1, {5}},    {1, {8}},       {1, {3, 6}},    {1, {2, 2, 7}},   {2, {1, 1}},
      {2, {4, 6}}, {2, {3, 5}}, {2, {5, 1}}, {2, {2, 4, 3}}, {3, {2, 3, 4}}, {3, {2, 3, 2, 5}}};
  return all;
}

/// All transforms of one number of dimensions, and what the inverse ones make of their results.
template <class T>
auto all_transforms(int dimensions) {
  return [=](X<T> re, X<T> im) {
    const auto y = fft(dimensions, re, im);
    const auto back = ifft(dimensions, y.re, y.im);
    const auto half = rfft(dimensions, re);
    const X<T> real = irfft(dimensions, half.re, half.im, re.dim(re.rank() - 1));
    return std::tuple(y.re, y.im, back.re, back.im, half.re, half.im, real);
  };
}

}  // namespace

TEMPLATE_TEST_CASE("fft: the definition, and back", "", double, float) {
  const double bound = std::is_same_v<TestType, double> ? 1e-13 : 1e-5;
  const auto close = [&](TestType a, double b) { return std::abs(static_cast<double>(a) - b) < bound * 30; };
  for (const auto& [dimensions, shape] : shapes()) {
    CAPTURE(dimensions, shape);
    const auto re = random_tensor<TestType>(shape, 1), im = random_tensor<TestType>(shape, 2);
    const Numbers expected = transform(re, im, dimensions, -1);
    const Numbers of_real = transform(re, TensorValue<TestType>(shape), dimensions, -1);
    const auto f = all_transforms<TestType>(dimensions);
    for (const auto& [y_re, y_im, back_re, back_im, half_re, half_im, real] :
         {eager(f)(re, im), compile(f, {.target = Target::c, .opt = 0})(re, im)}) {
      CHECK(y_re.shape == shape);
      for (std::size_t i = 0; i < re.data.size(); ++i) {
        CHECK(close(y_re[i], expected[i].real()));
        CHECK(close(y_im[i], expected[i].imag()));
        CHECK(close(back_re[i], static_cast<double>(re[i])));
        CHECK(close(back_im[i], static_cast<double>(im[i])));
        CHECK(close(real[i], static_cast<double>(re[i])));
      }
      const auto n = static_cast<std::size_t>(shape.back()), columns = n / 2 + 1;
      REQUIRE(half_re.data.size() == re.data.size() / n * columns);
      for (std::size_t i = 0; i < half_re.data.size(); ++i) {
        const std::size_t at = i / columns * n + i % columns;
        CHECK(close(half_re[i], of_real[at].real()));
        CHECK(close(half_im[i], of_real[at].imag()));
      }
    }
  }
}

TEST_CASE("fft: the transposed map is the adjoint, forward and reverse agree, to second order") {
  for (const auto& [dimensions, shape] : shapes()) {
    CAPTURE(dimensions, shape);
    const auto n = shape.back();
    Shape half = shape;
    half.back() = n / 2 + 1;
    // Coefficients that are no transform of anything real, too.
    const auto x = random_tensor<double>(shape, 3), c = random_tensor<double>(half, 4);
    const auto d = dimensions;
    const auto weigh = [](X<double> t) { return sum(sin(t) + 0.5 * t * t); };
    const std::vector<std::pair<std::function<Rep<double>(X<double>)>, TensorValue<double>>> all{
        {[=](X<double> a) {
           const auto y = fft(d, a, X<double>(cos(a)));
           return weigh(y.re) + weigh(y.im * 0.5);
         },
         x},
        {[=](X<double> a) {
           const auto y = ifft(d, a, X<double>(cos(a)));
           return weigh(y.re * 3.0) + weigh(y.im);
         },
         x},
        {[=](X<double> a) {
           const auto y = rfft(d, a);
           return weigh(y.re) + weigh(y.im * 0.5);
         },
         x},
        {[=](X<double> a) { return weigh(5.0 * irfft(d, a, X<double>(cos(a)), Rep<int64_t>(n))); }, c},
    };
    int which = 0;
    for (const auto& [f, at] : all) {
      CAPTURE(which++);
      const auto v = random_tensor<double>(at.shape, 5);
      const auto moved = [&, &point = at](double h) {
        auto y = point;
        for (std::size_t i = 0; i < y.data.size(); ++i) y[i] += h * v[i];
        return y;
      };
      const auto value = eager(f);
      const auto slope = eager(grad(f));
      const auto g = slope(at);
      const double dy = std::get<1>(eager(jvp(f))(at, v));
      double inner = 0;
      for (std::size_t i = 0; i < g.data.size(); ++i) inner += g[i] * v[i];
      CHECK(dy == Approx(inner).epsilon(1e-10).margin(1e-10));
      CHECK(dy == Approx((value(moved(1e-5)) - value(moved(-1e-5))) / 2e-5).epsilon(1e-6).margin(1e-6));
      const auto up = slope(moved(1e-5)), down = slope(moved(-1e-5)), second = eager(hvp(f))(at, v);
      for (std::size_t i = 0; i < g.data.size(); ++i)
        CHECK(second[i] == Approx((up[i] - down[i]) / 2e-5).epsilon(1e-5).margin(1e-5));
    }
  }
}

TEST_CASE("fft: derivatives, compiled") {
  // A convolution by its transform, and a spectrum's energy: convolutions may be written as sums as well.
  using A = Rep<Array<double>>;
  const auto convolved = [](A a, A b) {
    const auto fa = la::rfft(a), fb = la::rfft(b);
    return la::irfft(A(fa.re * fb.re - fa.im * fb.im), A(fa.re * fb.im + fa.im * fb.re), a.size());
  };
  const auto f = [=](A a, A b) { return sum(sin(convolved(a, b))); };
  const auto plain = [](A a, A b) {
    const Rep<int64_t> n = a.size();
    return FOR(0, n, Rep<double>(0.0), [&](Rep<int64_t> i, Rep<double> s) {
      const Rep<double> c = FOR(0, n, Rep<double>(0.0),
                                [&](Rep<int64_t> j, Rep<double> r) { return r + a[j] * b[(i + n - j) % n]; });
      return s + sin(c);
    });
  };
  for (const int64_t n : {1, 2, 7, 12}) {
    CAPTURE(n);
    const auto a = random_tensor<double>({n}, 6).data, b = random_tensor<double>({n}, 7).data;
    const auto [y, g] = eager(value_and_grad(plain))(a, b);
    for (const auto& [target, opt] : {std::pair{Target::c, 0}, {Target::cpp, 3}}) {
      if (target == Target::cpp && n != 7) continue;
      const auto [y2, g2] = compile(value_and_grad(f), {.target = target, .opt = opt})(a, b);
      CHECK(y2 == Approx(y));
      for (std::size_t i = 0; i < a.size(); ++i) {
        CHECK(std::get<0>(g2)[i] == Approx(std::get<0>(g)[i]).margin(1e-12));
        CHECK(std::get<1>(g2)[i] == Approx(std::get<1>(g)[i]).margin(1e-12));
      }
    }
  }
}

TEST_CASE("fft: without elements") {
  for (const Shape& shape : {Shape{0, 4}, Shape{3, 0}}) {
    const TensorValue<double> none(shape);
    const auto y = eager([](X<double> a) {
      const auto c = la::fft2(a, a);
      return la::ifft2(c.re, c.im).re;
    })(none);
    CHECK(y.shape == shape);
  }
  const auto half = eager([](X<double> a) { return la::rfft(a).re; })(TensorValue<double>({0, 4}));
  CHECK(half.shape == Shape{0, 3});
}

TEST_CASE("fft: operands that do not fit") {
  const auto message = [](const auto& run) -> std::string {
    try {
      run();
    } catch (const Error& e) {
      return e.what();
    }
    return "no error";
  };
  using A = Rep<Array<double>>;
  const auto pair = [](A a, A b) { return la::fft(a, b).re; };
  const auto back = [](A a, A b) { return la::irfft(a, b, 7); };
  const std::vector<double> four(4), five(5);
  const auto pair_c = compile(pair, {.target = Target::c, .opt = 0});
  const auto back_c = compile(back, {.target = Target::c, .opt = 0});
  for (const std::string& text :
       {message([&] { eager(pair)(four, five); }), message([&] { pair_c(four, five); })})
    CHECK_THAT(text, Contains("fft: expected real and imaginary parts of the same sizes") &&
                         Contains("fft_test.cpp:"));
  for (const std::string& text :
       {message([&] { eager(back)(five, five); }), message([&] { back_c(five, five); })})
    CHECK_THAT(text, Contains("irfft: expected n / 2 + 1 coefficients for n numbers"));
  CHECK(back_c(four, four).size() == 7);
  CHECK_THAT(message([&] { compile([](A a) { return la::rfft2(a).re; }, {.target = Target::c}); }),
             Contains("rfft: expected an operand of rank 2"));
}

TEST_CASE("fft: plans of all kinds made and used by several threads") {
  // There and back, by both kinds of transforms, with plans that no thread has made before.
  const auto f = compile(
      [](X<double> a) {
        const auto half = la::rfft(a);
        const auto all = la::fft(a, X<double>(2.0 * a));
        const auto back = la::ifft(all.re, all.im);
        const X<double> real = la::irfft(half.re, half.im, a.dim(1));
        return sum(abs(real - a)) + sum(abs(back.re - a)) + sum(abs(back.im - 2.0 * a));
      },
      {.target = Target::c, .opt = 0});
  CHECK(f(random_tensor<double>({1, 1}, 0)) < 1e-15);
  std::vector<int> wrong(4);
  std::vector<std::thread> threads;
  for (int& count : wrong)
    threads.emplace_back([&] {
      for (int64_t n = 30; n < 90; ++n) count += !(f(random_tensor<double>({2, n}, 8)) < 1e-11);
    });
  for (std::thread& t : threads) t.join();
  for (const int count : wrong) CHECK(count == 0);
}
