// The kernels that programs for a GPU bring along, and what kernels call.
#include "lantern/codegen/c/prelude_text.hpp"

namespace lantern::codegen {

using enum PreludeGroup;

const std::vector<PreludePart>& device_kernel_parts();

const std::vector<PreludePart>& device_kernel_parts() {
  static const std::vector<PreludePart> parts = {
      {"kernel", kernels, {}, R"c(/* In a kernel: the number of the thread in its grid, and how many there are. */
#define LT_THREAD ((int64_t)blockIdx.x * blockDim.x + threadIdx.x)
#define LT_THREADS ((int64_t)gridDim.x * blockDim.x)
#define LT_ROW ((int64_t)blockIdx.y * blockDim.y + threadIdx.y)
#define LT_ROWS ((int64_t)gridDim.y * blockDim.y)
)c"},
      {"reduce", kernels, {}, R"c(/* f over the x of all threads of a block, the same for each of them, in an order that the size of the block alone
   decides (shuffles within warps, then shared memory). Reads and writes of memory before it are done behind it. */
template <class T, class F>
static __device__ T lt_reduce(T x, F f) {
  __shared__ T parts[32];
  for (int step = 16; step > 0; step /= 2) x = f(x, (T)__shfl_xor_sync(0xffffffffu, x, step));
  x = (T)__shfl_sync(0xffffffffu, x, 0); /* of the zeros 0 and -0 threads may have either */
  __syncthreads();
  if (blockDim.x <= 32) return x;
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = x;
  __syncthreads();
  x = parts[0];
  for (unsigned i = 1; i < blockDim.x / 32; ++i) x = f(x, parts[i]);
  return x;
}
)c"},
      {"last_block", kernels, {}, R"c(/* Whether this block is the last one of its kernel to come here; then it sees what the others have written. */
static __device__ bool lt_last_block(unsigned* ended) {
  bool told = false; /* thread 0 may have failed, and be gone */
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    told = atomicAdd(ended, 1u) == gridDim.x - 1;
    if (told) *ended = 0;
    __threadfence();
  }
  const bool last = __syncthreads_or(told) != 0;
  __threadfence();
  return last;
}
)c"},
      // ---- shapes of launches
      {"blocks", functions, {"workspace"}, R"c(/* Blocks of 256 threads: as many as the GPU has room for at once; a thread does several iterations where there
   are more. */
static unsigned lt_blocks(const lt_workspace* ws, int64_t n) {
  const int64_t blocks = (n + 255) / 256, room = (int64_t)ws->device->processors * 8;
  return (unsigned)(blocks < room ? blocks : room);
}
)c"},
      {"grid", functions, {"workspace"}, R"c(/* Blocks of 256 threads over rows and columns. */
static dim3 lt_block_of(int64_t columns) {
  unsigned x = 8;
  while (x < 256 && x < columns) x *= 2;
  return dim3(x, 256 / x);
}

static dim3 lt_grid_of(const lt_workspace* ws, int64_t rows, int64_t columns) {
  const dim3 block = lt_block_of(columns);
  const int64_t room = (int64_t)ws->device->processors * 16, most = 65535;
  int64_t x = (columns + block.x - 1) / block.x, y = (rows + block.y - 1) / block.y;
  if (x > room) x = room;
  int64_t left = room / x > 0 ? room / x : 1;
  if (left > most) left = most;
  return dim3((unsigned)x, (unsigned)(y < left ? y : left));
}
)c"},
      {"index_check", types, {}, R"c(/* Indices from first to before end, of a dimension of that size. */
typedef struct lt_index_check {
  int64_t first, end, size;
  const char* where;
} lt_index_check;
)c"},
      {"check_indices", functions, {"index_check", "check_range"}, R"c(/* Before a launch, of all that its kernel accesses. */
static void lt_check_indices(lt_workspace* ws, const lt_index_check* checks, int n) {
  for (int i = 0; i < n; ++i) lt_check_range(ws, checks[i].first, checks[i].end, 1, 1, checks[i].size, checks[i].where);
}
)c"},
      {"row_threads", functions, {}, R"c(/* The threads of a block that works on a row of n. */
static unsigned lt_row_threads(int64_t n) {
  if (n <= 64) return 32;
  if (n <= 256) return 64;
  if (n <= 2048) return 128;
  return n <= 4096 ? 256 : 512;
}

static int64_t lt_longer(int64_t a, int64_t b) { return a < b ? b : a; }
static unsigned lt_row_blocks(int64_t rows) { return (unsigned)(rows < 0x7fffffff ? rows : 0x7fffffff); }
)c"},
      {"shares", functions, {}, R"c(/* How many blocks add up by themselves: the same on every GPU, so that sums have the same bits. */
static int64_t lt_shares(int64_t iterations, int64_t each, int64_t most) {
  const int64_t shares = (iterations + each - 1) / each;
  return shares < 1 ? 1 : shares < most ? shares : most;
}
)c"},
      {"part_shares", functions, {"shares"}, R"c(/* The same where each block has a tensor of so many elements to add to: at most 16 million elements in all. */
static int64_t lt_part_shares(int64_t iterations, int64_t elements) {
  const int64_t most = elements < 1 ? 264 : ((int64_t)1 << 24) / elements;
  return lt_shares(iterations, 4, most < 1 ? 1 : most < 264 ? most : 264);
}
)c"},
      {"by_key", functions, {"shares"}, R"c(/* Whether blocks own keys: where tensors for all of them would have over a million elements. */
static int64_t lt_most_shares(int64_t iterations) { return lt_shares(iterations, 4, 264); }
static int lt_by_key(int64_t iterations, int64_t elements) {
  const int64_t most = lt_most_shares(iterations);
  return most > 1 && elements > ((int64_t)1 << 20) / most;
}
)c"},
      {"owned_row", kernels, {"reduce", "by_key"}, R"c(/* The first row from one on whose key is this block's: each thread looks at a row. */
template <class F>
static __device__ int64_t lt_owned_row(int64_t row, int64_t rows, F key) {
  for (; row < rows; row += blockDim.x) {
    const int64_t mine = row + threadIdx.x;
    const bool owned = mine < rows && (unsigned long long)key(mine) % gridDim.x == blockIdx.x;
    const int64_t first = lt_reduce(owned ? mine : rows, [](int64_t x, int64_t y) { return x < y ? x : y; });
    if (first < rows) return first;
  }
  return rows;
}
)c"},
      // ---- whole tensors
      {"K:fill_kernel", kernels, {"kernel"}, R"c(LT_KERNEL void lt_fill_kernel_$K($T* to, int64_t n, $T value) {
  for (int64_t i = LT_THREAD; i < n; i += LT_THREADS) to[i] = value;
}
)c"},
      {"K:device_fill", functions, {"K:fill_kernel", "gpu", "blocks"}, R"c(static void lt_device_fill_$K(lt_workspace* ws, $T* to, int64_t n, $T value) {
  char bytes[sizeof value], zero = 0;
  memcpy(bytes, &value, sizeof value);
  for (unsigned i = 0; i < sizeof value; ++i) zero |= bytes[i];
  if (n <= 0) return;
  if (zero == 0) return lt_gpu(ws, cudaMemsetAsync(to, 0, (size_t)n * sizeof value, ws->device->stream));
  lt_fill_kernel_$K<<<lt_blocks(ws, n), 256, 0, ws->device->stream>>>(to, n, value);
  lt_launched(ws);
}
)c"},
      {"K:accumulate_kernel", kernels, {"kernel"}, R"c(LT_KERNEL void lt_accumulate_kernel_$K($T* to, const $T* x, int64_t n) {
  for (int64_t i = LT_THREAD; i < n; i += LT_THREADS) to[i] += x[i];
}
)c"},
      {"K:device_accumulate",
       functions,
       {"K:accumulate_kernel", "gpu", "blocks"},
       R"c(static void lt_device_accumulate_$K(lt_workspace* ws, $T* to, const $T* x, int64_t n) {
  if (n <= 0) return;
  lt_accumulate_kernel_$K<<<lt_blocks(ws, n), 256, 0, ws->device->stream>>>(to, x, n);
  lt_launched(ws);
}
)c"},
      {"K:set_kernel", kernels, {"kernel"}, R"c(LT_KERNEL void lt_set_kernel_$K($T* at, $T value) { *at = value; }
LT_KERNEL void lt_add_kernel_$K($T* at, $T value) { *at += value; }
)c"},
      {"K:device_set", functions, {"K:set_kernel", "gpu"}, R"c(/* One element, from the host. */
static void lt_device_set_$K(lt_workspace* ws, $T* at, $T value) {
  lt_set_kernel_$K<<<1, 1, 0, ws->device->stream>>>(at, value);
  lt_launched(ws);
}

static void lt_device_add_$K(lt_workspace* ws, $T* at, $T value) {
  lt_add_kernel_$K<<<1, 1, 0, ws->device->stream>>>(at, value);
  lt_launched(ws);
}
)c"},
      {"K:sum_parts_kernel", kernels, {"kernel"}, R"c(/* to[e] += parts[0][e] + parts[1][e] + ..., from 0 where that is said: 32 threads a column of 32 elements, in an order that sizes decide. */
LT_KERNEL void lt_sum_parts_kernel_$K($T* to, const $T* parts, int64_t elements, int64_t shares, int from_zeros) {
  __shared__ $T sums[32][33];
  for (int64_t first = (int64_t)blockIdx.x * 32; first < elements; first += (int64_t)gridDim.x * 32) {
    const int64_t e = first + threadIdx.x;
    $T sum = 0;
    if (e < elements)
      for (int64_t share = threadIdx.y; share < shares; share += 32) sum += parts[share * elements + e];
    sums[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y == 0 && e < elements) {
      for (int i = 1; i < 32; ++i) sum += sums[i][threadIdx.x];
      to[e] = from_zeros ? sum : to[e] + sum;
    }
    __syncthreads();
  }
}
)c"},
      {"K:sum_parts",
       functions,
       {"K:sum_parts_kernel", "gpu"},
       R"c(static void lt_sum_parts_$K(lt_workspace* ws, $T* to, const $T* parts, int64_t elements, int64_t shares,
                              int from_zeros) {
  if (elements <= 0) return;
  const int64_t blocks = (elements + 31) / 32;
  lt_sum_parts_kernel_$K<<<(unsigned)(blocks < 65535 ? blocks : 65535), dim3(32, 32), 0, ws->device->stream>>>(
      to, parts, elements, shares, from_zeros);
  lt_launched(ws);
}
)c"},
      {"K:argmax_kernel", kernels, {"kernel"}, R"c(/* The first of the largest elements; NaN is below all numbers. */
LT_KERNEL void lt_argmax_kernel_$K(const $T* x, int64_t n, int64_t* at) {
  __shared__ int64_t places[1024];
  int64_t best = threadIdx.x < n ? threadIdx.x : 0;
  for (int64_t i = threadIdx.x; i < n; i += blockDim.x)
    if (x[i] > x[best] || (x[best] != x[best] && x[i] == x[i])) best = i;
  places[threadIdx.x] = best;
  for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x >= half) continue;
    const int64_t a = places[threadIdx.x], b = places[threadIdx.x + half];
    const bool nan_a = x[a] != x[a], nan_b = x[b] != x[b];
    const bool second = nan_a && nan_b ? b < a : nan_a ? true : nan_b ? false : x[b] > x[a] || (x[b] == x[a] && b < a);
    if (second) places[threadIdx.x] = b;
  }
  __syncthreads();
  if (threadIdx.x == 0) *at = places[0];
}
)c"},
      {"K:first_not_finite_kernel", kernels, {"kernel"}, R"c(/* The places of the first element that is no finite number, and of the first NaN. */
LT_KERNEL void lt_first_not_finite_kernel_$K(const $T* x, int64_t n, unsigned long long* found) {
  for (int64_t i = LT_THREAD; i < n; i += LT_THREADS) {
    if (x[i] - x[i] == 0) continue;
    atomicMin(&found[0], (unsigned long long)i);
    if (x[i] != x[i]) atomicMin(&found[1], (unsigned long long)i);
  }
}
)c"},
      {"K:device_first_not_finite",
       functions,
       {"K:first_not_finite_kernel", "fetch", "blocks"},
       R"c(/* Both, ~0 where there is none, of n > 0 elements; waits for the GPU. What failed before fails here. */
static const unsigned long long* lt_device_first_not_finite_$K(lt_workspace* ws, const $T* x, int64_t n) {
  unsigned long long* at = ws->device->control->found;
  lt_gpu(ws, cudaMemsetAsync(at, 0xff, sizeof ws->device->control->found, ws->device->stream));
  lt_first_not_finite_kernel_$K<<<lt_blocks(ws, n), 256, 0, ws->device->stream>>>(x, n, at);
  lt_launched(ws);
  const void* found = lt_fetch(ws, at, sizeof ws->device->control->found);
  lt_await(ws);
  return (const unsigned long long*)found;
}
)c"},
      {"K:device_finite_all", functions, {"K:device_first_not_finite"}, R"c(static int lt_device_finite_all_$K(lt_workspace* ws, const $T* x, int64_t n) {
  return n <= 0 || lt_device_first_not_finite_$K(ws, x, n)[0] == ~0ull;
}
)c"},
      {"K:device_not_finite_in", functions, {"K:device_first_not_finite"}, R"c(/* The first NaN if there is one, else the first infinity. */
static $T lt_device_not_finite_in_$K(lt_workspace* ws, const $T* x, int64_t n) {
  const unsigned long long* found = lt_device_first_not_finite_$K(ws, x, n);
  const void* value = lt_fetch(ws, x + (found[1] == ~0ull ? found[0] : found[1]), sizeof($T));
  lt_await(ws);
  return *(const $T*)value;
}
)c"},
      {"K:device_check_argument",
       functions,
       {"K:device_first_not_finite", "K:fail_argument"},
       R"c(static void lt_device_check_argument_$K(lt_workspace* ws, const $T* x, int64_t n, const char* argument,
                                        const char* name) {
  if (n <= 0) return;
  const unsigned long long first = lt_device_first_not_finite_$K(ws, x, n)[0];
  if (first == ~0ull) return;
  const void* value = lt_fetch(ws, x + first, sizeof($T));
  lt_await(ws);
  lt_fail_argument_$K(ws, argument, (int64_t)first, name, *(const $T*)value);
}
)c"},
      {"K:check_sum", kernels, {"K:finite", "K:fail_value"}, R"c(/* Fails where threads of a block have made a sum that is not finite of values that are. */
static __device__ void lt_check_sum_$K(lt_workspace* ws, $T sum, int finite, const char* before, const char* after) {
  const int all_finite = !__syncthreads_or(!finite);
  if (threadIdx.x == 0 && !lt_finite_$K(sum)) lt_fail_value_$K(ws, sum, all_finite, before, after);
}
)c"},
      {"K:device_argmax",
       functions,
       {"K:argmax_kernel", "device_allocate"},
       R"c(/* Where on the device the place of the largest element is written. */
static const int64_t* lt_device_argmax_$K(lt_workspace* ws, const $T* x, int64_t n, const char* message) {
  if (n == 0) ws->fail(ws, message);
  int64_t* at = (int64_t*)lt_device_allocate(ws, 8);
  lt_argmax_kernel_$K<<<1, 1024, 0, ws->device->stream>>>(x, n, at);
  lt_launched(ws);
  return at;
}
)c"},
  };
  return parts;
}

}  // namespace lantern::codegen
