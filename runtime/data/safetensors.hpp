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

struct Safetensors {  ///< what a .safetensors file holds
  NamedTensors tensors = {};
  std::map<std::string, std::string> metadata = {};  ///< the header's "__metadata__"
  std::map<std::string, std::string> dtypes = {};    ///< the file's, of tensors that were widened
};

/// The tensors of a file by name, and its metadata. Types that tensors do not have are widened: U8, I8, U16
/// and I16 to int32, U32 and U64 to int64, F16, BF16, F8, F6 and F4 to float; C64 to float with a last
/// dimension of 2, the real and the imaginary part. (Numbers of F6 and F4 follow each other without gaps, the
/// first in the lowest bits.) Errors: "w.safetensors: error: expected ..., got
/// ...": the file cannot be read or is cut short; the header is longer than 100 MB, no JSON or not of this
/// format; a name occurs twice; the elements of tensors overlap, leave bytes to nothing or are not as many as
/// a shape says; a U64 of 2^63 or more; another type.
Safetensors load_safetensors(const std::filesystem::path& path);

/// The same from a file's contents; `name` represents it in messages.
Safetensors load_safetensors(std::span<const std::byte> bytes, const std::string& name = "safetensors");

/// Writes tensors and metadata; elements begin at multiples of 8 bytes or of their size. A former file is
/// replaced when all is written. Error: the file cannot be written, a name or text is not in UTF-8, a tensor
/// is named "__metadata__", or names are longer than the header's 100 MB.
///
/// `dtypes`: of tensors that are written as another type, such as {"w", "BF16"} or load_safetensors' dtypes;
/// a tensor is what load_safetensors makes of that type, and its numbers are rounded to the nearest. Error:
/// another tensor, an integer that the type has no place for, elements that do not fill whole bytes.
void save_safetensors(const std::filesystem::path& path, const NamedTensors& tensors,
                      const std::map<std::string, std::string>& metadata = {},
                      const std::map<std::string, std::string>& dtypes = {});

namespace core::data {

class Replacement;

/// Writes the contents of such a file; `where` represents it in messages.
void write_safetensors(const std::string& where, Replacement& file, const NamedTensors& tensors,
                       const std::map<std::string, std::string>& metadata,
                       const std::map<std::string, std::string>& dtypes = {});

}  // namespace core::data
}  // namespace lantern
