// Fourier transforms of the last one, two or three dimensions; dimensions before those count transforms.
//
// Complex numbers are pairs of real tensors, given as two or as a Complex of them. Transforms are linear: the adjoint of one is the transform with
// the other sign, without its factor. Sizes may be any; products of small primes are fastest. FFTW's planner
// is called by one thread at a time here: who calls it elsewhere at the same time asks for
// fftw_make_planner_thread_safe.
#pragma once

#include "lantern/compiler/linalg/typed.hpp"
#include "lantern/compiler/staging/complex.hpp"

namespace lantern::linalg {

using core::Complex;

namespace detail {
template <class T>
Complex<Like<T>> complex_of(const Values& all) {
  return {Like<T>(all[0].datum), Like<T>(all[1].datum)};
}
template <class T>
Complex<Like<T>> complex_transform(const Rep<T>& re, const Rep<T>& im, int dimensions, bool inverse,
                                   const std::source_location& l) {
  return complex_of<T>(fft(value(re, l), value(im, l), dimensions, inverse));
}
template <class T>
Like<T> real_inverse(const Rep<T>& re, const Rep<T>& im, const core::At<std::int64_t>& n, int dimensions,
                     const std::source_location& l) {
  return Like<T>(irfft(value(re, l), value(im, l), n.datum, dimensions).datum);
}
}  // namespace detail

/// y[k] = sum over j of x[j] exp(-2 pi i j k / n), of x = re + i im, tensors of the same sizes.
template <detail::Dense T>
auto fft(const Rep<T>& re, const Rep<T>& im, std::source_location l = std::source_location::current()) {
  return detail::complex_transform(re, im, 1, false, l);
}
template <detail::Dense T>
auto fft2(const Rep<T>& re, const Rep<T>& im, std::source_location l = std::source_location::current()) {
  return detail::complex_transform(re, im, 2, false, l);
}
template <detail::Dense T>
auto fft3(const Rep<T>& re, const Rep<T>& im, std::source_location l = std::source_location::current()) {
  return detail::complex_transform(re, im, 3, false, l);
}
/// The inverse: exp(+2 pi i j k / n), and a factor of 1 / n.
template <detail::Dense T>
auto ifft(const Rep<T>& re, const Rep<T>& im, std::source_location l = std::source_location::current()) {
  return detail::complex_transform(re, im, 1, true, l);
}
template <detail::Dense T>
auto ifft2(const Rep<T>& re, const Rep<T>& im, std::source_location l = std::source_location::current()) {
  return detail::complex_transform(re, im, 2, true, l);
}
template <detail::Dense T>
auto ifft3(const Rep<T>& re, const Rep<T>& im, std::source_location l = std::source_location::current()) {
  return detail::complex_transform(re, im, 3, true, l);
}

/// The coefficients 0 to n / 2 of the last dimension of real x; the others are their conjugates.
template <detail::Dense T>
auto rfft(const Rep<T>& x, std::source_location l = std::source_location::current()) {
  return detail::complex_of<T>(detail::rfft(detail::value(x, l), 1));
}
template <detail::Dense T>
auto rfft2(const Rep<T>& x, std::source_location l = std::source_location::current()) {
  return detail::complex_of<T>(detail::rfft(detail::value(x, l), 2));
}
template <detail::Dense T>
auto rfft3(const Rep<T>& x, std::source_location l = std::source_location::current()) {
  return detail::complex_of<T>(detail::rfft(detail::value(x, l), 3));
}
/// The real tensor of n elements in the last dimension that has these n / 2 + 1 coefficients there. Of the
/// coefficients that represent themselves, 0 and n / 2, the imaginary part is not read, after the inverse
/// transform of the other dimensions.
template <detail::Dense T>
auto irfft(const Rep<T>& re, const Rep<T>& im, const core::At<std::int64_t>& n,
           std::source_location l = std::source_location::current()) {
  return detail::real_inverse(re, im, n, 1, l);
}
template <detail::Dense T>
auto irfft2(const Rep<T>& re, const Rep<T>& im, const core::At<std::int64_t>& n,
            std::source_location l = std::source_location::current()) {
  return detail::real_inverse(re, im, n, 2, l);
}
template <detail::Dense T>
auto irfft3(const Rep<T>& re, const Rep<T>& im, const core::At<std::int64_t>& n,
            std::source_location l = std::source_location::current()) {
  return detail::real_inverse(re, im, n, 3, l);
}

/// The same of complex tensors: fft(z), ifft3(z), irfft(z, n).
#define LANTERN_COMPLEX_TRANSFORM(name)                                                                  \
  template <detail::Dense T>                                                                             \
  auto name(const Complex<Rep<T>>& z, std::source_location l = std::source_location::current()) {        \
    return name(z.re, z.im, l);                                                                          \
  }                                                                                                      \
  template <detail::Dense T>                                                                             \
  auto i##name(const Complex<Rep<T>>& z, std::source_location l = std::source_location::current()) {     \
    return i##name(z.re, z.im, l);                                                                       \
  }                                                                                                      \
  template <detail::Dense T>                                                                             \
  auto ir##name(const Complex<Rep<T>>& z, const core::At<std::int64_t>& n,                               \
                std::source_location l = std::source_location::current()) {                              \
    return ir##name(z.re, z.im, n, l);                                                                   \
  }
LANTERN_COMPLEX_TRANSFORM(fft)
LANTERN_COMPLEX_TRANSFORM(fft2)
LANTERN_COMPLEX_TRANSFORM(fft3)
#undef LANTERN_COMPLEX_TRANSFORM

}  // namespace lantern::linalg
