#include "lantern/runtime/data/report.hpp"

#include <fmt/format.h>

#include "lantern/ir/error.hpp"

namespace lantern::core::data {

void fail(const std::string& where, const std::string& what) { throw Error(where + ": error: " + what); }

std::string in_quotes(std::string_view text) {
  constexpr std::size_t most = 60;
  std::string out = "'";
  for (const char c : text.substr(0, most)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f)
      out += fmt::format("\\x{:02x}", byte);
    else
      out += c;
  }
  return out + (text.size() > most ? "...'" : "'");
}

std::string shape_text(std::span<const std::int64_t> shape) {
  constexpr std::size_t most = 16;
  std::string out = "[";
  for (std::size_t i = 0; i < shape.size() && i < most; ++i)
    out += (i > 0 ? ", " : "") + std::to_string(shape[i]);
  return out + (shape.size() > most ? ", ...]" : "]");
}

}  // namespace lantern::core::data
