// libcublas for machines without a GPU: the one product that programs call, by its definition.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>

#include "lantern/runtime/small_float.hpp"

/// Of the stand-in for the driver: does it where the stream is, when the host may touch the device's memory.
int stand_in_queue(void* stream, const std::function<int()>& operation);

namespace {

struct Handle {
  void* stream = nullptr;
};

/// A factor as the arithmetic has it: rounded to 11 digits (CUBLAS_COMPUTE_32F_FAST_TF32) or 8 (_16BF), or to half (_16F),
/// to even.
template <class T>
T rounded(T x, int arithmetic) {
  if (sizeof x == 4 && arithmetic == 74) {
    const lantern::core::FloatFormat& half = lantern::core::float16_format;
    const unsigned code = encoded(half, static_cast<float>(x)), size = code & 0x7fff;
    const double value = size == 0x7c00 ? INFINITY : size > 0x7c00 ? NAN
                         : size < 1024 ? std::ldexp(size, -24) : std::ldexp(1024 + size % 1024, static_cast<int>(size / 1024) - 25);
    return static_cast<T>(code >> 15 ? -value : value);
  }
  const int dropped = arithmetic == 77 ? 13 : arithmetic == 75 ? 16 : 0;
  if (sizeof x != 4 || dropped == 0) return x;
  std::uint32_t bits = 0;
  std::memcpy(&bits, &x, 4);
  bits += (1U << (dropped - 1)) - 1 + (bits >> dropped & 1U);
  bits = bits >> dropped << dropped;
  std::memcpy(&x, &bits, 4);
  return x;
}

/// c = alpha op(a) op(b) + beta c, by columns.
template <class T>
void multiply(bool turn_a, bool turn_b, int m, int n, int k, T alpha, const T* a, int lda, const T* b, int ldb, T beta, T* c, int ldc,
              int arithmetic) {
  for (int j = 0; j < n; ++j)
    for (int i = 0; i < m; ++i) {
      T sum = 0;
      for (int l = 0; l < k; ++l)
        sum += rounded(a[turn_a ? l + static_cast<std::ptrdiff_t>(i) * lda : i + static_cast<std::ptrdiff_t>(l) * lda], arithmetic) *
               rounded(b[turn_b ? j + static_cast<std::ptrdiff_t>(l) * ldb : l + static_cast<std::ptrdiff_t>(j) * ldb], arithmetic);
      T& to = c[i + static_cast<std::ptrdiff_t>(j) * ldc];
      to = beta == 0 ? alpha * sum : alpha * sum + beta * to;
    }
}

int products = 0;

}  // namespace

extern "C" {

int cublasCreate_v2(void** handle) { return *handle = new Handle, 0; }
int cublasDestroy_v2(void* handle) { return delete static_cast<Handle*>(handle), 0; }
int cublasSetStream_v2(void* handle, void* stream) { return static_cast<Handle*>(handle)->stream = stream, 0; }
int cublasSetWorkspace_v2(void*, void*, std::size_t) { return 0; }
int cublasGemmStridedBatchedEx(void* handle, int turn_a, int turn_b, int m, int n, int k, const void* alpha, const void* a, int type,
                               int lda, long long step_a, const void* b, int, int ldb, long long step_b, const void* beta, void* c, int,
                               int ldc, long long step_c, int batch, int arithmetic, int) {
  if (type == 1 ? arithmetic != 70 : arithmetic != 68 && arithmetic != 74 && arithmetic != 75 && arithmetic != 77) return 15;
  // As cuBLAS refuses them.
  if (lda < (turn_a ? k : m) || ldb < (turn_b ? n : k) || ldc < m) return 7;
  ++products;
  const auto all = [=]<class T>(T factor, T kept) {
    return stand_in_queue(static_cast<Handle*>(handle)->stream, [=] {
      for (int p = 0; p < batch; ++p)
        multiply<T>(turn_a != 0, turn_b != 0, m, n, k, factor, static_cast<const T*>(a) + p * step_a, lda,
                    static_cast<const T*>(b) + p * step_b, ldb, kept, static_cast<T*>(c) + p * step_c, ldc, arithmetic);
      return 0;
    });
  };
  return type == 1 ? all(*static_cast<const double*>(alpha), *static_cast<const double*>(beta))
                   : all(*static_cast<const float*>(alpha), *static_cast<const float*>(beta));
}
/// Products so far.
int stand_in_products() { return products; }

}  // extern "C"
