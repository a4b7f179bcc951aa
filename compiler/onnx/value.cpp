#include "lantern/compiler/onnx/value.hpp"

#include <bit>
#include <cmath>
#include <cstring>
#include <deque>
#include <mutex>
#include <unordered_map>

#include "lantern/ir/error.hpp"

namespace lantern::onnx {

namespace {

std::size_t bytes_of(ir::Kind kind) {
  switch (kind) {
    case ir::Kind::boolean:
      return 1;
    case ir::Kind::i32:
    case ir::Kind::f32:
      return 4;
    default:
      return 8;
  }
}

std::int64_t count_of(std::span<const std::int64_t> shape) {
  std::int64_t n = 1;
  for (const std::int64_t d : shape) n *= d;
  return n;
}

}  // namespace

const char* name(Element e) {
  switch (e) {
    case Element::float32:
      return "float32";
    case Element::uint8:
      return "uint8";
    case Element::int8:
      return "int8";
    case Element::uint16:
      return "uint16";
    case Element::int16:
      return "int16";
    case Element::int32:
      return "int32";
    case Element::int64:
      return "int64";
    case Element::string:
      return "string";
    case Element::boolean:
      return "bool";
    case Element::float16:
      return "float16";
    case Element::float64:
      return "float64";
    case Element::uint32:
      return "uint32";
    case Element::uint64:
      return "uint64";
    case Element::complex64:
      return "complex64";
    case Element::complex128:
      return "complex128";
    case Element::bfloat16:
      return "bfloat16";
    case Element::float8e4m3fn:
      return "float8e4m3fn";
    case Element::float8e4m3fnuz:
      return "float8e4m3fnuz";
    case Element::float8e5m2:
      return "float8e5m2";
    case Element::float8e5m2fnuz:
      return "float8e5m2fnuz";
    case Element::uint4:
      return "uint4";
    case Element::int4:
      return "int4";
    case Element::float4e2m1:
      return "float4e2m1";
    case Element::float8e8m0:
      return "float8e8m0";
    case Element::uint2:
      return "uint2";
    case Element::int2:
      return "int2";
    case Element::undefined:
      break;
  }
  return "undefined";
}

bool is_float(Element e) {
  return e == Element::float32 || e == Element::float64 || format_of(e).has_value();
}
bool is_unsigned(Element e) {
  return e == Element::uint8 || e == Element::uint16 || e == Element::uint32 || e == Element::uint64 ||
         e == Element::uint4 || e == Element::uint2;
}
bool is_integer(Element e) {
  return is_unsigned(e) || e == Element::int8 || e == Element::int16 || e == Element::int32 ||
         e == Element::int64 || e == Element::int4 || e == Element::int2;
}
bool is_supported(Element e) { return is_float(e) || is_integer(e) || e == Element::boolean; }

std::size_t bits_in_file(Element e) {
  switch (e) {
    case Element::uint2:
    case Element::int2:
      return 2;
    case Element::uint4:
    case Element::int4:
    case Element::float4e2m1:
      return 4;
    case Element::uint8:
    case Element::int8:
    case Element::boolean:
    case Element::float8e4m3fn:
    case Element::float8e4m3fnuz:
    case Element::float8e5m2:
    case Element::float8e5m2fnuz:
    case Element::float8e8m0:
      return 8;
    case Element::uint16:
    case Element::int16:
    case Element::float16:
    case Element::bfloat16:
      return 16;
    case Element::float32:
    case Element::int32:
    case Element::uint32:
      return 32;
    case Element::float64:
    case Element::int64:
    case Element::uint64:
    case Element::complex64:
      return 64;
    case Element::complex128:
      return 128;
    case Element::string:
    case Element::undefined:
      break;
  }
  return 0;
}
std::size_t bytes_in_file(Element e, std::size_t count) {
  const std::size_t bits = bits_in_file(e);
  return bits < 8 ? (count * bits + 7) / 8 : count * (bits / 8);
}

ir::Kind kind_of(Element e) {
  if (e == Element::boolean) return ir::Kind::boolean;
  if (e == Element::float64) return ir::Kind::f64;
  if (is_float(e)) return ir::Kind::f32;
  if (e == Element::uint32 || e == Element::int64 || e == Element::uint64 || e == Element::string)
    return ir::Kind::i64;
  if (is_integer(e)) return ir::Kind::i32;
  throw Error(std::string("expected elements that are bool, integers or real floating-point numbers, got ") +
              name(e) + ": nothing is computed with those");
}

std::string shape_text(std::span<const std::int64_t> shape) {
  std::string text = "[";
  for (const std::int64_t d : shape) text += (text.size() > 1 ? "," : "") + std::to_string(d);
  return text + "]";
}

Value::Value(Element element, std::vector<std::int64_t> shape) : element_(element), shape_(std::move(shape)) {
  if (!core::addressable(shape_))
    throw Error("expected the shape of a tensor, got " + shape_text(shape_) +
                ": sizes are 0 or more, and a tensor has to fit into memory");
  bytes_.resize(static_cast<std::size_t>(count_of(shape_)) * bytes_of(kind_of(element)));
}

Value Value::of_texts(std::vector<std::string> texts, std::vector<std::int64_t> shape) {
  Value v(Element::string, std::move(shape));
  if (static_cast<std::size_t>(v.size()) != texts.size())
    throw Error("expected a string for each element of a tensor of shape " + shape_text(v.shape_) + ", got " +
                std::to_string(texts.size()));
  const auto to = v.mutable_elements<std::int64_t>();
  for (std::size_t i = 0; i < texts.size(); ++i) to[i] = number_of_text(texts[i]);
  return v;
}

std::vector<std::string> Value::texts() const {
  if (element_ != Element::string) throw Error("expected a tensor of strings, got " + describe());
  std::vector<std::string> all;
  for (const std::int64_t number : elements<std::int64_t>()) all.push_back(text_of(number));
  return all;
}

Value Value::sequence(std::vector<Value> items, Element element) {
  Value v;
  v.element_ = element;
  v.items_ = std::move(items);
  v.is_sequence_ = true;
  return v;
}

std::int64_t Value::size() const { return count_of(shape_); }

double Value::at(std::size_t i) const {
  switch (kind_of(element_)) {
    case ir::Kind::f32:
      return static_cast<double>(elements<float>()[i]);
    case ir::Kind::f64:
      return elements<double>()[i];
    default:
      return static_cast<double>(integer_at(i));
  }
}

std::int64_t Value::integer_at(std::size_t i) const {
  switch (kind_of(element_)) {
    case ir::Kind::boolean:
      return elements<bool>()[i];
    case ir::Kind::i32:
      return elements<std::int32_t>()[i];
    case ir::Kind::i64:
      return elements<std::int64_t>()[i];
    default:
      return static_cast<std::int64_t>(at(i));
  }
}

std::string Value::describe() const {
  if (is_sequence_) return "sequence of " + std::to_string(items_.size()) + " " + name(element_);
  return name(element_) + shape_text(shape_);
}

Value Value::reshaped(std::vector<std::int64_t> shape) const {
  Value v = *this;
  if (!core::addressable(shape) || count_of(shape) != size())
    throw Error("expected a shape of " + std::to_string(size()) + " elements, got " + shape_text(shape));
  v.shape_ = std::move(shape);
  return v;
}

Value Value::as(Element e) const {
  if (kind_of(e) != kind_of(element_))
    throw Error(std::string("expected elements that lie as those of ") + name(element_) + ", got " + name(e));
  Value v = *this;
  v.element_ = e;
  return v;
}

void Value::require_kind(ir::Kind kind) const {
  if (is_sequence_)
    throw Error("expected a tensor of " + std::string(ir::kind_name(kind)) + ", got a " + describe());
  if (kind_of(element_) != kind)
    throw Error("expected a tensor whose elements lie as " + std::string(ir::kind_name(kind)) + ", got " +
                describe());
}

void Value::require_count(std::size_t count) const {
  if (static_cast<std::size_t>(size()) != count)
    throw Error("expected as many elements as the shape " + shape_text(shape_) + " has, got " +
                std::to_string(count));
}

// ---- strings

namespace {

/// Texts by their numbers, and the other way; a deque moves none of them.
struct Texts {
  std::mutex mutex;
  std::deque<std::string> all = {""};
  std::unordered_map<std::string_view, std::int64_t> numbers = {{all[0], 0}};
};
Texts& known_texts() {
  static Texts texts;
  return texts;
}

}  // namespace

std::int64_t number_of_text(std::string_view text) {
  Texts& texts = known_texts();
  const std::lock_guard lock(texts.mutex);
  if (const auto at = texts.numbers.find(text); at != texts.numbers.end()) return at->second;
  const auto number = static_cast<std::int64_t>(texts.all.size());
  texts.numbers.emplace(texts.all.emplace_back(text), number);
  return number;
}

const std::string& text_of(std::int64_t number) {
  Texts& texts = known_texts();
  const std::lock_guard lock(texts.mutex);
  if (number < 0 || static_cast<std::size_t>(number) >= texts.all.size())
    throw Error("expected the number of a string, got " + std::to_string(number));
  return texts.all[static_cast<std::size_t>(number)];
}

// ---- numbers of few bits

std::optional<core::FloatFormat> format_of(Element e) {
  switch (e) {
    case Element::float16:
      return core::float16_format;
    case Element::bfloat16:
      return core::bfloat16_format;
    case Element::float8e4m3fn:
      return core::float8e4m3fn_format;
    case Element::float8e4m3fnuz:
      return core::float8e4m3fnuz_format;
    case Element::float8e5m2:
      return core::float8e5m2_format;
    case Element::float8e5m2fnuz:
      return core::float8e5m2fnuz_format;
    case Element::float4e2m1:
      return core::float4e2m1_format;
    case Element::float8e8m0:
      return core::float8e8m0_format;
    default:
      return std::nullopt;
  }
}

namespace {

core::FloatFormat small_format(Element e) {
  const std::optional<core::FloatFormat> f = format_of(e);
  if (!f || f->bits > 8) throw InternalError(std::string("bits of ") + name(e));
  return *f;
}

}  // namespace

float from_format_bits(Element e, std::uint8_t bits) {
  const core::FloatFormat f = small_format(e);
  return core::decoded(f, f.bits == 4 ? bits & 15u : bits);
}
std::uint8_t format_bits(Element e, float x) {
  return static_cast<std::uint8_t>(core::encoded(small_format(e), x));
}

std::uint16_t half_bits(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000u);
  const std::uint32_t size = bits & 0x7fffffffu;
  if (size > 0x7f800000u) return static_cast<std::uint16_t>(sign | 0x7e00u);   // NaN
  if (size >= 0x477ff000u) return static_cast<std::uint16_t>(sign | 0x7c00u);  // rounds to 65536 or more
  if (size < 0x38800000u) {  // below 2^-14: a multiple of 2^-24
    const auto units = static_cast<std::uint16_t>(std::nearbyint(std::ldexp(std::bit_cast<float>(size), 24)));
    return static_cast<std::uint16_t>(sign | units);
  }
  const std::uint32_t rebased = size - (112u << 23), odd = (rebased >> 13) & 1u;
  return static_cast<std::uint16_t>(sign | ((rebased + 0xfffu + odd) >> 13));
}

float from_half_bits(std::uint16_t bits) {
  const float sign = (bits & 0x8000u) != 0 ? -1.0f : 1.0f;
  const int exponent = (bits >> 10) & 31, fraction = bits & 0x3ff;
  if (exponent == 31)
    return fraction != 0 ? std::bit_cast<float>(0x7fc00000u | (bits & 0x8000u) << 16)
                         : sign * std::bit_cast<float>(0x7f800000u);
  if (exponent == 0) return sign * std::ldexp(static_cast<float>(fraction), -24);
  return sign * std::ldexp(static_cast<float>(fraction + 1024), exponent - 25);
}

std::uint16_t bfloat_bits(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return 0x7fc0u;  // NaN
  return static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

float from_bfloat_bits(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

}  // namespace lantern::onnx
