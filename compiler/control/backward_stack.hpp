// What is to be done when the rest of a program has ended: functions of many types, the last one first.
#pragma once

#include <cstddef>
#include <new>
#include <type_traits>
#include <utility>

#include "lantern/compiler/control/byte_stack.hpp"

namespace lantern::core::control {

/// Functions that wait, for example for the answer of a delimiter. Those that never run are destroyed in the
/// same order.
class BackwardStack {
 public:
  BackwardStack() = default;
  BackwardStack(BackwardStack&&) noexcept = default;
  BackwardStack& operator=(BackwardStack&& o) noexcept {
    clear();
    stack_ = std::move(o.stack_);
    return *this;
  }
  ~BackwardStack() { clear(); }

  template <class F>
  void push(F&& f) {
    using Function = std::decay_t<F>;
    static_assert(alignof(Function) <= alignof(Head));
    constexpr std::size_t below = (sizeof(Function) + alignof(Head) - 1) / alignof(Head) * alignof(Head);
    constexpr std::size_t bytes = below + sizeof(Head);
    char* const record = static_cast<char*>(stack_.push(bytes));
    try {
      ::new (static_cast<void*>(record)) Function(std::forward<F>(f));
    } catch (...) {
      stack_.pop(bytes);
      throw;
    }
    const auto leave = [](char* head, bool run) {
      struct Own {
        Function& f;
        ~Own() { f.~Function(); }
      } own{*std::launder(reinterpret_cast<Function*>(head - below))};
      if (run) own.f();
    };
    ::new (static_cast<void*>(record + below)) Head{leave, bytes};
  }

  /// Runs all of them.
  void run() {
    while (!stack_.empty()) pop(true);
  }
  /// Destroys all of them.
  void clear() noexcept {
    while (!stack_.empty()) pop(false);
  }

 private:
  /// Above the function in a record.
  struct alignas(std::max_align_t) Head {
    void (*leave)(char* head, bool run);  // destroys the function; before that, perhaps, runs it
    std::size_t bytes;
  };
  void pop(bool run) {
    char* const at = stack_.top() - sizeof(Head);
    const Head head = *std::launder(reinterpret_cast<Head*>(at));
    struct Pop {
      ByteStack& stack;
      std::size_t bytes;
      ~Pop() { stack.pop(bytes); }
    } pop{stack_, head.bytes};
    head.leave(at, run);
  }

  ByteStack stack_;
};

}  // namespace lantern::core::control
