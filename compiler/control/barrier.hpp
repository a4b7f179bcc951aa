// Barriers: what a computation may capture.
//
// A library that runs a function given to it may want to know that the function uses the operations it was
// handed and no other control effects: that it neither reaches for handlers and resets further out, nor
// abandons the library's own frames. Run inside a barrier, it can capture only what lies inside; the
// operations open the barrier while they run.
//
//   Barrier barrier;
//   const auto ask = [&] { const Barrier::Opened during(barrier); return perform<Ask>(); };
//   barrier.run([&] { return ask() + 1; });           // passes
//   barrier.run([&] { return perform<Ask>() + 1; });  // Error
//
// This is the protocol of a Hazel specification, checked at run time: "whatever effects the operations
// perform, the function may perform, and no more" (de Vilhena and Pottier, "Verifying an Effect-Handler-Based
// Define-By-Run Reverse-Mode AD Library", Statement 2.2).
#pragma once

#include "lantern/compiler/control/shift.hpp"

namespace lantern::core {

namespace control {

// Runs `job(closure)` on a new fiber, until it ends. Captures across its delimiter raise while `open` is
// false.
void run_inside_barrier(const bool& open, void (*job)(void* closure), void* closure);

}  // namespace control

/// A boundary. It must outlive what runs inside.
class Barrier {
 public:
  Barrier() = default;
  Barrier(const Barrier&) = delete;
  Barrier& operator=(const Barrier&) = delete;

  /// Runs body() inside and returns what it returns; exceptions pass through. While the barrier is not open,
  /// a shift or perform inside whose reset or handler is outside is an Error.
  template <class F>
  std::invoke_result_t<F&> run(F&& body) {
    using R = std::invoke_result_t<F&>;
    if (!control::roomy()) {
      auto again = [&]() -> R { return run(body); };
      return control::on_large_stack_as<R>(again);
    }
    struct Job {
      F& body;
      control::Slot<R> result;
    } job{body, {}};
    control::run_inside_barrier(
        open_,
        [](void* closure) {
          auto& j = *static_cast<Job*>(closure);
          j.result.put([&]() -> R { return j.body(); });
        },
        &job);
    return job.result.take();
  }

  /// Opens the barrier for a scope: an operation the computation was given.
  class Opened {
   public:
    explicit Opened(Barrier& barrier) : barrier_(barrier), before_(std::exchange(barrier.open_, true)) {}
    Opened(const Opened&) = delete;
    Opened& operator=(const Opened&) = delete;
    ~Opened() { barrier_.open_ = before_; }

   private:
    Barrier& barrier_;
    bool before_;
  };

 private:
  bool open_ = false;
};

}  // namespace lantern::core
