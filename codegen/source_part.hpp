// A generated program as several texts, so that huge ones are compiled side by side.
#pragma once

#include <string>

namespace lantern::codegen {

/// A text that compiles by itself. Functions that other parts of its program call are not static in it.
struct SourcePart {
  std::string text;
  /// Only long functions of scalar operations, without loops: for these a compiler's cheap optimisations do as
  /// well as all of them.
  bool straight_line = false;
};

}  // namespace lantern::codegen
