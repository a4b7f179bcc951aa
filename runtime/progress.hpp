// A progress bar for long loops: one line on a terminal, nothing at all elsewhere.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>

namespace lantern {

/// `Progress bar("epoch 1", trees.size());`, then `bar.step(note)` once per item. The line is on standard
/// error, is redrawn ten times a second at most, and is wiped by `clear` or the end of the scope.
class Progress {
 public:
  Progress(std::string title, std::uint64_t total)
      : title_(std::move(title)), total_(total), shown_(isatty(STDERR_FILENO) == 1) {}
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// One more item is done; `note` follows the bar.
  void step(const std::string& note = {}) {
    ++done_;
    const auto now = Clock::now();
    if (!shown_ || (done_ < total_ && now - drawn_ < std::chrono::milliseconds(100))) return;
    drawn_ = now;
    draw(note);
  }

  /// Wipes the line, for other output to take its place.
  void clear() {
    if (width_ > 0) std::fprintf(stderr, "\r%*s\r", width_, "");
    width_ = 0;
  }

 private:
  using Clock = std::chrono::steady_clock;

  void draw(const std::string& note) {
    constexpr std::uint64_t cells = 30;
    const std::uint64_t filled = total_ == 0 ? cells : std::min(cells, cells * done_ / total_);
    const std::string bar = std::string(filled, '#') + std::string(cells - filled, '.');
    // What an earlier, longer line left over is overwritten with blanks.
    const std::string line =
        title_ + " [" + bar + "] " + std::to_string(done_) + "/" + std::to_string(total_) + " " + note;
    const int length = static_cast<int>(line.size());
    std::fprintf(stderr, "\r%-*s", width_, line.c_str());
    std::fflush(stderr);
    width_ = std::max(width_, length);
  }

  std::string title_;
  std::uint64_t total_, done_ = 0;
  bool shown_;
  int width_ = 0;
  Clock::time_point drawn_{};
};

}  // namespace lantern
