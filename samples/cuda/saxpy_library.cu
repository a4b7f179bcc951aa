// The gradient of saxpy.cpp as a library for other languages: one C function, which never ends the process.
//   lanternc saxpy.cpp --emit=cuda --function=saxpy_gradient -o saxpy_gradient.cu
//   nvcc -O2 --shared -Xcompiler -fPIC saxpy_library.cu -ldl -o libsaxpy.so
// saxpy_torch.py calls it from PyTorch, saxpy_jax.cu and saxpy_jax.py from JAX.
#include <string>

#include "saxpy_gradient.cu"

static void saxpy_failed(const char* message) { throw std::string(message); }

/// On the stream: the sum of the squares of a x + y into numbers[0], its slope by a into numbers[1], and by each x into by_x.
/// x, y and by_x have n elements, in memory of the GPU or of the host. Null, or why it failed.
extern "C" const char* saxpy(cudaStream_t stream, float a, const float* x, const float* y, int64_t n, float* numbers, float* by_x) {
  static thread_local std::string why;
  saxpy_gradient_on_failure(saxpy_failed);
  try {
    lt_workspace* const ws = saxpy_gradient_workspace();
    saxpy_gradient_on_stream(ws, stream);
    lt_f32_1d slope;
    saxpy_gradient(ws, a, {const_cast<float*>(x), {n}}, {const_cast<float*>(y), {n}}, &numbers[0], &numbers[1], &slope);
    const cudaError_t status = cudaMemcpyAsync(by_x, slope.data, static_cast<size_t>(n) * sizeof(float), cudaMemcpyDefault, stream);
    if (status != cudaSuccess) throw std::string(cudaGetErrorString(status));
    cudaPointerAttributes place;
    if (cudaPointerGetAttributes(&place, by_x) != cudaSuccess || place.type != cudaMemoryTypeDevice) saxpy_gradient_wait(ws);
    return nullptr;
  } catch (const std::string& message) {
    why = message;
    return why.c_str();
  }
}
