// Threads that stay, for work that is shared out again and again.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

namespace lantern {

/// Used by one thread. Its own threads look out for work for a few dozen microseconds after the last, then
/// sleep; they end with it.
class Team {
 public:
  Team();
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  /// Runs work(i) for each i < n, the last in this thread, the others in threads of their own as far as the
  /// system has any. Returns when all are done. The work must not throw.
  void run(std::size_t n, const std::function<void(std::size_t)>& work);

 private:
  struct Member;
  void forget_others();

  std::vector<std::unique_ptr<Member>> members_;
  long process_ = 0;  ///< whose threads they are: fork() makes a process without them
};

}  // namespace lantern
