// A file is the length of the header in 8 bytes, the header, and the elements of all tensors, little-endian.
#include "lantern/runtime/data/safetensors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "lantern/runtime/data/element.hpp"
#include "lantern/runtime/data/file.hpp"
#include "lantern/runtime/data/report.hpp"
#include "lantern/runtime/data/safetensors_header.hpp"

namespace lantern {

namespace core::data {

namespace {

constexpr std::size_t length_bytes = 8;
using Dtypes = std::map<std::string, std::string>;

/// The entries of tensors in the order of their elements' size, the largest first, so that each lies at a
/// multiple of its own; those of one size by name.
SafetensorsHeader header_of(const std::string& where, const NamedTensors& tensors, const Dtypes& dtypes) {
  SafetensorsHeader header;
  for (const auto& [name, dtype] : dtypes)
    if (!tensors.contains(name))
      fail(where, "expected dtypes of tensors that are written, got one of " + in_quotes(name));
  for (const auto& [name, tensor] : tensors) {
    const AnyView view(tensor);
    const auto dtype = dtypes.find(name);
    Layout layout{stored_as(view), view.shape()};
    if (dtype != dtypes.end()) layout.type = safetensors_type(where, dtype->second);
    if (layout.type == Stored::complex64 && !layout.shape.empty()) layout.shape.pop_back();
    header.entries.push_back({name, std::move(layout), 0, 0});
  }
  std::sort(header.entries.begin(), header.entries.end(),
            [](const SafetensorsEntry& a, const SafetensorsEntry& b) {
              const std::size_t size_a = bits_of(a.layout.type), size_b = bits_of(b.layout.type);
              return size_a != size_b ? size_a > size_b : a.name < b.name;
            });
  std::uint64_t at = 0;
  for (SafetensorsEntry& e : header.entries) {
    e.begin = at;
    e.end = at += bytes_of(where, e.layout);
  }
  return header;
}

}  // namespace

void write_safetensors(const std::string& where, Replacement& file, const NamedTensors& tensors,
                       const std::map<std::string, std::string>& metadata, const Dtypes& dtypes) {
  SafetensorsHeader header = header_of(where, tensors, dtypes);
  header.metadata = metadata;
  std::string text = safetensors_header_text(where, header);
  text.append((8 - text.size() % 8) % 8, ' ');
  if (text.size() > most_header_bytes)
    fail(where, fmt::format("expected names and metadata that fit in a header of {} bytes, got {}",
                            most_header_bytes, text.size()));
  std::array<std::byte, length_bytes> length;
  for (std::size_t i = 0; i < length_bytes; ++i)
    length[i] = static_cast<std::byte>(text.size() >> 8U * i & 0xffU);
  file.write(length);
  file.write(bytes_of(text));
  for (const SafetensorsEntry& e : header.entries)
    encode(where + ": tensor " + in_quotes(e.name), tensors.at(e.name), e.layout.type,
           [&](std::span<const std::byte> part) { file.write(part); });
}

}  // namespace core::data

using namespace core::data;

Safetensors load_safetensors(std::span<const std::byte> bytes, const std::string& name) {
  if (bytes.size() < length_bytes)
    fail(name,
         fmt::format("expected a .safetensors file, which begins with 8 bytes of the header's length, got {}",
                     bytes.size()));
  const std::uint64_t length = little_endian(bytes.data(), length_bytes);
  if (length > most_header_bytes)
    fail(name,
         fmt::format("expected a header of at most {} bytes, got a length of {}; is it a .safetensors file?",
                     most_header_bytes, length));
  const std::span<const std::byte> rest = bytes.subspan(length_bytes);
  if (length > rest.size())
    fail(name,
         fmt::format("expected a header of {} bytes, got {}; the file is cut short", length, rest.size()));
  const std::span<const std::byte> elements = rest.subspan(length);
  SafetensorsHeader header = read_safetensors_header(name, text_of(rest.first(length)), elements.size());

  Safetensors all;
  all.metadata = std::move(header.metadata);
  for (const SafetensorsEntry& e : header.entries) {
    AnyTensor t = decode(name, e.layout, elements.subspan(e.begin, e.end - e.begin));
    if (stored_as(t) != e.layout.type) all.dtypes.emplace(e.name, safetensors_dtype(e.layout.type));
    all.tensors.emplace(e.name, std::move(t));
  }
  return all;
}

Safetensors load_safetensors(const std::filesystem::path& path) {
  return load_safetensors(FileBytes(path), path.string());
}

void save_safetensors(const std::filesystem::path& path, const NamedTensors& tensors,
                      const std::map<std::string, std::string>& metadata,
                      const std::map<std::string, std::string>& dtypes) {
  Replacement file(path);
  write_safetensors(path.string(), file, tensors, metadata, dtypes);
  file.take_place();
}

}  // namespace lantern
