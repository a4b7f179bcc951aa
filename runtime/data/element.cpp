#include "lantern/runtime/data/element.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>

#include "lantern/runtime/data/report.hpp"
#include "lantern/runtime/small_float.hpp"

namespace lantern::core::data {

namespace {

template <class S>
S load(const std::byte* at, bool swap) {
  std::array<std::byte, sizeof(S)> bytes;
  std::memcpy(bytes.data(), at, sizeof(S));
  if (swap) std::reverse(bytes.begin(), bytes.end());
  return std::bit_cast<S>(bytes);
}

/// IEEE 754 binary16: 1 bit of sign, 5 of exponent (bias 15), 10 of fraction.
float float_of_half(std::uint16_t half) {
  const std::uint32_t sign = (half & 0x8000U) << 16U, exponent = half >> 10U & 0x1fU,
                      fraction = half & 0x3ffU;
  if (exponent == 0) {  // zero and subnormals: fraction * 2^-24
    const float magnitude = static_cast<float>(fraction) * 0x1p-24F;
    return sign != 0 ? -magnitude : magnitude;
  }
  const std::uint32_t wide = exponent == 0x1f ? 0xffU : exponent + (127 - 15);
  return std::bit_cast<float>(sign | wide << 23U | fraction << 13U);
}

float float_of_bfloat(std::uint16_t upper) { return std::bit_cast<float>(std::uint32_t{upper} << 16U); }

/// Numbers of 8 bits by their bits.
template <const FloatFormat& format>
float float_of_code(std::uint8_t code) {
  static const std::array<float, 256> all = [] {
    std::array<float, 256> numbers{};
    for (unsigned i = 0; i < 256; ++i) numbers[i] = decoded(format, i);
    return numbers;
  }();
  return all[code];
}

/// Where require_signed found none that is negative then.
std::int64_t signed_of(std::uint64_t x) { return static_cast<std::int64_t>(x); }

constexpr auto as_it_is = [](auto x) { return x; };

/// use.operator()<S>(value): elements are stored as an S, of which value gives the number.
template <class F>
decltype(auto) with_type(Stored type, F&& use) {
  switch (type) {
    case Stored::boolean:
      return use.template operator()<std::uint8_t>([](std::uint8_t b) { return std::uint8_t{b != 0}; });
    case Stored::int8:
      return use.template operator()<std::int8_t>([](std::int8_t x) { return +x; });
    case Stored::uint8:
      return use.template operator()<std::uint8_t>(as_it_is);
    case Stored::int16:
      return use.template operator()<std::int16_t>(as_it_is);
    case Stored::uint16:
      return use.template operator()<std::uint16_t>(as_it_is);
    case Stored::int32:
      return use.template operator()<std::int32_t>(as_it_is);
    case Stored::uint32:
      return use.template operator()<std::uint32_t>(as_it_is);
    case Stored::int64:
      return use.template operator()<std::int64_t>(as_it_is);
    case Stored::float16:
      return use.template operator()<std::uint16_t>(&float_of_half);
    case Stored::bfloat16:
      return use.template operator()<std::uint16_t>(&float_of_bfloat);
    case Stored::float32:
      return use.template operator()<float>(as_it_is);
    case Stored::uint64:
      return use.template operator()<std::uint64_t>(&signed_of);
    case Stored::float8e4m3fn:
      return use.template operator()<std::uint8_t>(&float_of_code<float8e4m3fn_format>);
    case Stored::float8e4m3fnuz:
      return use.template operator()<std::uint8_t>(&float_of_code<float8e4m3fnuz_format>);
    case Stored::float8e5m2:
      return use.template operator()<std::uint8_t>(&float_of_code<float8e5m2_format>);
    case Stored::float8e5m2fnuz:
      return use.template operator()<std::uint8_t>(&float_of_code<float8e5m2fnuz_format>);
    case Stored::float8e8m0:
      return use.template operator()<std::uint8_t>(&float_of_code<float8e8m0_format>);
    case Stored::complex64:
      return use.template operator()<float>(as_it_is);
    case Stored::float4e2m1:
    case Stored::float6e2m3:
    case Stored::float6e3m2:
      throw InternalError("elements that are no whole bytes, read as such");
    case Stored::float64:
    case Stored::complex128:
      break;
  }
  return use.template operator()<double>(as_it_is);
}

/// The stored types whose every value T holds.
template <Element T>
bool holds(Stored type) {
  using enum Stored;
  if (type == boolean) return true;
  if constexpr (std::is_same_v<T, bool>) return false;
  const bool short_integer = type == int8 || type == uint8 || type == int16 || type == uint16;
  const bool short_float =
      type == float16 || type == bfloat16 || type == float32 || (type >= float8e4m3fn && type <= complex64);
  if constexpr (std::is_same_v<T, std::int32_t>) return short_integer || type == int32;
  if constexpr (std::is_same_v<T, std::int64_t>)
    return short_integer || type == int32 || type == uint32 || type == int64 || type == uint64;
  if constexpr (std::is_same_v<T, float>) return short_integer || short_float;
  return short_integer || type == int32 || type == uint32 || short_float || type == float64 ||
         type == complex128;
}

/// The format of floating-point numbers of 16 bits or fewer; null for other types.
const FloatFormat* small_format(Stored type) {
  switch (type) {
    case Stored::float16:
      return &float16_format;
    case Stored::bfloat16:
      return &bfloat16_format;
    case Stored::float8e4m3fn:
      return &float8e4m3fn_format;
    case Stored::float8e4m3fnuz:
      return &float8e4m3fnuz_format;
    case Stored::float8e5m2:
      return &float8e5m2_format;
    case Stored::float8e5m2fnuz:
      return &float8e5m2fnuz_format;
    case Stored::float8e8m0:
      return &float8e8m0_format;
    case Stored::float4e2m1:
      return &float4e2m1_format;
    case Stored::float6e2m3:
      return &float6e2m3_format;
    case Stored::float6e3m2:
      return &float6e3m2_format;
    default:
      return nullptr;
  }
}

/// Numbers that an element is made of.
std::size_t parts_of(Stored type) { return type == Stored::complex64 || type == Stored::complex128 ? 2 : 1; }

/// The offsets of the elements of a strided tensor, in row-major order. Sizes are not 0.
class Offsets {
 public:
  Offsets(const std::vector<std::int64_t>& shape, const std::vector<std::int64_t>& strides)
      : shape_(shape), strides_(strides), index_(shape.size(), 0) {}

  /// The next one; the first call gives 0.
  std::int64_t next() {
    const std::int64_t offset = offset_;
    for (std::size_t i = shape_.size(); i-- > 0;) {
      offset_ += strides_[i];
      if (++index_[i] < shape_[i]) break;
      offset_ -= strides_[i] * shape_[i];
      index_[i] = 0;
    }
    return offset;
  }

 private:
  const std::vector<std::int64_t>& shape_;
  const std::vector<std::int64_t>& strides_;
  std::vector<std::int64_t> index_;
  std::int64_t offset_ = 0;
};

/// Error: integers of 2^63 or more, which int64 does not have.
void require_signed(const std::string& where, const Layout& layout, std::span<const std::byte> bytes) {
  if (layout.type != Stored::uint64) return;
  for (std::size_t at = 0; at + 8 <= bytes.size(); at += 8) {
    std::uint64_t n = 0;  // the most significant byte first
    for (std::size_t k = 0; k < 8; ++k)
      n = n << 8U | std::to_integer<std::uint64_t>(bytes[at + (layout.big_endian ? k : 7 - k)]);
    if (n >> 63U != 0)
      fail(where, fmt::format("expected integers up to 2^63 - 1, got {} among those of type uint64; convert "
                              "them before they are saved",
                              n));
  }
}

/// The elements as an AnyTensor keeps them.
template <Element T>
TensorValue<Kept<T>> decode_kept(const Layout& layout, std::span<const std::byte> bytes) {
  const std::size_t bits = bits_of(layout.type), count = bytes.size() * 8 / bits,
                    parts = parts_of(layout.type);
  TensorValue<Kept<T>> out(std::vector<Kept<T>>(count * parts), shape_of(layout.type, layout.shape));
  if (count == 0) return out;
  const bool swap = layout.big_endian != (std::endian::native == std::endian::big);
  std::vector<std::int64_t> strides;
  if (layout.columns_first) {
    std::int64_t stride = 1;
    for (const std::int64_t d : layout.shape) strides.push_back(std::exchange(stride, stride * d));
  }
  Offsets offsets(layout.shape, strides);
  const auto place = [&](std::size_t i) {
    return layout.columns_first ? static_cast<std::size_t>(offsets.next()) : i;
  };
  if (bits < 8) {
    const FloatFormat& format = *small_format(layout.type);
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t at = place(i) * bits, byte = at / 8;
      unsigned code = std::to_integer<unsigned>(bytes[byte]);
      if (byte + 1 < bytes.size()) code |= std::to_integer<unsigned>(bytes[byte + 1]) << 8U;
      out.data[i] = static_cast<Kept<T>>(decoded(format, code >> at % 8 & ((1U << bits) - 1)));
    }
    return out;
  }
  with_type(layout.type, [&]<class S>(auto value) {
    if constexpr (std::is_same_v<S, Kept<T>>) {
      if (layout.type != Stored::boolean && !swap && !layout.columns_first) {
        std::memcpy(out.data.data(), bytes.data(), bytes.size());
        return;
      }
    }
    for (std::size_t i = 0; i < count; ++i) {
      const std::byte* at = bytes.data() + place(i) * parts * sizeof(S);
      for (std::size_t k = 0; k < parts; ++k)
        out.data[i * parts + k] = static_cast<Kept<T>>(value(load<S>(at + k * sizeof(S), swap)));
    }
  });
  return out;
}

}  // namespace

std::string_view name_of(Stored type) {
  static constexpr std::array<std::string_view, 23> names{
      "bool",          "int8",          "uint8",           "int16",       "uint16",          "int32",
      "uint32",        "int64",         "float16",         "bfloat16",    "float32",         "float64",
      "uint64",        "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu",
      "float4_e2m1fn", "float6_e2m3fn", "float6_e3m2fn",   "complex64",   "complex128"};
  return names[static_cast<std::size_t>(type)];
}

std::size_t bits_of(Stored type) {
  if (const FloatFormat* f = small_format(type)) return static_cast<std::size_t>(f->bits);
  return parts_of(type) * with_type(type, []<class S>(auto) { return 8 * sizeof(S); });
}

std::vector<std::int64_t> shape_of(Stored type, std::vector<std::int64_t> shape) {
  if (parts_of(type) > 1) shape.push_back(static_cast<std::int64_t>(parts_of(type)));
  return shape;
}

Stored stored_as(const AnyView& tensor) {
  const std::string_view type = tensor.type_name();
  if (type == name_of<bool>()) return Stored::boolean;
  if (type == name_of<std::int32_t>()) return Stored::int32;
  if (type == name_of<std::int64_t>()) return Stored::int64;
  return type == name_of<float>() ? Stored::float32 : Stored::float64;
}

std::uint64_t bytes_of(const std::string& where, const Layout& layout) {
  if (layout.shape.size() > most_dimensions)
    fail(where, fmt::format("expected at most {} dimensions, got {}", most_dimensions, layout.shape.size()));
  if (!addressable(layout.shape))
    fail(where,
         "expected sizes that multiply to at most 2^50 elements, got shape " + shape_text(layout.shape));
  std::uint64_t bits = bits_of(layout.type);
  for (const std::int64_t d : layout.shape) bits *= static_cast<std::uint64_t>(d);
  if (bits % 8 != 0)
    fail(where, fmt::format("expected elements of {} that fill whole bytes, got shape {}",
                            name_of(layout.type), shape_text(layout.shape)));
  return bits / 8;
}

template <Element T>
TensorValue<T> decode(const std::string& where, const Layout& layout, std::span<const std::byte> bytes) {
  if (!holds<T>(layout.type))
    fail(where,
         fmt::format(
             "expected elements that {} holds exactly, got {}; loaded without a type, as an AnyTensor, "
             "convert<{}>() converts them",
             name_of<T>(), name_of(layout.type), name_of<T>()));
  require_signed(where, layout, bytes);
  TensorValue<Kept<T>> kept = decode_kept<T>(layout, bytes);
  if constexpr (std::is_same_v<T, bool>)
    return {std::vector<bool>(kept.data.begin(), kept.data.end()), std::move(kept.shape)};
  else
    return kept;
}

template TensorValue<bool> decode(const std::string&, const Layout&, std::span<const std::byte>);
template TensorValue<std::int32_t> decode(const std::string&, const Layout&, std::span<const std::byte>);
template TensorValue<std::int64_t> decode(const std::string&, const Layout&, std::span<const std::byte>);
template TensorValue<float> decode(const std::string&, const Layout&, std::span<const std::byte>);
template TensorValue<double> decode(const std::string&, const Layout&, std::span<const std::byte>);

AnyTensor decode(const std::string& where, const Layout& layout, std::span<const std::byte> bytes) {
  const Stored type = layout.type;
  require_signed(where, layout, bytes);
  if (type == Stored::boolean) return any_tensor(decode_kept<bool>(layout, bytes));
  if (holds<std::int32_t>(type)) return any_tensor(decode_kept<std::int32_t>(layout, bytes));
  if (holds<std::int64_t>(type)) return any_tensor(decode_kept<std::int64_t>(layout, bytes));
  if (holds<float>(type)) return any_tensor(decode_kept<float>(layout, bytes));
  return any_tensor(decode_kept<double>(layout, bytes));
}

void encode(const AnyView& tensor, const Sink& sink) {
  const std::size_t each = tensor.element_bytes(), count = static_cast<std::size_t>(tensor.size());
  if (count == 0) return;
  const bool swap = std::endian::native == std::endian::big;
  if (tensor.contiguous() && !swap) {
    sink({tensor.data(), count * each});
    return;
  }
  constexpr std::size_t chunk = 1 << 16;
  std::vector<std::byte> gathered;
  gathered.reserve(chunk);
  Offsets offsets(tensor.shape(), tensor.strides());
  for (std::size_t i = 0; i < count; ++i) {
    const std::byte* at = tensor.data() + offsets.next() * static_cast<std::int64_t>(each);
    gathered.insert(gathered.end(), at, at + each);
    if (swap) std::reverse(gathered.end() - static_cast<std::ptrdiff_t>(each), gathered.end());
    if (gathered.size() + each > chunk || i + 1 == count) {
      sink(gathered);
      gathered.clear();
    }
  }
}

namespace {

/// Collects bytes, and hands them on in larger pieces.
class Pieces {
 public:
  explicit Pieces(const Sink& sink) : sink_(sink) {}
  void add(std::uint64_t number, std::size_t bits) {  // of 32 bits at most at a time
    held_ |= number << count_;
    for (count_ += bits; count_ >= 8; count_ -= 8, held_ >>= 8U)
      bytes_.push_back(static_cast<std::byte>(held_));
    if (bytes_.size() >= 1 << 16) flush();
  }
  void flush() {
    if (!bytes_.empty()) sink_(bytes_);
    bytes_.clear();
  }

 private:
  const Sink& sink_;
  std::vector<std::byte> bytes_;
  std::uint64_t held_ = 0;
  std::size_t count_ = 0;
};

std::uint64_t fitting(const std::string& where, Stored type, std::int64_t x) {
  const std::size_t bits = bits_of(type);
  const bool below_zero = type == Stored::int8 || type == Stored::int16;
  const std::int64_t most = bits == 64   ? std::numeric_limits<std::int64_t>::max()
                            : below_zero ? (std::int64_t{1} << (bits - 1)) - 1
                                         : (std::int64_t{1} << bits) - 1;
  const std::int64_t least = below_zero ? -most - 1 : 0;
  if (x < least || x > most)
    fail(where, fmt::format("expected numbers from {} to {} to be written as {}, got {}", least, most,
                            name_of(type), x));
  return static_cast<std::uint64_t>(x) & (bits == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1);
}

}  // namespace

void encode(const std::string& where, const AnyView& tensor, Stored type, const Sink& sink) {
  const Stored own = stored_as(tensor);
  const bool pairs = parts_of(type) == 2;
  const Stored wanted = holds<std::int32_t>(type) && type != Stored::boolean ? Stored::int32
                        : type == Stored::boolean                            ? Stored::boolean
                        : holds<std::int64_t>(type)                          ? Stored::int64
                        : holds<float>(type)                                 ? Stored::float32
                                                                             : Stored::float64;
  if (own != wanted || (pairs && (tensor.shape().empty() || tensor.shape().back() != 2)))
    fail(where, fmt::format("expected elements of {}{} to be written as {}, got {} of shape {}",
                            name_of(wanted), pairs ? " with a last dimension of 2" : "", name_of(type),
                            name_of(own), shape_text(tensor.shape())));
  if (own == type || pairs) return encode(tensor, sink);
  const FloatFormat* const format = small_format(type);
  const std::size_t bits = bits_of(type), count = static_cast<std::size_t>(tensor.size());
  if (count == 0) return;
  Pieces pieces(sink);
  Offsets offsets(tensor.shape(), tensor.strides());
  for (std::size_t i = 0; i < count; ++i) {
    const std::byte* at = tensor.data() + offsets.next() * static_cast<std::int64_t>(tensor.element_bytes());
    const std::uint64_t code = format                 ? encoded(*format, load<float>(at, false))
                               : own == Stored::int32 ? fitting(where, type, load<std::int32_t>(at, false))
                                                      : fitting(where, type, load<std::int64_t>(at, false));
    pieces.add(code & 0xffffffffU, std::min<std::size_t>(bits, 32));
    if (bits == 64) pieces.add(code >> 32U, 32);
  }
  pieces.flush();
}

}  // namespace lantern::core::data
