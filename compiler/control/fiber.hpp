// Fibers: stackful contexts on large, lazily committed stacks. The mechanism below shift and reset.
#pragma once

#include <boost/context/detail/fcontext.hpp>
#include <cstddef>
#include <cstdint>

#include "lantern/compiler/control/sanitizer.hpp"

namespace lantern::core::control {

struct Delimiter;
struct Mark;
struct Suspension;

// How much address space a stack reserves. Pages are committed when touched, so only addresses are spent.
enum class StackSize : std::uint8_t {
  body,   // gigabytes: the body of a reset; thousands may be alive at once
  large,  // tens of gigabytes: the resetter's side, deep recursive walks; about one a thread
};

// What the C++ runtime keeps of exceptions (__cxa_eh_globals, as the Itanium ABI lays it out): those being
// handled, innermost first, and how many are in flight.
struct ExceptionState {
  void* caught = nullptr;
  unsigned uncaught = 0;
};

// A stack and what must travel with it. The thread's own stack is represented by a Fiber without a mapping.
//
// Invariant: exactly one fiber of a thread runs; every other one is suspended inside switch_to. A fiber
// belongs to no thread: whoever switches to it continues it, with its own exception state and its own ambient
// pointer.
struct Fiber {
  void* context = nullptr;            // where to continue, while suspended
  Delimiter* delimiter = nullptr;     // the waiting frame below this fiber; null for a thread's own stack
  Mark* marks = nullptr;              // prompts whose shift function runs on this very stack
  Suspension* captured_by = nullptr;  // if it is the bottom of a captured chain: the request
  void* ambient = nullptr;            // see control_ambient()
  ExceptionState exceptions;          // while suspended
  char* low = nullptr;                // usable bounds of the stack; null for a thread's own
  char* high = nullptr;
  Fiber* (*entry)(Fiber& self) = nullptr;  // the work; returns the fiber to continue when it is done
  void* argument = nullptr;
  char* mapping = nullptr;  // what was mapped: the guard page, then the stack
  std::size_t mapped_bytes = 0;
  std::uint64_t started = 0;  // a time stamp, see release
  Fiber* next_free = nullptr;
  StackSize size_class = StackSize::body;
  SanitizerFiber sanitizer;

  // A fiber, pooled per thread, that runs `entry` when first switched to. It inherits the caller's ambient
  // pointer. When `entry` returns the fiber goes back to the pool by itself.
  // Error if no address space for a stack is left.
  static Fiber& acquire(StackSize size, Fiber* (*entry)(Fiber&), void* argument);
};

// A thread's part of the mechanism.
struct ThreadState {
  Fiber* running = nullptr;              // null until first asked for, see this_thread
  ExceptionState* exceptions = nullptr;  // the C++ runtime's own record
  std::uint64_t number = 0;              // shared by no two threads of the process
  Fiber root;                            // the thread's own stack
};

// Opaque to the optimiser: the address of a thread_local variable must be computed anew after a switch, as
// the fiber may be continued by another thread (to be unwound there). Do not keep the reference across a
// switch.
ThreadState& this_thread() noexcept;

// Bytes of memory that this process may have: what the machine has, or its control group, if that is less.
std::size_t memory_limit() noexcept;

// Unmaps the pooled stacks of a thread whose thread_local objects are being destroyed. No effect before.
void collect_stacks() noexcept;

// Suspends the running fiber and continues `target`; returns when somebody switches back.
// Inline, because after a switch every return is mispredicted: the fewer frames, the better.
__attribute__((always_inline)) inline void switch_to(ThreadState& thread, Fiber& target) noexcept {
  Fiber& self = *thread.running;
  self.exceptions = *thread.exceptions;
  *thread.exceptions = target.exceptions;
  thread.running = &target;
  before_switch(self.sanitizer, target.sanitizer, target.low, target.high);
  const auto transfer = boost::context::detail::jump_fcontext(target.context, &self);
  auto& previous = *static_cast<Fiber*>(transfer.data);
  previous.context = transfer.fctx;
  after_switch(self.sanitizer, previous.mapping == nullptr ? &previous.low : nullptr, &previous.high);
}

// Bytes left below the caller's frame on the running stack; 0 on a thread's own, whose size is not ours to
// know, and on one that somebody else switched to.
__attribute__((always_inline)) inline std::size_t stack_room(const Fiber& running) noexcept {
  const char* here = static_cast<const char*>(__builtin_frame_address(0));
  const bool ours = running.mapping != nullptr && here > running.low && here < running.high;
  return ours ? static_cast<std::size_t>(here - running.low) : 0;
}

}  // namespace lantern::core::control
