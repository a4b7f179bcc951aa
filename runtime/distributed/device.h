/* Operations on the memory of a GPU, in the order of a stream: what programs for a GPU call (codegen/cuda), and what they
 * give for it. Each returns null, or the message of the error that ends the program's call.
 *
 * NCCL does them where it can be loaded (libnccl.so.2, or what LANTERN_NCCL names): queued on the stream, without a wait.
 * MPI tells the ranks from each other, hands out NCCL's ids, and compares what ranks call. Without NCCL an operation goes
 * through the host's memory by MPI. */
#ifndef LANTERN_RUNTIME_DISTRIBUTED_DEVICE_H
#define LANTERN_RUNTIME_DISTRIBUTED_DEVICE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A program's functions of CUDA. They return an error of CUDA, or 0. */
typedef struct distributed_gpu {
  int (*copy)(void* to, const void* from, int64_t bytes, void* stream);
  int (*zero)(void* to, int64_t bytes, void* stream);
  int (*query)(void* stream); /* 600: the stream has not done all that it was given. What a graph has captured is queued. */
  const char* (*words)(int error);
} distributed_gpu;

/* All ranks begin a call of the same program. The first time their communicators get ones of NCCL, and so does each that is
 * split off later. */
const char* distributed_gpu_enter(const char* place, const distributed_gpu* gpu, void* stream);
/* distributed_exchange_f64 and its like (kernels.h), but for scans. kind: 0 double, 1 float, 2 int64_t, 3 int32_t, 4 bool. */
const char* distributed_gpu_exchange(const char* place, const distributed_gpu* gpu, void* stream, int32_t kind, int64_t comm,
                                     int32_t operation, int32_t reduction, int64_t a, int64_t b, int64_t n, const void* x,
                                     void* y);
/* Before the host waits for the stream: returns when the stream has done what it was given, or when an operation in it
 * never will be. */
const char* distributed_gpu_wait(const distributed_gpu* gpu, void* stream);
/* The number of this rank among those on its machine; -1 where it is not known. */
int distributed_gpu_of_rank(void);

#ifdef __cplusplus
}
#endif

#endif
