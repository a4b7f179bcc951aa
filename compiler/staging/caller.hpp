// The place of a user's call, for functions of the library that are written in Lantern.
#pragma once

#include "lantern/compiler/staging/operation.hpp"

namespace lantern::core {

/// While it lives, operations and errors of the thread have this place, whatever they say: that of whoever called a
/// layer, say, which itself is a program over Reps in a header. Of several the outermost counts. A function that
/// runs functions of its caller has none.
class Caller {
 public:
  explicit Caller(const std::source_location& l);
  ~Caller();
  Caller(const Caller&) = delete;
  Caller& operator=(const Caller&) = delete;
  /// The caller's, where there is one, else `loc`.
  static Location place(Location loc);

 private:
  bool first_;
};

}  // namespace lantern::core
