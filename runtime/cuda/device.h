/* The GPU's side of a workspace, as plain C: the layout that programs for a GPU and their host agree on.
 *
 * Generated text repeats these structures (codegen/cuda/tensor_text.hpp); a test compares the two.
 */
#pragma once

#include <stdint.h>

#include "lantern/runtime/workspace.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A piece of the GPU's memory; those behind the one in use are free. */
typedef struct lt_device_chunk {
  struct lt_device_chunk* next;
  char* data;
  int64_t capacity;
} lt_device_chunk;

/* A part of such memory that is free again; they stand in the order of their addresses. */
typedef struct lt_device_piece {
  struct lt_device_piece* next;
  char* data;
  int64_t bytes;
} lt_device_piece;

/* What cuBLAS is called by begins so. */
typedef struct lt_blas_handle {
  void* handle;
  int (*destroy)(void* handle);
  void* room; /* memory of the GPU */
} lt_blas_handle;

/* How cuDNN computes one kind of convolution: its descriptors, and what tells it from others. */
#define LT_DNN_DESCRIPTORS 128
#define LT_DNN_KEY 32
typedef struct lt_dnn_plan {
  struct lt_dnn_plan* next;
  void* way; /* its execution plan; null: it has none that may be used */
  int count;
  void* descriptors[LT_DNN_DESCRIPTORS];
  int64_t key[LT_DNN_KEY];
} lt_dnn_plan;

/* What cuDNN is called by begins so. */
typedef struct lt_dnn_handle {
  void* handle;
  int (*destroy)(void* handle);
  void* room;
  lt_dnn_plan* plans;
  int (*drop)(void* descriptor);
} lt_dnn_handle;

/* The GPU for one thread of the host. */
typedef struct lt_device {
  lt_device_chunk *first, *chunk;
  char *top, *end;
  lt_device_piece *unused, *spare;
  lt_tape* tapes;
  int64_t tape_count;
  lt_target* targets;
  void* stream;  /* a cudaStream_t */
  void* control; /* on the GPU: what kernels tell the host and each other */
  char* staging; /* numbers on their way to the host */
  int64_t staged;
  int processors;
  int checked; /* a kernel that may fail was launched since the last look */
  int pending; /* an error of CUDA that was there before the call */
  void* blas;  /* cuBLAS, where it was found */
  int no_blas;
  void* dnn; /* cuDNN */
  int no_dnn;
  int (*skip)(void); /* whether a graph holds what is about to be queued; null: there are no graphs */
  unsigned long long launches, waits; /* of the last call: kernels and products; how often the host waited */
  unsigned long long allocations;     /* of memory of the GPU, since the thread began */
} lt_device;

#ifdef __cplusplus
}
#endif
