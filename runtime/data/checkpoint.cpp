// In the metadata, "lantern.checkpoint" is the version of the format, and "value.NAME" is "int 100", "double
// 0.1" or "text Adam". A double is the shortest number that reads back as it, and a NaN its 64 bits: "double
// nan 7ff8000000000000".
#include "lantern/runtime/data/checkpoint.hpp"

#include <fmt/format.h>

#include <bit>
#include <charconv>
#include <cmath>
#include <string_view>
#include <utility>

#include "lantern/runtime/data/file.hpp"
#include "lantern/runtime/data/report.hpp"
#include "lantern/runtime/data/safetensors.hpp"

namespace lantern {

namespace core::data {

namespace {

constexpr const char* version_key = "lantern.checkpoint";
constexpr const char* format_version = "1";
constexpr std::string_view value_prefix = "value.", integer = "int ", floating = "double ",
                           nan = "double nan ", words = "text ";

std::string text_of_value(const Checkpoint::Value& value) {
  if (const auto* n = std::get_if<std::int64_t>(&value)) return fmt::format("{}{}", integer, *n);
  if (const auto* text = std::get_if<std::string>(&value)) return std::string(words) + *text;
  const double x = std::get<double>(value);
  if (std::isnan(x)) return fmt::format("{}{:016x}", nan, std::bit_cast<std::uint64_t>(x));
  return fmt::format("{}{}", floating, x);
}

/// All of the text as a number; false where it is none.
template <class T, class... Format>
bool read_number(std::string_view text, T& number, Format... format) {
  const char* last = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), last, number, format...);
  return error == std::errc() && stop == last;
}

Checkpoint::Value value_of_text(const std::string& where, const std::string& name, std::string_view text) {
  std::int64_t n = 0;
  std::uint64_t bits = 0;
  double x = 0;
  if (text.starts_with(words)) return std::string(text.substr(words.size()));
  if (text.starts_with(integer) && read_number(text.substr(integer.size()), n)) return n;
  if (text.starts_with(nan) && read_number(text.substr(nan.size()), bits, 16))
    return std::bit_cast<double>(bits);
  if (text.starts_with(floating) && read_number(text.substr(floating.size()), x)) return x;
  fail(where,
       "expected 'int', 'double' or 'text' and a value for " + in_quotes(name) + ", got " + in_quotes(text));
}

Checkpoint checkpoint_of(const std::string& where, Safetensors file) {
  const auto at = file.metadata.find(version_key);
  if (at == file.metadata.end())
    fail(where, "expected a checkpoint, got a safetensors file of another kind; load_safetensors reads it");
  if (at->second != format_version)
    fail(where,
         fmt::format("expected version {} of a checkpoint, got {}", format_version, in_quotes(at->second)));
  Checkpoint checkpoint;
  checkpoint.tensors = std::move(file.tensors);
  for (const auto& [key, text] : file.metadata) {
    if (!key.starts_with(value_prefix)) continue;
    const std::string name = key.substr(value_prefix.size());
    checkpoint.values.emplace(name, value_of_text(where, name, text));
  }
  return checkpoint;
}

}  // namespace
}  // namespace core::data

using namespace core::data;

void save_checkpoint(const std::filesystem::path& path, const Checkpoint& checkpoint) {
  std::map<std::string, std::string> metadata{{version_key, format_version}};
  for (const auto& [name, value] : checkpoint.values)
    metadata.emplace(std::string(value_prefix) + name, text_of_value(value));
  Replacement file(path);
  write_safetensors(path.string(), file, checkpoint.tensors, metadata);
  file.take_place(Replacement::Durable::yes);
}

Checkpoint load_checkpoint(const std::filesystem::path& path) {
  return checkpoint_of(path.string(), load_safetensors(path));
}

Checkpoint load_checkpoint(std::span<const std::byte> bytes, const std::string& name) {
  return checkpoint_of(name, load_safetensors(bytes, name));
}

}  // namespace lantern
