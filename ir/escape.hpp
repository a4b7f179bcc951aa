// Text of a user's, a path, a name, a label, a line of a source, as part of another language. Whatever is
// in it, it ends neither the literal nor the comment around it, and no compiler has anything to say about it.
#pragma once

#include <string>
#include <string_view>

namespace lantern::ir {

/// A string literal of C and C++, quotes included; #line takes it too. What is not printable UTF-8 is written
/// in octal.
std::string c_string(std::string_view text);

/// What may be behind // in C and C++: one line that does not go on in the next.
std::string c_line_comment(std::string_view text);

/// What may be between /* and */.
std::string c_block_comment(std::string_view text);

/// Inside of an element or a quoted attribute of HTML and SVG.
std::string markup(std::string_view text);

}  // namespace lantern::ir
