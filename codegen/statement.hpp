// Statements of the C family as a tree, between the IR and text.
//
//   for (int64_t i = 0; i < n; ++i) {      a construct: its head, its body, its end
//     // s += x[i];                        what is above a statement: the user's line
//     s = s + x.data[i];                   a plain statement
//   }
//
// C, C++ and CUDA share it. A printer puts statements where they belong, whenever it knows them; how lines
// are indented and broken, where `#line` is and which `else` and `if` share a line is decided once, when
// the finished tree is written.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "lantern/ir/location.hpp"

namespace lantern::codegen {

struct Statement;
using Statements = std::vector<Statement>;

struct Statement {
  Statement() = default;
  Statement(std::string plain) : text(std::move(plain)) {}  // NOLINT: lines of text are statements

  std::string text;                   ///< "x = y;"; of a construct its head with the brace that opens it
  std::vector<std::string> comments;  ///< lines above it, without the slashes
  ir::Location place, end_place;      ///< what `#line` says before it, and before its end; unknown: nothing
  std::string end;                    ///< "}" of a construct; empty for a plain statement
  Statements body;
  Statements otherwise;  ///< of an `if` what is after `else`
  bool joins = false;    ///< an `if` that goes into the line of the `else` that holds it alone

  bool is_construct() const { return !end.empty(); }
};

/// The text, `depth` levels to the right, with a newline after each line. Long lines are broken, unless a
/// debugger counts them from a `#line`.
std::string text_of(const Statements& statements, int depth = 0);

/// "#line 3 \"file.cpp\"" with its newline; empty where the place is unknown.
std::string line_directive(const ir::Location& place);

/// A line of generated code, broken after commas and operators where it is long.
std::string wrapped(std::string line);
/// Appends a local array of C with these elements to the text. Its name, or 0 where there are no elements.
std::string local_array(std::string& text, const std::string& type, const std::string& name, const std::string& elements);

}  // namespace lantern::codegen
