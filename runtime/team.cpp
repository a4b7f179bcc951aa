// A member of a team waits for a number to change: a few dozen microseconds awake, since loops that are
// shared out tend to follow each other, and waking a thread takes about as long.
#include "lantern/runtime/team.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <system_error>
#include <thread>

namespace lantern {

namespace {

void relax() {
#if defined __x86_64__ || defined __i386__
  __builtin_ia32_pause();
#elif defined __aarch64__
  asm volatile("yield");
#endif
}

/// Returns when `number` is no longer `old`.
void await_change(const std::atomic<unsigned>& number, unsigned old) {
  constexpr std::chrono::microseconds awake{50};
  const auto start = std::chrono::steady_clock::now();
  do {
    for (int i = 0; i < 32; ++i) {
      if (number.load(std::memory_order_acquire) != old) return;
      relax();
    }
  } while (std::chrono::steady_clock::now() - start < awake);
  number.wait(old, std::memory_order_acquire);
}

void advance(std::atomic<unsigned>& number) {
  number.fetch_add(1, std::memory_order_release);
  number.notify_one();
}

}  // namespace

struct Team::Member {
  std::atomic<unsigned> asked{0}, done{0};                 ///< how often
  const std::function<void(std::size_t)>* work = nullptr;  ///< null: the end
  std::size_t index = 0;
  std::thread thread;

  void live() {
    for (unsigned times = 0;; ++times) {
      await_change(asked, times);
      if (!work) return;
      (*work)(index);
      advance(done);
    }
  }
  void ask(const std::function<void(std::size_t)>* what, std::size_t i) {
    work = what;
    index = i;
    advance(asked);
  }
};

Team::Team() = default;

Team::~Team() {
  forget_others();
  for (const auto& m : members_) {
    m->ask(nullptr, 0);
    m->thread.join();
  }
}

void Team::forget_others() {
  if (process_ == getpid()) return;
  // The threads of another process: here there is nothing to end, and what they used is not to be touched.
  for (auto& m : members_) static_cast<void>(m.release());
  members_.clear();
  process_ = getpid();
}

void Team::run(std::size_t n, const std::function<void(std::size_t)>& work) {
  if (n == 0) return;
  forget_others();
  try {
    while (members_.size() + 1 < n) {
      auto m = std::make_unique<Member>();
      m->thread = std::thread([member = m.get()] { member->live(); });
      members_.push_back(std::move(m));
    }
  } catch (const std::system_error&) {  // no more threads
  }
  const std::size_t helped = std::min(members_.size(), n - 1);
  for (std::size_t i = 0; i < helped; ++i) members_[i]->ask(&work, i);
  for (std::size_t i = helped; i < n; ++i) work(i);
  for (std::size_t i = 0; i < helped; ++i) {
    Member& m = *members_[i];
    await_change(m.done, m.asked.load(std::memory_order_relaxed) - 1);
  }
}

}  // namespace lantern
