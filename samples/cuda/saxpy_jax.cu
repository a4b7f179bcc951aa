// The gradient of saxpy.cpp as a call of XLA's, on JAX's stream.
//   nvcc -O2 -std=c++17 --shared -Xcompiler -fPIC -I $(python3 -c 'import jax; print(jax.ffi.include_dir())')
//        saxpy_jax.cu -ldl -o libsaxpy_jax.so
#include "saxpy_library.cu"
#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;
using Numbers = ffi::Buffer<ffi::F32>;

static ffi::Error saxpy_call(cudaStream_t stream, Numbers a, Numbers x, Numbers y, ffi::Result<Numbers> value,
                             ffi::Result<Numbers> by_a, ffi::Result<Numbers> by_x) {
  if (x.dimensions().size() != 1 || y.dimensions().size() != 1 || x.dimensions()[0] != y.dimensions()[0])
    return ffi::Error::InvalidArgument("saxpy: expected two vectors of one length");
  float factor = 0, numbers[2] = {};
  cudaError_t status = cudaMemcpyAsync(&factor, a.typed_data(), sizeof factor, cudaMemcpyDefault, stream);
  if (status == cudaSuccess) status = cudaStreamSynchronize(stream);
  if (status == cudaSuccess)
    if (const char* why = saxpy(stream, factor, x.typed_data(), y.typed_data(), x.dimensions()[0], numbers, by_x->typed_data()))
      return ffi::Error::Internal(why);
  if (status == cudaSuccess)
    status = cudaMemcpyAsync(value->typed_data(), &numbers[0], sizeof(float), cudaMemcpyDefault, stream);
  if (status == cudaSuccess)
    status = cudaMemcpyAsync(by_a->typed_data(), &numbers[1], sizeof(float), cudaMemcpyDefault, stream);
  return status == cudaSuccess ? ffi::Error::Success() : ffi::Error::Internal(cudaGetErrorString(status));
}

#ifdef SAXPY_OF_HOST /* arrays of JAX on the processor: they are copied to the GPU and back */
static ffi::Error saxpy_call_of_host(Numbers a, Numbers x, Numbers y, ffi::Result<Numbers> value, ffi::Result<Numbers> by_a,
                                     ffi::Result<Numbers> by_x) {
  return saxpy_call(nullptr, a, x, y, value, by_a, by_x);
}
#define SAXPY_CALL saxpy_call_of_host
#define SAXPY_STREAM
#else
#define SAXPY_CALL saxpy_call
#define SAXPY_STREAM .Ctx<ffi::PlatformStream<cudaStream_t>>()
#endif
XLA_FFI_DEFINE_HANDLER_SYMBOL(saxpy_jax, SAXPY_CALL,
                              ffi::Ffi::Bind() SAXPY_STREAM.Arg<Numbers>().Arg<Numbers>().Arg<Numbers>()
                                  .Ret<Numbers>().Ret<Numbers>().Ret<Numbers>());
