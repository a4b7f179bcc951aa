// A stack of bytes, for records of many sizes that are left in the opposite order: tapes.
#pragma once

#include <cstddef>
#include <new>
#include <utility>

#include "lantern/compiler/control/pool.hpp"

namespace lantern::core {

/// Memory in blocks of the pool, taken as it grows and given back as it shrinks. A record lies in one piece.
class ByteStack {
 public:
  ByteStack() = default;
  ByteStack(ByteStack&& o) noexcept { swap(o); }
  ByteStack& operator=(ByteStack&& o) noexcept {
    swap(o);
    return *this;
  }
  ~ByteStack() {
    while (block_) drop();
  }

  bool empty() const { return block_ == nullptr; }

  /// `bytes` more at the top, aligned for every type.
  void* push(std::size_t bytes) {
    bytes = rounded(bytes);
    if (static_cast<std::size_t>(end_ - top_) < bytes) grow(bytes);
    void* const record = top_;
    top_ += bytes;
    return record;
  }
  /// The end of the record at the top: it lies below. The stack is not empty.
  char* top() const { return top_; }
  /// Takes the record of that size off the top.
  void pop(std::size_t bytes) {
    top_ -= rounded(bytes);
    if (top_ == reinterpret_cast<char*>(block_ + 1)) drop();
  }

 private:
  struct alignas(std::max_align_t) Block {
    Block* below;
    char *top, *end;  // of the block below
    std::size_t bytes;
  };
  static std::size_t rounded(std::size_t bytes) {
    constexpr std::size_t grain = alignof(std::max_align_t);
    return (bytes + grain - 1) / grain * grain;
  }
  void swap(ByteStack& o) noexcept {
    std::swap(block_, o.block_);
    std::swap(top_, o.top_);
    std::swap(end_, o.end_);
  }
  void grow(std::size_t record) {
    std::size_t bytes = block_ ? large_block : small_block;
    if (record > bytes - sizeof(Block)) bytes = record + sizeof(Block);
    block_ = ::new (pool_take(bytes)) Block{block_, top_, end_, bytes};
    top_ = reinterpret_cast<char*>(block_ + 1);
    end_ = reinterpret_cast<char*>(block_) + bytes;
  }
  void drop() {
    const Block gone = *block_;
    pool_give(block_, gone.bytes);
    block_ = gone.below;
    top_ = gone.top;
    end_ = gone.end;
  }

  Block* block_ = nullptr;
  char *top_ = nullptr, *end_ = nullptr;
};

}  // namespace lantern::core
