// What programs for a GPU bring along: memory of the device, the stream that orders the work, numbers that travel to
// the host, and failures of kernels. (codegen/cuda/kernel_text.cpp has the kernels.)
#include "lantern/codegen/c/prelude_text.hpp"

namespace lantern::codegen {

using enum PreludeGroup;

const std::vector<PreludePart>& device_parts();

const std::vector<PreludePart>& device_parts() {
  static const std::vector<PreludePart> parts = {
      {"before", functions, {}, R"c(/* How many of n iterations come before a share. */
static inline int64_t lt_before(int64_t n, int64_t shares, int64_t share) {
  return n / shares * share + (share < n % shares ? share : n % shares);
}
)c"},
      {"iterations", functions, {}, R"c(static inline int64_t lt_iterations(int64_t first, int64_t last) {
  return first < last ? last - first : 0;
}
)c"},
      // ---- calls of the CUDA run time
      {"gpu", functions, {"workspace"}, R"c(/* A call of CUDA that failed fails the call of the program. */
static void lt_gpu(lt_workspace* ws, cudaError_t status) {
  if (status != cudaSuccess) ws->fail(ws, cudaGetErrorString(status));
}

static void lt_gpu_copy(lt_workspace* ws, void* to, const void* from, int64_t bytes) {
  if (bytes > 0) lt_gpu(ws, cudaMemcpyAsync(to, from, (size_t)bytes, cudaMemcpyDefault, ws->device->stream));
}

/* After a launch. What the caller's own CUDA code left behind is not the program's failure. */
static void lt_launched(lt_workspace* ws) {
  const cudaError_t status = cudaPeekAtLastError();
  ++ws->device->launches;
  if (status != cudaSuccess && (int)status != ws->device->pending) lt_gpu(ws, cudaGetLastError());
}
)c"},
      {"gpu_start", functions, {"gpu", "put"}, R"c(/* Before a call: on the first one, what all calls need. */
static void lt_gpu_start(lt_workspace* ws) {
  lt_device* device = ws->device;
  if (!device->control) {
    int number = 0;
    const cudaError_t missing = cudaGetDevice(&number);
    if (missing != cudaSuccess) {
      lt_put(ws, lt_put(ws, ws->message, "this function runs on a GPU, and there is none: "), cudaGetErrorString(missing));
      ws->fail(ws, ws->message);
    }
    lt_gpu(ws, cudaDeviceGetAttribute(&device->processors, cudaDevAttrMultiProcessorCount, number));
    lt_gpu(ws, cudaMallocHost((void**)&device->staging, LT_STAGING));
    lt_control* control = 0;
    lt_gpu(ws, cudaMalloc((void**)&control, sizeof(lt_control)));
    lt_gpu(ws, cudaMemsetAsync(control, 0, sizeof(lt_control), device->stream));
    lt_gpu(ws, cudaMemsetAsync(&control->failure.iteration, 0xff, 8, device->stream));
    device->control = control;
  }
  device->pending = cudaPeekAtLastError();
  device->staged = 64;
  ws->hosted_count = 0;
}
)c"},
      {"await", functions, {"gpu"}, R"c(/* Waits until the stream has done all that it was given. What failed first in a kernel fails here. */
static void lt_await(lt_workspace* ws) {
  lt_device* device = ws->device;
  const unsigned long long* iteration = (const unsigned long long*)device->staging;
  if (device->checked) lt_gpu_copy(ws, device->staging, &device->control->failure.iteration, 8);
  lt_gpu(ws, cudaStreamSynchronize(device->stream));
  ++device->waits;
  device->staged = 64;
  if (!device->checked || *iteration == ~0ull) return;
  device->checked = 0;
  lt_gpu(ws, cudaMemcpy(ws->message, device->control->failure.message, sizeof ws->message, cudaMemcpyDeviceToHost));
  /* Threads that failed have left before they could say that their block has ended. */
  lt_gpu(ws, cudaMemsetAsync(&device->control->failure.iteration, 0xff, 8, device->stream));
  lt_gpu(ws, cudaMemsetAsync(&device->control->ended, 0, sizeof device->control->ended, device->stream));
  ws->fail(ws, ws->message);
}
)c"},
      {"exchange", functions, {"gpu"}, R"c(/* Operations between ranks on the memory of the GPU (lantern/runtime/distributed/device.h): the memory's functions. */
static int lt_queue_copy(void* to, const void* from, int64_t bytes, void* stream) {
  return bytes > 0 ? (int)cudaMemcpyAsync(to, from, (size_t)bytes, cudaMemcpyDefault, (cudaStream_t)stream) : 0;
}
static int lt_queue_zero(void* to, int64_t bytes, void* stream) {
  return bytes > 0 ? (int)cudaMemsetAsync(to, 0, (size_t)bytes, (cudaStream_t)stream) : 0;
}
static int lt_queue_query(void* stream) { return (int)cudaStreamQuery((cudaStream_t)stream); }
static const char* lt_queue_words(int error) { return cudaGetErrorString((cudaError_t)error); }

typedef struct distributed_gpu {
  int (*copy)(void* to, const void* from, int64_t bytes, void* stream);
  int (*zero)(void* to, int64_t bytes, void* stream);
  int (*query)(void* stream);
  const char* (*words)(int error);
} distributed_gpu;
static const distributed_gpu lt_queue = {lt_queue_copy, lt_queue_zero, lt_queue_query, lt_queue_words};

extern "C" {
const char* distributed_gpu_enter(const char* place, const distributed_gpu* gpu, void* stream);
const char* distributed_gpu_exchange(const char* place, const distributed_gpu* gpu, void* stream, int32_t kind, int64_t comm,
                                     int32_t operation, int32_t reduction, int64_t a, int64_t b, int64_t n, const void* x,
                                     void* y);
const char* distributed_gpu_wait(const distributed_gpu* gpu, void* stream);
int distributed_gpu_of_rank(void);
}

static void lt_exchanged(lt_workspace* ws, const char* failure) {
  if (failure) ws->fail(ws, failure);
}
)c"},
      {"fetch", functions, {"await"}, R"c(/* Where a number of the device lies for the host, once the stream has been waited for. */
static const void* lt_fetch(lt_workspace* ws, const void* at, int64_t bytes) {
  if (ws->device->staged + 16 > LT_STAGING) ws->fail(ws, "too many numbers on their way to the host");
  char* to = ws->device->staging + ws->device->staged;
  ws->device->staged += 16;
  lt_gpu_copy(ws, to, at, bytes);
  return to;
}
)c"},
      {"original", functions, {"workspace"}, R"c(/* Where an element of an argument lies in the caller's memory; null where only the GPU has it. */
static const void* lt_original(const lt_workspace* ws, const void* at) {
  for (int i = 0; i < ws->hosted_count; ++i) {
    const int64_t offset = (const char*)at - ws->hosted[i].copy;
    if (offset >= 0 && offset < ws->hosted[i].bytes) return ws->hosted[i].original + offset;
  }
  return 0;
}
)c"},
      {"K:read", functions, {"fetch", "original"}, R"c(/* A number of the device; waits for the GPU, unless the caller has it. */
static $T lt_read_$K(lt_workspace* ws, const $T* at) {
  const void* original = lt_original(ws, at);
  if (original) return *(const $T*)original;
  const void* number = lt_fetch(ws, at, sizeof($T));
  lt_await(ws);
  return *(const $T*)number;
}
)c"},
      {"failure", functions, {"gpu"}, R"c(/* Where the iterations of a kernel say why they failed, and what comes before all of theirs. */
static lt_failure* lt_failure_of(lt_workspace* ws) {
  ws->device->checked = 1;
  return &ws->device->control->failure;
}
static unsigned long long lt_order_of(const lt_workspace* ws) { return ws->device->launches << 44; }
)c"},
      // ---- memory of the device: an arena, whose book-keeping is the host's
      {"device_mark", functions, {"workspace"}, R"c(/* A position in the device's memory to go back to. */
typedef struct {
  lt_device_chunk* chunk;
  char* top;
  char* end;
  lt_device_piece* unused;
} lt_device_position;

static void lt_device_drop(lt_device* device, lt_device_piece* piece) {
  while (piece) {
    lt_device_piece* next = piece->next;
    piece->next = device->spare;
    device->spare = piece;
    piece = next;
  }
}

static lt_device_position lt_device_mark(lt_workspace* ws) {
  lt_device* device = ws->device;
  lt_device_position mark = {device->chunk, device->top, device->end, device->unused};
  device->unused = 0;
  return mark;
}

static void lt_device_release(lt_workspace* ws, lt_device_position mark) {
  lt_device* device = ws->device;
  lt_device_drop(device, device->unused);
  device->chunk = mark.chunk;
  device->top = mark.top;
  device->end = mark.end;
  device->unused = 0;
}

static void lt_device_leave(lt_workspace* ws, lt_device_position mark) {
  lt_device_release(ws, mark);
  ws->device->unused = mark.unused;
}
)c"},
      {"device_allocate", functions, {"gpu"}, R"c(/* Memory of the device, at addresses divisible by 256. */
static char* lt_device_allocate_chunk(lt_workspace* ws, int64_t bytes) {
  lt_device* device = ws->device;
  lt_device_chunk* next = device->chunk ? device->chunk->next : device->first;
  if (!next || next->capacity < bytes) {
    int64_t capacity = device->chunk ? 2 * device->chunk->capacity : (int64_t)1 << 22;
    if (capacity < bytes) capacity = bytes;
    lt_device_chunk* fresh = (lt_device_chunk*)malloc(sizeof(lt_device_chunk));
    if (!fresh) ws->fail(ws, "out of memory");
    fresh->data = 0;
    cudaError_t status = cudaMalloc((void**)&fresh->data, (size_t)capacity);
    if (status == cudaErrorMemoryAllocation && capacity > bytes) {
      (void)cudaGetLastError();
      capacity = bytes;
      status = cudaMalloc((void**)&fresh->data, (size_t)capacity);
    }
    if (status != cudaSuccess) {
      (void)cudaGetLastError();
      free(fresh);
      ws->fail(ws, status == cudaErrorMemoryAllocation ? "out of memory on the GPU" : cudaGetErrorString(status));
    }
    fresh->next = next;
    fresh->capacity = capacity;
    if (device->chunk) device->chunk->next = fresh;
    else device->first = fresh;
    ++device->allocations;
    next = fresh;
  }
  device->chunk = next;
  device->top = next->data + bytes;
  device->end = next->data + next->capacity;
  return next->data;
}

static void* lt_device_allocate_at_end(lt_workspace* ws, int64_t bytes) {
  lt_device* device = ws->device;
  if (device->end - device->top < bytes || !device->top) return lt_device_allocate_chunk(ws, bytes);
  char* data = device->top;
  device->top += bytes;
  return data;
}

/* The smallest unused piece that is large enough, else new memory. */
static void* lt_device_allocate(lt_workspace* ws, int64_t bytes) {
  lt_device* device = ws->device;
  bytes = (bytes + 255) / 256 * 256;
  lt_device_piece** best = 0;
  for (lt_device_piece** at = &device->unused; bytes > 0 && *at; at = &(*at)->next)
    if ((*at)->bytes >= bytes && (!best || (*at)->bytes < (*best)->bytes)) best = at;
  if (!best) return lt_device_allocate_at_end(ws, bytes);
  lt_device_piece* piece = *best;
  piece->bytes -= bytes;
  char* data = piece->data + piece->bytes;
  if (piece->bytes == 0) {
    *best = piece->next;
    piece->next = device->spare;
    device->spare = piece;
  }
  return data;
}
)c"},
      {"device_forget", functions, {"device_allocate"}, R"c(/* Memory that is read no more may be allocated again, where it is the arena's. */
static void lt_device_forget(lt_workspace* ws, void* data, int64_t bytes) {
  lt_device* device = ws->device;
  char* from = (char*)data;
  char* to = from + bytes;
  lt_device_chunk* chunk = device->first;
  while (chunk && (from < chunk->data || to > chunk->data + chunk->capacity)) chunk = chunk->next;
  if (!data || !chunk) return;
  for (int i = 0; i < ws->hosted_count; ++i) /* it is no copy of an argument any more */
    if (ws->hosted[i].copy < to && from < ws->hosted[i].copy + ws->hosted[i].bytes) ws->hosted[i--] = ws->hosted[--ws->hosted_count];
  from += (256 - (from - chunk->data) % 256) % 256;
  to += (256 - (to - chunk->data) % 256) % 256;
  if (from >= to) return;
  lt_device_piece* before = 0;
  lt_device_piece** at = &device->unused;
  for (; *at && (*at)->data < from; at = &(*at)->next) before = *at;
  lt_device_piece* piece = *at;
  if (piece && piece->data == to) { /* neighbours become one piece */
    piece->data = from;
    piece->bytes += to - from;
  } else if (before && before->data + before->bytes == from) {
    before->bytes += to - from;
    return;
  } else {
    piece = device->spare;
    if (piece) device->spare = piece->next;
    else piece = (lt_device_piece*)malloc(sizeof(lt_device_piece));
    if (!piece) ws->fail(ws, "out of memory");
    piece->data = from;
    piece->bytes = to - from;
    piece->next = *at;
    *at = piece;
  }
  if (before && before->data + before->bytes == piece->data) {
    before->bytes += piece->bytes;
    before->next = piece->next;
    piece->next = device->spare;
    device->spare = piece;
  }
}
)c"},
      {"device_reuse", functions, {"device_mark", "device_forget"}, R"c(/* Behind a loop: what was unused at its start may be allocated again. */
static void lt_device_reuse(lt_workspace* ws, lt_device_piece* pieces) {
  for (lt_device_piece* piece = pieces; piece; piece = piece->next) lt_device_forget(ws, piece->data, piece->bytes);
  lt_device_drop(ws->device, pieces);
}
)c"},
      {"device_compact", functions, {"device_mark", "device_allocate"}, R"c(static lt_device_position lt_device_here(const lt_workspace* ws) {
  lt_device_position here = {ws->device->chunk, ws->device->top, ws->device->end, 0};
  return here;
}

/* True where so much was allocated since a position that memory should be tidied. */
static int lt_device_crowded(const lt_workspace* ws, lt_device_position since, int64_t kept) {
  return ws->device->chunk != since.chunk || ws->device->top - since.top > 8 * kept + ((int64_t)1 << 22);
}

/* Forgets everything after a position but these pieces, which move down, in the order of their addresses. */
static void lt_device_compact(lt_workspace* ws, lt_device_position mark, int count, char** data, const int64_t* bytes) {
  lt_device* device = ws->device;
  lt_device_release(ws, mark);
  for (lt_device_chunk* chunk = mark.chunk ? mark.chunk : device->first; chunk; chunk = chunk->next) {
    char* from = chunk == mark.chunk ? mark.top : chunk->data;
    char* const last = chunk->data + chunk->capacity;
    for (;;) { /* the first piece from here on, with all that lie in the same units of 256 bytes */
      char* start = 0;
      for (int i = 0; i < count; ++i)
        if (data[i] >= from && data[i] < last && bytes[i] > 0 && (!start || data[i] < start)) start = data[i];
      if (!start) break;
      start -= (start - chunk->data) % 256;
      if (start < from) start = from;
      char* end = start + 256;
      for (int again = 1; again;) {
        again = 0;
        for (int i = 0; i < count; ++i)
          if (data[i] >= start && data[i] < end && data[i] + bytes[i] > end) {
            end = data[i] + bytes[i];
            end += (256 - (end - chunk->data) % 256) % 256;
            again = 1;
          }
      }
      if (end > last) end = last;
      const int64_t size = (end - start + 255) / 256 * 256;
      char* to = (char*)lt_device_allocate_at_end(ws, size);
      /* A copy within the device must not overlap: it goes in steps of the distance. */
      if (to < start && start - to < end - start)
        for (int64_t done = 0, step = start - to; done < end - start; done += step)
          lt_gpu_copy(ws, to + done, start + done, end - start - done < step ? end - start - done : step);
      else if (to != start)
        lt_gpu_copy(ws, to, start, end - start);
      for (int i = 0; i < count; ++i)
        if (data[i] >= start && data[i] < end) data[i] = to + (data[i] - start);
      from = end;
    }
  }
}
)c"},
      {"device_place", functions, {"workspace"}, R"c(/* Where the caller wants a result to lie, or `data`. */
static void* lt_device_place(lt_workspace* ws, int64_t result, void* data, int64_t bytes) {
  lt_target* target = ws->device->targets ? ws->device->targets + result : 0;
  if (!target || target->bytes != bytes) return data;
  target->bytes = -1;
  return target->data;
}
)c"},
      // ---- calls that return a status: codegen/c/status_text.cpp has what they share with those on the host
      {"gpu_attempt", functions, {"settle", "device_place", "device_allocate", "await"}, R"c(/* Kernels write into memory of the GPU alone. Whether a result belongs elsewhere. */
static int lt_aim_on_gpu(lt_workspace* ws, lt_attempt* attempt) {
  int elsewhere = 0;
  lt_aim(ws, attempt);
  for (int i = 0; i < attempt->result_count; ++i) {
    cudaPointerAttributes place;
    place.type = cudaMemoryTypeUnregistered;
    if (!attempt->results[i].place) continue;
    if (cudaPointerGetAttributes(&place, attempt->results[i].place) != cudaSuccess) (void)cudaGetLastError();
    if (place.type == cudaMemoryTypeDevice || place.type == cudaMemoryTypeManaged) continue;
    attempt->targets[attempt->results[i].number].bytes = -1;
    elsewhere = 1;
  }
  return elsewhere;
}

static int lt_attempted(lt_workspace* ws, lt_attempt* attempt, cudaStream_t stream, jmp_buf* place) {
  if (_setjmp(*place) != 0) return 1;
  lt_use_stream(ws, stream);
  const int elsewhere = lt_aim_on_gpu(ws, attempt);
  ws->device->targets = attempt->targets;
  attempt->entry(ws, attempt->in, attempt->out);
  lt_settle(ws, attempt);
  if (elsewhere || ws->device->checked) lt_await(ws); /* a kernel may have failed */
  ws->device->checked = 0;
  return 0;
}

static int lt_try(lt_workspace* ws, lt_attempt* attempt, cudaStream_t stream, const char** message) {
  jmp_buf place;
  lt_device* device = ws->device;
  jmp_buf* const outer = lt_landing;
  lt_landing = &place;
  const int failed = lt_attempted(ws, attempt, stream, &place);
  lt_landing = outer;
  device->targets = 0;
  if (failed && device->checked) { /* this call has failed: what its kernels say is not the next one's failure */
    cudaMemsetAsync(&device->control->failure.iteration, 0xff, 8, stream);
    cudaMemsetAsync(&device->control->ended, 0, sizeof device->control->ended, stream);
    device->checked = 0;
  }
  if (message) *message = failed ? ws->message : 0;
  return failed + attempt->misfit;
}
)c"},
      {"visible", functions, {"device_allocate"}, R"c(/* The elements of an argument on the device: where they are, or in a copy. */
static void* lt_visible(lt_workspace* ws, void* data, int64_t bytes) {
  cudaPointerAttributes place;
  place.type = cudaMemoryTypeUnregistered;
  if (bytes <= 0) return data;
  if (cudaPointerGetAttributes(&place, data) == cudaSuccess &&
      (place.type == cudaMemoryTypeDevice || place.type == cudaMemoryTypeManaged))
    return data;
  void* copy = lt_device_allocate(ws, bytes);
  const int pinned = place.type == cudaMemoryTypeHost;
  lt_gpu_copy(ws, copy, data, bytes);
  if (ws->hosted_count < (int)(sizeof ws->hosted / sizeof *ws->hosted)) {
    lt_hosted* one = &ws->hosted[ws->hosted_count++];
    one->copy = (const char*)copy;
    one->original = (const char*)data;
    one->bytes = bytes;
  }
  if (pinned) lt_gpu(ws, cudaStreamSynchronize(ws->device->stream)); /* the caller may change it after the call */
  return copy;
}
)c"},
      {"device_tape", functions, {"device_allocate"}, R"c(/* A stack on the device for the elements of tensors that the backward part needs. */
static char* lt_device_tape_room(lt_workspace* ws, int64_t number, int64_t bytes) {
  lt_device* device = ws->device;
  if (device->tape_count <= number) {
    const int64_t count = number + 1;
    device->tapes = (lt_tape*)realloc(device->tapes, (size_t)count * sizeof(lt_tape));
    if (!device->tapes) ws->fail(ws, "out of memory");
    for (int64_t i = device->tape_count; i < count; ++i) {
      device->tapes[i].data = 0;
      device->tapes[i].used = device->tapes[i].capacity = 0;
    }
    device->tape_count = count;
  }
  lt_tape* tape = device->tapes + number;
  if (tape->used + bytes > tape->capacity) {
    int64_t capacity = tape->used + bytes < 2 * tape->capacity ? 2 * tape->capacity : tape->used + bytes;
    char* fresh = 0;
    const cudaError_t status = cudaMalloc((void**)&fresh, (size_t)capacity);
    if (status != cudaSuccess) {
      (void)cudaGetLastError();
      ws->fail(ws, status == cudaErrorMemoryAllocation ? "out of memory on the GPU" : cudaGetErrorString(status));
    }
    lt_gpu_copy(ws, fresh, tape->data, tape->used);
    if (tape->data) lt_gpu(ws, cudaStreamSynchronize(device->stream));
    if (tape->data) lt_gpu(ws, cudaFree(tape->data));
    ++device->allocations;
    tape->data = fresh;
    tape->capacity = capacity;
  }
  return tape->data + tape->used;
}
)c"},
  };
  return parts;
}

}  // namespace lantern::codegen
