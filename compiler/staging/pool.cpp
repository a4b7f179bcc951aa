// Lists of free memory by size: one set a thread, and one for those that end.
#include "lantern/compiler/staging/pool.hpp"

#include <array>
#include <mutex>
#include <new>
#include <utility>

namespace lantern {

namespace {

constexpr std::size_t grain = 16, largest = 256, chunk_bytes = 1 << 16;

struct Free {
  Free* next;
};
using Lists = std::array<Free*, largest / grain + 1>;

/// What threads that have ended left. It outlives every thread.
struct Depot {
  std::mutex mutex;
  Lists lists{};
};
Depot& depot() {
  static Depot* const instance = new Depot;
  return *instance;
}

struct ThreadLists {
  Lists lists{};
  bool ended = false;
  ~ThreadLists() {
    ended = true;
    Depot& d = depot();
    const std::lock_guard lock(d.mutex);
    for (std::size_t i = 0; i < lists.size(); ++i)
      while (lists[i]) {
        Free* const next = lists[i]->next;
        lists[i]->next = d.lists[i];
        d.lists[i] = lists[i];
        lists[i] = next;
      }
  }
};

// Not inlined: a computation may move between stacks, and the address of a thread-local must not be cached.
[[gnu::noinline]] ThreadLists& mine() {
  thread_local ThreadLists instance;
  return instance;
}

Free* refill(std::size_t size_class) {
  Depot& d = depot();
  const std::lock_guard lock(d.mutex);
  if (d.lists[size_class]) return std::exchange(d.lists[size_class], nullptr);
  const std::size_t bytes = size_class * grain;
  char* const chunk = static_cast<char*>(::operator new(chunk_bytes));
  Free* list = nullptr;
  for (std::size_t at = chunk_bytes / bytes; at-- > 0;) list = ::new (chunk + at * bytes) Free{list};
  return list;
}

#if defined(__SANITIZE_ADDRESS__)
constexpr bool pooled = false;  // the sanitizer watches each object
#else
constexpr bool pooled = true;
#endif

}  // namespace

void* pool_take(std::size_t bytes) {
  if (!pooled || bytes == 0 || bytes > largest) return ::operator new(bytes);
  const std::size_t size_class = (bytes + grain - 1) / grain;
  Free*& list = mine().lists[size_class];
  if (!list) list = refill(size_class);
  return std::exchange(list, list->next);
}

void pool_give(void* memory, std::size_t bytes) noexcept {
  if (!pooled || bytes == 0 || bytes > largest) return ::operator delete(memory);
  const std::size_t size_class = (bytes + grain - 1) / grain;
  ThreadLists& own = mine();
  if (!own.ended) {
    own.lists[size_class] = ::new (memory) Free{own.lists[size_class]};
    return;
  }
  Depot& d = depot();
  const std::lock_guard lock(d.mutex);
  d.lists[size_class] = ::new (memory) Free{d.lists[size_class]};
}

}  // namespace lantern
