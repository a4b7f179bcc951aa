// What AddressSanitizer and ThreadSanitizer must be told about fibers. Without them everything here is empty.
#pragma once

#include <cstddef>

#if defined(__SANITIZE_ADDRESS__)
#define LANTERN_ADDRESS_SANITIZER 1
#elif defined(__SANITIZE_THREAD__)
#define LANTERN_THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define LANTERN_ADDRESS_SANITIZER 1
#elif __has_feature(thread_sanitizer)
#define LANTERN_THREAD_SANITIZER 1
#endif
#endif

#if defined(LANTERN_ADDRESS_SANITIZER)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#elif defined(LANTERN_THREAD_SANITIZER)
#include <sanitizer/tsan_interface.h>
#endif

namespace lantern::core::control {

// Both watch each object, wherever it lies, and keep a shadow of the memory that is in use.
#if defined(LANTERN_ADDRESS_SANITIZER) || defined(LANTERN_THREAD_SANITIZER)
inline constexpr bool kSanitizer = true;
#else
inline constexpr bool kSanitizer = false;
#endif

#if defined(LANTERN_ADDRESS_SANITIZER)

inline constexpr bool kAddressSanitizer = true;

struct SanitizerFiber {
  void* fake_stack = nullptr;
};

inline void before_switch(SanitizerFiber& self, SanitizerFiber&, char* low, char* high) noexcept {
  __sanitizer_start_switch_fiber(&self.fake_stack, low, static_cast<std::size_t>(high - low));
}

// `low` and `high` receive the bounds of the stack that was left, if it is a thread's own: only the sanitizer
// knows them.
inline void after_switch(SanitizerFiber& self, char** low, char** high) noexcept {
  const void* bottom = nullptr;
  std::size_t size = 0;
  __sanitizer_finish_switch_fiber(self.fake_stack, &bottom, &size);
  if (low == nullptr) return;
  *low = static_cast<char*>(const_cast<void*>(bottom));
  *high = *low + size;
}

// To be called before a stack is unmapped, with the part that may hold live frames: those of the idle fiber.
inline void forget_stack(SanitizerFiber&, char* low, char* high) noexcept {
  __asan_unpoison_memory_region(low, static_cast<std::size_t>(high - low));
}

#elif defined(LANTERN_THREAD_SANITIZER)

inline constexpr bool kAddressSanitizer = false;

// What ThreadSanitizer calls a fiber: made when first switched to. A thread's own has one from the start.
struct SanitizerFiber {
  void* fiber = nullptr;
};

__attribute__((always_inline)) inline void before_switch(SanitizerFiber& self, SanitizerFiber& target, char*,
                                                         char*) noexcept {
  if (self.fiber == nullptr) self.fiber = __tsan_get_current_fiber();
  if (target.fiber == nullptr) target.fiber = __tsan_create_fiber(0);
  __tsan_switch_to_fiber(target.fiber, 0);
}
inline void after_switch(SanitizerFiber&, char**, char**) noexcept {}
inline void forget_stack(SanitizerFiber& self, char*, char*) noexcept {
  if (self.fiber != nullptr) __tsan_destroy_fiber(self.fiber);
}

#else

inline constexpr bool kAddressSanitizer = false;

struct SanitizerFiber {};

inline void before_switch(SanitizerFiber&, SanitizerFiber&, char*, char*) noexcept {}
inline void after_switch(SanitizerFiber&, char**, char**) noexcept {}
inline void forget_stack(SanitizerFiber&, char*, char*) noexcept {}

#endif

}  // namespace lantern::core::control
