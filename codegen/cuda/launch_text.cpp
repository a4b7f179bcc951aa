// What programs with kernels bring along: launches, memory that both sides see, failures of trips.
#include "lantern/codegen/c/prelude_text.hpp"

namespace lantern::codegen {

using enum PreludeGroup;

const std::vector<PreludePart>& launch_parts();

const std::vector<PreludePart>& launch_parts() {
  static const std::vector<PreludePart> parts = {
      {"kernel", types, {}, R"c(/* In a kernel: the number of the thread, and how many there are. */
#define LT_THREAD ((int64_t)blockIdx.x * blockDim.x + threadIdx.x)
#define LT_THREADS ((int64_t)gridDim.x * blockDim.x)
)c"},
      {"before", functions, {}, R"c(/* How many of n trips come before a share. */
static inline int64_t lt_before(int64_t n, int64_t shares, int64_t share) {
  return n / shares * share + (share < n % shares ? share : n % shares);
}
)c"},
      {"launch", functions, {"workspace"}, R"c(static inline int64_t lt_trips(int64_t first, int64_t last) {
  return first < last ? last - first : 0;
}

/* Blocks of 256 threads; a thread does more than one trip where there are many. */
static inline unsigned lt_blocks(int64_t n) {
  return n < 256 * 65536 ? (unsigned)((n + 255) / 256) : 65536;
}

/* Waits for a kernel. What failed in the first trip that failed, if any, fails here. */
static void lt_await(lt_workspace* ws) {
  cudaError_t status = cudaGetLastError();
  if (status == cudaSuccess) status = cudaDeviceSynchronize();
  if (status != cudaSuccess) ws->fail(ws, cudaGetErrorString(status));
  lt_failure* failure = ws->failure;
  if (!failure || failure->trip == ~0ull) return;
  memcpy(ws->message, failure->message, sizeof ws->message);
  failure->trip = ~0ull;
  ws->fail(ws, ws->message);
}
)c"},
      {"columns",
       functions,
       {"launch"},
       R"c(/* One thread at least: the loops that threads share out have others beside them. */
static inline int64_t lt_columns(int64_t first, int64_t last) {
  return first < last ? last - first : 1;
}
)c"},
      {"shares",
       functions,
       {},
       R"c(/* How many ranges of trips are added up by themselves: the same on every GPU. */
static inline int64_t lt_shares(int64_t trips) { return trips < 4096 ? trips : 4096; }
)c"},
      {"failure", functions, {"launch", "memset"}, R"c(/* Where the trips of a kernel say why they failed. */
static lt_failure* lt_failure_of(lt_workspace* ws) {
  if (ws->failure) return ws->failure;
  lt_failure* failure = (lt_failure*)ws->resize(0, sizeof *failure);
  if (!failure) ws->fail(ws, "out of memory");
  memset(failure, 0, sizeof *failure);
  failure->trip = ~0ull;
  return ws->failure = failure;
}
)c"},
      {"visible",
       functions,
       {"allocate"},
       R"c(/* The elements where the GPU sees them: where they are, or in a copy. */
static void* lt_visible(lt_workspace* ws, void* data, int64_t bytes) {
  cudaPointerAttributes place;
  if (bytes == 0) return data;
  if (cudaPointerGetAttributes(&place, data) == cudaSuccess && place.type == cudaMemoryTypeManaged) return data;
  (void)cudaGetLastError(); /* some versions call the host's own memory an error */
  void* copy = lt_allocate(ws, bytes);
  const cudaError_t status = cudaMemcpy(copy, data, (size_t)bytes, cudaMemcpyDefault);
  if (status != cudaSuccess) ws->fail(ws, cudaGetErrorString(status));
  return copy;
}
)c"},
  };
  return parts;
}

}  // namespace lantern::codegen
