// reset and shift, with many prompts and one-shot continuations, over stackful fibers.
//
// Sources: Danvy and Filinski, "Abstracting Control" (1990), for shift and reset; Dybvig, Peyton Jones and
// Sabry, "A Monadic Framework for Delimited Continuations" (2007), for prompts; the Lantern paper,
// sections 3.2 and 3.3, for reverse mode written with them.
//
//   double gradient = 0;
//   Prompt<void> p;
//   reset(p, [&] {
//     double y = shift<double>(p, [&gradient](auto k) {  // runs outside the frames it has just captured
//       k(3.0);                                          // the rest of the reset, up to its end
//       gradient += 1;                                   // after the rest of the program
//     });
//     use(y);
//   });
//
// What holds everywhere:
// - reset runs its body on a stack of its own. shift suspends everything between itself and the reset,
// without
//   copying, and runs its function on the resetter's side. The reset stays around that function and around
//   the resumed continuation.
// - Closures given to reset and shift are moved away (copied from an lvalue) and outlive the frame that made
//   them: capture locals of the frame that calls shift by value.
// - A continuation is resumed at most once. One that is dropped unwinds the captured frames, so that
//   destructors run, by an exception of a private type: `catch (...)` in captured code must rethrow it;
//   swallowing it ends the program with a message.
// - An exception that leaves the body, or a function given to shift, or a resumed continuation, reaches
//   whoever waits for the answer: the caller of k(v), or the caller of reset.
// - The exception being handled belongs to the stack that handles it: `throw;` inside a catch block may
// follow
//   any number of operations, but a reset's body cannot rethrow what its caller is handling.
// - Continuations stay in the thread that captured them, where they may be kept and resumed late. The one
//   exception: if the function given to shift itself shifts to the same reset, then what that captures is
//   unwound, and can no longer be resumed, when the inner function returns.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <new>
#include <type_traits>
#include <typeinfo>
#include <utility>

#include "lantern/compiler/control/backward_stack.hpp"

namespace lantern::core {

template <class A, class R>
class Continuation;

// The type-erased core. Not for users.
namespace control {

using PromptId = std::uint64_t;

/// Represents the value of a shift that expects none.
struct Nothing {};

struct EffectId;
struct Fiber;
struct Handler;
struct Mark;

// The prompt of reset(body) and shift<A>(f), which name none.
inline constexpr PromptId kImplicitPrompt = 1;

// A request to capture, in the frame that made it. It stays there, on the captured stack, until that is
// resumed.
struct Suspension {
  // Called on the resetter's side: fills the answer, or resumes the computation and returns its next request.
  Suspension* (*run)(Suspension& self, void* answer) = nullptr;
  Fiber* top = nullptr;                                   // where the request was made
  Fiber* bottom = nullptr;                                // the reset's own fiber
  Handler* handler = nullptr;                             // the effect handler that is the delimiter, or null
  Mark** marks = nullptr;                                 // of the fiber on which `run` is called
  Suspension** holder = nullptr;                          // where the continuation keeps its pointer to this
  PromptId prompt = 0;
  std::uint64_t thread = 0;
  bool unwind = false;  // resumed only to run destructors
};

// Room for a T that is made on one stack and taken on another. `put` constructs in place from what `make`
// returns.
template <class T>
class Slot {
 public:
  Slot() noexcept {}
  Slot(const Slot&) = delete;
  Slot& operator=(const Slot&) = delete;
  ~Slot() {}
  template <class Make>
  void put(Make&& make) {
    ::new (static_cast<void*>(std::addressof(value_))) T(std::forward<Make>(make)());
  }
  T take() {
    struct Destroy {
      T* value;
      ~Destroy() { value->~T(); }
    } destroy{std::addressof(value_)};
    return std::move(value_);
  }

 private:
  union {
    T value_;
  };
};

template <class T>
class Slot<T&> {
 public:
  template <class Make>
  void put(Make&& make) {
    value_ = std::addressof(std::forward<Make>(make)());
  }
  T& take() const { return *value_; }

 private:
  T* value_ = nullptr;
};

template <>
class Slot<void> {
 public:
  template <class Make>
  void put(Make&& make) {
    static_cast<void>(std::forward<Make>(make)());
  }
  void take() const {}
};

struct Split;

// The prompt is installed on the running stack itself, while the function given to shift runs there.
struct Mark {
  Mark(const Suspension& request, void* where) noexcept
      : head(request.marks), below(*head), prompt(request.prompt), answer(where) {
    below_distinct = below != nullptr && below->prompt == prompt ? below->below_distinct : below;
    *head = this;
  }
  ~Mark() { *head = below; }
  Mark(const Mark&) = delete;
  Mark& operator=(const Mark&) = delete;
  Mark** head;
  Mark* below;
  Mark* below_distinct;  // the nearest for another prompt: a million operations of one reset are one step
  PromptId prompt;
  void* answer;            // of the reset
  Split* split = nullptr;  // set when the function was itself captured up to this mark
};

// The function has ended, on a stack split at its mark: who waits for its answer, then the rest of the stack.
// record_failure stores the exception being handled in place of the answer; finish_split returns when the
// function that captured this one has filled mark.answer, or throws what it threw.
void* answer_above(const Mark& mark) noexcept;
void record_failure(const Mark& mark) noexcept;
void finish_split(Mark& mark);

PromptId fresh_prompt() noexcept;

// Whether this stack is one of ours and long enough to go on. If not, go on within on_large_stack.
bool roomy() noexcept;
// Whether it has gigabytes left.
bool spacious() noexcept;
// How much of one stack a recursion may take: half of the memory of this process, at most 4 GB. Whether the
// running stack has grown beyond that, or is as large as the system lets a stack be and full; and the lowest
// address that it may grow to, null on a thread's own.
std::size_t most_stack() noexcept;
bool stack_exhausted() noexcept;
// How much of the running stack is used; 0 on a thread's own.
std::size_t stack_used() noexcept;
char* stack_end() noexcept;
void on_large_stack(void (*f)(void* closure), void* closure);

// Runs `job(closure)` on a new fiber delimited by `prompt` and `handler`, until it ends or captures up to
// here. Returns the request to run, or null if `answer` has been filled; throws what left the job. What is to
// be done when the answer is there is added to `deferred`, if that is not null.
Suspension* start(PromptId prompt, Handler* handler, void (*job)(void* closure), void* closure, void* answer,
                  BackwardStack* deferred);

// Continues a captured computation below a delimiter like the one it was captured up to. Returns as start
// does.
Suspension* resume(Suspension& captured, void* answer, BackwardStack* deferred);

// False if this stack is not roomy. Error if `captured` is null or belongs to another thread.
bool may_resume(const Suspension* captured);

// Resumes only to unwind.
void drop(Suspension& captured) noexcept;

// Captures up to the delimiter; returns when resumed. Error if there is none.
void suspend_to_prompt(Suspension& request, PromptId prompt);
void suspend_to_handler(Suspension& request, const EffectId& effect, const std::type_info& name);
// Whether there is a handler that would be the delimiter.
bool handled(const EffectId& effect);

// Where the nearest delimiter of the prompt keeps what is to be done when its answer is there; null if the
// prompt is installed on a running stack, below a function given to shift. Error if it is not installed.
BackwardStack* deferred_at(PromptId prompt);

// In a job: where its answer goes, which changes each time it is captured and resumed.
void* current_answer() noexcept;
// In a job: what it does from now on is no longer delimited.
void disable_delimiter() noexcept;

template <class R>
R settle(Slot<R>& answer, Suspension* request) {
  while (request != nullptr) request = request->run(*request, &answer);
  return answer.take();
}

template <class R, class F>
R on_large_stack_as(F& f) {
  struct Call {
    F& f;
    Slot<R> result;
  } call{f, {}};
  on_large_stack(
      [](void* closure) {
        auto& c = *static_cast<Call*>(closure);
        c.result.put(c.f);
      },
      &call);
  return call.result.take();
}

// The body of a reset, on its way from the caller's stack to its own.
template <class R, class F>
struct Body {
  F&& f;

  static void job(void* closure) {
    // Moved here because a continuation may live longer than the caller of reset.
    std::decay_t<F> body(std::forward<F>(static_cast<Body*>(closure)->f));
    Slot<R> result;
    result.put([&]() -> R { return std::invoke(body); });
    static_cast<Slot<R>*>(current_answer())->put([&]() -> R { return result.take(); });
  }
};

template <class R, class F>
R delimit(PromptId prompt, F&& f) {
  if (!roomy()) {
    auto again = [&]() -> R { return delimit<R>(prompt, std::forward<F>(f)); };
    return on_large_stack_as<R>(again);
  }
  Slot<R> answer;
  Body<R, F> body{std::forward<F>(f)};
  if constexpr (std::is_void_v<R>) {
    BackwardStack deferred;
    settle(answer, start(prompt, nullptr, &Body<R, F>::job, &body, &answer, &deferred));
    deferred.run();
  } else {
    return settle(answer, start(prompt, nullptr, &Body<R, F>::job, &body, &answer, nullptr));
  }
}

// The frame of a shift whose function is an F.
template <class A, class R, class F>
struct Shift : Suspension {
  explicit Shift(F&& f) : function(std::forward<F>(f)) { run = &Shift::call; }
  F&& function;
  Slot<A> value;

  static Suspension* call(Suspension& self, void* answer) {
    auto& request = static_cast<Shift&>(self);
    auto& result = *static_cast<Slot<R>*>(answer);
    Mark inside(self, answer);
    bool failed = false;
    try {
      Continuation<A, R> k(self, request.value);
      std::decay_t<F> f(std::forward<F>(request.function));  // resuming k ends the frame it was made in
      result.put([&]() -> R { return std::invoke(f, std::move(k)); });
    } catch (...) {
      if (inside.split == nullptr) throw;
      record_failure(inside);
      failed = true;
    }
    if (inside.split != nullptr) [[unlikely]] {
      if (!failed) static_cast<Slot<R>*>(answer_above(inside))->put([&]() -> R { return result.take(); });
      finish_split(inside);
    }
    return nullptr;
  }
};

template <class A, class R, class F>
A shift_to(PromptId prompt, F&& f) {
  static_assert(
      std::is_invocable_r_v<R, std::decay_t<F>&, Continuation<A, R>>,
      "the function given to shift takes a Continuation<A, R> (by value; `auto k` will do) and returns R, "
      "the answer type of the prompt");
  Shift<A, R, F> request(std::forward<F>(f));
  suspend_to_prompt(request, prompt);
  return request.value.take();
}

}  // namespace control

/// The identity of a delimiter whose answers have type R (void allowed). Cheap; each one made is new.
template <class R>
class Prompt {
 public:
  Prompt() noexcept : id_(control::fresh_prompt()) {}
  Prompt(const Prompt&) = delete;
  Prompt& operator=(const Prompt&) = delete;
  control::PromptId id() const noexcept { return id_; }

 private:
  control::PromptId id_;
};

/// The rest of a computation, from a shift that expects an A up to the end of its reset, which answers an R.
/// Move-only. Destroying one that was not resumed unwinds the captured frames there and then.
template <class A, class R>
class Continuation {
 public:
  using Value = std::conditional_t<std::is_void_v<A>, control::Nothing, A>;

  Continuation() noexcept = default;
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdangling-pointer"  // a move or the destructor ends the use of `holder`
#endif
  Continuation(control::Suspension& captured, control::Slot<A>& value) noexcept
      : captured_(&captured), value_(&value) {
    captured.holder = &captured_;
  }
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif
  Continuation(Continuation&& other) noexcept { take(other); }
  Continuation& operator=(Continuation&& other) noexcept {
    if (this != &other) {
      drop();
      take(other);
    }
    return *this;
  }
  ~Continuation() { drop(); }

  /// Resumes with `value` as the result of the shift and waits for the answer of the reset, which is
  /// installed around it anew: here, wherever that is. Throws what leaves the computation. Error if it was
  /// resumed or moved from before, or belongs to another thread.
  R operator()(Value value) requires(!std::is_void_v<A>) {
    return resume_with([&]() -> A { return std::forward<A>(value); });
  }
  R operator()() requires std::is_void_v<A> {
    return resume_with([] {});
  }

  /// Whether it can still be resumed.
  explicit operator bool() const noexcept { return captured_ != nullptr; }

 private:
  template <class Make>
  R resume_with(Make make) {
    if (!control::may_resume(captured_)) {
      auto again = [&]() -> R { return resume_with(make); };
      return control::on_large_stack_as<R>(again);
    }
    value_->put(make);
    control::Slot<R> answer;
    if constexpr (std::is_void_v<R>) {
      control::BackwardStack deferred;
      control::settle(answer, control::resume(*std::exchange(captured_, nullptr), &answer, &deferred));
      deferred.run();
    } else {
      return control::settle(answer, control::resume(*std::exchange(captured_, nullptr), &answer, nullptr));
    }
  }
  void take(Continuation& other) noexcept {
    captured_ = std::exchange(other.captured_, nullptr);
    value_ = other.value_;
    if (captured_ != nullptr) captured_->holder = &captured_;
  }
  void drop() noexcept {
    if (captured_ != nullptr) control::drop(*std::exchange(captured_, nullptr));
  }

  control::Suspension* captured_ = nullptr;
  control::Slot<A>* value_ = nullptr;
};

/// Runs `body() -> R` delimited by `prompt`, and returns its answer: what the body returns, or what a
/// function given to shift returned instead.
template <class R, class F>
R reset(Prompt<R>& prompt, F&& body) {
  static_assert(std::is_invocable_r_v<R, std::decay_t<F>&>,
                "the body of a reset takes no argument and returns the answer type of its prompt");
  return control::delimit<R>(prompt.id(), std::forward<F>(body));
}

/// Captures the computation up to the nearest enclosing reset of `prompt` as k, and runs f(k) in its place,
/// inside that reset. Returns what k is resumed with. `f` is moved to the resetter's stack: capture by value.
/// Error if no reset of `prompt` is active, or it is active in another thread.
template <class A, class R, class F>
A shift(Prompt<R>& prompt, F&& f) {
  return control::shift_to<A, R>(prompt.id(), std::forward<F>(f));
}

/// What shift<void>(prompt, [f](auto k) { k(); f(); }) does, and nothing is captured for it: f() runs when
/// the rest of the computation, up to the end of the reset, has ended; what was deferred last runs first. If
/// an exception ends the reset it does not run. A function that resumes at once needs no stack while the rest
/// of the program runs, and no switch to another: reverse mode takes one such step for every operation. That
/// the program's own stack is gone when f runs is the one difference: f cannot capture up to this reset.
/// Error as for shift.
template <class F>
void defer(Prompt<void>& prompt, F&& f) {
  if (control::BackwardStack* const deferred = control::deferred_at(prompt.id())) {
    deferred->push(std::forward<F>(f));
  } else {
    shift<void>(prompt, [f = std::decay_t<F>(std::forward<F>(f))](auto k) mutable {
      k();
      f();
    });
  }
}

/// The form for one delimiter: shift<A>(f) captures up to the innermost reset(body). Answers are void.
template <std::invocable F>
void reset(F&& body) {
  control::delimit<void>(control::kImplicitPrompt, std::forward<F>(body));
}
template <class A, class F>
A shift(F&& f) {
  return control::shift_to<A, void>(control::kImplicitPrompt, std::forward<F>(f));
}

/// Runs f() on a stack of tens of gigabytes, committed as it is used: for recursive walks and deep generated
/// code. Calls it directly where the stack is already one of that kind. Returns what it returns; exceptions
/// pass through.
template <class F>
std::invoke_result_t<F&> run_on_large_stack(F&& f) {
  if (control::spacious()) return f();
  return control::on_large_stack_as<std::invoke_result_t<F&>>(f);
}

/// One pointer of ambient state (the current context, the chain of AD handlers ...) that belongs to the
/// stack: a reset's body starts with its caller's value, and a switch never changes what either side sees. Do
/// not keep the reference across a shift, reset or resume.
void*& control_ambient() noexcept;

}  // namespace lantern::core
