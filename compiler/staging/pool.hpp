// Memory for small objects that eager derivatives make by the million.
#pragma once

#include <cstddef>

namespace lantern {

/// At least `bytes` of memory, from a list of the calling thread where it has some. Objects of up to 256
/// bytes are cut from chunks, which are kept until the program ends and are used again by later threads.
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

}  // namespace lantern
