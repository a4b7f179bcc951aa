// Races between the threads of a kernel, found by the launch emulator: this text behind launch_emulator.hpp, and both
// compiled with -fsanitize=thread, but not linked with its run time: the loads and stores of kernels come here.
//
// Two accesses to one address, one of them a store, are a race where nothing orders them: neither the thread, nor a
// barrier of the block, nor one of the warp, nor an atomic operation of the one thread (or block) behind its access and one of the
// other before its own (happens-before: Lamport, "Time, clocks, and the ordering of events in a distributed system", 1978; for
// barriers of GPUs: Zheng et al., "GRace", PPoPP 2011). Threads run one after the other here, so that a race is found
// whichever order it would have on a GPU. Accesses are told by their first address.
#ifdef LANTERN_EMBED_LAUNCH_EMULATOR
__asm__(
    ".pushsection .rodata\n"
    ".globl lantern_race_detector_begin\n"
    ".globl lantern_race_detector_end\n"
    "lantern_race_detector_begin:\n"
    ".incbin \"" __FILE__
    "\"\n"
    "lantern_race_detector_end:\n"
    ".byte 0\n"
    ".popsection\n");
#else
#define LANTERN_UNWATCHED __attribute__((no_sanitize("thread")))

namespace lantern_emulator {

struct Access {
  uint64_t block, time;  // time: how many atomic operations came before
  unsigned thread, block_epoch, warp_epoch;
  bool any;
};
struct Watched {
  uintptr_t address;
  uint64_t launch;
  Access store, loads[2];  // the last store, and the last loads of two threads
};

static Watched* watched = nullptr;  // open addressing
static size_t watched_size = 0, watched_count = 0;
static uint64_t* released = nullptr;  // of each block: the time of its last atomic operation
static uint64_t released_size = 0, races_launch = 0;
static uint64_t thread_released[most_threads], thread_acquired[most_threads];  // the same of the threads of the running block
static bool within = false;

LANTERN_UNWATCHED static Watched* watched_at(uintptr_t address) {
  if (2 * watched_count >= watched_size) {
    Watched* const old = watched;
    const size_t old_size = watched_size;
    watched_size = watched_size ? 2 * watched_size : 4096;
    watched = static_cast<Watched*>(calloc(watched_size, sizeof(Watched)));
    for (size_t i = 0; i < old_size; ++i) {
      if (!old[i].address) continue;
      size_t at = (old[i].address * 0x9E3779B97F4A7C15u >> 20) & (watched_size - 1);
      while (watched[at].address) at = (at + 1) & (watched_size - 1);
      watched[at] = old[i];
    }
    free(old);
  }
  size_t at = (address * 0x9E3779B97F4A7C15u >> 20) & (watched_size - 1);
  while (watched[at].address && watched[at].address != address) at = (at + 1) & (watched_size - 1);
  Watched* const w = watched + at;
  if (!w->address) {
    w->address = address;
    ++watched_count;
    w->launch = 0;
  }
  if (w->launch != races_launch) {
    w->launch = races_launch;
    w->store.any = w->loads[0].any = w->loads[1].any = false;
  }
  return w;
}

LANTERN_UNWATCHED static bool in_shared(uintptr_t p) {
  const auto in = [=](const char* from, const char* to) __attribute__((no_sanitize("thread"))) {
    return p >= reinterpret_cast<uintptr_t>(from) && p < reinterpret_cast<uintptr_t>(to);
  };
  return (__start_lantern_shared && in(__start_lantern_shared, __stop_lantern_shared)) ||
         in(dynamic_memory, dynamic_memory + sizeof dynamic_memory);
}
LANTERN_UNWATCHED static bool in_device(uintptr_t p) {
  const Allocation* const all = allocations.data();
  for (size_t i = 0; i < allocations.size(); ++i)
    if (p >= reinterpret_cast<uintptr_t>(all[i].data) && p < reinterpret_cast<uintptr_t>(all[i].data) + all[i].bytes) return true;
  return false;
}

// Whether what was done before is ordered before what the running thread does now.
LANTERN_UNWATCHED static bool ordered(const Access& before, const Access& now, bool shared) {
  if (!before.any) return true;
  if (before.block != now.block) return shared || (released[before.block] > before.time && block_acquired > released[before.block]);
  const uint64_t release = thread_released[before.thread];
  return before.thread == now.thread || before.block_epoch < now.block_epoch || (release > before.time && thread_acquired[now.thread] > release) ||
         (before.thread / 32 == now.thread / 32 && before.warp_epoch < now.warp_epoch);
}

LANTERN_UNWATCHED static void access(uintptr_t p, int bytes, bool stores) {
  if (!running || !in_launch || quiet || within) return;
  within = true;
  const bool shared = in_shared(p);
  if (shared || in_device(p)) {
    if (races_launch != static_cast<uint64_t>(launches)) {
      races_launch = static_cast<uint64_t>(launches);
      const uint64_t blocks = uint64_t(gridDim.x) * gridDim.y * gridDim.z;
      free(released);
      released = static_cast<uint64_t*>(calloc(blocks, sizeof(uint64_t)));
      released_size = blocks;
    }
    Watched* const w = watched_at(p);
    const Access now = {block_number, atomics, running->thread, block_epoch, warp_epochs[running->thread / 32], true};
    const Access* other = nullptr;
    if (!ordered(w->store, now, shared)) other = &w->store;
    if (stores)
      for (int i = 0; i < 2; ++i)
        if (!ordered(w->loads[i], now, shared)) other = &w->loads[i];
    if (other && !report_text[0])
      report(cudaErrorLaunchFailure, "race: thread %u of block %llu %s at %p what thread %u of block %llu %s", now.thread,
             (unsigned long long)now.block, stores ? "stores" : "loads", reinterpret_cast<void*>(p), other->thread,
             (unsigned long long)other->block, other == &w->store ? "stores" : "loads");
    // A launch moves an element once in each direction; what it has stored it need not load.
    if (!shared && !w->store.any && (stores || !w->loads[0].any)) touched += bytes;
    if (stores) {
      w->store = now;
      w->loads[0].any = w->loads[1].any = false;
    } else {
      const int at = !w->loads[0].any || (w->loads[0].block == now.block && w->loads[0].thread == now.thread) ? 0 : 1;
      w->loads[at] = now;
    }
  }
  within = false;
}

LANTERN_UNWATCHED inline void note_atomic() {
  if (!running || !in_launch) return;
  block_acquired = ++atomics;
  thread_released[running->thread] = atomics;
  if (released && races_launch == static_cast<uint64_t>(launches) && block_number < released_size) released[block_number] = atomics;
  block_acquired = thread_acquired[running->thread] = ++atomics;
}

}  // namespace lantern_emulator

#define LANTERN_ACCESS(name, bytes, stores) \
  extern "C" LANTERN_UNWATCHED void name(void* p) { lantern_emulator::access(reinterpret_cast<uintptr_t>(p), bytes, stores); }
#define LANTERN_ACCESSES(bytes)                     \
  LANTERN_ACCESS(__tsan_read##bytes, bytes, false)         \
  LANTERN_ACCESS(__tsan_write##bytes, bytes, true)         \
  LANTERN_ACCESS(__tsan_volatile_read##bytes, bytes, false) \
  LANTERN_ACCESS(__tsan_volatile_write##bytes, bytes, true) \
  LANTERN_ACCESS(__tsan_unaligned_read##bytes, bytes, false) \
  LANTERN_ACCESS(__tsan_unaligned_write##bytes, bytes, true)
LANTERN_ACCESSES(1)
LANTERN_ACCESSES(2)
LANTERN_ACCESSES(4)
LANTERN_ACCESSES(8)
LANTERN_ACCESSES(16)
extern "C" {
LANTERN_UNWATCHED void __tsan_init() {}
LANTERN_UNWATCHED void __tsan_func_entry(void*) {}
LANTERN_UNWATCHED void __tsan_func_exit() {}
LANTERN_UNWATCHED void __tsan_vptr_update(void**, void*) {}
LANTERN_UNWATCHED void __tsan_vptr_read(void**) {}
LANTERN_UNWATCHED void __tsan_read_range(void*, unsigned long) {}
LANTERN_UNWATCHED void __tsan_write_range(void*, unsigned long) {}
// Clang's names for what g++ leaves to the library.
LANTERN_UNWATCHED void* __tsan_memcpy(void* to, const void* from, unsigned long n) { return memcpy(to, from, n); }
LANTERN_UNWATCHED void* __tsan_memmove(void* to, const void* from, unsigned long n) { return memmove(to, from, n); }
LANTERN_UNWATCHED void* __tsan_memset(void* to, int byte, unsigned long n) { return memset(to, byte, n); }
LANTERN_UNWATCHED int __tsan_atomic32_fetch_add(volatile int* p, int v, int) { return __sync_fetch_and_add(p, v); }
}
#endif
