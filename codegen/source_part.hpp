// A generated program as several texts, so that huge ones are compiled side by side.
#pragma once

#include <string>

namespace lantern::codegen {

/// What a part holds. All but `general` is a promise that spares a compiler work.
enum class PartKind {
  general,
  straight_line,  ///< only functions of scalar operations without loops
  calls,          ///< straight-line code that spends its time in functions of the mathematical library
};

/// A text that compiles by itself. Functions that other parts of its program call are not static in it.
struct SourcePart {
  std::string text;
  PartKind kind = PartKind::general;
};

}  // namespace lantern::codegen
