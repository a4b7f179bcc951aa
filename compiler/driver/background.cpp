// Static objects that LLVM makes while it compiles are younger than whatever started the compilation, so they are
// destroyed first: no static destructor of ours comes in time. Thread-local objects of the main thread do.
#include "lantern/compiler/driver/background.hpp"

#include <unistd.h>

#include <atomic>
#include <utility>

namespace lantern::driver {

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
  return true;
}
[[maybe_unused]] const bool watched = watch_main();

}  // namespace

std::thread in_background(std::function<void()> work) {
  running.fetch_add(1);
  if (ending) {
    one_less();
    return {};
  }
  try {
    return std::thread([work = std::move(work)] {
      work();
      one_less();
    });
  } catch (...) {
    one_less();
    throw;
  }
}

}  // namespace lantern::driver
