// The error of a shift, defer or perform whose reset or handler is not active.
#pragma once

#include "lantern/ir/error.hpp"

namespace lantern::core::control {

/// It was never there, or is suspended itself: the clause of a handler runs outside of what it has captured.
class Undelimited : public Error {
 public:
  using Error::Error;
};

}  // namespace lantern::core::control
