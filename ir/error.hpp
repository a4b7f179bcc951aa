// The two kinds of failure: the user's program is wrong, or we are.
#pragma once

#include <stdexcept>
#include <string>

namespace lantern {

/// The user's program, input or installation is at fault; the message says how to mend it.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A fault of Lantern itself.
class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

/// Reports a mistake of the user. The caller formats the message, so that no formatting library is needed here.
[[noreturn]] inline void raise(const std::string& message) { throw Error(message); }

}  // namespace lantern
