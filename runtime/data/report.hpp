// How the readers and writers of files report what is wrong with one.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace lantern::core::data {

/// Throws Error("where: error: what"). `where` is the file, and within it an array or "line:column".
[[noreturn]] void fail(const std::string& where, const std::string& what);

/// The text of a file between quotes, cut short where it is long and with \xNN for what cannot be printed.
std::string in_quotes(std::string_view text);

/// "[2, 3]".
std::string shape_text(std::span<const std::int64_t> shape);

}  // namespace lantern::core::data
