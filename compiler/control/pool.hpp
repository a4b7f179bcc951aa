// Memory for small objects that eager derivatives make by the million.
#pragma once

#include <cstddef>

namespace lantern::core {

/// The sizes of blocks that are kept as well.
inline constexpr std::size_t small_block = std::size_t{1} << 11, large_block = std::size_t{1} << 16;

/// At least `bytes` of memory, from a list of the calling thread where it has some. Objects of up to 256
/// bytes are cut from chunks, which like blocks are kept until the program ends and are used again by later
/// threads: the pages of a large derivative are touched for the first time once.
void* pool_take(std::size_t bytes);
/// Gives memory of that size back, to any thread's list.
void pool_give(void* memory, std::size_t bytes) noexcept;

/// The pool as an allocator.
template <class T>
struct PoolAllocator {
  using value_type = T;
  PoolAllocator() = default;
  template <class U>
  PoolAllocator(const PoolAllocator<U>&) {}
  T* allocate(std::size_t n) { return static_cast<T*>(pool_take(n * sizeof(T))); }
  void deallocate(T* p, std::size_t n) noexcept { pool_give(p, n * sizeof(T)); }
  template <class U>
  bool operator==(const PoolAllocator<U>&) const {
    return true;
  }
};

}  // namespace lantern::core
