// Fibers over Boost's fcontext: their stacks, and the pool of them.
#include "lantern/compiler/control/fiber.hpp"

#include <cxxabi.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <new>

#include "lantern/ir/error.hpp"

namespace lantern::core::control {
namespace {

namespace ctx = boost::context::detail;

constexpr std::size_t kMiB = std::size_t{1} << 20;
constexpr std::size_t kGiB = std::size_t{1} << 30;
// Half of the 47-bit user address space: beyond it stacks are small, so that the rest of the process can map.
constexpr std::size_t kReserveLimit = std::size_t{64} << 40;
constexpr std::size_t kSmallestStack = 1 * kMiB;
constexpr std::size_t kCrowdedStack = 8 * kMiB;
constexpr int kPooled[] = {32, 4};  // by StackSize
// A pooled stack keeps this much committed memory, by StackSize; what it grew beyond goes back to the system.
constexpr std::size_t kKeptCommitted[] = {2 * kMiB, 32 * kMiB};
// Committing kKeptCommitted takes hundreds of page faults, more time than this: a shorter use cannot have
// grown it.
constexpr std::uint64_t kShortUseTicks = 50000;
// Large stacks are committed by huge pages below this depth: a fault each 4 kB would double the cost of a
// million operations.
constexpr std::size_t kSmallPages = 4 * kMiB;

std::atomic<std::size_t> reserved_bytes{0};
std::atomic<std::uint64_t> next_thread_number{1};

std::size_t page_size() {
  static const std::size_t bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

std::size_t wanted_bytes(StackSize size) {
  if (kSanitizer) return size == StackSize::large ? 8 * kGiB : 256 * kMiB;  // the shadow costs memory
  return size == StackSize::large ? 64 * kGiB : 4 * kGiB;
}

std::uint64_t ticks() {
#if defined(__x86_64__)
  return __builtin_ia32_rdtsc();
#else
  return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
#endif
}

struct Pool {
  Fiber* first = nullptr;
  int count = 0;

  void push(Fiber& fiber) noexcept {
    fiber.next_free = first;
    first = &fiber;
    ++count;
  }
  Fiber* pop() noexcept {
    Fiber* fiber = first;
    if (fiber != nullptr) {
      first = fiber->next_free;
      --count;
    }
    return fiber;
  }
};

// Both are trivially destructible, so that a continuation may still be dropped while the thread_local objects
// of an ending thread are destroyed.
thread_local ThreadState thread_state;
thread_local struct {
  Pool of_size[2];
  bool closed = false;
} pools;

void unmap(Fiber& fiber) noexcept {
  forget_stack(fiber.sanitizer, std::max(fiber.low, fiber.high - kMiB), fiber.mapping + fiber.mapped_bytes);
  const std::size_t bytes = fiber.mapped_bytes;
  munmap(fiber.mapping, bytes);  // and with the stack the record of the fiber
  reserved_bytes.fetch_sub(bytes, std::memory_order_relaxed);
}

struct PoolCloser {
  bool armed = false;
  ~PoolCloser() {
    pools.closed = true;
    collect_stacks();
  }
};
thread_local PoolCloser pool_closer;

// Gives back the committed memory of a stack that has grown large.
void trim(Fiber& fiber) noexcept {
  const std::size_t page = page_size();
  char* kept = fiber.high - kKeptCommitted[static_cast<int>(fiber.size_class)];
  if (kept < fiber.low + 2 * page) return;
  kept -= reinterpret_cast<std::uintptr_t>(kept) % page;
  // Two probes: a frame so large that it skips a page rarely skips two.
  unsigned char resident[2] = {0, 0};
  if (mincore(kept - 2 * page, 2 * page, resident) == 0 && ((resident[0] | resident[1]) & 1) == 0) return;
  madvise(fiber.low, static_cast<std::size_t>(kept - fiber.low), MADV_DONTNEED);
}

// Back to the pool. The fiber still runs, but nothing takes it before it has switched away: the pool is the
// thread's own. For the same reason it is others that are unmapped when the pool is full.
void release(Fiber& fiber) noexcept {
  const int index = static_cast<int>(fiber.size_class);
  Pool& pool = pools.of_size[index];
  fiber.delimiter = nullptr;
  if (ticks() - fiber.started > kShortUseTicks) trim(fiber);
  if (pool.count >= kPooled[index]) unmap(*pool.pop());
  if (!pools.closed) pool_closer.armed = true;  // touched, it is destroyed when the thread ends
  pool.push(fiber);
}

// The bottom frame of every fiber. It never returns: between two uses the fiber is suspended in its switch.
void fiber_main(ctx::transfer_t transfer) {
  auto& previous = *static_cast<Fiber*>(transfer.data);
  previous.context = transfer.fctx;
  Fiber& self = *this_thread().running;
  after_switch(self.sanitizer, previous.mapping == nullptr ? &previous.low : nullptr, &previous.high);
  for (;;) {
    Fiber* next = self.entry(self);
    release(self);
    switch_to(this_thread(), *next);
  }
}

// Maps a stack of at least kSmallestStack bytes, as near to the wanted size as the system allows.
Fiber& make_fiber(StackSize size_class) {
  std::size_t bytes = wanted_bytes(size_class);
  if (reserved_bytes.load(std::memory_order_relaxed) > kReserveLimit) bytes = kCrowdedStack;
  const std::size_t page = page_size();
  void* mapped = MAP_FAILED;
  for (; mapped == MAP_FAILED && bytes >= kSmallestStack; bytes /= 4) {
    mapped = mmap(nullptr, bytes + page, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (mapped != MAP_FAILED) break;
  }
  if (mapped == MAP_FAILED || mprotect(mapped, page, PROT_NONE) != 0) {
    if (mapped != MAP_FAILED) munmap(mapped, bytes + page);
    raise(
        "cannot map a stack: too many suspended continuations are alive, or address space is limited "
        "(ulimit -v, vm.max_map_count); resume or drop some of them");
  }
  reserved_bytes.fetch_add(bytes + page, std::memory_order_relaxed);
  char* mapping = static_cast<char*>(mapped);
  if (size_class == StackSize::large && bytes > 2 * kSmallPages) {
    madvise(mapping + page, bytes - kSmallPages, MADV_HUGEPAGE);  // only a wish
  }
  // The fiber's own record is at the top of its stack: no allocation, and the page is touched anyway.
  char* top = mapping + page + bytes - (sizeof(Fiber) + 63) / 64 * 64;
  auto* fiber = new (top) Fiber;
  fiber->size_class = size_class;
  fiber->mapping = mapping;
  fiber->mapped_bytes = bytes + page;
  fiber->low = mapping + page;
  fiber->high = top;
  fiber->context = ctx::make_fcontext(top, static_cast<std::size_t>(top - fiber->low), fiber_main);
  return *fiber;
}

}  // namespace

__attribute__((noinline)) ThreadState& this_thread() noexcept {
  asm volatile("" ::: "memory");
  ThreadState& thread = thread_state;
  if (thread.running == nullptr) [[unlikely]] {
    thread.running = &thread.root;
    thread.exceptions = reinterpret_cast<ExceptionState*>(abi::__cxa_get_globals());
    thread.number = next_thread_number.fetch_add(1, std::memory_order_relaxed);
  }
  return thread;
}

std::size_t memory_limit() noexcept {
  auto bytes = static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) * page_size();
  for (const char* path : {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    std::FILE* const file = std::fopen(path, "r");
    if (file == nullptr) continue;
    unsigned long long limit = 0;
    if (std::fscanf(file, "%llu", &limit) == 1 && limit > 0) bytes = std::min<std::size_t>(bytes, limit);
    std::fclose(file);
  }
  return bytes;
}

void collect_stacks() noexcept {
  if (!pools.closed) return;
  for (Pool& pool : pools.of_size) {
    while (Fiber* fiber = pool.pop()) unmap(*fiber);
  }
}

Fiber& Fiber::acquire(StackSize size, Fiber* (*entry)(Fiber&), void* argument) {
  Fiber* fiber = pools.of_size[static_cast<int>(size)].pop();
  if (fiber == nullptr) fiber = &make_fiber(size);
  fiber->entry = entry;
  fiber->argument = argument;
  fiber->ambient = this_thread().running->ambient;
  fiber->started = ticks();
  return *fiber;
}

}  // namespace lantern::core::control
