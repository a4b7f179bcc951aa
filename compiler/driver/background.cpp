// Static objects that LLVM makes while it compiles are younger than whatever started the compilation, so they
// are destroyed first: no static destructor of ours comes in time. Thread-local objects of the main thread
// do.
#include "lantern/compiler/driver/background.hpp"

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <utility>

namespace lantern::core::driver {

namespace {

std::atomic<int> running{0};
std::atomic<bool> ending{false};

void one_less() {
  running.fetch_sub(1);
  running.notify_all();
}

class EndOfMain {
 public:
  ~EndOfMain() {
    if (::gettid() != ::getpid()) return;  // loaded by another thread, which ends before the program does
    ending = true;
    for (int n = running; n > 0; n = running) running.wait(n);
  }
};

bool watch_main() {
  thread_local const EndOfMain end;
  // A forked process has one thread, whatever the others were at.
  ::pthread_atfork(nullptr, nullptr, [] { running = 0; });
  return true;
}
[[maybe_unused]] const bool watched = watch_main();

}  // namespace

void Background::start(std::function<void()> work) {
  running.fetch_add(1);
  if (ending) return one_less();
  try {
    thread_ = std::thread([work = std::move(work)] {
      work();
      one_less();
    });
    process_ = ::getpid();
  } catch (...) {
    one_less();
    throw;
  }
}

void Background::wait() {
  if (process_ != ::getpid()) return;
  const std::lock_guard lock(joining_);
  if (thread_.joinable()) thread_.join();
}

bool Background::abandoned() const { return abandoned_ || ending; }

Background::~Background() {
  abandoned_ = true;
  wait();
  // The thread of another process: what this one holds of it is not to be touched.
  if (thread_.joinable()) static_cast<void>(new std::thread(std::move(thread_)));
}

}  // namespace lantern::core::driver
