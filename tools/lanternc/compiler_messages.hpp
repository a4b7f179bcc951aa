// What the C++ compiler says about the user's files, without what it says about headers.
//
// An error in one of Lantern's headers, or of the system's, is a mistake in the user's code that shows late:
// it is told at the innermost place of the user's that led to it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace lantern::tool {

struct MessageOptions {
  /// Lantern's headers; left out of their names.
  std::string include;
  /// Further directories whose files are not the user's.
  std::vector<std::string> not_of_user;
  /// Macros that the command line defines.
  std::vector<std::string> macros{};
  /// The column of the user's file for one of the text that was compiled: nothing where that text is not the
  /// user's. Without it they are the same.
  std::function<std::optional<std::uint32_t>(const std::string& file, std::uint32_t line,
                                             std::uint32_t column)>
      column;
  /// Whether a warning at a line of the user's is told; without it, each is.
  std::function<bool(const std::string& file, std::uint32_t line, const std::string& text)> wanted;
};

/// The output of g++ or Clang (with or without colours) as the user reads it: each message at a place of the
/// user's, with the line and a caret, once; without instantiation chains, candidates and notes in headers. As
/// it came where it is not understood, for instance when the compiler crashed.
std::string messages_for_users(const std::string& output, const MessageOptions& options);

}  // namespace lantern::tool
