// The header of a safetensors file: {"__metadata__": {"key": "text"},
//                                    "w": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}}
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "lantern/runtime/data/element.hpp"

namespace lantern::core::data {

/// The longest header that the format allows.
inline constexpr std::uint64_t most_header_bytes = 100'000'000;

struct SafetensorsEntry {
  std::string name;
  Layout layout;
  std::uint64_t begin = 0, end = 0;  ///< bytes, counted from the end of the header
};

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> entries;  ///< in the order of their bytes
  std::map<std::string, std::string> metadata;
};

/// Reads the text, and checks that the tensors' bytes are as many as their shapes say and follow each other
/// without gaps up to `bytes`. Error, with `where` for the file: they do not, or the text is no such header.
SafetensorsHeader read_safetensors_header(const std::string& where, std::string_view text,
                                          std::uint64_t bytes);

/// What the format calls a type, and the type of that name. Error: a name that the format does not have.
std::string_view safetensors_dtype(Stored type);
Stored safetensors_type(const std::string& where, std::string_view dtype);

/// The text. Error: a name or text that is not in UTF-8.
std::string safetensors_header_text(const std::string& where, const SafetensorsHeader& header);

}  // namespace lantern::core::data
