/* Communication between the processes of a program as plain C functions: what <lantern/distributed.hpp> calls by name,
 * and what emitted code of such programs is linked with.
 *
 * Processes are ranks of communicators, which are numbers; 0 is the world, all processes. `place` is the line of the
 * program, for messages. All functions end the call that they are part of by lantern_fail where ranks do not agree, where
 * one of them has ended, and where all wait for each other; without a program of Lantern's around them they print the
 * message and end the process.
 *
 * The engine is found by the first call (LANTERN_DISTRIBUTED): one process alone, or Open MPI, which is loaded then. */
#ifndef LANTERN_RUNTIME_DISTRIBUTED_KERNELS_H
#define LANTERN_RUNTIME_DISTRIBUTED_KERNELS_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
  distributed_all_reduce,
  distributed_reduce,          /* a: the root; elsewhere y becomes zeros */
  distributed_broadcast,       /* a: the root */
  distributed_gather,          /* a: the root; y: size x n, elsewhere zeros */
  distributed_all_gather,      /* y: size x n */
  distributed_scatter,         /* a: the root; x: size x n */
  distributed_reduce_scatter,  /* x: size x n */
  distributed_all_to_all,      /* x, y: size x n */
  distributed_scan,            /* over ranks up to this one */
  distributed_exclusive_scan,  /* over ranks before this one; of none the identity of the reduction */
  distributed_reverse_scan,    /* over ranks from this one on */
  distributed_reverse_exclusive_scan,
  distributed_send_receive,    /* x goes to rank a, y comes from rank b; -1: to, or from, no rank; y is then zeros */
};

/* The reduction, plus 4 times what the operation is for in derivatives, 0 where there is none. The roles there are 1 and 2,
 * value and cotangent, 3 and 4, primal and tangent; of nested derivatives the outer one's is added to 5 times the inner
 * one's, modulo 5^6. Ranks that do not agree in this do not agree. */
enum {
  distributed_sum,
  distributed_product,
  distributed_min,
  distributed_max,
  distributed_reductions,
  distributed_roles = 5,
  distributed_all_roles = 15625,
};

/* n elements, or size x n where it is said above, of x; all of y is written. */
#define DISTRIBUTED_EXCHANGE(T, S)                                                                            \
  void distributed_exchange_##S(const char* place, int64_t comm, int32_t operation, int32_t reduction, int64_t a, \
                                int64_t b, int64_t n, const T* x, T* y)
DISTRIBUTED_EXCHANGE(double, f64);
DISTRIBUTED_EXCHANGE(float, f32);
DISTRIBUTED_EXCHANGE(int64_t, i64);
DISTRIBUTED_EXCHANGE(int32_t, i32);
DISTRIBUTED_EXCHANGE(bool, bool);  /* min: and; max: or */

/* Rows of n elements that go to other ranks: send[r] of x to rank r, in the order of ranks; receive[r] of y come from it.
 * Rows of all ranks have as many elements. */
#define DISTRIBUTED_RAGGED(T, S)                                                                              \
  void distributed_ragged_##S(const char* place, int64_t comm, int64_t n, const int64_t* send,                \
                              const int64_t* receive, const T* x, T* y)
DISTRIBUTED_RAGGED(double, f64);
DISTRIBUTED_RAGGED(float, f32);
DISTRIBUTED_RAGGED(int64_t, i64);
DISTRIBUTED_RAGGED(int32_t, i32);
DISTRIBUTED_RAGGED(bool, bool);
/* What the others send to this rank. ranks: the length of both arrays; rows: the sum of send. */
void distributed_counts(const char* place, int64_t comm, int64_t ranks, int64_t rows, const int64_t* send,
                        int64_t* receive);

/* The sums over all rows of all ranks, rounded once. x: rows x n, y: n; ranks may have different numbers of rows. */
void distributed_exact_sum_f64(const char* place, int64_t comm, int64_t rows, int64_t n, const double* x, double* y);
void distributed_exact_sum_f32(const char* place, int64_t comm, int64_t rows, int64_t n, const float* x, float* y);

/* The halves of an exchange between all ranks: it begins, and goes on while the program computes; its result is there
 * when it is waited for by its number. x may change in between. */
#define DISTRIBUTED_START(T, S)                                                                               \
  int64_t distributed_start_##S(const char* place, int64_t comm, int32_t operation, int32_t reduction,        \
                                int64_t a, int64_t b, int64_t n, const T* x)
#define DISTRIBUTED_WAIT(T, S) void distributed_wait_##S(const char* place, int64_t number, T* y)
DISTRIBUTED_START(double, f64);
DISTRIBUTED_START(float, f32);
DISTRIBUTED_WAIT(double, f64);
DISTRIBUTED_WAIT(float, f32);

int64_t distributed_rank(const char* place, int64_t comm);
int64_t distributed_size(const char* place, int64_t comm);
/* "mpi" or "single" where the environment says nothing of the engine; before the first call that needs one. */
void distributed_prefer(const char* engine);
/* Returns 0 when all ranks of the communicator have called it. */
int64_t distributed_barrier(const char* place, int64_t comm);
/* A compiled function, or an operation by itself, ends: returns 0 when all ranks are known to have called the same operations until here, on each of
 * the communicators that were used. */
int64_t distributed_end(const char* place);
/* The communicator of the ranks that give the same colour, in the order of their keys, then of their ranks. */
int64_t distributed_split(const char* place, int64_t comm, int64_t colour, int64_t key);
/* dims, of which those that are 0 are chosen so that their product is the size, as near to each other as can be. */
void distributed_dims(const char* place, int64_t comm, int64_t count, int64_t* dims);

#ifdef __cplusplus
}
#endif

#endif
