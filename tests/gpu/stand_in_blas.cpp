// libcublas for machines without a GPU: the one product that programs call, by its definition.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <type_traits>

#include "lantern/runtime/small_float.hpp"

/// Of the stand-in for the driver: does it where the stream is, when the host may touch the device's memory.
int stand_in_queue(void* stream, const std::function<int()>& operation);

namespace {

struct Handle {
  void* stream = nullptr;
};

/// A number of 16 bits in memory, with which float computes.
template <const lantern::core::FloatFormat& format>
struct Narrow {
  std::uint16_t bits;
  operator float() const {
    const unsigned sign = 0x8000, hidden = 1U << (format.digits - 1), size = bits & (sign - 1);
    const int exponent = static_cast<int>(size / hidden);
    const auto fraction = static_cast<double>(size % hidden);
    double value = exponent == 0 ? std::ldexp(fraction, format.least) : std::ldexp(fraction + hidden, format.least + exponent - 1);
    if (size >= sign - hidden) value = size > sign - hidden ? NAN : INFINITY;
    return static_cast<float>(bits & sign ? -value : value);
  }
  Narrow& operator=(float x) {
    bits = static_cast<std::uint16_t>(encoded(format, x));
    return *this;
  }
};
using Half = Narrow<lantern::core::float16_format>;
using Brain = Narrow<lantern::core::bfloat16_format>;

/// A factor as the arithmetic has it: rounded to 11 digits (CUBLAS_COMPUTE_32F_FAST_TF32) or 8 (_16BF), or to half (_16F),
/// to even.
template <class T>
T rounded(T x, int arithmetic) {
  if constexpr (std::is_same_v<T, float>) {
    if (arithmetic == 74) return Half{} = x;
    if (arithmetic == 75) return Brain{} = x;
    if (arithmetic != 77) return x;
    std::uint32_t bits = 0;
    std::memcpy(&bits, &x, 4);
    bits = (bits + 0xfff + (bits >> 13 & 1U)) & ~0x1fffU;
    std::memcpy(&x, &bits, 4);
  }
  return x;
}

/// c = alpha op(a) op(b) + beta c, by columns. `S` computes.
template <class S, class T, class R>
void multiply(bool turn_a, bool turn_b, int m, int n, int k, S alpha, const T* a, int lda, const T* b, int ldb, S beta, R* c, int ldc,
              int arithmetic) {
  for (int j = 0; j < n; ++j)
    for (int i = 0; i < m; ++i) {
      S sum = 0;
      for (int l = 0; l < k; ++l)
        sum += rounded<S>(a[turn_a ? l + static_cast<std::ptrdiff_t>(i) * lda : i + static_cast<std::ptrdiff_t>(l) * lda], arithmetic) *
               rounded<S>(b[turn_b ? j + static_cast<std::ptrdiff_t>(l) * ldb : l + static_cast<std::ptrdiff_t>(j) * ldb], arithmetic);
      R& to = c[i + static_cast<std::ptrdiff_t>(j) * ldc];
      to = beta == 0 ? alpha * sum : alpha * sum + beta * static_cast<S>(to);
    }
}

int products = 0;

}  // namespace

extern "C" {

int cublasCreate_v2(void** handle) { return *handle = new Handle, 0; }
int cublasDestroy_v2(void* handle) { return delete static_cast<Handle*>(handle), 0; }
int cublasSetStream_v2(void* handle, void* stream) { return static_cast<Handle*>(handle)->stream = stream, 0; }
int cublasSetWorkspace_v2(void*, void*, std::size_t) { return 0; }
int cublasGemmStridedBatchedEx(void* handle, int turn_a, int turn_b, int m, int n, int k, const void* alpha, const void* a, int type_a,
                               int lda, long long step_a, const void* b, int type_b, int ldb, long long step_b, const void* beta, void* c,
                               int type_c, int ldc, long long step_c, int batch, int arithmetic, int) {
  // The combinations that cuBLAS has: factors of one type, sums of double or of float; of 16 bits the result may have too.
  const bool narrow = type_a == 2 || type_a == 14;
  const bool known = type_a == 1   ? arithmetic == 70
                     : type_a == 0 ? arithmetic == 68 || arithmetic == 74 || arithmetic == 75 || arithmetic == 77
                                   : narrow && arithmetic == 68;
  if (!known || type_b != type_a || (type_c != type_a && !(narrow && type_c == 0))) return 15;
  // As cuBLAS refuses them.
  if (lda < (turn_a ? k : m) || ldb < (turn_b ? n : k) || ldc < m) return 7;
  ++products;
  const auto all = [=]<class S, class T, class R>(const S* factor, const T* x, const T* y, R* to) {
    return stand_in_queue(static_cast<Handle*>(handle)->stream, [=, factor = *factor, kept = *static_cast<const S*>(beta)] {
      for (int p = 0; p < batch; ++p)
        multiply(turn_a != 0, turn_b != 0, m, n, k, factor, x + p * step_a, lda, y + p * step_b, ldb, kept, to + p * step_c, ldc,
                 arithmetic);
      return 0;
    });
  };
  const auto of = [&]<class S, class T>(const S* factor, const T* x) {
    return type_c == type_a ? all(factor, x, static_cast<const T*>(b), static_cast<T*>(c))
                            : all(factor, x, static_cast<const T*>(b), static_cast<S*>(c));
  };
  if (type_a == 1) return of(static_cast<const double*>(alpha), static_cast<const double*>(a));
  const auto* factor = static_cast<const float*>(alpha);
  if (type_a == 2) return of(factor, static_cast<const Half*>(a));
  return type_a == 14 ? of(factor, static_cast<const Brain*>(a)) : of(factor, static_cast<const float*>(a));
}
/// Products so far.
int stand_in_products() { return products; }

}  // extern "C"
