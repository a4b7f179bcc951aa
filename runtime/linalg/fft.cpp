// Fourier transforms by FFTW.
//
// Plans are made without measuring and kept until the program ends; FFTW's planner is not thread-safe, so one
// thread at a time asks for them. They work on memory of our own, so that it does not matter how operands are
// aligned.
#include <fftw3.h>

#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <new>

#include "lantern/runtime/linalg/kernels.h"
#include "lantern/runtime/linalg/lapack.hpp"

namespace lantern::linalg {

namespace {

/// FFTW's functions for an element type.
#define LINALG_FFTW(name, T, p)                                                                         \
  struct name {                                                                                         \
    using Plan = p##_plan;                                                                              \
    using Complex = p##_complex;                                                                        \
    static void* allocate(std::size_t bytes) { return p##_malloc(bytes); }                              \
    static void release(void* memory) { p##_free(memory); }                                             \
    static Plan complex(int rank, const int* n, Complex* c, int sign) {                                 \
      return p##_plan_dft(rank, n, c, c, sign, FFTW_ESTIMATE);                                          \
    }                                                                                                   \
    static Plan leading(int rank, const p##_iodim* dims, const p##_iodim* last, Complex* c, int sign) { \
      return p##_plan_guru_dft(rank, dims, 1, last, c, c, sign, FFTW_ESTIMATE);                         \
    }                                                                                                   \
    using Dimension = p##_iodim;                                                                        \
    static Plan forward(int rank, const int* n, T* x, Complex* c) {                                     \
      return p##_plan_dft_r2c(rank, n, x, c, FFTW_ESTIMATE);                                            \
    }                                                                                                   \
    static Plan real(int n, int howmany, Complex* c, T* x) {                                            \
      return p##_plan_many_dft_c2r(1, &n, howmany, c, nullptr, 1, n / 2 + 1, x, nullptr, 1, n,          \
                                   FFTW_ESTIMATE);                                                      \
    }                                                                                                   \
    static void run(Plan plan, Complex* c) { p##_execute_dft(plan, c, c); }                             \
    static void run(Plan plan, T* x, Complex* c) { p##_execute_dft_r2c(plan, x, c); }                   \
    static void run(Plan plan, Complex* c, T* x) { p##_execute_dft_c2r(plan, c, x); }                   \
  };
LINALG_FFTW(Double, double, fftw)
LINALG_FFTW(Float, float, fftwf)
#undef LINALG_FFTW

template <class T>
using Library = std::conditional_t<std::is_same_v<T, double>, Double, Float>;

enum Kind { forward_complex, backward_complex, forward_real, backward_leading, backward_real };
using Sizes = std::array<int, 3>;

/// The plans that there are, and the one planner that FFTW has, for each element type.
template <class T>
struct Planner {
  std::mutex mutex;
  std::map<std::pair<Kind, Sizes>, typename Library<T>::Plan> plans;
};
template <class T>
Planner<T>& planner() {
  static Planner<T>& one = *new Planner<T>;  // threads may outlive what static variables hold
  return one;
}

/// The plan, made at the first call; null where FFTW has none.
template <class T, class F>
typename Library<T>::Plan plan(Kind kind, const Sizes& n, const F& make) {
  const std::lock_guard lock(planner<T>().mutex);
  const auto [at, fresh] = planner<T>().plans.emplace(std::pair(kind, n), nullptr);
  if (fresh) at->second = make();
  return at->second;
}

/// Memory that FFTW likes.
template <class E, class T>
auto buffer(Size elements) {
  const auto release = [](E* memory) { Library<T>::release(memory); };
  auto* memory = static_cast<E*>(Library<T>::allocate(sizeof(E) * std::max<std::size_t>(1, count(elements))));
  if (memory == nullptr) throw std::bad_alloc();
  return std::unique_ptr<E[], decltype(release)>(memory, release);  // NOLINT(modernize-avoid-c-arrays)
}

template <class T>
void fft(Size batch, const Sizes& n, bool backward, T* re, T* im) {
  using L = Library<T>;
  const Size all = Size{n[0]} * n[1] * n[2];
  if (batch == 0 || all == 0) return;
  const auto c = buffer<typename L::Complex, T>(all);
  const auto p = plan<T>(backward ? backward_complex : forward_complex, n, [&] {
    return L::complex(3, n.data(), c.get(), backward ? FFTW_BACKWARD : FFTW_FORWARD);
  });
  if (!p) return set_nan(re, batch * all), set_nan(im, batch * all);
  for (Size b = 0; b < batch; ++b, re += all, im += all) {
    for (Size i = 0; i < all; ++i) c[count(i)][0] = re[i], c[count(i)][1] = im[i];
    L::run(p, c.get());
    for (Size i = 0; i < all; ++i) re[i] = c[count(i)][0], im[i] = c[count(i)][1];
  }
}

template <class T>
void rfft(Size batch, const Sizes& n, const T* x, T* re, T* im) {
  using L = Library<T>;
  const Size all = Size{n[0]} * n[1] * n[2], half = Size{n[0]} * n[1] * (n[2] / 2 + 1);
  if (batch == 0 || all == 0) return;
  const auto r = buffer<T, T>(all);
  const auto c = buffer<typename L::Complex, T>(half);
  const auto p = plan<T>(forward_real, n, [&] { return L::forward(3, n.data(), r.get(), c.get()); });
  if (!p) return set_nan(re, batch * half), set_nan(im, batch * half);
  for (Size b = 0; b < batch; ++b, x += all, re += half, im += half) {
    std::copy_n(x, all, r.get());
    L::run(p, r.get(), c.get());
    for (Size i = 0; i < half; ++i) re[i] = c[count(i)][0], im[i] = c[count(i)][1];
  }
}

/// The leading dimensions first, then the last one, so that it is said what coefficients mean that are no
/// transform of anything real: as numpy.fft.irfftn does it.
template <class T>
void irfft(Size batch, const Sizes& n, const T* re, const T* im, T* x) {
  using L = Library<T>;
  const int columns = n[2] / 2 + 1;
  const Size all = Size{n[0]} * n[1] * n[2], half = Size{n[0]} * n[1] * columns;
  if (batch == 0 || all == 0) return;
  const auto r = buffer<T, T>(all);
  const auto c = buffer<typename L::Complex, T>(half);
  const std::array<typename L::Dimension, 2> leading{
      {{n[0], n[1] * columns, n[1] * columns}, {n[1], columns, columns}}};
  const typename L::Dimension last{columns, 1, 1};
  const auto first = plan<T>(backward_leading, n,
                             [&] { return L::leading(2, leading.data(), &last, c.get(), FFTW_BACKWARD); });
  const auto second = plan<T>(backward_real, n, [&] { return L::real(n[2], n[0] * n[1], c.get(), r.get()); });
  if (!first || !second) return set_nan(x, batch * all);
  for (Size b = 0; b < batch; ++b, x += all, re += half, im += half) {
    for (Size i = 0; i < half; ++i) c[count(i)][0] = re[i], c[count(i)][1] = im[i];
    L::run(first, c.get());
    L::run(second, c.get(), r.get());
    std::copy_n(r.get(), all, x);
  }
}

Sizes sizes(Size n0, Size n1, Size n2) { return {narrow(n0), narrow(n1), narrow(n2)}; }

}  // namespace

extern "C" {
LINALG_FFT(double, f64) { fft(batch, sizes(n0, n1, n2), backward, re, im); }
LINALG_FFT(float, f32) { fft(batch, sizes(n0, n1, n2), backward, re, im); }
LINALG_RFFT(double, f64) { rfft(batch, sizes(n0, n1, n2), x, re, im); }
LINALG_RFFT(float, f32) { rfft(batch, sizes(n0, n1, n2), x, re, im); }
LINALG_IRFFT(double, f64) { irfft(batch, sizes(n0, n1, n2), re, im, x); }
LINALG_IRFFT(float, f32) { irfft(batch, sizes(n0, n1, n2), re, im, x); }
}

}  // namespace lantern::linalg
