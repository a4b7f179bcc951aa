// What is said of a value that is not finite, by eager evaluation and by generated code.
#pragma once

#include <string>

#include "lantern/ir/location.hpp"
#include "lantern/ir/opcode.hpp"

namespace lantern::ir {

/// "m.cpp:7: error: expected finite values, got ", to be followed by nan, inf or -inf, and what follows that:
/// " from log in the backward part of a derivative".
struct NotFinite {
  std::string before, after;
};
NotFinite not_finite(const Location& loc, Opcode op);

}  // namespace lantern::ir
