// Numbers below the smallest normal one, which many processors compute with a hundred times more slowly.
#pragma once

#include <cstdint>

namespace lantern {

/// While it lives, this thread's arithmetic takes subnormal numbers for zero and gives zero in their place:
/// flush-to-zero and denormals-are-zero of MXCSR on x86, FZ of FPCR on AArch64, elsewhere nothing. Then all
/// is as it was found. It costs a few nanoseconds; nothing where it is not wanted, or where it is so already.
class FlushSubnormals {
 public:
  explicit FlushSubnormals(bool wanted) {
    if (!wanted) return;
    found_ = read();
    changed_ = (found_ & flush) != flush;
    if (changed_) write(found_ | flush);
  }
  ~FlushSubnormals() {
    // What the code did to other bits, flags above all, stays.
    if (changed_) write((read() & ~flush) | (found_ & flush));
  }
  FlushSubnormals(const FlushSubnormals&) = delete;
  FlushSubnormals& operator=(const FlushSubnormals&) = delete;

#if defined __SSE2__
  using Word = std::uint32_t;
  static constexpr Word flush = 0x8040;
  /// The control word as it is; those of its bits that flush are `flush`.
  static Word read() { return __builtin_ia32_stmxcsr(); }
  static void write(Word word) { __builtin_ia32_ldmxcsr(word); }
#elif defined __aarch64__
  using Word = std::uint64_t;
  static constexpr Word flush = Word{1} << 24;
  static Word read() {
    Word word;
    asm volatile("mrs %0, fpcr" : "=r"(word));
    return word;
  }
  static void write(Word word) { asm volatile("msr fpcr, %0" : : "r"(word)); }
#else
  using Word = std::uint32_t;
  static constexpr Word flush = 0;
  static Word read() { return 0; }
  static void write(Word) {}
#endif

 private:
  Word found_ = 0;
  bool changed_ = false;
};

}  // namespace lantern
