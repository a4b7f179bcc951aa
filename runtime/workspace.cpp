// Ownership of generated code's memory, and the way back from its failures.
#include "lantern/runtime/workspace.hpp"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <utility>

#if __has_include(<sys/mman.h>)
#include <sys/mman.h>
#endif

#include "lantern/ir/error.hpp"
#include "lantern/runtime/subnormals.hpp"
#include "lantern/runtime/team.hpp"

namespace lantern {

namespace {

/// The innermost call of this thread.
thread_local lt_workspace* running = nullptr;

/// The way back to the innermost call. Generated frames hold no destructors, so jumping over them is defined.
struct Landing {
  std::jmp_buf place;
  void* outer;
  Workspace* workspace;
};

void land(lt_workspace* ws, const char* message) {
  // The message may lie in the workspace itself or in the code; only its address has to survive the jump.
  if (message != ws->message) {
    std::size_t i = 0;
    for (; i + 1 < sizeof ws->message && message[i] != '\0'; ++i) ws->message[i] = message[i];
    ws->message[i] = '\0';
  }
  if (ws->host == nullptr) std::abort();
  std::longjmp(static_cast<Landing*>(ws->host)->place, 1);
}

/// Like realloc. Memory of many pages is asked for in large ones: it is touched in order, and a fault for
/// every page would cost the first call as much as filling it.
void* resize(void* memory, unsigned long bytes) {
  void* const result = std::realloc(memory, bytes);
#ifdef MADV_HUGEPAGE
  constexpr std::uintptr_t large = 4U << 20, page = 4096;
  if (result != nullptr && bytes >= large) {
    const std::uintptr_t begin = (reinterpret_cast<std::uintptr_t>(result) + page - 1) / page * page;
    const std::uintptr_t end = (reinterpret_cast<std::uintptr_t>(result) + bytes) / page * page;
    // Where it is refused, memory works all the same.
    static_cast<void>(madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE));
  }
#endif
  return result;
}

void fork(lt_workspace* ws, std::int64_t threads, std::int64_t count, void (*part)(lt_workspace*, void*),
          void* shares, std::int64_t bytes) {
  if (ws->host == nullptr) {  // nothing to make threads
    for (std::int64_t i = 0; i < count; ++i) part(ws, static_cast<char*>(shares) + i * bytes);
    return;
  }
  const char* const failure =
      static_cast<Landing*>(ws->host)->workspace->fork(threads, count, part, shares, bytes);
  if (failure != nullptr) ws->fail(ws, failure);
}

/// How far down the stack of this thread, one of a team, may be used.
char* end_of_own_stack() {
  thread_local char* const end = [] {
    constexpr std::size_t reserve = 64 * 1024;
    pthread_attr_t attributes;
    void* low = nullptr;
    std::size_t bytes = 0;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0) return static_cast<char*>(nullptr);
    if (pthread_attr_getstack(&attributes, &low, &bytes) != 0) low = nullptr;
    pthread_attr_destroy(&attributes);
    return low ? static_cast<char*>(low) + reserve : nullptr;
  }();
  return end;
}

/// False after a failure. Kept apart from the throwing caller: nothing here changes after setjmp.
bool run(lt_workspace* ws, Landing& landing, void (*body)(lt_workspace*, void*), void* data) {
  if (setjmp(landing.place) != 0) return false;
  body(ws, data);
  return true;
}

}  // namespace

Workspace::Workspace() : memory_{} {
  memory_.fail = land;
  memory_.resize = resize;
  memory_.fork = lantern::fork;
}

Workspace::~Workspace() {
  for (lt_chunk* chunk = memory_.first; chunk != nullptr;) {
    lt_chunk* next = chunk->next;
    std::free(chunk);
    chunk = next;
  }
  for (std::int64_t i = 0; i < memory_.tape_count; ++i) std::free(memory_.tapes[i].data);
  std::free(memory_.tapes);
}

void Workspace::reset() {
  // Without a chunk in use the next allocation starts again at the first one.
  memory_.chunk = nullptr;
  memory_.top = memory_.end = nullptr;
  memory_.unused = nullptr;
  for (std::int64_t i = 0; i < memory_.tape_count; ++i) memory_.tapes[i].used = 0;
  memory_.targets = nullptr;
}

/// However the code leaves, by its end or by a failure, it leaves through here.
bool Workspace::succeeds(void (*body)(lt_workspace*, void*), void* data, bool flush) {
  Landing landing;  // `place` is written by setjmp: clearing it would take longer than the call
  landing.outer = memory_.host;
  landing.workspace = this;
  memory_.host = &landing;
  const bool outer_flush = std::exchange(flush_, flush);
  const FlushSubnormals mode(flush);
  lt_workspace* const outer = std::exchange(running, &memory_);
  const bool done = run(&memory_, landing, body, data);
  running = outer;
  flush_ = outer_flush;
  memory_.host = landing.outer;
  return done;
}

int Workspace::call(void (*body)(lt_workspace*, void*), void* data) {
  if (!succeeds(body, data, flush_)) throw Error(memory_.message);
  return 0;
}

const char* Workspace::fork(std::int64_t threads, std::int64_t count, void (*part)(lt_workspace*, void*),
                            void* shares, std::int64_t bytes) {
  const auto n = static_cast<std::size_t>(threads);
  while (workers_.size() < n) workers_.push_back(std::make_unique<Workspace>());
  std::vector<std::atomic<bool>> begun(static_cast<std::size_t>(count));
  std::vector<std::int64_t> failed(n, count);  // by worker: in which share
  std::atomic<std::int64_t> first_failed{count};
  // False when there is nothing more to do: what lies behind a failure is of no use.
  const std::thread::id caller = std::this_thread::get_id();
  const auto do_share = [&](std::size_t w, std::int64_t i) {
    if (i >= first_failed.load(std::memory_order_relaxed)) return false;
    if (begun[static_cast<std::size_t>(i)].exchange(true, std::memory_order_relaxed)) return true;
    Workspace& worker = *workers_[w];
    worker.reset();
    if (memory_.stack_end != nullptr)
      worker.memory_.stack_end =
          std::this_thread::get_id() == caller ? memory_.stack_end : end_of_own_stack();
    if (worker.succeeds(part, static_cast<char*>(shares) + i * bytes, flush_)) return true;
    failed[w] = i;
    std::int64_t first = first_failed.load(std::memory_order_relaxed);
    while (i < first && !first_failed.compare_exchange_weak(first, i, std::memory_order_relaxed)) {
    }
    return false;
  };
  const auto work = [&](std::size_t w) {
    const auto own = static_cast<std::int64_t>(w);
    if (own < count && !do_share(w, own) && failed[w] == own) return;
    for (std::int64_t i = 0; i < count && do_share(w, i); ++i) {
    }
  };
  thread_local Team team;
  team.run(n, work);
  const auto first = std::min_element(failed.begin(), failed.end());
  return *first == count ? nullptr
                         : workers_[static_cast<std::size_t>(first - failed.begin())]->memory_.message;
}

int Workspace::call(lt_entry* entry, const void* const* in, void* const* out, lt_target* targets,
                    bool flush) {
  struct Call {
    lt_entry* entry;
    const void* const* in;
    void* const* out;
  } call{entry, in, out};
  reset();
  memory_.targets = targets;
  const auto enter = [](lt_workspace* ws, void* data) {
    const Call* c = static_cast<Call*>(data);
    c->entry(ws, c->in, c->out);
  };
  if (!succeeds(enter, &call, flush)) throw Error(memory_.message);
  return 0;
}

std::int64_t Workspace::peak_bytes() const {
  std::int64_t bytes = 0;
  for (const lt_chunk* chunk = memory_.first; chunk != nullptr; chunk = chunk->next) bytes += chunk->capacity;
  for (std::int64_t i = 0; i < memory_.tape_count; ++i) bytes += memory_.tapes[i].capacity;
  for (const auto& worker : workers_) bytes += worker->peak_bytes();
  return bytes;
}

}  // namespace lantern

extern "C" void lantern_fail(const char* message) {
  if (lantern::running != nullptr) lantern::running->fail(lantern::running, message);
  std::fprintf(stderr, "%s\n", message);
  std::exit(1);
}
