// Elements as files store them: more types than tensors have, either byte order, rows or columns first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lantern/runtime/data/array.hpp"

namespace lantern::core::data {

/// Numbers in two's complement and IEEE 754; bfloat16 is the upper half of a float32, those of 4 to 8 bits
/// are of small_float.hpp. Numbers of 4 and 6 bits follow each other without gaps, the first in the lowest
/// bits. A complex number is its real and its imaginary part.
enum class Stored : std::uint8_t {
  boolean,
  int8,
  uint8,
  int16,
  uint16,
  int32,
  uint32,
  int64,
  float16,
  bfloat16,
  float32,
  float64,
  uint64,
  float8e4m3fn,
  float8e4m3fnuz,
  float8e5m2,
  float8e5m2fnuz,
  float8e8m0,
  float4e2m1,
  float6e2m3,
  float6e3m2,
  complex64,
  complex128
};

inline constexpr std::size_t most_dimensions = 64;  // as NumPy

/// "int8", "float16" and so on.
std::string_view name_of(Stored type);
/// Of one element.
std::size_t bits_of(Stored type);
/// The shape of a tensor of such elements of a stored shape: complex numbers add a last dimension of 2.
std::vector<std::int64_t> shape_of(Stored type, std::vector<std::int64_t> shape);
/// What a tensor of these elements is stored as.
Stored stored_as(const AnyView& tensor);

/// How the bytes of a tensor are to be read.
struct Layout {
  Stored type = Stored::float32;
  std::vector<std::int64_t> shape;
  bool big_endian = false;
  bool columns_first = false;  ///< the first index runs fastest, as in Fortran
};

/// The bytes that the elements take. Error: a negative size, more than 2^50 elements, more than 64
/// dimensions, elements that do not fill whole bytes.
std::uint64_t bytes_of(const std::string& where, const Layout& layout);

/// The tensor, row-major. `bytes` are as many as bytes_of says.
/// Error: T does not hold every value of the stored type, so that elements could change, or a uint64 of 2^63
/// or more.
template <Element T>
TensorValue<T> decode(const std::string& where, const Layout& layout, std::span<const std::byte> bytes);

/// The same as a tensor of the stored type, or of the smallest that holds all of its values: int32 for
/// shorter integers, int64 for uint32 and uint64, float for float16, bfloat16, shorter numbers and complex64,
/// double for complex128. Error: a uint64 of 2^63 or more.
AnyTensor decode(const std::string& where, const Layout& layout, std::span<const std::byte> bytes);

/// Takes the bytes of a file in turn.
using Sink = std::function<void(std::span<const std::byte>)>;

/// The elements, row-major and little-endian.
void encode(const AnyView& tensor, const Sink& sink);
/// The same as elements of another stored type, of a tensor such as decode() makes of that type. Numbers are
/// rounded to the nearest. Error: a tensor of another type, or an integer that the stored type has no place
/// for.
void encode(const std::string& where, const AnyView& tensor, Stored type, const Sink& sink);

/// Characters as bytes.
inline std::span<const std::byte> bytes_of(std::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}
/// Bytes as characters.
inline std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
/// An unsigned number of `count` bytes, the least significant first.
inline std::uint64_t little_endian(const std::byte* at, std::size_t count) {
  std::uint64_t n = 0;
  while (count-- > 0) n = n << 8U | std::to_integer<std::uint64_t>(at[count]);
  return n;
}

}  // namespace lantern::core::data
