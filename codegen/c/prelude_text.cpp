// The prelude's memory management and failures; arithmetic kernels stand in kernel_text.cpp.
#include "lantern/codegen/c/prelude_text.hpp"

#include <unordered_map>

namespace lantern::codegen {

const std::vector<PreludePart>& contraction_parts();
const std::vector<PreludePart>& convolution_parts();
const std::vector<PreludePart>& windows_parts();
const std::vector<PreludePart>& panel_parts();
const std::vector<PreludePart>& device_contraction_parts();
const std::vector<PreludePart>& device_convolution_parts();
const std::vector<PreludePart>& device_storage_parts();
const std::vector<PreludePart>& device_kernel_parts();
const std::vector<PreludePart>& device_parts();
const std::vector<PreludePart>& kernel_parts();
const std::vector<PreludePart>& report_parts();
const std::vector<PreludePart>& status_parts();
const std::vector<PreludePart>& thread_parts();

namespace {

using enum PreludeGroup;

const std::vector<PreludePart>& memory_parts() {
  static const std::vector<PreludePart> parts = {
      {"integers", basics, {}, R"c(#ifdef __INT64_TYPE__
typedef __INT64_TYPE__ int64_t;
typedef __INT32_TYPE__ int32_t;
#else
typedef long int64_t;
typedef int int32_t;
#endif
)c"},
      {"workspace_name", types, {}, "typedef struct lt_workspace lt_workspace;\n"},
      // These repeat runtime/workspace.h, which explains the fields.
      {"memory", types, {"integers"}, R"c(typedef struct lt_tape {
  char* data;
  int64_t used;
  int64_t capacity;
} lt_tape;

typedef struct lt_chunk {
  struct lt_chunk* next;
  int64_t capacity;
} lt_chunk;

typedef struct lt_unused {
  struct lt_unused* next;
  int64_t bytes;
} lt_unused;
)c"},
      {"workspace", types, {"integers", "workspace_name", "memory"}, R"c(typedef struct lt_target {
  void* data;
  int64_t bytes;
} lt_target;

struct lt_workspace {
  lt_chunk* first;
  lt_chunk* chunk;
  char* top;
  char* end;
  lt_unused* unused;
  lt_tape* tapes;
  int64_t tape_count;
  lt_target* targets;
  char* stack_end;
  struct lt_panels* panels;
  void (*fail)(struct lt_workspace* ws, const char* message);
  void* (*resize)(void* memory, unsigned long bytes);
  void (*fork)(struct lt_workspace* ws, int64_t threads, int64_t count,
               void (*part)(struct lt_workspace* w, void* share), void* shares, int64_t bytes);
  void* host;
  char message[512];
};
)c"},
      {"panels", types, {"workspace"}, R"c(typedef struct lt_packed {
  const void* of;
  int64_t lines, line, k, step, across;
  void* memory;
  void* data;
} lt_packed;

typedef struct lt_panels {
  int64_t ranges;
  const char* const* begin;
  const char* const* end;
  int64_t count, capacity;
  int64_t next;
  lt_packed* packed;
} lt_panels;
)c"},
      {"memcpy", prototypes, {}, "void* memcpy(void* to, const void* from, unsigned long bytes);\n"},
      {"memmove", prototypes, {}, "void* memmove(void* to, const void* from, unsigned long bytes);\n"},
      {"memset", prototypes, {}, "void* memset(void* to, int byte, unsigned long bytes);\n"},
      {"realloc", prototypes, {}, "void* realloc(void* memory, unsigned long bytes);\n"},
      {"abort", prototypes, {}, "void abort(void);\n"},
      {"write", prototypes, {}, "long write(int file, const void* text, unsigned long bytes);\n"},
      // Failures. A message is composed in the workspace: no library is available.
      {"cold", types, {}, R"c(/* Of what happens seldom no copies are made where it may happen. */
#if (defined __CUDACC__ || defined __CUDACC_RTC__) && !defined LANTERN_LAUNCH_EMULATOR
#define LT_SELDOM __noinline__
#elif (defined __GNUC__ || defined __clang__) && !defined __TINYC__
#define LT_SELDOM __attribute__((cold, noinline))
#else
#define LT_SELDOM
#endif
/* Nothing has to be kept for the time after a failure: there is none. */
#if (defined __GNUC__ || defined __clang__) && !defined __TINYC__ && !defined __CUDACC__ && !defined __CUDACC_RTC__ && \
    !defined LANTERN_LAUNCH_EMULATOR
#define LT_FAILS __attribute__((cold, noinline, noreturn))
#define LT_NEVER __builtin_unreachable()
#else
#define LT_FAILS LT_SELDOM
#define LT_NEVER (void)0
#endif
)c"},
      {"rarely", types, {},
       R"c(#if (defined __GNUC__ || defined __clang__) && !defined __TINYC__ && !defined __CUDACC__ && !defined __CUDACC_RTC__ && \
    !defined LANTERN_LAUNCH_EMULATOR
#define LT_RARELY(x) __builtin_expect(x, 0)
#else
#define LT_RARELY(x) (x)
#endif
)c"},
      {"put", functions, {"workspace", "cold"}, R"c(/* Messages are composed in the workspace. */
LT_SELDOM static char* lt_put(lt_workspace* ws, char* at, const char* text) {
  while (*text && at < ws->message + sizeof ws->message - 1) *at++ = *text++;
  *at = 0;
  return at;
}
)c"},
      {"put_number", functions, {"put"}, R"c(LT_SELDOM static char* lt_put_number(lt_workspace* ws, char* at, int64_t number) {
  char digits[24];
  char* first = digits + sizeof digits - 1;
  unsigned long long rest = number < 0 ? 0ull - (unsigned long long)number : (unsigned long long)number;
  *first = 0;
  do {
    *--first = (char)('0' + (int)(rest % 10));
    rest /= 10;
  } while (rest);
  if (number < 0) *--first = '-';
  return lt_put(ws, at, first);
}
)c"},
      {"fail_where", functions, {"put"}, R"c(LT_FAILS static void lt_fail_where(lt_workspace* ws, char* at, const char* where) {
  if (*where) {
    at = lt_put(ws, at, " (");
    at = lt_put(ws, at, where);
    lt_put(ws, at, ")");
  }
  ws->fail(ws, ws->message);
  LT_NEVER;
}
)c"},
      {"fail_index", functions, {"put_number", "fail_where"},
       R"c(LT_FAILS static void lt_fail_index(lt_workspace* ws, int64_t i, int64_t size, const char* where) {
  char* at = lt_put_number(ws, lt_put(ws, ws->message, "index "), i);
  if (size > 0) {
    at = lt_put_number(ws, lt_put(ws, at, " is outside 0.."), size - 1);
  } else {
    at = lt_put(ws, at, " is outside an empty dimension");
  }
  lt_fail_where(ws, at, where);
}
)c"},
      {"fail_negative", functions, {"put_number", "fail_where"},
       R"c(LT_FAILS static void lt_fail_negative(lt_workspace* ws, int64_t size, const char* where) {
  lt_fail_where(ws, lt_put_number(ws, lt_put(ws, ws->message, "a tensor of negative size, "), size), where);
}
)c"},
      {"outside", functions, {}, R"c(/* Whether i is negative, or not below n: as one comparison. */
static inline int lt_outside(int64_t i, int64_t n) {
  return (unsigned long long)i >= (unsigned long long)n;
}
)c"},
      {"first_beyond", functions, {},
       R"c(/* The first of i, i + 1, ... i + count - 1, i + step, ... that is not below n, where i is. */
static inline int64_t lt_first_beyond(int64_t i, int64_t step, int64_t count, int64_t n) {
  const int64_t block = n - count < i ? i : i + (n - count - i) / step * step + step;
  return block < n ? n : block;
}
)c"},
      {"check_range", functions, {"fail_index", "first_beyond"},
       R"c(/* That first, first + step, ... below end, and after each count - 1 that follow, are below size. With step
   -1 they come in falling order. */
static inline void lt_check_range(lt_workspace* ws, int64_t first, int64_t end, int64_t step, int64_t count,
    int64_t size, const char* where) {
  if (first >= end) return;
  const int64_t last = step < 0 || first < 0 ? end - 1 : first + (end - 1 - first) / step * step;
  if (first >= 0 && last <= size - count) return;
  const int64_t falling = last >= size || last < 0 ? last : -1;
  const int64_t rising = first < 0 || first >= size ? first : lt_first_beyond(first, step, count, size);
  lt_fail_index(ws, step < 0 ? falling : rising, size, where);
}
)c"},
      {"check_run", functions, {"fail_index", "first_beyond"},
       R"c(/* The same for start + i, with i = first, first + step, ... below end; whatever wraps, there are end - first
   of them. */
static inline void lt_check_run(lt_workspace* ws, int64_t start, int64_t first, int64_t end, int64_t step,
    int64_t count, int64_t size, const char* where) {
  const unsigned long long from = (unsigned long long)start + (unsigned long long)first;
  const unsigned long long iterations = (unsigned long long)end - (unsigned long long)first, n = (unsigned long long)size;
  const unsigned long long stride = step < 0 ? 1 : (unsigned long long)step;
  const unsigned long long last = (iterations - 1) / stride * stride + (unsigned long long)count - 1;
  if (from < n && last < n - from) return;
  const unsigned long long highest = from + last;
  const int64_t falling = highest < n ? -1 : (int64_t)highest;
  const int64_t rising = from < n ? lt_first_beyond((int64_t)from, step, count, size) : (int64_t)from;
  lt_fail_index(ws, step < 0 ? falling : rising, size, where);
}
)c"},
      {"check_run_of_multiples", functions, {"fail_index"},
       R"c(/* The same for start + times * i, times being from 1 to a million. */
static inline void lt_check_run_of_multiples(lt_workspace* ws, int64_t start, int64_t times, int64_t first, int64_t end,
    int64_t step, int64_t count, int64_t size, const char* where) {
  const unsigned long long by = (unsigned long long)times, n = (unsigned long long)size;
  const unsigned long long from = (unsigned long long)start + by * (unsigned long long)first;
  const unsigned long long iterations = (unsigned long long)end - (unsigned long long)first;
  const unsigned long long stride = step < 0 ? 1 : (unsigned long long)step;
  const unsigned long long last = (iterations - 1) / stride * stride + (unsigned long long)count - 1;
  if (from < n && last < 1ull << 40 && by * last < n - from) return;
  if (from < n && last <= (n - 1 - from) / by) return;
  const unsigned long long highest = from + by * last, beyond = from + ((n - 1 - from) / by + 1) * by;
  const int64_t falling = highest < n ? (int64_t)from : (int64_t)highest;
  const int64_t rising = from < n ? (int64_t)beyond : (int64_t)from;
  lt_fail_index(ws, step < 0 ? falling : rising, size, where);
}
)c"},
      {"check_run_back", functions, {"fail_index"}, R"c(/* The same for start - times * i. */
static inline void lt_check_run_back(lt_workspace* ws, int64_t start, int64_t times, int64_t first, int64_t end,
    int64_t step, int64_t count, int64_t size, const char* where) {
  const unsigned long long by = (unsigned long long)times, n = (unsigned long long)size;
  const unsigned long long highest = (unsigned long long)start - by * (unsigned long long)first;
  const unsigned long long iterations = (unsigned long long)end - (unsigned long long)first;
  const unsigned long long stride = step < 0 ? 1 : (unsigned long long)step;
  const unsigned long long last = (iterations - 1) / stride * stride + (unsigned long long)count - 1;
  if (highest < n && last <= highest / by) return;
  const unsigned long long lowest = highest - by * last;
  const int64_t falling = highest < n ? (int64_t)(highest % by) - times : (int64_t)highest;
  const int64_t rising = lowest < n ? (int64_t)(lowest + ((n - 1 - lowest) / by + 1) * by) : (int64_t)lowest;
  lt_fail_index(ws, step < 0 ? rising : falling, size, where);
}
)c"},
      {"fail_lanes", functions, {"fail_index"}, R"c(/* Of so many indices one is not below size. */
LT_FAILS static void lt_fail_lanes(lt_workspace* ws, const int64_t* at, int64_t n, int64_t size, const char* where) {
  for (int64_t i = 0; i < n; ++i)
    if (at[i] < 0 || at[i] >= size) lt_fail_index(ws, at[i], size, where);
  LT_NEVER;
}
)c"},
      {"check_steps", functions, {"fail_index"}, R"c(/* That start, start + step, ..., so many of them, are below size. */
static inline void lt_check_steps(lt_workspace* ws, int64_t start, int64_t step, int64_t count, int64_t size,
    const char* where) {
  const unsigned long long n = (unsigned long long)size, by = (unsigned long long)step;
  const unsigned long long last = (unsigned long long)start + (unsigned long long)(count - 1) * by;
  if ((unsigned long long)start < n && last < n && step < 1ll << 40 && step > -(1ll << 40)) return;
  for (int64_t i = 0; i < count; ++i) {
    const unsigned long long at = (unsigned long long)start + (unsigned long long)i * by;
    if (at >= n) lt_fail_index(ws, (int64_t)at, size, where);
  }
}
)c"},
      {"fail_slice", functions, {"put_number", "fail_where"},
       R"c(LT_FAILS static void lt_fail_slice(lt_workspace* ws, int64_t lo, int64_t hi, int64_t size,
                          const char* where) {
  char* at = lt_put_number(ws, lt_put(ws, ws->message, "rows "), lo);
  at = lt_put_number(ws, lt_put(ws, at, " to "), hi);
  at = lt_put_number(ws, lt_put(ws, at, " (exclusive) are outside 0.."), size);
  lt_fail_where(ws, at, where);
}
)c"},
      {"fail_size", functions, {"put_number", "fail_where"},
       R"c(LT_FAILS static void lt_fail_size(lt_workspace* ws, const char* what, int dim, int64_t expected,
                         int64_t got, const char* where) {
  char* at = lt_put(ws, lt_put(ws, ws->message, what), ": expected size ");
  at = lt_put_number(ws, at, expected);
  at = lt_put_number(ws, lt_put(ws, at, " in dimension "), dim);
  at = lt_put_number(ws, lt_put(ws, at, ", got "), got);
  lt_fail_where(ws, at, where);
}
)c"},
      {"fail_shapes", functions, {"put_number", "fail_where"},
       R"c(LT_SELDOM static char* lt_put_shape(lt_workspace* ws, char* at, const int64_t* dim, int rank) {
  at = lt_put(ws, at, "[");
  for (int r = 0; r < rank; ++r) at = lt_put_number(ws, r ? lt_put(ws, at, ", ") : at, dim[r]);
  return lt_put(ws, at, "]");
}

LT_FAILS static void lt_fail_shapes(lt_workspace* ws, const char* what, const int64_t* a, int a_rank, const int64_t* b,
                           int b_rank, const char* where) {
  char* at = lt_put(ws, lt_put(ws, ws->message, what), ": shapes ");
  at = lt_put_shape(ws, at, a, a_rank);
  at = lt_put(ws, lt_put_shape(ws, lt_put(ws, at, " and "), b, b_rank), " do not fit");
  int ones = 0;
  for (int r = 1; r <= a_rank && r <= b_rank; ++r)
    ones += a[a_rank - r] != b[b_rank - r] && (a[a_rank - r] == 1 || b[b_rank - r] == 1);
  if (ones) at = lt_put(ws, at, "; what is 1 only as the program runs is repeated by expand");
  lt_fail_where(ws, at, where);
}
)c"},
      {"fail_numbers", functions, {"put_number"}, R"c(/* The text, with a number in the place of each {}. */
LT_FAILS static void lt_fail_numbers(lt_workspace* ws, const char* text, const int64_t* number, int numbers) {
  char* at = ws->message;
  char letter[2] = {0, 0};
  for (; *text; ++text) {
    if (text[0] == '{' && text[1] == '}' && numbers > 0) {
      at = lt_put_number(ws, at, *number++);
      --numbers;
      ++text;
    } else {
      letter[0] = *text;
      at = lt_put(ws, at, letter);
    }
  }
  ws->fail(ws, ws->message);
  LT_NEVER;
}
)c"},
      // The arena.
      {"mark", functions, {"workspace"},
       R"c(/* A position in the arena to go back to. What is unused by then stays so until the position is left. */
typedef struct {
  lt_chunk* chunk;
  char* top;
  char* end;
  lt_unused* unused;
} lt_position;

static lt_position lt_mark(lt_workspace* ws) {
  lt_position mark = {ws->chunk, ws->top, ws->end, ws->unused};
  ws->unused = 0;
  return mark;
}

static void lt_release(lt_workspace* ws, lt_position mark) {
  ws->chunk = mark.chunk;
  ws->top = mark.top;
  ws->end = mark.end;
  ws->unused = 0;
}

static void lt_leave(lt_workspace* ws, lt_position mark) {
  lt_release(ws, mark);
  ws->unused = mark.unused;
}
)c"},
      {"compact", functions, {"mark", "allocate", "memmove"}, R"c(static lt_position lt_here(const lt_workspace* ws) {
  lt_position here = {ws->chunk, ws->top, ws->end, 0};
  return here;
}

/* True where so much was allocated since a position that the arena should be tidied. */
static int lt_crowded(const lt_workspace* ws, lt_position since, int64_t kept) {
  int64_t used = ws->top - since.top;
  if (ws->chunk != since.chunk) {
    used = ws->top - (char*)(ws->chunk + 1) + (since.end - since.top);
    for (lt_chunk* chunk = since.chunk ? since.chunk->next : ws->first; chunk && chunk != ws->chunk; chunk = chunk->next)
      used += chunk->capacity;
  }
  return used > 8 * kept + 65536;
}

/* Forgets everything after a position but these pieces, which move down. They may overlap; those that lie
   elsewhere stay where they are. */
static void lt_compact(lt_workspace* ws, lt_position mark, int count, char** data, const int64_t* bytes) {
  lt_release(ws, mark);
  for (lt_chunk* chunk = mark.chunk ? mark.chunk : ws->first; chunk; chunk = chunk->next) {
    char* from = (char*)(chunk + 1);
    char* const last = from + 64 + chunk->capacity;
    if (chunk == mark.chunk) from = mark.top;
    for (;;) { /* the first piece from here on, with all that overlap it */
      char* start = 0;
      char* end = 0;
      for (int i = 0; i < count; ++i)
        if (data[i] >= from && data[i] < last && bytes[i] > 0 && (!start || data[i] < start)) start = data[i];
      if (!start) break;
      end = start + 1;
      for (int again = 1; again;) {
        again = 0;
        for (int i = 0; i < count; ++i)
          if (data[i] >= start && data[i] < end && data[i] + bytes[i] > end) {
            end = data[i] + bytes[i];
            again = 1;
          }
      }
      char* to = (char*)lt_allocate_at_end(ws, (end - start + 63) / 64 * 64);
      if (to != start) memmove(to, start, (unsigned long)(end - start));
      for (int i = 0; i < count; ++i)
        if (data[i] >= start && data[i] < end) data[i] = to + (data[i] - start);
      from = end;
    }
  }
}
)c"},
      {"allocate", functions, {"workspace", "cold"}, R"c(/* Memory from the arena, at addresses divisible by 64. */
LT_SELDOM static void* lt_allocate_chunk(lt_workspace* ws, int64_t bytes) {
  lt_chunk* next = ws->chunk ? ws->chunk->next : ws->first;
  if (!next || next->capacity < bytes) {
    int64_t capacity = ws->chunk ? 2 * ws->chunk->capacity : 65536;
    if (capacity < bytes) capacity = bytes;
    lt_chunk* fresh = (lt_chunk*)ws->resize(0, (unsigned long)capacity + sizeof(lt_chunk) + 64);
    if (!fresh) ws->fail(ws, "out of memory");
    fresh->next = next;
    fresh->capacity = capacity;
    if (ws->chunk) ws->chunk->next = fresh;
    else ws->first = fresh;
    next = fresh;
  }
  char* data = (char*)(next + 1);
  data += (64 - (unsigned long)data % 64) % 64;
  ws->chunk = next;
  ws->top = data + bytes;
  ws->end = data + next->capacity;
  return data;
}

static void* lt_allocate_at_end(lt_workspace* ws, int64_t bytes) {
  if (ws->end - ws->top < bytes || !ws->top) return lt_allocate_chunk(ws, bytes);
  char* data = ws->top;
  ws->top += bytes;
  return data;
}

/* The end of the smallest unused piece that is large enough; null where there is none. */
static void* lt_allocate_again(lt_workspace* ws, int64_t bytes) {
  lt_unused** best = 0;
  for (lt_unused** at = &ws->unused; *at; at = &(*at)->next)
    if ((*at)->bytes >= bytes && (!best || (*at)->bytes < (*best)->bytes)) best = at;
  if (!best) return 0;
  lt_unused* piece = *best;
  piece->bytes -= bytes;
  if (piece->bytes == 0) *best = piece->next;
  return (char*)piece + piece->bytes;
}

static void* lt_allocate(lt_workspace* ws, int64_t bytes) {
  bytes = (bytes + 63) / 64 * 64;
  void* data = ws->unused && bytes > 0 ? lt_allocate_again(ws, bytes) : 0;
  return data ? data : lt_allocate_at_end(ws, bytes);
}
)c"},
      {"forget", functions, {"allocate"},
       R"c(/* Memory that nobody reads any more may be allocated again, where it is the arena's. */
static void lt_forget(lt_workspace* ws, void* data, int64_t bytes) {
  char* from = (char*)data;
  char* to = from + bytes;
  from += (64 - (unsigned long)from % 64) % 64;
  to += (64 - (unsigned long)to % 64) % 64;
  if (!data || from >= to) return;
  lt_chunk* chunk = ws->first;
  while (chunk && (from < (char*)(chunk + 1) || to > (char*)(chunk + 1) + 64 + chunk->capacity)) chunk = chunk->next;
  if (!chunk) return;
  lt_unused** before = 0;
  lt_unused** at = &ws->unused;
  for (; *at && (char*)*at < from; at = &(*at)->next) before = at;
  lt_unused* next = *at;
  if ((char*)next == to) { /* neighbours become one piece */
    to += next->bytes;
    next = next->next;
  }
  if (before && (char*)*before + (*before)->bytes == from) {
    from = (char*)*before;
    at = before;
  }
  *at = next;
  if (to == ws->top) {
    ws->top = from;
  } else {
    lt_unused* piece = (lt_unused*)from;
    piece->next = next;
    piece->bytes = to - from;
    *at = piece;
  }
}
)c"},
      {"lies_in", functions, {"integers"}, R"c(/* Whether data is memory of these bytes. */
static inline int lt_lies_in(const void* data, const void* whole, int64_t bytes) {
  return (const char*)data >= (const char*)whole && (const char*)data < (const char*)whole + bytes;
}
)c"},
      {"copy_outside", functions, {"integers", "memcpy"},
       R"c(/* Copies n elements but for rows that are written next: box holds the first element, the length of a row, and for
 * each of so many levels the number of rows and the distance from one to the next. */
static void lt_copy_outside(void* to, const void* from, int64_t n, int64_t bytes, const int64_t* box, int levels) {
  int64_t done = 0, at[8] = {0};
  int more = box[1] >= 16 && levels <= 8;
  for (int i = 0; i < levels; ++i) more = more && box[2 + 2 * i] > 0;
  while (more) {
    unsigned long long start = (unsigned long long)box[0];
    for (int i = 0; i < levels; ++i) start += (unsigned long long)at[i] * (unsigned long long)box[3 + 2 * i];
    const int64_t row = (int64_t)start;
    if (row < 0 || box[1] > n || row > n - box[1]) break;  /* the loop that follows raises an error */
    if (row > done)
      memcpy((char*)to + done * bytes, (const char*)from + done * bytes, (unsigned long)((row - done) * bytes));
    if (row + box[1] > done) done = row + box[1];
    more = 0;
    for (int i = levels; i-- > 0 && !more;) {
      more = ++at[i] < box[2 + 2 * i];
      if (!more) at[i] = 0;
    }
  }
  if (n > done) memcpy((char*)to + done * bytes, (const char*)from + done * bytes, (unsigned long)((n - done) * bytes));
}
)c"},
      {"reuse", functions, {"mark", "forget"},
       R"c(/* Behind a loop: what was unused at its start may be allocated again, with what it has left. */
static void lt_reuse(lt_workspace* ws, lt_unused* piece) {
  while (piece) {
    lt_unused* next = piece->next;
    lt_forget(ws, piece, piece->bytes);
    piece = next;
  }
}
)c"},
      {"deep", functions, {"workspace"}, R"c(/* Whether the stack has grown as far as it may. */
static inline int lt_deep(const lt_workspace* ws) {
  char here;
  return (long)&here < (long)ws->stack_end;
}
)c"},
      {"place", functions, {"workspace"}, R"c(/* Where the caller wants a result to lie, or `data`. */
static void* lt_place(lt_workspace* ws, int64_t result, void* data, int64_t bytes) {
  lt_target* target = ws->targets ? ws->targets + result : 0;
  if (!target || target->bytes != bytes) return data;
  target->bytes = -1;
  return target->data;
}
)c"},
      {"count", functions, {"workspace"},
       R"c(/* The number of elements of a tensor. Of one without elements the other sizes have limits all the same, so
   that no product of sizes wraps. */
static int64_t lt_count(lt_workspace* ws, const int64_t* dim, int rank) {
  int64_t n = 1;
  int empty = 0;
  for (int r = 0; r < rank; ++r) {
    if (dim[r] < 0) ws->fail(ws, "a tensor of negative size");
    if (dim[r] == 0) {
      empty = 1;
    } else {
      if (n > ((int64_t)1 << 50) / dim[r]) ws->fail(ws, "out of memory");
      n *= dim[r];
    }
  }
  return empty ? 0 : n;
}
)c"},
      // Tapes.
      {"grow_tape", functions, {"workspace", "cold"},
       R"c(/* Room for at least so many bytes: exactly that in a tape that is empty, else a good deal more. */
LT_SELDOM static void lt_grow_tape(lt_workspace* ws, lt_tape* tape, int64_t bytes) {
  int64_t capacity = (bytes + 4095) / 4096 * 4096;
  if (tape->used > 0 && capacity < 2 * tape->capacity) capacity = 2 * tape->capacity;
  char* data = (char*)ws->resize(tape->data, (unsigned long)capacity);
  if (!data) ws->fail(ws, "out of memory");
  tape->data = data;
  tape->capacity = capacity;
}
)c"},
      {"leave_tape", functions, {"workspace"}, R"c(/* A loop that had the top of the tape in a variable gives it back. */
static void lt_leave_tape(lt_workspace* ws, int64_t number, char* top) {
  ws->tapes[number].used = top - ws->tapes[number].data;
}
)c"},
      {"fetch_below", functions, {"integers"},
       R"c(/* Records of several cache lines are read from the last to the first, each from its start: machines do not
   see that coming. Asks for what is read a few iterations from now. */
static inline void lt_fetch_below(const void* record, int64_t bytes) {
  const char* p = (const char*)record - 4096;
  for (int64_t i = 64; i <= bytes; i += 64) __builtin_prefetch(p - i);
}
)c"},
      {"require_tapes", functions, {"workspace"}, R"c(static void lt_require_tapes(lt_workspace* ws, int64_t count) {
  if (ws->tape_count >= count) return;
  lt_tape* tapes = (lt_tape*)ws->resize(ws->tapes, (unsigned long)count * sizeof(lt_tape));
  if (!tapes) ws->fail(ws, "out of memory");
  for (int64_t i = ws->tape_count; i < count; ++i) {
    tapes[i].data = 0;
    tapes[i].used = tapes[i].capacity = 0;
  }
  ws->tapes = tapes;
  ws->tape_count = count;
}
)c"},
      // Stand-alone sources bring the workspace with them, one for each thread.
      {"own_workspace", functions, {"workspace", "realloc", "abort", "write"},
       R"c(/* Ends the program, unless the user has said what else to do. */
static void (*lt_handler)(const char* message);

static void lt_fail(lt_workspace* ws, const char* message) {
  unsigned long length = 0;
  (void)ws;
  if (lt_handler) lt_handler(message);
  while (message[length]) ++length;
  if (write(2, message, length) < 0 || write(2, "\n", 1) < 0) abort();
  abort();
}

static lt_workspace* lt_own_workspace(void) {
#if defined(__cplusplus)
  static thread_local lt_workspace ws;
#elif defined(__TINYC__)
  static lt_workspace ws;
#else
  static _Thread_local lt_workspace ws;
#endif
  ws.fail = lt_fail;
  ws.resize = realloc;
  ws.chunk = 0;
  ws.top = ws.end = 0;
  ws.unused = 0;
  for (int64_t i = 0; i < ws.tape_count; ++i) ws.tapes[i].used = 0;
  return &ws;
}
)c"},
      // The reference to a continuation in nested C++; it refers to the lambda, which outlives every call.
      {"cont", types, {}, R"c(template <class... A>
struct lt_cont {
  void (*code)(void*, A...) = nullptr;
  void* lambda = nullptr;
  lt_cont() = default;
  lt_cont(void (*c)(void*, A...), void* captured) : code(c), lambda(captured) {}
  lt_cont(const lt_cont&) = default;
  lt_cont(lt_cont&) = default;
  lt_cont& operator=(const lt_cont&) = default;
  template <class F>
  lt_cont(F& f) : code([](void* self, A... a) { (*static_cast<F*>(self))(a...); }), lambda(&f) {}
  void operator()(A... a) const { code(lambda, a...); }
};
)c"},
  };
  return parts;
}

}  // namespace

const PreludePart* prelude_part(std::string_view name) {
  static const auto index = [] {
    std::unordered_map<std::string_view, const PreludePart*> map;
    for (const auto* table : {&memory_parts(), &kernel_parts(), &panel_parts(), &contraction_parts(), &convolution_parts(), &windows_parts(), &report_parts(),
                              &status_parts(), &thread_parts(), &device_parts(), &device_kernel_parts(), &device_contraction_parts(),
                              &device_convolution_parts(), &device_storage_parts()})
      for (const PreludePart& part : *table) map.emplace(part.name, &part);
    return map;
  }();
  const auto it = index.find(name);
  return it == index.end() ? nullptr : it->second;
}

}  // namespace lantern::codegen
