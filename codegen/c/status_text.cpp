// The prelude's calls that return a status where others end the process, for stand-alone sources.
#include "lantern/codegen/c/prelude_text.hpp"

namespace lantern::codegen {

using enum PreludeGroup;

const std::vector<PreludePart>& status_parts();

const std::vector<PreludePart>& status_parts() {
  static const std::vector<PreludePart> parts = {
      // <setjmp.h> without the header. A jmp_buf takes 200 bytes on x86-64, 312 on AArch64.
      {"setjmp", prototypes, {}, R"c(__attribute__((returns_twice)) int lt_setjmp(void* place) __asm__("_setjmp");
__attribute__((noreturn)) void lt_longjmp(void* place, int value) __asm__("longjmp");
)c"},
      {"pthread_key", prototypes, {}, R"c(int pthread_key_create(unsigned* key, void (*destroy)(void* value));
int pthread_key_delete(unsigned key);
int pthread_setspecific(unsigned key, const void* value);
void free(void* memory);
)c"},
      {"at_thread_end", functions, {"workspace", "pthread_key", "thread_local"},
       R"c(/* The memory of a thread's workspace is freed when the thread ends. */
static unsigned lt_thread_key;
static int lt_has_thread_key;
static LT_THREAD_LOCAL int lt_is_freed_at_end;

static void lt_free_workspace(void* value) {
  lt_workspace* ws = (lt_workspace*)value;
  lt_chunk* chunk = ws->first;
  while (chunk) {
    lt_chunk* next = chunk->next;
    free(chunk);
    chunk = next;
  }
  for (int64_t i = 0; i < ws->tape_count; ++i) free(ws->tapes[i].data);
  free(ws->tapes);
  ws->first = ws->chunk = 0;
  ws->top = ws->end = 0;
  ws->tapes = 0;
  ws->tape_count = 0;
  lt_is_freed_at_end = 0;
}

__attribute__((constructor)) static void lt_make_thread_key(void) {
  lt_has_thread_key = pthread_key_create(&lt_thread_key, lt_free_workspace) == 0;
}

__attribute__((destructor)) static void lt_delete_thread_key(void) {
  if (lt_has_thread_key) pthread_key_delete(lt_thread_key);
}

static void lt_free_at_thread_end(lt_workspace* ws) {
  if (lt_is_freed_at_end || !lt_has_thread_key) return;
  lt_is_freed_at_end = pthread_setspecific(lt_thread_key, ws) == 0;
}
)c"},
      {"thread_local", basics, {}, R"c(#if defined(__cplusplus)
#define LT_THREAD_LOCAL thread_local
#elif defined(__TINYC__)
#define LT_THREAD_LOCAL
#else
#define LT_THREAD_LOCAL _Thread_local
#endif
)c"},
      {"operands", functions, {"workspace", "fail_size", "count", "memcpy"},
       R"c(/* A tensor of a call that returns a status: an argument, or a result, with the memory that the caller gave for it. */
typedef struct lt_operand {
  int number; /* among the arguments or the results */
  int rank;
  int64_t element; /* bytes */
  void* tensor;    /* the pointer to its elements, then its sizes */
  const void* place;
  const int64_t* shape; /* of that memory */
} lt_operand;

typedef struct lt_attempt {
  void (*entry)(lt_workspace* ws, const void* const* in, void* const* out);
  const void* const* in;
  void* const* out;
  const lt_operand* arguments;
  int argument_count;
  const lt_operand* results;
  int result_count;
  lt_target* targets; /* one for each result, a number too */
  int misfit;         /* a result does not fit its memory */
} lt_attempt;

static char* lt_elements(const lt_operand* x) {
  char* data;
  memcpy(&data, x->tensor, sizeof data);
  return data;
}

static const int64_t* lt_sizes(const lt_operand* x) {
  return (const int64_t*)(const void*)((const char*)x->tensor + sizeof(void*));
}

static int lt_overlap(const char* a, int64_t a_bytes, const char* b, int64_t b_bytes) {
  return a < b + b_bytes && b < a + a_bytes;
}

/* A result is computed in its caller's memory where that holds no argument. */
static void lt_aim(lt_workspace* ws, lt_attempt* attempt) {
  for (int i = 0; i < attempt->result_count; ++i) {
    const lt_operand* result = &attempt->results[i];
    lt_target* target = &attempt->targets[result->number];
    if (!result->place) continue;
    const int64_t bytes = lt_count(ws, result->shape, result->rank) * result->element;
    int disjoint = 1;
    for (int k = 0; k < attempt->argument_count; ++k) {
      const lt_operand* x = &attempt->arguments[k];
      const int64_t size = lt_count(ws, lt_sizes(x), x->rank) * x->element;
      disjoint &= !lt_overlap((const char*)result->place, bytes, lt_elements(x), size);
    }
    if (!disjoint) continue;
    target->data = (void*)(unsigned long)result->place;
    target->bytes = bytes;
  }
}

/* A result has the shape of its caller's memory. */
static void lt_fit(lt_workspace* ws, lt_attempt* attempt, int of, int rank, const int64_t* dim, const int64_t* shape) {
  for (int r = 0; r < rank; ++r) {
    if (dim[r] == shape[r]) continue;
    char what[24] = "result ";
    int digits = 1, number = of + 1;
    for (int rest = number; rest > 9; rest /= 10) ++digits;
    for (int at = 7 + digits; at-- > 7; number /= 10) what[at] = (char)('0' + number % 10);
    attempt->misfit = 1;
    lt_fail_size(ws, what, r, dim[r], shape[r], "");
  }
}
)c"},
      {"bring", functions, {"allocate", "memmove"},
       R"c(static void* lt_spare(lt_workspace* ws, int64_t bytes) { return lt_allocate(ws, bytes); }
static void lt_bring(lt_workspace* ws, void* to, const void* from, int64_t bytes) {
  (void)ws;
  memmove(to, from, (unsigned long)bytes);
}
)c"},
      {"settle", functions, {"operands", "bring"}, R"c(/* What was computed elsewhere is copied to its caller's memory. */
static void lt_settle(lt_workspace* ws, lt_attempt* attempt) {
  for (int i = 0; i < attempt->result_count; ++i) {
    const lt_operand* result = &attempt->results[i];
    const int64_t* dim = lt_sizes(result);
    char* data = lt_elements(result);
    if (!result->place) continue;
    lt_fit(ws, attempt, result->number, result->rank, dim, result->shape);
    if (data == (const char*)result->place) continue;
    const int64_t bytes = lt_count(ws, dim, result->rank) * result->element;
    for (int k = 0; k < attempt->result_count; ++k) { /* it lies where another result belongs */
      const lt_operand* other = &attempt->results[k];
      if (k == i || !other->place) continue;
      const int64_t size = lt_count(ws, other->shape, other->rank) * other->element;
      if (!lt_overlap(data, bytes, (const char*)other->place, size)) continue;
      void* copy = lt_spare(ws, bytes);
      lt_bring(ws, copy, data, bytes);
      memcpy(result->tensor, &copy, sizeof copy);
      break;
    }
  }
  for (int i = 0; i < attempt->result_count; ++i) {
    const lt_operand* result = &attempt->results[i];
    char* data = lt_elements(result);
    if (!result->place || data == (const char*)result->place) continue;
    char* place = (char*)(unsigned long)result->place;
    lt_bring(ws, place, data, lt_count(ws, lt_sizes(result), result->rank) * result->element);
    memcpy(result->tensor, &place, sizeof place);
  }
}
)c"},
      {"attempt", functions, {"settle", "setjmp", "thread_local", "at_thread_end", "cold"},
       R"c(static LT_THREAD_LOCAL void* lt_landing;

/* Where a failure goes: back to lt_attempted, with the message in the workspace. */
LT_FAILS static void lt_land(lt_workspace* ws, const char* message) {
  if (message != ws->message) {
    unsigned long i = 0;
    for (; i + 1 < sizeof ws->message && message[i]; ++i) ws->message[i] = message[i];
    ws->message[i] = 0;
  }
  lt_longjmp(lt_landing, 1);
}

/* Nothing of this frame changes after lt_setjmp. */
LT_SELDOM static int lt_attempted(lt_workspace* ws, lt_attempt* attempt, void* place) {
  if (lt_setjmp(place) != 0) return 1;
  lt_aim(ws, attempt);
  attempt->entry(ws, attempt->in, attempt->out);
  lt_settle(ws, attempt);
  return 0;
}

static int lt_try(lt_workspace* ws, lt_attempt* attempt, const char** message) {
  int64_t place[64];
  void* const outer = lt_landing;
  lt_free_at_thread_end(ws);
  lt_landing = place;
  ws->fail = lt_land;
  ws->targets = attempt->targets;
  const int failed = lt_attempted(ws, attempt, place);
  lt_landing = outer;
  ws->targets = 0;
  ws->stack_end = 0;
  if (message) *message = failed ? ws->message : 0;
  return failed + attempt->misfit;
}
)c"},
      {"strided", functions, {"attempt"}, R"c(/* How a tensor of a call lies in its caller's memory. */
typedef struct lt_strided {
  int number; /* among the arguments or the results */
  int rank;
  int64_t element; /* bytes */
  char* data;
  const int64_t* shape; /* of data */
  const int64_t* stride;
  void* tensor; /* what the entry reads or writes, as in lt_operand */
  void* given;  /* of a result: the caller's structure */
} lt_strided;

typedef struct lt_strided_call {
  void (*entry)(lt_workspace* ws, const void* const* in, void* const* out);
  const lt_strided* arguments;
  int argument_count;
  const lt_strided* results;
  int result_count;
  lt_attempt* attempt;
} lt_strided_call;

static int lt_is_packed(const lt_strided* x) {
  int64_t size = 1;
  for (int r = x->rank; r-- > 0;) {
    if (x->shape[r] != 1 && x->stride[r] != size) return 0;
    size *= x->shape[r];
  }
  return 1;
}

static const void* lt_packed_place(const lt_strided* x) { return lt_is_packed(x) ? x->data : 0; }

/* Between elements with strides and packed ones, in row-major order. */
static void lt_move(const lt_strided* x, int64_t count, char* packed, int is_source) {
  const int last = x->rank - 1;
  const int64_t row = last < 0 ? 1 : x->shape[last], step = last < 0 ? 0 : x->stride[last] * x->element;
  for (int64_t done = 0; done < count; done += row) {
    char* at = x->data;
    int64_t rest = done / row;
    for (int r = last; r-- > 0; rest /= x->shape[r]) at += rest % x->shape[r] * x->stride[r] * x->element;
    for (int64_t k = 0; k < row; ++k, at += step, packed += x->element)
      memcpy(is_source ? at : packed, is_source ? packed : at, (unsigned long)x->element);
  }
}

static void lt_enter_strided(lt_workspace* ws, const void* const* in, void* const* out) {
  const lt_strided_call* call = (const lt_strided_call*)in[0];
  int copies = 0;
  for (int i = 0; i < call->argument_count; ++i) {
    const lt_strided* x = &call->arguments[i];
    const int64_t count = lt_count(ws, x->shape, x->rank);
    if (lt_is_packed(x)) continue;
    char* packed = (char*)lt_allocate(ws, count * x->element);
    lt_move(x, count, packed, 0);
    memcpy(x->tensor, &packed, sizeof packed);
  }
  call->entry(ws, in + 1, out);
  for (int i = 0; i < call->result_count; ++i) {
    const lt_strided* y = &call->results[i];
    const lt_operand* result = &call->attempt->results[i];
    if (y->data) lt_fit(ws, call->attempt, y->number, y->rank, lt_sizes(result), y->shape);
    copies |= y->data && !result->place;
  }
  for (int i = 0; copies && i < call->result_count; ++i) { /* what lies in an argument may be written over */
    const lt_operand* result = &call->attempt->results[i];
    const int64_t bytes = lt_count(ws, lt_sizes(result), result->rank) * result->element;
    char* data = lt_elements(result);
    for (int k = 0; k < call->argument_count; ++k) {
      const lt_operand* x = &call->attempt->arguments[k];
      if (!lt_overlap(data, bytes, lt_elements(x), lt_count(ws, lt_sizes(x), x->rank) * x->element)) continue;
      void* copy = lt_allocate(ws, bytes);
      memcpy(copy, data, (unsigned long)bytes);
      memcpy(result->tensor, &copy, sizeof copy);
      break;
    }
  }
  for (int i = 0; i < call->result_count; ++i) {
    const lt_strided* y = &call->results[i];
    const lt_operand* result = &call->attempt->results[i];
    const int64_t* dim = lt_sizes(result);
    char* data = lt_elements(result);
    if (y->data) {
      if (!result->place) lt_move(y, lt_count(ws, dim, y->rank), data, 1);
      continue;
    }
    const int rank = y->rank > 0 ? y->rank : 1;
    int64_t size = 1;
    int64_t* sizes = (int64_t*)(void*)((char*)y->given + sizeof data);
    memcpy(y->given, &data, sizeof data);
    for (int r = y->rank; r-- > 0; size *= dim[r]) {
      sizes[r] = dim[r];
      sizes[rank + r] = size;
    }
  }
}
)c"},
      {"getstack", prototypes, {}, R"c(unsigned long pthread_self(void);
int pthread_getattr_np(unsigned long thread, void* attributes);
int pthread_attr_getstack(const void* attributes, void** low, unsigned long* bytes);
int pthread_attr_destroy(void* attributes);
)c"},
      {"stack_end", functions, {"getstack", "thread_local"},
       R"c(/* How far down the stack of this thread a recursion may go; 0 on a stack of the caller's own, as that of a fibre. */
static char* lt_stack_end(void) {
  static LT_THREAD_LOCAL char *end, *top;
  long attributes[32];
  void* low = 0;
  unsigned long bytes = 0;
  if (!end) {
    if (pthread_getattr_np(pthread_self(), attributes) != 0) return 0;
    if (pthread_attr_getstack(attributes, &low, &bytes) == 0 && low) {
      end = (char*)low + 131072;
      top = (char*)low + bytes;
    }
    pthread_attr_destroy(attributes);
  }
  return (char*)attributes >= end && (char*)attributes < top ? end : 0;
}
)c"},
  };
  return parts;
}

}  // namespace lantern::codegen
