#include "lantern/runtime/data/safetensors_header.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "lantern/runtime/data/report.hpp"

namespace lantern::core::data {

namespace {

using nlohmann::json;

constexpr const char* metadata_name = "__metadata__";

constexpr std::pair<std::string_view, Stored> dtypes[] = {{"BOOL", Stored::boolean},
                                                          {"I8", Stored::int8},
                                                          {"U8", Stored::uint8},
                                                          {"I16", Stored::int16},
                                                          {"U16", Stored::uint16},
                                                          {"I32", Stored::int32},
                                                          {"U32", Stored::uint32},
                                                          {"I64", Stored::int64},
                                                          {"F16", Stored::float16},
                                                          {"BF16", Stored::bfloat16},
                                                          {"F32", Stored::float32},
                                                          {"F64", Stored::float64},
                                                          {"U64", Stored::uint64},
                                                          {"F8_E4M3", Stored::float8e4m3fn},
                                                          {"F8_E4M3FNUZ", Stored::float8e4m3fnuz},
                                                          {"F8_E5M2", Stored::float8e5m2},
                                                          {"F8_E5M2FNUZ", Stored::float8e5m2fnuz},
                                                          {"F8_E8M0", Stored::float8e8m0},
                                                          {"F4", Stored::float4e2m1},
                                                          {"F6_E2M3", Stored::float6e2m3},
                                                          {"F6_E3M2", Stored::float6e3m2},
                                                          {"C64", Stored::complex64}};

/// Takes the parser's events: an object of objects, of which only "shape" and "data_offsets" hold arrays.
/// Whatever else a text nests is refused where it begins; other keys of a tensor say nothing of it.
class HeaderEvents : public nlohmann::json_sax<json> {
 public:
  explicit HeaderEvents(const std::string& where) : where_(where) {}

  SafetensorsHeader header;

  bool start_object(std::size_t) override {
    if (enter()) return true;
    if (depth_ >= 2) unexpected("an object");
    if (depth_++ == 1) {
      if (name_ != metadata_name) header.entries.push_back({name_, {}, 0, 0});
      keys_.clear();
    }
    return true;
  }

  bool end_object() override {
    if (leave()) return true;
    if (depth_-- == 2 && name_ != metadata_name)
      for (const char* field : {"dtype", "shape", "data_offsets"})
        if (!keys_.contains(field))
          fail(where_, "expected '" + std::string(field) + "' of " + tensor() + ", got none");
    return true;
  }

  bool key(std::string& text) override {
    if (nested_ > 0) return true;
    const bool fresh = depth_ == 1 ? names_.insert(text).second : keys_.insert(text).second;
    if (!fresh)
      fail(where_, depth_ == 1 ? "expected one tensor for each name, got two of " + in_quotes(text)
                               : "expected each key of " + tensor() + " once, got two of " + in_quotes(text));
    (depth_ == 1 ? name_ : key_) = text;
    other_ =
        depth_ == 2 && name_ != metadata_name && text != "dtype" && text != "shape" && text != "data_offsets";
    return true;
  }

  bool start_array(std::size_t) override {
    if (enter()) return true;
    if (depth_ != 2 || in_array_ || name_ == metadata_name || key_ == "dtype") unexpected("an array");
    in_array_ = true;
    numbers_ = 0;
    return true;
  }

  bool end_array() override {
    if (leave()) return true;
    in_array_ = false;
    if (key_ == "data_offsets" && numbers_ != 2)
      fail(where_, fmt::format("expected 2 'data_offsets' of {}, got {}", tensor(), numbers_));
    return true;
  }

  bool number_unsigned(number_unsigned_t n) override {
    if (other_) return true;
    if (!in_array_) unexpected("a number");
    SafetensorsEntry& entry = header.entries.back();
    ++numbers_;
    if (key_ == "data_offsets") {
      if (numbers_ <= 2) (numbers_ == 1 ? entry.begin : entry.end) = n;
      return true;
    }
    if (n > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()) ||
        numbers_ > most_dimensions)
      fail(where_,
           fmt::format("expected at most {} sizes up to 2^63 - 1 as the shape of {}, got {} as size {}",
                       most_dimensions, tensor(), n, numbers_));
    entry.layout.shape.push_back(static_cast<std::int64_t>(n));
    return true;
  }

  bool string(std::string& text) override {
    if (other_) return true;
    if (depth_ != 2 || in_array_ || (name_ != metadata_name && key_ != "dtype")) unexpected("text");
    if (name_ == metadata_name) {
      header.metadata[key_] = text;
      return true;
    }
    const auto* known =
        std::find_if(std::begin(dtypes), std::end(dtypes), [&](const auto& d) { return d.first == text; });
    if (known == std::end(dtypes))
      fail(where_,
           "expected BOOL, I8 to I64, U8 to U64, F4, F6 of two kinds, F8 of five, F16, BF16, F32, F64 or C64 "
           "as "
           "the dtype of " +
               tensor() + ", got " + in_quotes(text) + "; convert it before it is saved");
    header.entries.back().layout.type = known->second;
    return true;
  }

  bool null() override {
    return other_ || (depth_ == 1 && name_ == metadata_name) || (unexpected("null"), false);
  }
  bool boolean(bool) override { return other_ || (unexpected("a boolean"), false); }
  bool number_integer(number_integer_t) override {
    return other_ || (unexpected("a negative number"), false);
  }
  bool number_float(number_float_t, const std::string&) override {
    return other_ || (unexpected("a number that is no integer"), false);
  }
  bool binary(binary_t&) override { unexpected("binary data"); }

  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception&) override {
    fail(where_, fmt::format("expected a header in JSON, got something else at its byte {}", position));
  }

 private:
  [[noreturn]] void unexpected(const std::string& got) const {
    if (depth_ == 0) fail(where_, "expected a JSON object as the header, got " + got);
    if (depth_ == 1) fail(where_, "expected an object as " + tensor() + ", got " + got);
    const std::string of = in_quotes(key_) + " of " + tensor();
    if (name_ == metadata_name || key_ == "dtype") fail(where_, "expected text as " + of + ", got " + got);
    fail(where_, "expected integers from 0 in " + of + ", got " + got);
  }
  std::string tensor() const {
    return name_ == metadata_name ? "the metadata" : "tensor " + in_quotes(name_);
  }

  /// Of the value of a key that says nothing of the tensor: objects and arrays in it are passed over.
  bool enter() {
    if (other_) ++nested_;
    return other_;
  }
  bool leave() {
    if (nested_ == 0) return false;
    --nested_;
    return true;
  }

  const std::string& where_;
  bool other_ = false;
  int nested_ = 0;
  int depth_ = 0;  ///< of objects
  bool in_array_ = false;
  std::size_t numbers_ = 0;  ///< of the array so far
  std::string name_, key_;   ///< where the parser is
  std::set<std::string> names_, keys_;
};

/// Whether the bytes of tensors, in their order, follow each other from 0 to `bytes`.
void require_neighbours(const std::string& where, const std::vector<SafetensorsEntry>& entries,
                        std::uint64_t bytes) {
  std::uint64_t at = 0;
  for (const SafetensorsEntry& e : entries) {
    if (e.begin > e.end || e.end > bytes)
      fail(where, fmt::format("expected data_offsets of tensor {} in order and up to {}, got [{}, {}]{}",
                              in_quotes(e.name), bytes, e.begin, e.end,
                              e.begin <= e.end ? "; the file is cut short" : ""));
    if (e.begin != at)
      fail(where,
           fmt::format(
               "expected tensor {} to begin at byte {}, where the one before it ends, got {}; tensors {}",
               in_quotes(e.name), at, e.begin, e.begin < at ? "overlap" : "leave a hole"));
    const std::uint64_t expected = bytes_of(where + ": tensor " + in_quotes(e.name), e.layout);
    if (e.end - e.begin != expected)
      fail(where, fmt::format("expected {} bytes for tensor {} ({} of shape {}), got data_offsets [{}, {}]",
                              expected, in_quotes(e.name), name_of(e.layout.type), shape_text(e.layout.shape),
                              e.begin, e.end));
    at = e.end;
  }
  if (at != bytes)
    fail(where, fmt::format("expected {} bytes of elements, where the last tensor ends, got {}", at, bytes));
}

}  // namespace

SafetensorsHeader read_safetensors_header(const std::string& where, std::string_view text,
                                          std::uint64_t bytes) {
  const std::size_t begin = std::min(text.find_first_not_of(" \t\r\n"), text.size());
  if (begin == text.size() || text[begin] != '{')
    fail(where, "expected '{' to begin the header, got " +
                    (text.empty() ? std::string("an empty header") : in_quotes(text.substr(0, 8))));
  if (const std::size_t at = text.find('\0'); at != std::string_view::npos)  // the parser would end there
    fail(where,
         fmt::format("expected JSON and white space up to the header's end, got a NUL byte after {} of "
                     "its {} bytes",
                     at, text.size()));
  HeaderEvents events(where);
  json::sax_parse(text.begin(), text.end(), &events);
  SafetensorsHeader header = std::move(events.header);
  std::sort(header.entries.begin(), header.entries.end(),
            [](const SafetensorsEntry& a, const SafetensorsEntry& b) {
              return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
            });
  require_neighbours(where, header.entries, bytes);
  return header;
}

std::string_view safetensors_dtype(Stored type) {
  const auto* dtype =
      std::find_if(std::begin(dtypes), std::end(dtypes), [&](const auto& d) { return d.second == type; });
  if (dtype == std::end(dtypes)) throw InternalError("an element type that safetensors files do not have");
  return dtype->first;
}

Stored safetensors_type(const std::string& where, std::string_view dtype) {
  const auto* known =
      std::find_if(std::begin(dtypes), std::end(dtypes), [&](const auto& d) { return d.first == dtype; });
  if (known == std::end(dtypes))
    fail(where, "expected a dtype of safetensors files, such as BF16 or F8_E4M3, got " + in_quotes(dtype));
  return known->second;
}

std::string safetensors_header_text(const std::string& where, const SafetensorsHeader& header) {
  json all = json::object();
  if (!header.metadata.empty()) all[metadata_name] = header.metadata;
  for (const SafetensorsEntry& e : header.entries) {
    if (e.name == metadata_name) fail(where, "expected another name for a tensor, got '__metadata__'");
    all[e.name] = {{"dtype", safetensors_dtype(e.layout.type)},
                   {"shape", e.layout.shape},
                   {"data_offsets", {e.begin, e.end}}};
  }
  try {
    return all.dump();
  } catch (const json::type_error&) {
    fail(where, "expected names and metadata in UTF-8, got other bytes");
  }
}

}  // namespace lantern::core::data
