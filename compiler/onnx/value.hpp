// Values of ONNX programs on the host: tensors of any element type of the format, and sequences of them.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "lantern/ir/type.hpp"
#include "lantern/runtime/small_float.hpp"
#include "lantern/runtime/tensor.hpp"

namespace lantern::onnx {

/// The element types of the format, by their numbers in TensorProto.DataType.
enum class Element : std::uint8_t {
  undefined = 0,
  float32 = 1,
  uint8 = 2,
  int8 = 3,
  uint16 = 4,
  int16 = 5,
  int32 = 6,
  int64 = 7,
  string = 8,
  boolean = 9,
  float16 = 10,
  float64 = 11,
  uint32 = 12,
  uint64 = 13,
  complex64 = 14,
  complex128 = 15,
  bfloat16 = 16,
  float8e4m3fn = 17,
  float8e4m3fnuz = 18,
  float8e5m2 = 19,
  float8e5m2fnuz = 20,
  uint4 = 21,
  int4 = 22,
  float4e2m1 = 23,
  float8e8m0 = 24,
  uint2 = 25,
  int2 = 26,
};
/// The last of them.
inline constexpr Element last_element = Element::int2;

/// "float32", "uint8", ...
const char* name(Element e);
bool is_float(Element e);
bool is_integer(Element e);
bool is_unsigned(Element e);
/// Bits of an element in a file's raw data; 0 of strings and undefined. Elements of less than 8 bits are packed,
/// the first in the lowest bits of a byte.
std::size_t bits_in_file(Element e);
/// Bytes of `count` elements in a file's raw data.
std::size_t bytes_in_file(Element e, std::size_t count);
/// What computes with such elements: floating-point numbers of up to 32 bits are f32, integers of up to 32 bits
/// that i32 holds are i32, the others i64, as are the numbers of strings. Error: complex numbers, undefined.
ir::Kind kind_of(Element e);
bool is_supported(Element e);

/// The element type that a C++ type represents.
template <class T>
concept HostElement = std::same_as<T, bool> || std::same_as<T, std::int32_t> ||
                      std::same_as<T, std::int64_t> || std::same_as<T, float> || std::same_as<T, double>;
template <HostElement T>
constexpr Element element_of() {
  if constexpr (std::same_as<T, bool>)
    return Element::boolean;
  else if constexpr (std::same_as<T, std::int32_t>)
    return Element::int32;
  else if constexpr (std::same_as<T, std::int64_t>)
    return Element::int64;
  else if constexpr (std::same_as<T, float>)
    return Element::float32;
  else
    return Element::float64;
}
template <HostElement T>
constexpr ir::Kind kind_of_host() {
  if constexpr (std::same_as<T, bool>)
    return ir::Kind::boolean;
  else if constexpr (std::same_as<T, std::int32_t>)
    return ir::Kind::i32;
  else if constexpr (std::same_as<T, std::int64_t>)
    return ir::Kind::i64;
  else if constexpr (std::same_as<T, float>)
    return ir::Kind::f32;
  else
    return ir::Kind::f64;
}

/// A tensor, row-major, of rank 0 where it is a number; or a sequence of values.
///
/// Elements lie as kind_of(element) says: those of a uint8 or float16 tensor are int32_t and float, with
/// values that the element type has. A string is kept as its number.
class Value {
 public:
  Value() = default;
  /// Zeros. Error: sizes that are negative or that no memory holds, an element type that is not supported.
  Value(Element element, std::vector<std::int64_t> shape);
  /// A tensor, or a number: Value(TensorValue<float>(...)), Value(3.0f).
  template <HostElement T>
  Value(const TensorValue<T>& t) : Value(element_of<T>(), t.shape) {
    require_count(t.data.size());
    T* to = mutable_elements<T>().data();
    for (std::size_t i = 0; i < t.data.size(); ++i) to[i] = t.data[i];
  }
  template <class T>
    requires HostElement<std::remove_const_t<T>>
  Value(const TensorView<T>& t) : Value(element_of<std::remove_const_t<T>>(), t.shape()) {
    auto* to = mutable_elements<std::remove_const_t<T>>().data();
    for (std::int64_t i = 0; i < t.size(); ++i) to[i] = t.at_flat(i);
  }
  template <HostElement T>
  Value(T number) : Value(element_of<T>(), std::vector<std::int64_t>{}) {
    mutable_elements<T>()[0] = number;
  }
  /// Strings.
  static Value of_texts(std::vector<std::string> texts, std::vector<std::int64_t> shape);
  static Value sequence(std::vector<Value> items, Element element);

  Element element() const { return element_; }
  const std::vector<std::int64_t>& shape() const { return shape_; }
  /// The number of elements.
  std::int64_t size() const;
  bool is_sequence() const { return is_sequence_; }
  const std::vector<Value>& items() const { return items_; }
  /// The strings of a tensor of strings.
  std::vector<std::string> texts() const;

  /// The elements as they lie. Error: T is not the type that they have.
  template <HostElement T>
  std::span<const T> elements() const {
    require_kind(kind_of_host<T>());
    return {reinterpret_cast<const T*>(bytes_.data()), bytes_.size() / sizeof(T)};
  }
  template <HostElement T>
  std::span<T> mutable_elements() {
    require_kind(kind_of_host<T>());
    return {reinterpret_cast<T*>(bytes_.data()), bytes_.size() / sizeof(T)};
  }
  /// A tensor of its own. Error: T is not the type that the elements have.
  template <HostElement T>
  TensorValue<T> tensor() const {
    const auto from = elements<T>();
    return {std::vector<T>(from.begin(), from.end()), shape_};
  }
  template <HostElement T>
  T number() const {
    require_count(1);
    return elements<T>()[0];
  }
  /// Element i of a tensor of numbers as a double, or as an integer.
  double at(std::size_t i) const;
  std::int64_t integer_at(std::size_t i) const;
  /// The elements as they lie.
  std::span<const std::byte> bytes() const { return bytes_; }
  std::span<std::byte> mutable_bytes() { return bytes_; }

  /// "float32[2,3]", "sequence of 2 float32".
  std::string describe() const;
  /// With another shape of as many elements, or taken for another element type that lies the same.
  Value reshaped(std::vector<std::int64_t> shape) const;
  Value as(Element e) const;

  friend bool operator==(const Value&, const Value&) = default;

 private:
  void require_kind(ir::Kind kind) const;
  void require_count(std::size_t count) const;

  Element element_ = Element::undefined;
  std::vector<std::int64_t> shape_;
  std::vector<std::byte> bytes_;
  std::vector<Value> items_;
  bool is_sequence_ = false;
};

/// "[2,3]".
std::string shape_text(std::span<const std::int64_t> shape);

/// Strings are numbered as they are met, once for the whole process; "" is number 0. The numbers mean nothing
/// elsewhere.
std::int64_t number_of_text(std::string_view text);
const std::string& text_of(std::int64_t number);

/// Of float16, bfloat16 and the formats of 8 and 4 bits; nothing for the others.
std::optional<core::FloatFormat> format_of(Element e);
/// The number that bits of a format of 8 or 4 bits mean, and the bits of the nearest number.
float from_format_bits(Element e, std::uint8_t bits);
std::uint8_t format_bits(Element e, float x);

/// The nearest half-precision or bfloat16 number, ties to even, as its bits; and what bits mean.
std::uint16_t half_bits(float x);
float from_half_bits(std::uint16_t bits);
std::uint16_t bfloat_bits(float x);
float from_bfloat_bits(std::uint16_t bits);

}  // namespace lantern::onnx
