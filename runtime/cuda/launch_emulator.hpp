// CUDA on the CPU: with this text in front, and launches rewritten, a .cu compiles as C++ and its kernels run
// here.
//
// What it checks beyond running: barriers that not all threads of a block reach, or reach at different
// places; writes next to a device allocation or beyond the dynamic shared memory; accesses far outside of any
// allocation; copies that do not fit; launches the hardware would refuse. Memory that nothing has written
// holds NaN.
//
// The threads of a block are fibers on one OS thread, which runs the blocks one after another; a launch
// returns when all have ended. So atomics are plain operations. What kernels and the host call is in
// emulated_functions.hpp, behind this text; races between threads are found with race_detector.hpp behind both.
// The same program run backwards (lantern_emulator_backwards) must give the same.
// The threads of a warp wait for each other at shuffles, votes and __syncwarp, and nowhere else. Where
// lantern_emulator_protect was called, the host cannot touch memory of the device but by copies, as on a GPU.
// A report is text, see lantern_emulator_report; the call that was wrong returns a CUDA error code.
#ifdef LANTERN_EMBED_LAUNCH_EMULATOR
// For launch_emulator.cpp: this file itself, as data.
__asm__(
    ".pushsection .rodata\n"
    ".globl lantern_launch_emulator_begin\n"
    ".globl lantern_launch_emulator_end\n"
    "lantern_launch_emulator_begin:\n"
    ".incbin \"" __FILE__
    "\"\n"
    "lantern_launch_emulator_end:\n"
    ".byte 0\n"
    ".popsection\n");
#else
#pragma once

#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

// ---- the language

#define __CUDACC__ 1
#define LANTERN_LAUNCH_EMULATOR 1
#define __global__
#define __device__
#define __host__
#define __constant__ static
#define __managed__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __grid_constant__
#define __align__(n) __attribute__((aligned(n)))
// One block at a time runs, so one copy is enough. A section of its own, so that it can be filled before a
// block.
#define __shared__ static __attribute__((used, section("lantern_shared")))

struct uint3 {
  unsigned x, y, z;
};

struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
  constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
};

static uint3 threadIdx, blockIdx;
static dim3 blockDim, gridDim;
static constexpr int warpSize = 32;

// ---- errors

enum cudaError_t {  // NOLINT: the names and numbers of CUDA
  cudaSuccess = 0,
  cudaErrorInvalidValue = 1,
  cudaErrorMemoryAllocation = 2,
  cudaErrorInvalidConfiguration = 9,
  cudaErrorIllegalAddress = 700,
  cudaErrorLaunchFailure = 719,
};
typedef cudaError_t cudaError;
typedef struct CUstream_st* cudaStream_t;
enum cudaMemcpyKind {  // NOLINT
  cudaMemcpyHostToHost,
  cudaMemcpyHostToDevice,
  cudaMemcpyDeviceToHost,
  cudaMemcpyDeviceToDevice,
  cudaMemcpyDefault,
};
enum cudaLimit { cudaLimitStackSize };  // NOLINT

inline const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "no error";
    case cudaErrorInvalidValue:
      return "invalid argument";
    case cudaErrorMemoryAllocation:
      return "out of memory";
    case cudaErrorInvalidConfiguration:
      return "invalid configuration argument";
    case cudaErrorIllegalAddress:
      return "an illegal memory access was encountered";
    case cudaErrorLaunchFailure:
      return "unspecified launch failure";
  }
  return "unrecognized error code";
}

namespace lantern_emulator {

// Launches and allocations are one at a time, whichever OS thread asks.
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

struct Lock {
  Lock() { pthread_mutex_lock(&mutex); }
  ~Lock() { pthread_mutex_unlock(&mutex); }
};

static char report_text[1024];
static cudaError_t last_error = cudaSuccess;

__attribute__((format(printf, 2, 3))) inline cudaError_t report(cudaError_t error, const char* format, ...) {
  va_list list;
  va_start(list, format);
  vsnprintf(report_text, sizeof report_text, format, list);
  va_end(list);
  return last_error = error;
}

// ---- memory: data, between guards that must not change, between pages that cannot be touched

constexpr size_t page = 4096, guard_bytes = 16 * page, fence_bytes = 256 * page;
constexpr size_t largest_fill = size_t(64) << 20, device_bytes = size_t(16) << 30;
constexpr unsigned char guard_byte = 0xA5;

static bool protects = false;  // device memory from the host, outside of launches and copies

struct Allocation {
  char *mapping, *data;
  size_t mapped, bytes;
  char *from, *to;  // what may be touched now, in whole pages; empty where both are the same

  char* first() const { return mapping + fence_bytes; }
  char* last() const { return mapping + mapped - fence_bytes; }

  bool contains(const void* p, size_t n) const {
    const char* c = static_cast<const char*>(p);
    return c >= data && c <= data + bytes && n <= size_t(data + bytes - c);
  }
};
static std::vector<Allocation> allocations;

// The first byte that differs from the guard, or null.
inline const char* first_change(const char* from, const char* to) {
  if (from >= to) return nullptr;
  // Each byte is the one before it: a comparison of the C library's is many times as fast as a loop.
  if (static_cast<unsigned char>(*from) == guard_byte && !memcmp(from, from + 1, size_t(to - from) - 1)) return nullptr;
  while (static_cast<unsigned char>(*from) == guard_byte) ++from;
  return from;
}

// Opens the pages that hold the n bytes at p, and those between them and what is open.
inline void open_pages(Allocation& a, const char* p, size_t n) {
  char* from = a.first() + (p - a.first()) / page * page;
  char* to = a.first() + (size_t(p - a.first()) + n + page - 1) / page * page;
  if (a.from != a.to) {
    from = from < a.from ? from : a.from;
    to = to > a.to ? to : a.to;
    if (from < a.from) mprotect(from, size_t(a.from - from), PROT_READ | PROT_WRITE);
    if (to > a.to) mprotect(a.to, size_t(to - a.to), PROT_READ | PROT_WRITE);
  } else {
    mprotect(from, size_t(to - from), PROT_READ | PROT_WRITE);
  }
  a.from = from;
  a.to = to;
}
inline void close_pages(Allocation& a) {
  if (a.from != a.to) mprotect(a.from, size_t(a.to - a.from), PROT_NONE);
  a.to = a.from;
}

// What is not open has not changed.
inline bool intact(Allocation& a, const char* when) {
  const char *low = a.data - guard_bytes, *high = a.data + a.bytes;
  const auto change = [&](const char* from, const char* to) {
    return first_change(from > a.from ? from : a.from, to < a.to ? to : a.to);
  };
  const char* changed = change(low, a.data);
  if (!changed) changed = change(high, high + guard_bytes);
  if (!changed) return true;
  report(cudaErrorIllegalAddress, "%s: a write at offset %td of a device allocation of %zu bytes", when,
         changed - a.data, a.bytes);
  open_pages(a, low, size_t(high + guard_bytes - low));
  memset(a.data - guard_bytes, guard_byte, guard_bytes);
  memset(a.data + a.bytes, guard_byte, guard_bytes);
  return false;
}

inline Allocation* owner(const void* p, size_t n) {
  for (Allocation& a : allocations)
    if (a.contains(p, n)) return &a;
  return nullptr;
}

// Where memory is protected, it is opened for a copy, or for a kernel by pages that it touches, and closed behind it.
struct OpenMemory {
  OpenMemory() = default;
  OpenMemory(const void* p, size_t n) { open(p, n); }
  ~OpenMemory() {
    if (!protects) return;
    for (Allocation& a : allocations) close_pages(a);
  }
  void open(const void* p, size_t n) {
    if (Allocation* const a = protects ? owner(p, n) : nullptr) open_pages(*a, static_cast<const char*>(p), n);
  }
};

inline cudaError_t allocate(void** result, size_t bytes) {
  const Lock lock;
  *result = nullptr;
  if (bytes == 0) return cudaSuccess;
  size_t held = 0;
  for (const Allocation& a : allocations) held += a.bytes;
  const size_t inner = (2 * guard_bytes + bytes + page - 1) / page * page;
  void* m = MAP_FAILED;
  if (bytes <= device_bytes - held)
    m = mmap(nullptr, inner + 2 * fence_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (m == MAP_FAILED) return report(cudaErrorMemoryAllocation, "cudaMalloc: no memory for %zu bytes", bytes);
  char* low = static_cast<char*>(m) + fence_bytes;
  mprotect(low, inner, PROT_READ | PROT_WRITE);
  Allocation a{static_cast<char*>(m), low + guard_bytes, inner + 2 * fence_bytes, bytes, low, low + inner};
  memset(low, guard_byte, guard_bytes);
  memset(a.data + bytes, guard_byte, guard_bytes);
  if (bytes <= largest_fill) memset(a.data, 0xFF, bytes);
  if (protects) close_pages(a);
  allocations.push_back(a);
  *result = a.data;
  return cudaSuccess;
}

// ---- the threads of a block

// Where a switch goes on. Those of <ucontext.h> ask the system for the signal mask each time, and take fifty times as long.
using Place = void* [5];

struct Fiber {
  Place place;
  bool begun = false;  // on its stack lies a worker
  char* stack = nullptr;
  unsigned thread = 0;
  int line = 0;
  bool waiting = false;
  bool warp = false;  // waits for its warp alone
};

constexpr size_t fiber_stack = size_t(256) << 10;
constexpr unsigned most_threads = 1024;
constexpr size_t most_shared = 227 << 10;

// Kept from launch to launch.
struct Fibers : std::vector<Fiber*> {
  ~Fibers() {
    for (Fiber* f : *this) {
      munmap(f->stack, fiber_stack + page);
      delete f;
    }
  }
};
static Fibers fibers;

static Fiber* running = nullptr;
static Place scheduler;
static bool all_ended = true;  // the workers wait for the next block
static unsigned next_thread = 0, block_threads = 0, returned = 0, exited = 0;
// What the threads of a warp hand to each other: twice, so that one may begin the next exchange before all have ended
// this one.
static unsigned char exchanged[2][1024][16];
static unsigned char exchange_of[1024];
static unsigned char votes_of[1024];
static bool votes[3];
// For race_detector.hpp: which barriers have been passed, and how many atomic operations there were.
static unsigned block_epoch = 0, warp_epochs[32];
static uint64_t block_number = 0, atomics = 0, block_acquired = 0;
static volatile int quiet = 0;  // in an atomic operation; volatile: what asks is put in behind the optimiser
#ifdef LANTERN_FIND_RACES
inline void note_atomic();
#else
inline void note_atomic() {}
#endif
struct AtomicOperation {
  AtomicOperation() {
    quiet = quiet + 1;
    note_atomic();
  }
  ~AtomicOperation() { quiet = quiet - 1; }
};
static bool backwards = false;  // blocks and threads run from the last to the first
static void (*kernel_call)(void*) = nullptr;
static void* kernel_argument = nullptr;

alignas(1024) static char dynamic_memory[most_shared + guard_bytes];
inline char* dynamic_shared() { return dynamic_memory; }

extern "C" {
extern char __start_lantern_shared[] __attribute__((weak, visibility("hidden")));
extern char __stop_lantern_shared[] __attribute__((weak, visibility("hidden")));
}

inline uint3 place(unsigned i, const dim3& size) {
  return {i % size.x, i / size.x % size.y, i / size.x / size.y};
}

[[noreturn]] __attribute__((noinline)) inline void go_on_at(Place& place) { __builtin_longjmp(place, 1); }
__attribute__((noinline)) inline void to_scheduler() {
  if (!__builtin_setjmp(running->place)) go_on_at(scheduler);
}

// A worker runs one thread after the other until one of them waits; then the scheduler starts another worker.
[[noreturn]] __attribute__((noinline)) inline void work() {
  for (;;) {
    while (next_thread < block_threads) {
      running->thread = backwards ? block_threads - 1 - next_thread : next_thread;
      ++next_thread;
      threadIdx = place(running->thread, blockDim);
      kernel_call(kernel_argument);
      ++returned;
    }
    running->waiting = false;
    to_scheduler();
  }
}

__attribute__((noinline)) inline void barrier(int line, bool warp = false) {
  running->waiting = true;
  running->line = line;
  running->warp = warp;
  to_scheduler();
}

// What `asm("exit;")` does.
[[noreturn]] __attribute__((noinline)) inline void exit_thread() {
  ++exited;
  running->waiting = running->begun = false;
  go_on_at(scheduler);
}

inline Fiber* fiber(size_t i) {
  while (fibers.size() <= i) {
    Fiber* f = new Fiber;
    f->stack = static_cast<char*>(mmap(nullptr, fiber_stack + page, PROT_READ | PROT_WRITE,
                                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    if (f->stack == MAP_FAILED) abort();
    mprotect(f->stack, page, PROT_NONE);
    fibers.push_back(f);
  }
  return fibers[i];
}

[[noreturn]] __attribute__((noinline)) inline void begin(Fiber* f) {
  ucontext_t context;
  getcontext(&context);
  context.uc_stack.ss_sp = f->stack + page;
  context.uc_stack.ss_size = fiber_stack;
  context.uc_link = nullptr;
  makecontext(&context, work, 0);
  f->begun = true;
  setcontext(&context);
  abort();
}

__attribute__((noinline)) inline void resume(Fiber* f) {
  running = f;
  threadIdx = place(f->thread, blockDim);
  if (__builtin_setjmp(scheduler)) return;
  if (f->begun) go_on_at(f->place);
  begin(f);
}

struct Name {
  char text[48];
  explicit Name(uint3 p) { snprintf(text, sizeof text, "(%u,%u,%u)", p.x, p.y, p.z); }
};

// The threads of a warp that wait, in the order in which they began.
struct Warp {
  Fiber* waiting[32];
  unsigned count = 0, for_warp = 0;  // of them for their warp alone

  void add(Fiber* f) {
    waiting[count++] = f;
    for_warp += f->warp ? 1 : 0;
  }
  // Each goes on until it waits again or ends.
  void go_on() {
    const unsigned before = count;
    count = for_warp = 0;
    for (unsigned i = 0; i < before; ++i) {
      Fiber* const f = waiting[i];
      f->waiting = false;
      resume(f);
      if (f->waiting) add(f);
    }
  }
  // Goes on when all of its threads wait for it, or have ended.
  cudaError_t pass() {
    int line = 0;
    for (unsigned i = 0, seen = 0; i < count; ++i) {
      if (!waiting[i]->warp) continue;
      if (seen++ > 0 && waiting[i]->line != line)
        return report(cudaErrorLaunchFailure, "divergent warp: threads of one warp wait in line %d and in line %d", line,
                      waiting[i]->line);
      line = waiting[i]->line;
    }
    if (for_warp < count)
      return report(cudaErrorLaunchFailure,
                    "divergent warp: some of its threads wait for each other in line %d, others at __syncthreads", line);
    ++warp_epochs[waiting[0]->thread / 32];
    go_on();
    return cudaSuccess;
  }
};

// All threads wait at __syncthreads, and at the same.
inline cudaError_t pass_barrier(Warp* warps, unsigned used) {
  const auto in_turn = [&](unsigned i) -> Warp& { return warps[backwards ? used - 1 - i : i]; };
  const Fiber* first = nullptr;
  size_t waiting = 0;
  for (unsigned i = 0; i < used; ++i) {
    if (!first && in_turn(i).count > 0) first = in_turn(i).waiting[0];
    waiting += in_turn(i).count;
  }
  const Name block(blockIdx), one(place(first->thread, blockDim));
  if (returned > 0) {
    return report(cudaErrorLaunchFailure,
                  "divergent barrier: %zu of %u threads of block %s wait at __syncthreads in line %d, among them "
                  "%s, and the others have returned",
                  waiting, block_threads, block.text, first->line, one.text);
  }
  for (unsigned i = 0; i < used; ++i) {
    const Warp& warp = in_turn(i);
    for (unsigned t = 0; t < warp.count; ++t) {
      const Fiber* f = warp.waiting[t];
      if (f->line == first->line) continue;
      const Name other(place(f->thread, blockDim));
      return report(cudaErrorLaunchFailure,
                    "divergent barrier: in block %s, thread %s waits at __syncthreads in line %d and thread %s in "
                    "line %d",
                    block.text, one.text, first->line, other.text, f->line);
    }
  }
  ++block_epoch;
  for (unsigned i = 0; i < used; ++i) in_turn(i).go_on();
  return cudaSuccess;
}

inline cudaError_t run_block() {
  next_thread = returned = exited = 0;
  memset(exchange_of, 0, sizeof exchange_of);
  memset(votes_of, 0, sizeof votes_of);
  memset(votes, 0, sizeof votes);
  memset(warp_epochs, 0, sizeof warp_epochs);
  block_epoch = 0;
  block_acquired = 0;
  if (!all_ended)
    for (Fiber* f : fibers) f->begun = false;
  all_ended = false;
  Warp warps[most_threads / 32];
  for (size_t used = 0; next_thread < block_threads;) {
    Fiber* f = fiber(used);
    f->thread = next_thread;
    resume(f);
    if (!f->waiting) continue;  // its stack is free again
    warps[f->thread / 32].add(f);
    ++used;
  }
  const unsigned used = (block_threads + 31) / 32;
  for (;;) {
    // The first warp that waits for itself goes on, then all from barrier to barrier.
    bool any = false;
    Warp* next = nullptr;
    for (unsigned i = 0; i < used && !next; ++i) {
      any = any || warps[i].count > 0;
      if (warps[i].for_warp > 0) next = warps + i;
    }
    if (!any) break;
    if (const cudaError_t error = next ? next->pass() : pass_barrier(warps, used)) return error;
  }
  all_ended = true;
  return cudaSuccess;
}

// ---- faults during a launch

static sigjmp_buf after_fault;
static pthread_t launching;
static bool in_launch = false;
static void* fault_address = nullptr;
static struct sigaction old_segv, old_bus;

// Opens what holds p, at least twice as much as is open, if that is closed memory of the device.
inline bool open_at(const char* p) {
  for (Allocation& a : allocations) {
    if (!protects || p < a.first() || p >= a.last() || (p >= a.from && p < a.to)) continue;
    const size_t more = size_t(a.to - a.from) > 16 * page ? size_t(a.to - a.from) : 16 * page;
    if (p < a.from) {
      char* const from = size_t(p - a.first()) > more ? const_cast<char*>(p) - more : a.first();
      open_pages(a, from, size_t(p - from) + 1);
    } else {
      open_pages(a, p, size_t(a.last() - p) > more ? more : size_t(a.last() - p));
    }
    return true;
  }
  return false;
}

inline void on_fault(int number, siginfo_t* info, void*) {
  if (in_launch && pthread_equal(launching, pthread_self())) {
    if (open_at(static_cast<const char*>(info->si_addr))) return;
    fault_address = info->si_addr;
    siglongjmp(after_fault, 1);
  }
  sigaction(number, number == SIGSEGV ? &old_segv : &old_bus, nullptr);  // not ours: it happens again there
}

class FaultHandler {
 public:
  FaultHandler() : stack_(size_t(64) << 10) {
    stack_t stack = {};
    stack.ss_sp = stack_.data();
    stack.ss_size = stack_.size();
    sigaltstack(&stack, &old_stack_);
    struct sigaction action = {};
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigaction(SIGSEGV, &action, &old_segv);
    sigaction(SIGBUS, &action, &old_bus);
    launching = pthread_self();
    in_launch = true;
  }
  ~FaultHandler() {
    in_launch = false;
    sigaction(SIGSEGV, &old_segv, nullptr);
    sigaction(SIGBUS, &old_bus, nullptr);
    sigaltstack(&old_stack_, nullptr);
  }

 private:
  std::vector<char> stack_;
  stack_t old_stack_;
};

inline cudaError_t report_fault() {
  const char* p = static_cast<const char*>(fault_address);
  const Name block(blockIdx), thread(threadIdx);
  for (const Fiber* f : fibers)
    if (p >= f->stack && p < f->stack + page)
      return report(cudaErrorIllegalAddress, "thread %s of block %s has used up its stack", thread.text,
                    block.text);
  for (const Allocation& a : allocations)
    if (p >= a.mapping && p < a.mapping + a.mapped)
      return report(cudaErrorIllegalAddress,
                    "thread %s of block %s accessed offset %td of a device allocation of %zu bytes",
                    thread.text, block.text, p - a.data, a.bytes);
  return report(cudaErrorIllegalAddress,
                "thread %s of block %s accessed address %p, outside of all allocations", thread.text,
                block.text, fault_address);
}

// ---- launches

static int64_t launches = 0, waits = 0, made = 0, moved = 0, touched = 0;  // since the program began

struct Launch {
  dim3 grid, block;
  size_t shared;

  cudaError_t run_blocks() const {
    gridDim = grid;
    blockDim = block;
    block_threads = block.x * block.y * block.z;
    const uint64_t blocks = uint64_t(grid.x) * grid.y * grid.z;
    for (uint64_t n = 0; n < blocks; ++n) {
      const uint64_t b = block_number = backwards ? blocks - 1 - n : n;
      blockIdx = {unsigned(b % grid.x), unsigned(b / grid.x % grid.y), unsigned(b / grid.x / grid.y)};
      if (__start_lantern_shared)
        memset(__start_lantern_shared, 0xFF, size_t(__stop_lantern_shared - __start_lantern_shared));
      memset(dynamic_memory, 0xFF, shared);
      memset(dynamic_memory + shared, guard_byte, page);
      if (const cudaError_t error = run_block()) return error;
      if (const char* c = first_change(dynamic_memory + shared, dynamic_memory + shared + page))
        return report(cudaErrorIllegalAddress,
                      "block %s wrote at offset %td of dynamic shared memory of %zu bytes",
                      Name(blockIdx).text, c - dynamic_memory, shared);
    }
    return cudaSuccess;
  }

  void run(void (*call)(void*), void* argument) const {
    const uint64_t threads = uint64_t(block.x) * block.y * block.z;
    if (threads == 0 || threads > most_threads || block.z > 64 || grid.x == 0 || grid.y == 0 || grid.z == 0 ||
        grid.x > 0x7FFFFFFF || grid.y > 65535 || grid.z > 65535) {
      report(cudaErrorInvalidConfiguration, "a launch of (%u,%u,%u) blocks of (%u,%u,%u) threads", grid.x,
             grid.y, grid.z, block.x, block.y, block.z);
      return;
    }
    if (shared > most_shared) {
      report(cudaErrorInvalidValue, "a launch with %zu bytes of shared memory", shared);
      return;
    }
    const Lock lock;
    const OpenMemory open;
    ++launches;
    kernel_call = call;
    kernel_argument = argument;
    {
      const FaultHandler handler;
      if (sigsetjmp(after_fault, 1) == 0) {
        run_blocks();
      } else {
        report_fault();
      }
    }
    for (Allocation& a : allocations)
      if (!intact(a, "after the launch")) return;
  }

  // Arguments are converted once, at the launch.
  template <class... P, class... A>
  void operator()(void (*kernel)(P...), A&&... arguments) const {
    struct Call {
      void (*kernel)(P...);
      std::tuple<std::decay_t<P>...> values;
    } call{kernel, {static_cast<std::decay_t<P> >(std::forward<A>(arguments))...}};
    run([](void* p) { std::apply(static_cast<Call*>(p)->kernel, static_cast<Call*>(p)->values); }, &call);
  }
};

inline Launch configure(dim3 grid, dim3 block, size_t shared = 0, cudaStream_t = nullptr) {
  return {grid, block, shared};
}

}  // namespace lantern_emulator
#endif
