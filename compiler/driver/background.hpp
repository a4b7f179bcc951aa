// Compilations that go on while the program runs, and the end of the program.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <functional>
#include <mutex>
#include <thread>

namespace lantern::core::driver {

/// Work on a thread of its own, until it is done or of no use any more. A program that returns from main, or calls exit
/// there, first waits for all such work: LLVM must not lose its static objects while it compiles. In a process that is
/// forked meanwhile there is no such thread, and nothing to wait for.
class Background {
 public:
  Background() = default;
  ~Background();
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;

  /// Once. Does nothing where the program ends already. std::system_error where no thread can be made.
  void start(std::function<void()> work);
  /// Whether the object, or the program, waits for the work to end: the work asks, and may leave off.
  bool abandoned() const;
  /// Returns when the work is done, if this process does any. From any thread.
  void wait();

 private:
  std::atomic<bool> abandoned_{false};
  std::mutex joining_;
  std::thread thread_;
  pid_t process_ = 0;
};

}  // namespace lantern::core::driver
