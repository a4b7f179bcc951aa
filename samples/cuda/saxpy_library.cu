// The gradient of saxpy.cpp as a library for other languages: one C function, which never ends the process.
//   lanternc saxpy.cpp --emit=cuda --function=saxpy_gradient -o saxpy_gradient.cu
//   nvcc -O2 --shared -Xcompiler -fPIC saxpy_library.cu -ldl -o libsaxpy.so
// saxpy_torch.py calls it from PyTorch, saxpy_jax.cu and saxpy_jax.py from JAX. What they show by hand, lanternc writes for any
// function: --emit=torch or jax with --target=cuda.
#include "saxpy_gradient.cu"

/// On the stream: the sum of the squares of a x + y into numbers[0], its slope by a into numbers[1], and by each x into by_x.
/// x, y and by_x have n elements, in memory of the GPU or of the host. Null, or why it failed.
extern "C" const char* saxpy(cudaStream_t stream, float a, const float* x, const float* y, int64_t n, float* numbers, float* by_x) {
  const char* message;
  lt_f32_1d slope = {by_x, {n}};
  saxpy_gradient_try(a, {x, {n}}, {y, {n}}, &numbers[0], &numbers[1], &slope, stream, &message);
  return message;
}
