// Lists of free memory by size: one set a thread, and one for those that end.
#include "lantern/compiler/control/pool.hpp"

#include <sys/mman.h>

#include <array>
#include <iterator>
#include <mutex>
#include <new>
#include <utility>

#include "lantern/compiler/control/sanitizer.hpp"

namespace lantern::core {

namespace {

constexpr std::size_t grain = 16, largest = 256, chunk_bytes = 1 << 16;
constexpr std::size_t small_classes = largest / grain + 1;  // by size; then a class for each of the blocks
constexpr std::size_t blocks[] = {small_block, large_block};

constexpr std::size_t large_page = std::size_t{1} << 21, region_bytes = 16 * large_page,
                      ordinary_pages = 4 * large_page;

struct Free {
  Free* next;
};
using Lists = std::array<Free*, small_classes + std::size(blocks)>;

/// What threads that have ended left, and where new memory comes from. It outlives every thread.
struct Depot {
  std::mutex mutex;
  Lists lists{};
  std::size_t taken = 0;                          // bytes
  char *region = nullptr, *region_end = nullptr;  // what is left of the last one
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

/// Memory for a list. Where there is much already, it comes in regions of the large pages of the system, as
/// far as that has some: a large derivative walks through all of it twice, and would wait for page tables.
char* fresh(Depot& d, std::size_t bytes) {
  d.taken += bytes;
  if (d.taken < ordinary_pages) return static_cast<char*>(::operator new(bytes));
  if (static_cast<std::size_t>(d.region_end - d.region) < bytes) {
    d.region = static_cast<char*>(::operator new(region_bytes, std::align_val_t(large_page)));
    d.region_end = d.region + region_bytes;
    madvise(d.region, region_bytes, MADV_HUGEPAGE);  // only a wish
  }
  return std::exchange(d.region, d.region + bytes);
}

Free* refill(std::size_t size_class) {
  Depot& d = depot();
  const std::lock_guard lock(d.mutex);
  if (d.lists[size_class]) return std::exchange(d.lists[size_class], nullptr);
  if (size_class >= small_classes) return ::new (fresh(d, blocks[size_class - small_classes])) Free{nullptr};
  const std::size_t bytes = size_class * grain;
  char* const chunk = fresh(d, chunk_bytes);
  Free* list = nullptr;
  for (std::size_t at = chunk_bytes / bytes; at-- > 0;) list = ::new (chunk + at * bytes) Free{list};
  return list;
}

constexpr bool pooled = !control::kSanitizer;  // a sanitizer watches each object

/// The list for objects of that size; 0: none.
std::size_t class_of(std::size_t bytes) {
  if (!pooled) return 0;
  if (bytes <= largest) return (bytes + grain - 1) / grain;
  for (std::size_t i = 0; i < std::size(blocks); ++i)
    if (bytes == blocks[i]) return small_classes + i;
  return 0;
}

}  // namespace

void* pool_take(std::size_t bytes) {
  const std::size_t size_class = class_of(bytes);
  if (size_class == 0) return ::operator new(bytes);
  Free*& list = mine().lists[size_class];
  if (!list) list = refill(size_class);
  return std::exchange(list, list->next);
}

void pool_give(void* memory, std::size_t bytes) noexcept {
  const std::size_t size_class = class_of(bytes);
  if (size_class == 0) return ::operator delete(memory);
  ThreadLists& own = mine();
  if (!own.ended) {
    own.lists[size_class] = ::new (memory) Free{own.lists[size_class]};
    return;
  }
  Depot& d = depot();
  const std::lock_guard lock(d.mutex);
  d.lists[size_class] = ::new (memory) Free{d.lists[size_class]};
}

}  // namespace lantern::core
