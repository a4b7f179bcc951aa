// Safetensors files: named tensors behind a header in JSON, and text about them.
//
// Format: github.com/huggingface/safetensors, README "Format".
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>

#include "lantern/runtime/data/array.hpp"

namespace lantern {

struct Safetensors {
  NamedTensors tensors = {};
  std::map<std::string, std::string> metadata = {};  ///< the header's "__metadata__"
};

/// The tensors of a file by name, and its metadata. Types that tensors do not have are widened: U8, I8, U16
/// and I16 to int32, U32 to int64, F16 and BF16 to float. Errors: "w.safetensors: error: expected ..., got
/// ...": the file cannot be read or is cut short; the header is longer than 100 MB, no JSON or not of this
/// format; a name occurs twice; the elements of tensors overlap, leave bytes to nobody or are not as many as
/// a shape says; U64, F8 and other types that no tensor holds.
Safetensors load_safetensors(const std::filesystem::path& path);

/// The same from a file's contents; `name` stands for it in messages.
Safetensors load_safetensors(std::span<const std::byte> bytes, const std::string& name = "safetensors");

/// Writes tensors and metadata; elements begin at multiples of 8 bytes or of their size. A former file is
/// replaced when all is written. Error: the file cannot be written, a name or text is not in UTF-8, a tensor
/// is named
/// "__metadata__", or names are longer than the header's 100 MB.
void save_safetensors(const std::filesystem::path& path, const NamedTensors& tensors,
                      const std::map<std::string, std::string>& metadata = {});

namespace core::data {

class Replacement;

/// Writes the contents of such a file; `where` stands for it in messages.
void write_safetensors(const std::string& where, Replacement& file, const NamedTensors& tensors,
                       const std::map<std::string, std::string>& metadata);

}  // namespace core::data
}  // namespace lantern
