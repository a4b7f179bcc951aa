// The text of a C++ file without its comments: what a compiler sees of it.
#pragma once

#include <string>
#include <string_view>

namespace lantern::tool {

/// The text with spaces in place of comments, and without spaces at the ends of lines and of the file. Each token keeps
/// its line and its column, so that two files of the same such text have the same meaning, messages with places included.
std::string without_comments(std::string_view text);

}  // namespace lantern::tool
