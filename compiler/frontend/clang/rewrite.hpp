// Native control flow over Rep, rewritten: the front of lanternc.
//
// A user's file is parsed with Clang (libTooling). Where `if`, `?:`, `while`, `do`, `for`, `switch`, `&&`,
// `||`, `break`, `continue`, `return`, an assignment to an element, or recursion depends on staged values,
// the function's text is replaced by calls of compiler/frontend/native.hpp (virtualisation: Lantern paper,
// section 4). All other text stays as it is. The result is plain C++20.
//
// The steps: parse.cpp reads the file and its headers; facts.cpp finds what is staged, from types; read.cpp
// turns the functions concerned into a tree without Clang (tree.hpp); flow.cpp finds live variables;
// lower.cpp writes the new text; headers.cpp puts headers where they were included; lines.cpp keeps line
// numbers.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lantern/compiler/frontend/clang/lines.hpp"

namespace lantern::frontend {

struct Rewritten {
  bool changed = false;  ///< something was staged: `text` takes the place of the file
  bool failed = false;   ///< it cannot be rewritten or does not parse: see `messages`
  std::string text;
  std::vector<Copied> copies;  ///< of the file's text in `text`, whose lines have the file's numbers
  /// The same for headers whose text took the place of their directives.
  std::map<std::string, std::vector<Copied>> headers;
  /// The file's two parts, where they could be told (parts.hpp): what runs in the program, C++ as it is; and a text that
  /// changes where what is staged may change.
  std::optional<std::string> program_part, staged_part;
  /// First and last lines of functions that the program's part is without, and that it has.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> left_out, kept;
  /// The names of the file's LANTERN_FUNCTIONs and of those in headers of the user's, where the file was read without errors.
  std::optional<std::vector<std::string>> exported;
  bool compiler_failed = false;  ///< the messages are Clang's
  std::string messages;          ///< "file:line:col: error: ...", each with the line and a caret
};

/// Rewrites a file, and the headers of the user's that it includes: where one holds something staged, its new
/// text takes the place of the directive. `arguments`: for the compiler, include directories among them.
/// Never changes a function in which nothing is staged. `whole_program`: no other file calls the functions of this
/// one; those that are rewritten become inline, so that a compiler drops the ones that nothing calls.
Rewritten rewrite_native(const std::string& path, const std::vector<std::string>& arguments,
                         bool whole_program = false);

}  // namespace lantern::frontend
