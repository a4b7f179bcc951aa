// What the user's code prints while it is loaded and staged is no part of lanternc's output.
#pragma once

#include <unistd.h>

#include <cstdio>

namespace lantern::tool {

/// Sends standard output to the standard error stream for as long as this lives.
class OutputToErrors {
 public:
  OutputToErrors() {
    std::fflush(stdout);
    saved_ = ::dup(STDOUT_FILENO);
    ::dup2(STDERR_FILENO, STDOUT_FILENO);
  }
  OutputToErrors(const OutputToErrors&) = delete;
  OutputToErrors& operator=(const OutputToErrors&) = delete;
  ~OutputToErrors() {
    std::fflush(stdout);
    ::dup2(saved_, STDOUT_FILENO);
    ::close(saved_);
  }

 private:
  int saved_;
};

}  // namespace lantern::tool
