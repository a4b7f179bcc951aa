// Complex numbers: pairs of Reps, Complex<Rep<double>>, and of arrays or tensors,
// Complex<Rep<Array<double>>>.
//
//   using C = Complex<Rep<double>>;
//   Rep<double> f(C z) { return abs(exp(z * z) + 1.0); }
//   eager(f)(Complex<double>{1.0, 2.0}), grad(f), ...
//
// Outside of a program, a Complex<Rep<double>> is a Complex<double>, which converts to and from
// std::complex<double>. Real numbers, Reps and std::complex mix with them. Functions have the principal
// values of <complex>, with one side at branch cuts: a zero's sign is not asked for, and on a cut the value
// is that of +0.
//
// Derivatives. A complex number is the pair of its parts, and a gradient the pair of derivatives by them: of
// a real L, the gradient by z is dL/dre + i dL/dim, as in PyTorch, twice the Wirtinger derivative by the
// conjugate; z minus a multiple of it descends. JAX's grad gives the conjugate. See docs/conventions.md.
// Sources: Kahan, "Branch cuts for complex elementary functions", 1987, for the inverse functions.
#pragma once

#include <complex>

#include "lantern/compiler/staging/containers.hpp"
#include "lantern/compiler/staging/functions.hpp"
#include "lantern/compiler/staging/product.hpp"

namespace lantern::core {

/// re + i im: of two Reps, or two numbers.
template <class M>
struct Complex {
  M re, im;

  /// Of arrays and tensors: an element, an element replaced, sizes.
  template <class... I>
  auto operator()(const I&... at) const {
    return Complex<decltype(re(at...))>{re(at...), im(at...)};
  }
  template <class I>
  auto operator[](const I& at) const {
    return Complex<std::remove_cvref_t<decltype(M(re)[at])>>{re[at], im[at]};
  }
  template <class I, class V>
  Complex set(const I& at, const Complex<V>& v) const {
    return {re.set(at, v.re), im.set(at, v.im)};
  }
  auto size() const { return re.size(); }

  /// Vectors as the spans of an argument, arrays as tensors.
  template <class N>
  requires(!std::same_as<M, N> && std::is_convertible_v<const M&, N>) operator Complex<N>() const {
    return {re, im};
  }
  /// Of numbers.
  operator std::complex<M>() const requires(std::is_floating_point_v<M>) { return {re, im}; }
};
template <class M>
Complex(M, M) -> Complex<M>;

/// A std::complex as a pair of numbers: an argument of a compiled function.
template <std::floating_point T>
Complex<T> as_complex(const std::complex<T>& z) {
  return {z.real(), z.imag()};
}

namespace detail {

template <class T>
struct IsComplex : std::false_type {};
template <class T>
struct IsComplex<Complex<Rep<T>>> : std::bool_constant<FloatElement<typename Traits<T>::element>> {};
template <class T>
concept ComplexReps = IsComplex<T>::value;
template <class T>
inline constexpr bool is_std_complex = false;
template <class T>
inline constexpr bool is_std_complex<std::complex<T>> = true;
/// What is beside a complex number.
template <class T>
concept ComplexOperand = ComplexReps<T> || RepType<T> || std::is_arithmetic_v<T> || is_std_complex<T>;
/// One of two operands is complex.
template <class A, class B>
concept ComplexPair = (ComplexReps<A> && ComplexOperand<B>) || (ComplexOperand<A> && ComplexReps<B>);
template <class T>
inline constexpr bool is_real = RepType<T> || std::is_arithmetic_v<T>;

template <class T>
decltype(auto) real_part(const T& z) {
  if constexpr (ComplexReps<T>)
    return (z.re);
  else if constexpr (is_std_complex<T>)
    return z.real();
  else
    return (z);
}
template <class T>
decltype(auto) imaginary_part(const T& z) {
  if constexpr (ComplexReps<T>)
    return (z.im);
  else
    return z.imag();
}
template <class A, class B>
auto complex_of(const A& re, const B& im) {
  return Complex<lifted_t<A>>{re, im};
}
/// Of numbers, or element by element.
template <class C, class T>
Rep<T> chosen(const Rep<C>& c, const Rep<T>& a, const Rep<T>& b) {
  return Rep<T>(perform({Opcode::select_, 0, {}}, {c.datum(), a.datum(), b.datum()}));
}
/// As many numbers as x has, all of them v.
template <class T>
Rep<T> all_like(const Rep<T>& x, double v) {
  using E = typename Traits<T>::element;
  if constexpr (Traits<T>::tensor)
    return zeros_like(x) + static_cast<E>(v);
  else
    return Rep<T>(static_cast<E>(v));
}

}  // namespace detail

template <class A, class B>
requires(detail::ComplexPair<A, B>) auto operator+(const A& a, const B& b) {
  using namespace detail;
  if constexpr (is_real<A>)
    return complex_of(a + b.re, all_like(b.re, 0) + b.im);
  else if constexpr (is_real<B>)
    return complex_of(a.re + b, all_like(a.re, 0) + a.im);
  else
    return complex_of(real_part(a) + real_part(b), imaginary_part(a) + imaginary_part(b));
}
template <detail::ComplexReps A>
A operator-(const A& a) {
  return {-a.re, -a.im};
}
template <class A, class B>
requires(detail::ComplexPair<A, B>) auto operator-(const A& a, const B& b) {
  using namespace detail;
  if constexpr (is_real<A>)
    return complex_of(a - b.re, all_like(b.re, 0) - b.im);
  else if constexpr (is_real<B>)
    return complex_of(a.re - b, all_like(a.re, 0) + a.im);
  else
    return complex_of(real_part(a) - real_part(b), imaginary_part(a) - imaginary_part(b));
}
template <class A, class B>
requires(detail::ComplexPair<A, B>) auto operator*(const A& a, const B& b) {
  using namespace detail;
  if constexpr (is_real<A>)
    return complex_of(a * b.re, a * b.im);
  else if constexpr (is_real<B>)
    return complex_of(a.re * b, a.im * b);
  else
    return complex_of(real_part(a) * real_part(b) - imaginary_part(a) * imaginary_part(b),
                      real_part(a) * imaginary_part(b) + imaginary_part(a) * real_part(b));
}
/// Without overflow on the way; NaN where b is 0.
template <class A, class B>
requires(detail::ComplexPair<A, B>) auto operator/(const A& a, const B& b) {
  using namespace detail;
  if constexpr (is_real<B>) {
    return complex_of(a.re / b, a.im / b);
  } else if constexpr (is_std_complex<B>) {
    return a * (std::complex<double>(1.0) / std::complex<double>(b));
  } else {
    // The quotient does not depend on the scale, which has no derivative.
    const auto scale = stop_gradient(max(abs(b.re), abs(b.im)));
    const auto c = b.re / scale, d = b.im / scale, size = b.re * c + b.im * d;
    if constexpr (is_real<A>)
      return complex_of(a * c / size, -a * d / size);
    else
      return complex_of((real_part(a) * c + imaginary_part(a) * d) / size,
                        (imaginary_part(a) * c - real_part(a) * d) / size);
  }
}
template <detail::ComplexReps A, detail::ComplexReps B>
auto operator==(const A& a, const B& b) {
  return (a.re == b.re) & (a.im == b.im);
}

template <detail::ComplexReps A>  ///< the real part
auto real(const A& z) {
  return z.re;
}
template <detail::ComplexReps A>  ///< the imaginary part
auto imag(const A& z) {
  return z.im;
}
template <detail::ComplexReps A>  ///< the conjugate: the imaginary part with the other sign
A conj(const A& z) {
  return {z.re, -z.im};
}
/// The size; slope 0 at 0, as hypot's.
template <detail::ComplexReps A>
auto abs(const A& z) {
  return standard_names::hypot(z.re, z.im);
}
/// The squared size, which has all of its derivatives at 0 too (std::norm).
template <detail::ComplexReps A>
auto norm(const A& z) {
  return z.re * z.re + z.im * z.im;
}
/// The angle, from -pi to pi.
template <detail::ComplexReps A>
auto arg(const A& z) {
  return standard_names::atan2(z.im, z.re);
}
/// r e^(i angle).
template <class T>
Complex<Rep<T>> polar(const Rep<T>& r, const Rep<T>& angle) {
  return {r * cos(angle), r * sin(angle)};
}
namespace detail {
template <ComplexReps A>
A times_i(const A& z) {
  return {-z.im, z.re};
}
template <ComplexReps A>
A over_i(const A& z) {
  return {z.im, -z.re};
}
}  // namespace detail

template <detail::ComplexReps A>
A exp(const A& z) {
  return polar(exp(z.re), z.im);
}
/// Accurate where |z| is near 1 too.
template <detail::ComplexReps A>
A log(const A& z) {
  using namespace detail;
  const auto first = abs(z.re) > abs(z.im);
  const auto large = chosen(first, z.re, z.im), small = chosen(first, z.im, z.re), size = abs(z);
  const auto near_one = (size > 0.5f) & (size < 2.0f);
  const auto by_squares =
      chosen(near_one, (large - 1.0f) * (large + 1.0f) + small * small, all_like(size, 0));
  return {chosen(near_one, 0.5f * log1p(by_squares), log(size)), arg(z)};
}
/// With a real part of 0 or more; on the negative axis, the positive imaginary one. Its slopes at 0 are NaN.
template <detail::ComplexReps A>
A sqrt(const A& z) {
  using namespace detail;
  const auto right = z.re >= 0.0f, low = z.im < 0.0f, zero = (z.re == 0.0f) & (z.im == 0.0f);
  const auto size = chosen(right, z.re, -z.re), w = sqrt(0.5f * (size + abs(z)));
  const auto other = chosen(zero, w, 0.5f * chosen(right | !low, z.im, -z.im) / w);
  return {chosen(right, w, other), chosen(right, other, chosen(low, -w, w))};
}
/// z^n by multiplications; of n < 0 the inverse of that.
template <detail::ComplexReps A>
A pow(const A& z, int n) {
  if (n < 0) return 1.0f / pow(z, -n);
  if (n == 0) return {detail::all_like(z.re, 1), detail::all_like(z.re, 0)};
  const A half = n == 1 ? z : pow(z, n / 2);
  return n == 1 ? z : n % 2 == 0 ? A(half * half) : A(half * half * z);
}
/// e^(w log z); 0 where z is 0.
template <class A, class B>
requires(detail::ComplexPair<A, B> && !std::integral<B>) auto pow(const A& z, const B& w) {
  using namespace detail;
  if constexpr (is_real<A> || is_std_complex<A>) {
    const auto base = complex_of(all_like(w.re, 0) + real_part(z), [&] {
      if constexpr (is_real<A>)
        return all_like(w.re, 0);
      else
        return all_like(w.re, z.imag());
    }());
    return pow(base, w);
  } else {
    const auto zero = abs(z) == 0.0f;
    const A inside{chosen(zero, all_like(z.re, 1), z.re), z.im};
    const auto power = exp(log(inside) * w);
    return decltype(power){chosen(zero, all_like(power.re, 0), power.re),
                           chosen(zero, all_like(power.im, 0), power.im)};
  }
}

template <detail::ComplexReps A>
A sinh(const A& z) {
  return {sinh(z.re) * cos(z.im), cosh(z.re) * sin(z.im)};
}
template <detail::ComplexReps A>
A cosh(const A& z) {
  return {cosh(z.re) * cos(z.im), sinh(z.re) * sin(z.im)};
}
/// Without overflow.
template <detail::ComplexReps A>
A tanh(const A& z) {
  const auto t = tanh(z.re), s = 1.0f / cosh(z.re), u = tan(z.im), size = 1.0f + (t * u) * (t * u);
  return {t * (1.0f + u * u) / size, u * (s * s) / size};
}
template <detail::ComplexReps A>
A sin(const A& z) {
  return detail::over_i(sinh(detail::times_i(z)));
}
template <detail::ComplexReps A>
A cos(const A& z) {
  return cosh(detail::times_i(z));
}
template <detail::ComplexReps A>
A tan(const A& z) {
  return detail::over_i(tanh(detail::times_i(z)));
}
template <detail::ComplexReps A>
A asin(const A& z) {
  const A left = sqrt(1.0f - z), right = sqrt(1.0f + z);
  return {standard_names::atan2(z.re, (left * right).re), asinh((conj(left) * right).im)};
}
template <detail::ComplexReps A>
A acos(const A& z) {
  const A left = sqrt(1.0f - z), right = sqrt(1.0f + z);
  return {2.0f * standard_names::atan2(left.re, right.re), asinh((conj(right) * left).im)};
}
template <detail::ComplexReps A>
A atanh(const A& z) {
  using namespace detail;
  const auto low = z.re < 0.0f;  // the real part is odd, and a logarithm of less than 1 loses digits
  const auto size = chosen(low, -z.re, z.re), left = 1.0f - size, square = z.im * z.im;
  const auto half = 0.25f * log1p(4.0f * size / (left * left + square));
  return {chosen(low, -half, half), 0.5f * standard_names::atan2(2.0f * z.im, left * (1.0f + size) - square)};
}
template <detail::ComplexReps A>
A asinh(const A& z) {
  return detail::over_i(asin(detail::times_i(z)));
}
template <detail::ComplexReps A>
A acosh(const A& z) {
  const A left = sqrt(z - 1.0f), right = sqrt(z + 1.0f);
  return {asinh((conj(left) * right).re), 2.0f * standard_names::atan2(left.im, right.re)};
}
template <detail::ComplexReps A>
A atan(const A& z) {
  return detail::over_i(atanh(detail::times_i(z)));
}

/// Of all elements.
template <detail::ComplexReps A>
auto sum(const A& z) {
  return Complex<Rep<typename detail::Traits<typename decltype(A::re)::value_type>::element>>{sum(z.re),
                                                                                              sum(z.im)};
}
/// The sum of a[i] b[i]; of conj(a) and b it is the inner product (numpy.vdot).
template <detail::ComplexReps A>
auto dot(const A& a, const A& b) {
  return Complex<decltype(dot(a.re, b.re))>{dot(a.re, b.re) - dot(a.im, b.im),
                                            dot(a.re, b.im) + dot(a.im, b.re)};
}
template <detail::ComplexReps A, detail::ComplexReps B>
auto matmul(const A& a, const B& b) {
  const auto re = matmul(a.re, b.re) - matmul(a.im, b.im), im = matmul(a.re, b.im) + matmul(a.im, b.re);
  return Complex<std::remove_const_t<decltype(re)>>{re, im};
}
template <detail::ComplexReps A>
auto transpose(const A& z) {
  return Complex<decltype(transpose(z.re))>{transpose(z.re), transpose(z.im)};
}

}  // namespace lantern::core
