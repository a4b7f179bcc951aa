// A file is "\x93NUMPY", two bytes of version, the length of the header, the header, and the elements. The
// header is the text of a Python dictionary: {'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), }
#include "lantern/runtime/data/npy.hpp"

#include <fmt/format.h>

#include <bit>
#include <charconv>
#include <optional>

#include "lantern/runtime/data/element.hpp"
#include "lantern/runtime/data/file.hpp"
#include "lantern/runtime/data/report.hpp"

namespace lantern {

namespace core::data {

namespace {

constexpr std::string_view magic = "\x93NUMPY";
/// Reads the dictionary: three keys in any order, with the spaces that Python allows.
class HeaderReader {
 public:
  HeaderReader(const std::string& where, std::string_view text, const NpyOptions& options)
      : where_(where), text_(text), options_(options) {}

  Layout layout() {
    Layout layout;
    bool descr = false, order = false, shape = false;
    expect('{', "'{' to begin the header");
    while (!accept('}')) {
      const std::string key(string("a key of the header"));
      expect(':', "':' after " + in_quotes(key));
      if (key == "descr" && !std::exchange(descr, true))
        dtype(layout);
      else if (key == "fortran_order" && !std::exchange(order, true))
        layout.columns_first = boolean();
      else if (key == "shape" && !std::exchange(shape, true))
        layout.shape = tuple();
      else
        fail(where_, "expected each of 'descr', 'fortran_order' and 'shape' once in the header, got " +
                         in_quotes(key));
      if (!accept(',') && !at('}')) wrong("',' or '}' in the header");
    }
    if (!descr || !order || !shape)
      fail(where_, fmt::format("expected 'descr', 'fortran_order' and 'shape' in the header, got no '{}'",
                               !descr ? "descr" : (!order ? "fortran_order" : "shape")));
    skip_space();
    if (at_ < text_.size()) wrong("spaces after the header");
    return layout;
  }

 private:
  void skip_space() {
    while (at_ < text_.size() &&
           (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\r' || text_[at_] == '\n'))
      ++at_;
  }
  bool at(char c) {
    skip_space();
    return at_ < text_.size() && text_[at_] == c;
  }
  bool accept(char c) {
    if (!at(c)) return false;
    ++at_;
    return true;
  }
  void expect(char c, const std::string& what) {
    if (!accept(c)) wrong(what);
  }
  [[noreturn]] void wrong(const std::string& expected) {
    skip_space();
    fail(where_,
         "expected " + expected + ", got " +
             (at_ < text_.size() ? in_quotes(text_.substr(at_, 20)) : std::string("the end of the header")));
  }

  /// Between quotes of either kind. Names of types and keys have nothing to escape.
  std::string_view string(const std::string& what) {
    skip_space();
    const char quote = at('"') ? '"' : '\'';
    if (!accept(quote)) wrong(what + " in quotes");
    const std::size_t end = text_.find(quote, at_);
    if (end == std::string_view::npos) wrong(what + " that a quote ends");
    const std::string_view inside = text_.substr(at_, end - at_);
    at_ = end + 1;
    return inside;
  }

  bool boolean() {
    skip_space();
    for (const std::string_view word : {"True", "False"}) {
      if (text_.substr(at_, word.size()) != word) continue;
      at_ += word.size();
      return word == "True";
    }
    wrong("True or False as 'fortran_order'");
  }

  std::vector<std::int64_t> tuple() {
    std::vector<std::int64_t> sizes;
    expect('(', "'(' to begin 'shape'");
    while (!accept(')')) {
      if (sizes.size() == most_dimensions) wrong(fmt::format("at most {} dimensions", most_dimensions));
      skip_space();
      std::int64_t size = 0;
      const char* last = text_.data() + text_.size();
      const auto [stop, error] = std::from_chars(text_.data() + at_, last, size);
      if (error != std::errc() || size < 0) wrong("a size from 0 to 2^63 - 1 in 'shape'");
      sizes.push_back(size);
      at_ = static_cast<std::size_t>(stop - text_.data());
      accept('L');  // a long of Python 2
      if (!accept(',') && (!at(')') || sizes.size() == 1)) wrong("',' or ')' in 'shape'");
    }
    return sizes;
  }

  void dtype(Layout& layout) {
    if (at('['))
      fail(where_, "expected elements that are numbers, got records; save each of their fields by itself");
    const std::string_view descr = string("the dtype");
    // As NumPy reads it: '<f4', '=f4' and 'f4' in this machine's order, a character such as '<d', or
    // 'float32'.
    const bool ordered =
        !descr.empty() && std::string_view("<>|=").find(descr.front()) != std::string_view::npos;
    const char order = ordered ? descr.front() : '=';
    const std::string_view code = descr.substr(ordered ? 1 : 0);
    const std::optional<Stored> type = code == "V1" || code == "V2" ? raw(descr) : stored(code, !ordered);
    if (!type)
      fail(where_, "expected a dtype of bool, int8 to int64, uint8 to uint64 or float16 to float64, got " +
                       in_quotes(descr) +
                       (descr == "|O" ? ", which is pickled objects; save an array of numbers"
                                      : "; convert it with astype() before it is saved"));
    layout.type = *type;
    layout.big_endian = order == '>' || (order != '<' && std::endian::native == std::endian::big);
  }

  /// What the caller says of elements without a type.
  Stored raw(std::string_view descr) const {
    static constexpr Stored types[] = {Stored::bfloat16,   Stored::float8e4m3fn,   Stored::float8e4m3fnuz,
                                       Stored::float8e5m2, Stored::float8e5m2fnuz, Stored::float8e8m0,
                                       Stored::float16};
    std::string known;
    for (const Stored type : types) {
      if (bits_of(type) != (descr.back() == '2' ? 16U : 8U)) continue;
      if (name_of(type) == options_.raw) return type;
      known += (known.empty() ? "\"" : ", \"") + std::string(name_of(type)) + "\"";
    }
    fail(where_, "expected to be told what elements of " + in_quotes(descr) +
                     ", which have no type, are: NpyOptions{.raw = ...} with one of " + known + ", got " +
                     (options_.raw.empty() ? "none" : in_quotes(options_.raw)));
  }

  /// By its code or, where `by_name`, its name.
  static std::optional<Stored> stored(std::string_view code, bool by_name) {
    using enum Stored;
    static constexpr std::pair<std::string_view, Stored> codes[] = {
        {"b1", boolean}, {"i1", int8},  {"u1", uint8},  {"i2", int16},   {"u2", uint16},  {"i4", int32},
        {"u4", uint32},  {"i8", int64}, {"u8", uint64}, {"f2", float16}, {"f4", float32}, {"f8", float64}};
    // numpy.org/doc/stable/reference/arrays.scalars.html: the character of each type; 'l' where long has 8
    // bytes.
    static constexpr std::string_view characters = "?bBhHiIlLqQefd";
    static constexpr Stored of_characters[] = {boolean, int8,   uint8, int16,  uint16,  int32,   uint32,
                                               int64,   uint64, int64, uint64, float16, float32, float64};
    static constexpr std::pair<std::string_view, Stored> names[] = {{"bool", boolean},   {"float", float64},
                                                                    {"half", float16},   {"single", float32},
                                                                    {"double", float64}, {"int", int64}};
    for (const auto& [name, type] : codes)
      if (name == code || (by_name && name_of(type) == code)) return type;
    if (const std::size_t at = characters.find(code); code.size() == 1 && at != std::string_view::npos)
      return of_characters[at];
    for (const auto& [name, type] : names)
      if (by_name && name == code) return type;
    return std::nullopt;
  }

  const std::string& where_;
  std::string_view text_;
  const NpyOptions& options_;
  std::size_t at_ = 0;
};

/// What a file says of its array, and the bytes of the elements: neither more nor less than it takes.
std::pair<Layout, std::span<const std::byte>> parts(const std::string& where, std::span<const std::byte> file,
                                                    const NpyOptions& options) {
  if (text_of(file).substr(0, magic.size()) != magic)
    fail(where,
         "expected a .npy file, which begins with '\\x93NUMPY', got " +
             (file.empty() ? std::string("an empty one") : in_quotes(text_of(file).substr(0, magic.size()))));
  const std::size_t version_end = magic.size() + 2;
  if (file.size() < version_end) fail(where, "expected the version of the format, got the end of the file");
  const int version = std::to_integer<int>(file[magic.size()]),
            minor = std::to_integer<int>(file[magic.size() + 1]);
  if (version < 1 || version > 3 || minor != 0)
    fail(where, fmt::format("expected version 1.0, 2.0 or 3.0 of the format, got {}.{}", version, minor));
  const std::size_t width = version == 1 ? 2 : 4, header = version_end + width;
  if (file.size() < header) fail(where, "expected the length of the header, got the end of the file");
  const std::uint64_t length = little_endian(file.data() + version_end, width);
  if (length > file.size() - header)
    fail(where, fmt::format("expected a header of {} bytes, got {}; the file is cut short", length,
                            file.size() - header));
  constexpr std::uint64_t most_header = 10'000;  // as NumPy, which is slow to read longer ones
  if (length > most_header)
    fail(where, fmt::format("expected a header of at most {} bytes, got {}", most_header, length));
  Layout layout = HeaderReader(where, text_of(file.subspan(header, length)), options).layout();
  const std::uint64_t expected = bytes_of(where, layout);
  const std::span<const std::byte> elements = file.subspan(header + length);
  if (elements.size() != expected)
    fail(where, fmt::format("expected {} bytes of elements ({} of shape {}), got {}{}", expected,
                            name_of(layout.type), shape_text(layout.shape), elements.size(),
                            elements.size() < expected ? "; the file is cut short" : ""));
  return {std::move(layout), elements};
}

}  // namespace

std::string npy_header(const std::string& where, const AnyView& tensor) {
  static_cast<void>(bytes_of(where, {stored_as(tensor), tensor.shape()}));
  std::string shape;
  for (const std::int64_t d : tensor.shape()) shape += fmt::format("{}, ", d);
  if (shape.size() >= 2) shape.resize(shape.size() - (tensor.shape().size() == 1 ? 1 : 2));
  const char* descr = "";
  switch (stored_as(tensor)) {
    case Stored::boolean:
      descr = "|b1";
      break;
    case Stored::int32:
      descr = "<i4";
      break;
    case Stored::int64:
      descr = "<i8";
      break;
    case Stored::float32:
      descr = "<f4";
      break;
    default:
      descr = "<f8";
      break;
  }
  std::string text = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", descr, shape);
  // Spaces and a newline, so that elements begin at a multiple of 64.
  const std::size_t before = magic.size() + 4;
  text.append(63 - (before + text.size()) % 64, ' ');
  text += '\n';
  std::string header(magic);
  header += {'\x01', '\x00', static_cast<char>(text.size() & 0xffU), static_cast<char>(text.size() >> 8U)};
  return header + text;
}

}  // namespace core::data

template <core::data::Element T>
TensorValue<T> load_npy(std::span<const std::byte> bytes, const std::string& name,
                        const NpyOptions& options) {
  const auto [layout, elements] = core::data::parts(name, bytes, options);
  return core::data::decode<T>(name, layout, elements);
}

AnyTensor load_npy(std::span<const std::byte> bytes, const std::string& name, const NpyOptions& options) {
  const auto [layout, elements] = core::data::parts(name, bytes, options);
  return core::data::decode(name, layout, elements);
}

template <core::data::Element T>
TensorValue<T> load_npy(const std::filesystem::path& path, const NpyOptions& options) {
  return load_npy<T>(core::data::FileBytes(path), path.string(), options);
}

AnyTensor load_npy(const std::filesystem::path& path, const NpyOptions& options) {
  return load_npy(core::data::FileBytes(path), path.string(), options);
}

template TensorValue<bool> load_npy(std::span<const std::byte>, const std::string&, const NpyOptions&);
template TensorValue<std::int32_t> load_npy(std::span<const std::byte>, const std::string&,
                                            const NpyOptions&);
template TensorValue<std::int64_t> load_npy(std::span<const std::byte>, const std::string&,
                                            const NpyOptions&);
template TensorValue<float> load_npy(std::span<const std::byte>, const std::string&, const NpyOptions&);
template TensorValue<double> load_npy(std::span<const std::byte>, const std::string&, const NpyOptions&);
template TensorValue<bool> load_npy(const std::filesystem::path&, const NpyOptions&);
template TensorValue<std::int32_t> load_npy(const std::filesystem::path&, const NpyOptions&);
template TensorValue<std::int64_t> load_npy(const std::filesystem::path&, const NpyOptions&);
template TensorValue<float> load_npy(const std::filesystem::path&, const NpyOptions&);
template TensorValue<double> load_npy(const std::filesystem::path&, const NpyOptions&);

void save_npy(const std::filesystem::path& path, const AnyView& tensor) {
  core::data::Replacement file(path);
  file.write(core::data::bytes_of(core::data::npy_header(path.string(), tensor)));
  core::data::encode(tensor, [&](std::span<const std::byte> part) { file.write(part); });
  file.take_place();
}

}  // namespace lantern
