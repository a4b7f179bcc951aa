// The core of shift and reset: the chain of fibers and delimiters, capture, resumption, unwinding.
//
// The running fiber waits for nothing; below it is a chain  fiber -> delimiter -> parent fiber -> ... down
// to the thread's own stack. A delimiter is a frame of its parent that waits for the answer of the fiber
// above. Capturing up to a delimiter cuts the chain there and continues the parent; resuming ties the cut
// chain to a new delimiter.
#include "lantern/compiler/control/control.hpp"

#include <cxxabi.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <string>

#include "lantern/compiler/control/fiber.hpp"
#include "lantern/compiler/control/undelimited.hpp"
#include "lantern/ir/error.hpp"

namespace lantern::core {
namespace control {

struct Delimiter {
  PromptId prompt;
  Handler* handler;
  Fiber* parent;
  void* answer;
  Suspension* request = nullptr;  // set when the computation above was captured up to here
  std::exception_ptr error = nullptr;
  bool unwound = false;  // set when it was a dropped continuation's, and has been unwound
  const bool* open = nullptr;  // of a barrier: false if nothing above may be captured together with what is below
  BackwardStack* deferred = nullptr;  // what to do when the answer is there; null where nothing can be
};

namespace {

#define ALWAYS_INLINE __attribute__((always_inline)) inline  // see switch_to

// Below this much stack the next step goes on on a fresh one. What user code may use between two operations.
constexpr std::size_t kReserve = 256 * 1024;
// What a deep recursive walk may ask for. Sanitizers' stacks are smaller.
constexpr std::size_t kSpacious = std::size_t{1} << (kSanitizer ? 27 : 30);
// AddressSanitizer gives up on exceptions thrown on stacks deeper than 64 MB.
constexpr std::size_t kDeepest = kAddressSanitizer ? std::size_t{32} << 20 : ~std::size_t{0};

[[noreturn]] void die(const char* message) {
  std::fprintf(stderr, "lantern: %s\n", message);
  std::terminate();
}

constexpr const char* kSwallowed =
    "a dropped continuation was being unwound, and a catch (...) in its frames did not rethrow; end every "
    "catch (...) around shift or perform with `throw;`";

// What unwinds the frames of a dropped continuation. Destroyed undelivered, it was swallowed by user code.
class ForcedUnwind {
 public:
  ForcedUnwind() = default;
  ForcedUnwind(ForcedUnwind&& other) noexcept : delivered_(std::exchange(other.delivered_, true)) {}
  ForcedUnwind& operator=(ForcedUnwind&&) = delete;
  ~ForcedUnwind() {
    if (!delivered_) die(kSwallowed);
  }
  void deliver() noexcept { delivered_ = true; }

 private:
  bool delivered_ = false;
};

std::string demangled(const std::type_info& type) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> name(
      abi::__cxa_demangle(type.name(), nullptr, nullptr, &status), &std::free);
  return status == 0 ? name.get() : type.name();
}

// The work of every fiber: the job, then its outcome to whichever delimiter waits below by then.
struct Job {
  void (*run)(void* closure);
  void* closure;
};

Fiber* run_job(Fiber& self) {
  const Job job = *static_cast<const Job*>(self.argument);
  std::exception_ptr error;
  bool unwound = false;
  try {
    job.run(job.closure);
  } catch (ForcedUnwind& unwind) {
    unwind.deliver();
    unwound = true;
  } catch (...) {
    error = std::current_exception();
  }
  Delimiter& below = *self.delimiter;
  below.error = std::move(error);
  below.unwound = unwound;
  return below.parent;
}

// Waits on the running fiber until `top`, whose chain ends in `delimiter`, ends or is captured up to there.
ALWAYS_INLINE Suspension* wait(ThreadState& thread, Fiber& top, Delimiter& delimiter) {
  switch_to(thread, top);
  if (delimiter.error) [[unlikely]]
    std::rethrow_exception(std::move(delimiter.error));
  if (delimiter.unwound) [[unlikely]]
    throw ForcedUnwind();
  return delimiter.request;
}

// Where a prompt is installed: below a fiber, or on its very stack, at a mark.
struct Place {
  Fiber* fiber = nullptr;
  Mark* mark = nullptr;
};

bool closed(const Delimiter& delimiter) { return delimiter.open != nullptr && !*delimiter.open; }

ALWAYS_INLINE Place find(PromptId prompt, Fiber& running) {
  for (Fiber* fiber = &running; fiber->delimiter != nullptr; fiber = fiber->delimiter->parent) {
    for (Mark* mark = fiber->marks; mark != nullptr; mark = mark->below_distinct) {
      if (mark->prompt == prompt) [[unlikely]]
        return {fiber, mark};
    }
    if (fiber->delimiter->prompt == prompt) return {fiber, nullptr};
    if (closed(*fiber->delimiter)) [[unlikely]] {
      raise(
          "shift: expected a reset of this prompt inside the barrier around this computation, got none; what runs "
          "there may use the operations it was given, and control operators of its own");
    }
  }
  throw Undelimited(
      "shift: no reset of this prompt is active in this thread; call it inside reset(prompt, body), in the "
      "thread that runs the body");
}

// Cuts the running chain below `bottom`.
ALWAYS_INLINE void detach(ThreadState& thread, Suspension& request, Fiber& bottom) {
  request.top = thread.running;
  request.bottom = &bottom;
  request.thread = thread.number;
  bottom.delimiter = nullptr;
  bottom.captured_by = &request;
}

ALWAYS_INLINE void suspend_to(ThreadState& thread, Suspension& request, Fiber& bottom) {
  Delimiter& delimiter = *bottom.delimiter;
  detach(thread, request, bottom);
  request.handler = delimiter.handler;
  request.marks = &delimiter.parent->marks;
  request.prompt = delimiter.prompt;
  delimiter.request = &request;
  switch_to(thread, *delimiter.parent);
  if (request.unwind) [[unlikely]]
    throw ForcedUnwind();
}

bool roomy(const Fiber& running) noexcept {
  const std::size_t room = stack_room(running);
  if (room <= kReserve) return false;
  return !kAddressSanitizer || static_cast<std::size_t>(running.high - running.low) - room < kDeepest;
}

}  // namespace

// A function given to shift runs on the resetter's own stack, as its frame must not cost a stack of its own.
// If that function is itself captured up to the same reset, the stack of the fiber splits at the mark. The
// upper part is the bottom of the captured chain. `lower` represents the lower part in the chain that goes
// on: above it runs, on a new fiber, the function of the second shift. The lower part cannot run before the
// upper part has ended, which happens when the second function resumes, or drops, the continuation; at the
// latest when it returns.
struct Split {
  Fiber& fiber;
  Fiber lower;
  Delimiter delimiter;  // of the new fiber
  Suspension& request;
  void* answer;
  bool upper_ended = false;

  // The job of the new fiber.
  static void job(void* closure) {
    struct End {
      Split& split;
      ~End() {
        split.end_upper();
        split.delimiter.parent = &split.fiber;
      }
    } end{*static_cast<Split*>(closure)};
    Suspension& request = end.split.request;
    request.run(request, end.split.answer);
  }

  // Unwinds the upper part if its continuation was kept for later.
  void end_upper() noexcept {
    while (!upper_ended) {
      Fiber* bottom = &fiber;
      while (bottom->delimiter != nullptr) bottom = bottom->delimiter->parent;
      Suspension* captured = bottom->captured_by;
      if (captured == nullptr) {
        die("a function given to shift, inside another one for the same prompt, returned to a computation "
            "that is still running above it; wrap the inner shift in a reset of its own");
      }
      *captured->holder = nullptr;
      drop(*captured);
    }
  }
};

namespace {

// Captures up to a mark on the stack of `fiber`.
void suspend_to_mark(ThreadState& thread, Suspension& request, Fiber& fiber, Mark& mark) {
  auto* split = new Split{fiber, {}, {0, nullptr, nullptr, nullptr}, request, mark.answer};
  Fiber* runner = nullptr;
  try {
    runner = &Fiber::acquire(StackSize::body, run_job, nullptr);
  } catch (...) {
    delete split;
    throw;
  }
  split->lower.delimiter = fiber.delimiter;
  split->lower.marks = mark.below;
  split->delimiter.parent = &split->lower;
  mark.split = split;
  request.prompt = std::exchange(mark.prompt, PromptId{0});
  mark.below_distinct = nullptr;  // those below are the lower part's
  request.handler = nullptr;
  request.marks = &runner->marks;
  detach(thread, request, fiber);
  Job job{&Split::job, split};
  runner->argument = &job;
  runner->ambient = fiber.ambient;
  runner->delimiter = &split->delimiter;
  switch_to(thread, *runner);
  if (request.unwind) throw ForcedUnwind();
}

}  // namespace

void* answer_above(const Mark& mark) noexcept { return mark.split->fiber.delimiter->answer; }

void record_failure(const Mark& mark) noexcept {
  Delimiter& above = *mark.split->fiber.delimiter;
  try {
    throw;
  } catch (ForcedUnwind& unwind) {
    unwind.deliver();
    above.unwound = true;
  } catch (...) {
    above.error = std::current_exception();
  }
}

void finish_split(Mark& mark) {
  const std::unique_ptr<Split> split(mark.split);
  Fiber& fiber = split->fiber;
  split->upper_ended = true;
  switch_to(this_thread(), *fiber.delimiter->parent);
  fiber.delimiter = split->lower.delimiter;
  if (split->delimiter.error) std::rethrow_exception(std::move(split->delimiter.error));
  if (split->delimiter.unwound) throw ForcedUnwind();
}

PromptId fresh_prompt() noexcept {
  // Numbers are dealt to threads in blocks, so that making a prompt is an increment.
  constexpr PromptId kBlock = 1 << 16;
  static std::atomic<PromptId> next_block{1};
  thread_local PromptId next = 0;
  if (next % kBlock == 0) next = next_block.fetch_add(1, std::memory_order_relaxed) * kBlock;
  return ++next;
}

bool roomy() noexcept { return roomy(*this_thread().running); }

std::size_t most_stack() noexcept {
  static const std::size_t bytes = std::min(std::size_t{4} << 30, memory_limit() / 2);
  return bytes;
}

char* stack_end() noexcept {
  const Fiber& running = *this_thread().running;
  if (running.mapping == nullptr) return nullptr;
  const auto size = static_cast<std::size_t>(running.high - running.low);
  return running.high - std::min(size - 2 * kReserve, most_stack());
}

bool stack_exhausted() noexcept {
  const Fiber& running = *this_thread().running;
  const std::size_t room = stack_room(running);
  if (room == 0) return false;
  const bool full = running.size_class == StackSize::large && room <= 2 * kReserve;
  return full || static_cast<std::size_t>(running.high - running.low) - room > most_stack();
}

std::size_t stack_used() noexcept {
  const Fiber& running = *this_thread().running;
  return running.mapping == nullptr ? 0 : static_cast<std::size_t>(running.high - running.low) - stack_room(running);
}

bool spacious() noexcept { return stack_room(*this_thread().running) > kSpacious; }

void on_large_stack(void (*f)(void*), void* closure) {
  ThreadState& thread = this_thread();
  Job job{f, closure};
  Delimiter delimiter{0, nullptr, thread.running, nullptr};
  Fiber& fiber = Fiber::acquire(StackSize::large, run_job, &job);
  fiber.delimiter = &delimiter;
  wait(thread, fiber, delimiter);
  // As if called directly. The fiber is idle in the pool, and its record intact.
  this_thread().running->ambient = fiber.ambient;
}

Suspension* start(PromptId prompt, Handler* handler, void (*run)(void*), void* closure, void* answer,
                  BackwardStack* deferred) {
  ThreadState& thread = this_thread();
  Job job{run, closure};
  Delimiter delimiter{prompt, handler, thread.running, answer};
  delimiter.deferred = deferred;
  Fiber& fiber = Fiber::acquire(StackSize::body, run_job, &job);
  fiber.delimiter = &delimiter;
  return wait(thread, fiber, delimiter);
}

void run_inside_barrier(const bool& open, void (*run)(void*), void* closure) {
  ThreadState& thread = this_thread();
  Job job{run, closure};
  Delimiter delimiter{0, nullptr, thread.running, nullptr};
  delimiter.open = &open;
  Fiber& fiber = Fiber::acquire(StackSize::body, run_job, &job);
  fiber.delimiter = &delimiter;
  wait(thread, fiber, delimiter);
}

bool may_resume(const Suspension* captured) {
  if (captured == nullptr) [[unlikely]] {
    raise(
        "a continuation may be resumed only once: this one was resumed before, or moved from; to run the "
        "rest of the program again, run the reset again");
  }
  const ThreadState& thread = this_thread();
  if (captured->thread != thread.number) [[unlikely]] {
    raise(
        "a continuation may be resumed only by the thread that captured it; run the whole reset in "
        "one thread");
  }
  return roomy(*thread.running);
}

Suspension* resume(Suspension& captured, void* answer, BackwardStack* deferred) {
  ThreadState& thread = this_thread();
  Delimiter delimiter{captured.prompt, captured.handler, thread.running, answer};
  delimiter.deferred = deferred;
  captured.bottom->delimiter = &delimiter;
  return wait(thread, *captured.top, delimiter);
}

void drop(Suspension& captured) noexcept {
  ThreadState& thread = this_thread();
  Delimiter delimiter{0, nullptr, thread.running, nullptr};
  captured.unwind = true;
  captured.bottom->delimiter = &delimiter;
  switch_to(thread, *captured.top);
  if (!delimiter.unwound) die(kSwallowed);
  collect_stacks();
}

void suspend_to_prompt(Suspension& request, PromptId prompt) {
  ThreadState& thread = this_thread();
  const Place place = find(prompt, *thread.running);
  if (place.mark != nullptr) [[unlikely]]
    return suspend_to_mark(thread, request, *place.fiber, *place.mark);
  suspend_to(thread, request, *place.fiber);
}

BackwardStack* deferred_at(PromptId prompt) {
  const Place place = find(prompt, *this_thread().running);
  return place.mark != nullptr ? nullptr : place.fiber->delimiter->deferred;
}

void suspend_to_handler(Suspension& request, const EffectId& effect, const std::type_info& name) {
  ThreadState& thread = this_thread();
  for (Fiber* fiber = thread.running; fiber->delimiter != nullptr; fiber = fiber->delimiter->parent) {
    const Handler* handler = fiber->delimiter->handler;
    if (handler != nullptr) request.run = handler->find(*handler, effect);
    if (request.run != nullptr) return suspend_to(thread, request, *fiber);
    if (closed(*fiber->delimiter)) [[unlikely]] {
      raise("perform: expected a handler of the effect " + demangled(name) +
            " inside the barrier around this computation, got none; what runs there may use the operations it was "
            "given, and effects that it handles itself");
    }
  }
  throw Undelimited("perform: no handler of the effect " + demangled(name) +
                    " is active; call it inside handle(body, on<" + demangled(name) + ">(...))");
}

bool handled(const EffectId& effect) {
  for (Fiber* fiber = this_thread().running; fiber->delimiter != nullptr; fiber = fiber->delimiter->parent) {
    const Handler* handler = fiber->delimiter->handler;
    if (handler != nullptr && handler->find(*handler, effect) != nullptr) return true;
    if (closed(*fiber->delimiter)) return false;
  }
  return false;
}

void disable_delimiter() noexcept {
  Delimiter& delimiter = *this_thread().running->delimiter;
  delimiter.prompt = 0;
  delimiter.handler = nullptr;
}

void* current_answer() noexcept { return this_thread().running->delimiter->answer; }

}  // namespace control

void*& control_ambient() noexcept { return control::this_thread().running->ambient; }

}  // namespace lantern::core
