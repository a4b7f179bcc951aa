// Functions of CUDA that kernels and the host call, for the launch emulator: this text behind launch_emulator.hpp.
#ifdef LANTERN_EMBED_LAUNCH_EMULATOR
__asm__(
    ".pushsection .rodata\n"
    ".globl lantern_emulated_functions_begin\n"
    ".globl lantern_emulated_functions_end\n"
    "lantern_emulated_functions_begin:\n"
    ".incbin \"" __FILE__
    "\"\n"
    "lantern_emulated_functions_end:\n"
    ".byte 0\n"
    ".popsection\n");
#else

// Whether memory of the host is the device's too: frameworks without a GPU have tensors there.
namespace lantern_emulator {
#ifdef LANTERN_ONE_MEMORY
constexpr bool one_memory = true;
#else
constexpr bool one_memory = false;
#endif
}  // namespace lantern_emulator

// ---- inside kernels

inline void __syncthreads(int line = __builtin_LINE()) { lantern_emulator::barrier(line); }
/// Whether any thread of the block says so. Of three places the next one is cleared: all have read it.
inline int __syncthreads_or(int said, int line = __builtin_LINE()) {
  using namespace lantern_emulator;
  const unsigned turn = votes_of[running->thread] = (votes_of[running->thread] + 1) % 3;
  votes[(turn + 1) % 3] = false;
  votes[turn] |= said != 0;
  barrier(line);
  return votes[turn];
}
inline void __syncwarp(unsigned = 0xffffffffu, int line = __builtin_LINE()) { lantern_emulator::barrier(line, true); }

namespace lantern_emulator {
// Each thread of a warp hands over x; what the thread of that number has handed over, or x where there is none.
template <class T, class Source>
T exchange(T x, int line, Source source) {
  static_assert(sizeof(T) <= 16);
  const unsigned me = running->thread, lane = me % 32;
  const unsigned turn = exchange_of[me] ^= 1;
  memcpy(exchanged[turn][me], &x, sizeof x);
  barrier(line, true);
  const unsigned from = me - lane + source(lane) % 32;
  T y = x;
  if (from < block_threads) memcpy(&y, exchanged[turn][from], sizeof y);
  return y;
}
}  // namespace lantern_emulator

template <class T>
T __shfl_xor_sync(unsigned, T x, int mask, int = 32, int line = __builtin_LINE()) {
  return lantern_emulator::exchange(x, line, [=](unsigned lane) { return lane ^ static_cast<unsigned>(mask); });
}
template <class T>
T __shfl_down_sync(unsigned, T x, unsigned by, int = 32, int line = __builtin_LINE()) {
  return lantern_emulator::exchange(x, line, [=](unsigned lane) { return lane + by < 32 ? lane + by : lane; });
}
template <class T>
T __shfl_up_sync(unsigned, T x, unsigned by, int = 32, int line = __builtin_LINE()) {
  return lantern_emulator::exchange(x, line, [=](unsigned lane) { return lane >= by ? lane - by : lane; });
}
template <class T>
T __shfl_sync(unsigned, T x, int from, int = 32, int line = __builtin_LINE()) {
  return lantern_emulator::exchange(x, line, [=](unsigned) { return static_cast<unsigned>(from); });
}
inline void __threadfence() {}
inline void __threadfence_block() {}

template <class T>
T __ldg(const T* p) {
  return *p;
}
template <class T, class U>
T atomicExch(T* p, U v) {
  const lantern_emulator::AtomicOperation one;
  return std::exchange(*p, static_cast<T>(v));
}
template <class T, class U>
T atomicAdd(T* p, U v) {
  const lantern_emulator::AtomicOperation one;
  return std::exchange(*p, static_cast<T>(*p + static_cast<T>(v)));
}
template <class T, class U>
T atomicSub(T* p, U v) {
  const lantern_emulator::AtomicOperation one;
  return std::exchange(*p, static_cast<T>(*p - static_cast<T>(v)));
}
template <class T, class U>
T atomicMax(T* p, U v) {
  const lantern_emulator::AtomicOperation one;
  return std::exchange(*p, *p < static_cast<T>(v) ? static_cast<T>(v) : *p);
}
template <class T, class U>
T atomicMin(T* p, U v) {
  const lantern_emulator::AtomicOperation one;
  return std::exchange(*p, static_cast<T>(v) < *p ? static_cast<T>(v) : *p);
}
template <class T, class U, class V>
T atomicCAS(T* p, U expected, V v) {
  const lantern_emulator::AtomicOperation one;
  return std::exchange(*p, *p == static_cast<T>(expected) ? static_cast<T>(v) : *p);
}

template <class A, class B>
constexpr std::common_type_t<A, B> min(A a, B b) {
  return b < a ? b : a;
}
template <class A, class B>
constexpr std::common_type_t<A, B> max(A a, B b) {
  return a < b ? b : a;
}
inline double rsqrt(double x) { return 1 / sqrt(x); }
inline float rsqrtf(float x) { return 1 / sqrtf(x); }

// ---- what the host calls

template <class T>
cudaError_t cudaMalloc(T** p, size_t bytes) {
  void* memory = nullptr;
  const cudaError_t error = lantern_emulator::allocate(&memory, bytes);
  if (bytes > 0) ++lantern_emulator::made;
  *p = static_cast<T*>(memory);
  return error;
}

template <class T>
cudaError_t cudaMallocHost(T** p, size_t bytes) {
  *p = static_cast<T*>(calloc(1, bytes));
  return *p ? cudaSuccess : cudaErrorMemoryAllocation;
}

enum cudaMemoryType {  // NOLINT
  cudaMemoryTypeUnregistered,
  cudaMemoryTypeHost,
  cudaMemoryTypeDevice,
  cudaMemoryTypeManaged,
};
struct cudaPointerAttributes {
  cudaMemoryType type;
};
inline cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* place, const void* p) {
  const lantern_emulator::Lock lock;
  const bool there = lantern_emulator::one_memory ? p != nullptr : lantern_emulator::owner(p, 1) != nullptr;
  place->type = there ? cudaMemoryTypeDevice : cudaMemoryTypeUnregistered;
  return cudaSuccess;
}
enum cudaDeviceAttr { cudaDevAttrMultiProcessorCount };  // NOLINT
inline cudaError_t cudaGetDevice(int* number) {
  *number = 0;
  return cudaSuccess;
}
inline cudaError_t cudaGetDeviceCount(int* count) {
  *count = 1;
  return cudaSuccess;
}
inline cudaError_t cudaSetDevice(int number) { return number == 0 ? cudaSuccess : cudaErrorInvalidValue; }
inline cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr, int) {
  *value = 2;  // few, so that threads take several iterations
  return cudaSuccess;
}

inline cudaError_t cudaFree(void* p) {
  using namespace lantern_emulator;
  if (!p) return cudaSuccess;
  const Lock lock;
  for (size_t i = 0; i < allocations.size(); ++i) {
    if (allocations[i].data != p) continue;
    const bool good = intact(allocations[i], "at cudaFree");
    munmap(allocations[i].mapping, allocations[i].mapped);
    allocations.erase(allocations.begin() + static_cast<std::ptrdiff_t>(i));
    return good ? cudaSuccess : cudaErrorIllegalAddress;
  }
  return report(cudaErrorInvalidValue, "cudaFree: %p is not the start of a device allocation", p);
}

inline cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  using namespace lantern_emulator;
  const Lock lock;
  if (bytes == 0) return cudaSuccess;
  const bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  const bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  if ((to_device || (kind == cudaMemcpyDefault && owner(to, 1))) && !owner(to, bytes))
    return report(cudaErrorInvalidValue, "cudaMemcpy: the destination is no device memory of %zu bytes",
                  bytes);
  if ((from_device || (kind == cudaMemcpyDefault && owner(from, 1))) && !owner(from, bytes))
    return report(cudaErrorInvalidValue, "cudaMemcpy: the source is no device memory of %zu bytes", bytes);
  const char *a = static_cast<char*>(to), *b = static_cast<const char*>(from);
  if (owner(to, bytes) && owner(from, bytes) && a != b && a < b + bytes && b < a + bytes)
    return report(cudaErrorInvalidValue, "cudaMemcpy: %zu bytes within the device overlap", bytes);
  if (!owner(to, bytes) || !owner(from, bytes)) moved += static_cast<int64_t>(bytes);
  else touched += 2 * static_cast<int64_t>(bytes);
  OpenMemory open(to, bytes);
  open.open(from, bytes);
  memmove(to, from, bytes);
  return cudaSuccess;
}
inline cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                                   cudaStream_t = nullptr) {
  return cudaMemcpy(to, from, bytes, kind);
}

inline cudaError_t cudaMemset(void* to, int byte, size_t bytes) {
  using namespace lantern_emulator;
  const Lock lock;
  if (bytes != 0 && !one_memory && !owner(to, bytes))
    return report(cudaErrorInvalidValue, "cudaMemset: the destination is no device memory of %zu bytes",
                  bytes);
  const OpenMemory open(to, bytes);
  touched += static_cast<int64_t>(bytes);
  memset(to, byte, bytes);
  return cudaSuccess;
}
inline cudaError_t cudaMemsetAsync(void* to, int byte, size_t bytes, cudaStream_t = nullptr) {
  ++lantern_emulator::launches;
  return cudaMemset(to, byte, bytes);
}

inline cudaError_t cudaPeekAtLastError() { return lantern_emulator::last_error; }
inline cudaError_t cudaGetLastError() { return std::exchange(lantern_emulator::last_error, cudaSuccess); }
inline cudaError_t cudaDeviceSynchronize() { return lantern_emulator::last_error; }
inline cudaError_t cudaStreamSynchronize(cudaStream_t) {
  ++lantern_emulator::waits;
  return lantern_emulator::last_error;
}
inline cudaError_t cudaStreamQuery(cudaStream_t) { return lantern_emulator::last_error; }
inline cudaError_t cudaDeviceSetLimit(cudaLimit, size_t) { return cudaSuccess; }
inline cudaError_t cudaDeviceGetLimit(size_t* value, cudaLimit) {
  *value = 1024;
  return cudaSuccess;
}

// ---- what a test asks

/// What was wrong last; empty if nothing ever was.
extern "C" inline __attribute__((used)) const char* lantern_emulator_report() {
  return lantern_emulator::report_text;
}
/// Whether threads run from the last to the first from here on: what depends on their order gives something
/// else.
extern "C" inline __attribute__((used)) void lantern_emulator_backwards(int yes) {
  lantern_emulator::backwards = yes != 0;
}
/// Whether the host cannot touch device memory from here on but by copies.
extern "C" inline __attribute__((used)) void lantern_emulator_protect(int yes) {
  using namespace lantern_emulator;
  protects = yes != 0;
  for (Allocation& a : allocations)
    if (protects)
      close_pages(a);
    else
      open_pages(a, a.first(), size_t(a.last() - a.first()));
}
/// Since the program began: kernels and fills (0), waits of the host (1), device allocations (2), bytes
/// copied between host and device (3), and, where races are looked for, bytes of the device's memory that kernels, fills and
/// copies within the device must move (4): each launch loads an element at most once, and stores it at most once. Atomic
/// operations do not count.
extern "C" inline __attribute__((used)) int64_t lantern_emulator_count(int what) {
  using namespace lantern_emulator;
  return what == 0 ? launches : what == 1 ? waits : what == 2 ? made : what == 3 ? moved : touched;
}
/// Device allocations that have not been freed.
extern "C" inline __attribute__((used)) int64_t lantern_emulator_allocations() {
  return static_cast<int64_t>(lantern_emulator::allocations.size());
}
#endif
