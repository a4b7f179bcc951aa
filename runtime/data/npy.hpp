// NumPy's .npy files: one array each.
//
// Format: numpy.org/doc/stable/reference/generated/numpy.lib.format.html, versions 1.0, 2.0 and 3.0.
#pragma once

#include <filesystem>
#include <span>
#include <string>

#include "lantern/runtime/data/array.hpp"

namespace lantern {

struct NpyOptions {  ///< how a .npy file is read
  /// What elements without a type are, which NumPy saves as '<V2' or '|V1': those of ml_dtypes, such as
  /// "bfloat16" or "float8_e4m3fn". Empty: such a file is an error.
  std::string raw = {};
};

/// The array of a file, row-major whatever the order and the byte order in the file; of any shape, that of a
/// single number ([]) too. The file's dtype is bool, int8 to int64, uint8 to uint64 (below 2^63), or float16
/// to float64, and T holds all of its values: a float16 or a uint8 may be read as float, an int64 or a
/// float64 may not. Errors: "w.npy: error: expected ..., got ...": the file cannot be read, is cut short or
/// malformed, or its dtype is another one.
template <core::data::Element T>
TensorValue<T> load_npy(const std::filesystem::path& path, const NpyOptions& options = {});

/// The same with the elements' type from the file. Types that tensors do not have are widened: integers of 8
/// and 16 bits to int32, uint32 to int64, float16 to float.
AnyTensor load_npy(const std::filesystem::path& path, const NpyOptions& options = {});

/// The same from a file's contents; `name` represents it in messages.
template <core::data::Element T>
TensorValue<T> load_npy(std::span<const std::byte> bytes, const std::string& name = "npy",
                        const NpyOptions& options = {});
AnyTensor load_npy(std::span<const std::byte> bytes, const std::string& name = "npy",
                   const NpyOptions& options = {});

/// Writes a TensorValue, a TensorView or an AnyTensor (version 1.0, little-endian, row-major). A former file
/// is replaced when all is written. Error: the file cannot be written; more than 64 dimensions.
void save_npy(const std::filesystem::path& path, const AnyView& tensor);

namespace core::data {

/// What is before the elements of a file that save_npy writes. Error: more than 64 dimensions.
std::string npy_header(const std::string& where, const AnyView& tensor);

}  // namespace core::data
}  // namespace lantern
