/* The memory of generated code, as plain C: the layout that generated code and its host agree on.
 *
 * Generated text includes no header, so codegen/c/prelude.cpp repeats these structures; a test compares the two.
 */
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A stack of saved values; its memory grows by `resize` and is kept from call to call. */
typedef struct lt_tape {
  char* data;
  int64_t used;
  int64_t capacity;
} lt_tape;

/* A piece of the arena. Chunks never move, so tensors stay where they are while the arena grows. */
typedef struct lt_chunk {
  struct lt_chunk* next;
  int64_t capacity; /* bytes that follow this header, counted from the first address divisible by 64 */
} lt_chunk;

/* A piece of the arena that nobody needs any more; it begins with this. They stand in the order of their addresses. */
typedef struct lt_unused {
  struct lt_unused* next;
  int64_t bytes; /* with these, a multiple of 64 */
} lt_unused;

/* Where the caller wants a tensor among the results to lie, and how many bytes there are; -1 once it is used.
 */
typedef struct lt_target {
  void* data;
  int64_t bytes;
} lt_target;

/* A constant matrix, packed for products: `lines` vectors of k numbers, `across` of them side by side. */
typedef struct lt_packed {
  const void* of;
  int64_t lines, line, k, step, across; /* line, step: the distances of lines, and of numbers of one, in memory */
  void* memory;                         /* of `resize` */
  void* data;
} lt_packed;

/* Numbers that are the same in every call, and what calls have packed of them for the next ones. The caller owns all
 * (runtime/panels.hpp).
 */
typedef struct lt_panels {
  int64_t ranges; /* of memory; in the order of their addresses */
  const char* const* begin;
  const char* const* end;
  int64_t count, capacity;
  int64_t next; /* calls ask in the same order: where the search begins */
  lt_packed* packed;
} lt_panels;

typedef struct lt_workspace {
  lt_chunk* first;
  lt_chunk* chunk; /* the one in use; those after it are free */
  char* top;       /* the next free byte of `chunk`, always divisible by 64 */
  char* end;
  lt_unused* unused; /* what was allocated since the last position to go back to, and is free again */
  lt_tape* tapes;
  int64_t tape_count;
  lt_target* targets; /* one a result, or null: all lie in the arena */
  char* stack_end;    /* how far down a recursion may go; null: as far as it can */
  lt_panels* panels;  /* null: any number may change from call to call */
  void (*fail)(struct lt_workspace* ws, const char* message); /* does not return */
  void* (*resize)(void* memory, unsigned long bytes);         /* realloc */
  /* Calls part(w, share) for each of `count` shares of so many bytes, in up to so many threads; every thread
     has a workspace of its own, with nothing in it when a share begins. What fails in the first share that
     fails, fails in `ws`. */
  void (*fork)(struct lt_workspace* ws, int64_t threads, int64_t count,
               void (*part)(struct lt_workspace* w, void* share), void* shares, int64_t bytes);
  void* host;                                                 /* generated code leaves it alone */
  char message[512];                                          /* where generated code composes a message */
} lt_workspace;

/* A tensor, contiguous and row-major: one such structure per element kind and rank, named lt_f64_2d and so on.
 * Elements are double, float, int64_t, int32_t, or one byte for bool. A tensor of rank 0 has a `dim` it ignores.
 */
#define LT_TENSOR(name, element, rank)      \
  typedef struct {                          \
    element* data;                          \
    int64_t dim[(rank) > 0 ? (rank) : 1];   \
  } name

/* A tree, structure of arrays. Its fields are all eight bytes wide and stand in this order:
 *
 *   const int64_t* left;     children of every node by number, -1 where there is none
 *   const int64_t* right;
 *   const T* value0; ...     one array for each component of a node's value, by node number
 *   int64_t node;            the root of this tree; -1 is the empty tree
 */

/* What every entry point looks like: in[i] points to argument i (a scalar, a tensor or a tree structure),
 * out[i] to where result i goes. Tensors among the results point into the arena, into a target of the same
 * size, or into an argument's memory.
 */
typedef void lt_entry(lt_workspace* ws, const void* const* in, void* const* out);

/* For a C function that a program calls: ends the innermost call of generated code in this thread with
 * lantern::Error and this message (of at most 511 bytes). Does not return; no frame in between may own anything.
 * Outside of such calls it prints the message and ends the process.
 */
void lantern_fail(const char* message);

#ifdef __cplusplus
}
#endif
