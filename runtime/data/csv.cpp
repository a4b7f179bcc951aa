#include "lantern/runtime/data/csv.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <iterator>
#include <limits>
#include <locale>
#include <sstream>
#include <string_view>
#include <utility>

#include "lantern/runtime/data/element.hpp"
#include "lantern/runtime/data/file.hpp"
#include "lantern/runtime/data/report.hpp"

namespace lantern {

namespace core::data {

namespace {

constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";

/// No character of a number, a quote or a line's end.
void require_separator(const std::string& where, char c) {
  if (c != '\0' && c != '"' && c != '.' && c != '+' && c != '-' && c != '\n' && c != '\r' &&
      !(c >= '0' && c <= '9') && !(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z'))
    return;
  fail(where, "expected a separator like ',', ';' or a tab, got " + in_quotes({&c, 1}));
}

enum class Parsed { number, no_number, out_of_range };

template <class T>
Parsed parse_number(std::string_view text, T& number) {
  // A sign '+' is what from_chars does not take.
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  const char* last = text.data() + text.size();
  if (text == "True" || text == "False" || text == "true" ||
      text == "false") {  // as NumPy and pandas write bools
    number = text[0] == 'T' || text[0] == 't' ? 1 : 0;
    return Parsed::number;
  }
  const auto [stop, error] = std::from_chars(text.data(), last, number);
  if (error == std::errc::invalid_argument || stop != last) return Parsed::no_number;
  if (error == std::errc()) return Parsed::number;
  // Too large, or too near to 0: that one is rounded.
  std::istringstream in{std::string(text)};
  in.imbue(std::locale::classic());
  return in >> number ? Parsed::number : Parsed::out_of_range;
}

struct Field {
  std::string text;  ///< without quotes and the spaces around
  std::size_t line = 0, column = 0;
};

class CsvReader {
 public:
  CsvReader(const std::string& where, std::string_view text, const CsvOptions& options)
      : where_(where), text_(text), options_(options) {
    require_separator(where, options.separator);
    if (text_.starts_with(byte_order_mark)) at_ = line_begin_ = byte_order_mark.size();
  }

  template <class T>
  CsvTable<T> table() {
    CsvTable<T> table;
    std::vector<T>& numbers = table.values.data;
    std::int64_t rows = 0, columns = 0;
    if (skip_blank_lines()) {
      const std::vector<Field> first = fields();
      columns = static_cast<std::int64_t>(first.size());
      const bool counted = !options_.header && counts_columns(first);
      if (options_.header.value_or(names_columns<T>(first) || (counted && fractions_follow())))
        for (const Field& f : first) table.columns.push_back(f.text);
      else
        add_row(first, table);
      rows = numbers.empty() ? 0 : 1;
      while (skip_blank_lines()) {
        row(table, static_cast<std::size_t>(columns), first.front().line);
        ++rows;
      }
      if (counted && table.columns.empty() && rows > 1)
        fail(fmt::format("{}:{}", where_, first.front().line),
             "expected a first line that is either names or numbers, got 0, 1, ..., which pandas writes as "
             "names "
             "where columns have none; CsvOptions::header tells which it is");
    } else if (options_.header.value_or(false)) {
      fail(where_, "expected a line with the names of the columns, got an empty file");
    }
    table.values.shape = {rows, columns};
    return table;
  }

 private:
  char separator() const { return options_.separator; }
  bool ended() const { return at_ >= text_.size(); }
  bool at_line_end() const { return ended() || text_[at_] == '\n' || text_[at_] == '\r'; }
  void skip_spaces() {
    while (!ended() && (text_[at_] == ' ' || text_[at_] == '\t') && text_[at_] != separator()) ++at_;
  }
  /// Past the end of the line, of which all was read.
  void next_line() {
    at_ = std::min(text_.size(), at_ + (text_.substr(at_, 2) == "\r\n" ? 2 : 1));
    ++line_;
    line_begin_ = at_;
  }
  std::size_t column(std::size_t at) const { return at - line_begin_ + 1; }

  /// Whether there is a line after those with nothing but spaces.
  bool skip_blank_lines() {
    for (;;) {
      skip_spaces();
      if (ended()) return false;
      if (!at_line_end()) break;
      next_line();
    }
    at_ = line_begin_;
    return true;
  }

  std::vector<Field> fields() {
    std::vector<Field> all;
    while (field(all.emplace_back())) {
    }
    return all;
  }

  template <class T>
  static bool names_columns(const std::vector<Field>& first) {
    T number;
    for (const Field& f : first)
      if (!f.text.empty() && parse_number(f.text, number) == Parsed::no_number) return true;
    return false;
  }

  /// Whether the fields are 0, 1, 2, ...: two or more, written as whole numbers; behind an empty one where
  /// pandas writes the numbers of rows too.
  static bool counts_columns(const std::vector<Field>& first) {
    const std::size_t begin = first.front().text.empty() ? 1 : 0;
    for (std::size_t i = begin; i < first.size(); ++i)
      if (first[i].text != std::to_string(i - begin)) return false;
    return first.size() > 1;
  }
  /// Whether a number behind the first line is written with a fraction or an exponent, so that the whole
  /// numbers of that line are no row of the table.
  bool fractions_follow() const { return text_.find_first_of(".eEnN", at_) != std::string_view::npos; }

  template <class T>
  void row(CsvTable<T>& table, std::size_t columns, std::size_t first_line) {
    const std::size_t line = line_;
    std::size_t count = 0;
    for (bool more = true; more; ++count) {
      more = field(field_);
      if (count < columns) add(field_, count, table);
    }
    if (count != columns)
      fail(fmt::format("{}:{}", where_, line),
           fmt::format("expected {} field{}, as in line {}, got {}", columns, columns == 1 ? "" : "s",
                       first_line, count));
  }

  template <class T>
  void add_row(const std::vector<Field>& row, CsvTable<T>& table) {
    for (std::size_t i = 0; i < row.size(); ++i) add(row[i], i, table);
  }

  template <class T>
  void add(const Field& f, std::size_t index, CsvTable<T>& table) {
    T number = std::numeric_limits<T>::quiet_NaN();
    if (f.text.empty()) {
      if (!options_.empty_as_nan)
        wrong(f, index, table.columns, "a number",
              "an empty field; CsvOptions::empty_as_nan reads such as NaN");
    } else {
      const Parsed parsed = parse_number(f.text, number);
      if (parsed == Parsed::out_of_range)
        wrong(f, index, table.columns, fmt::format("a number in the range of {}", name_of<T>()),
              in_quotes(f.text));
      if (parsed == Parsed::no_number)
        wrong(f, index, table.columns, "a number", in_quotes(f.text) + remedy(f));
    }
    table.values.data.push_back(number);
  }

  std::string remedy(const Field& f) const {
    if (f.line == 1 && options_.header == false) return "; CsvOptions::header tells of a line with names";
    for (const char c : {',', ';', '\t', '|', ' '})
      if (c != separator() && f.text.find(c) != std::string::npos)
        return "; CsvOptions::separator tells of another separator than " +
               in_quotes({&options_.separator, 1});
    return "";
  }

  [[noreturn]] void wrong(const Field& f, std::size_t index, const std::vector<std::string>& names,
                          const std::string& expected, const std::string& got) const {
    const std::string name = index < names.size() ? " (" + in_quotes(names[index]) + ")" : "";
    fail(fmt::format("{}:{}:{}", where_, f.line, f.column),
         fmt::format("expected {} in field {}{}, got {}", expected, index + 1, name, got));
  }

  /// Reads a field and what ends it: true after a separator, false after the last of a line.
  bool field(Field& f) {
    skip_spaces();
    f.line = line_;
    f.column = column(at_);
    f.text.clear();
    if (!ended() && text_[at_] == '"') {
      inside_quotes(f);
      skip_spaces();
      if (!at_line_end() && text_[at_] != separator())
        fail(fmt::format("{}:{}:{}", where_, line_, column(at_)),
             "expected " + in_quotes({&options_.separator, 1}) +
                 " or the end of the line after a quoted field, got " + in_quotes(text_.substr(at_, 1)));
    } else {
      const std::size_t begin = at_;
      while (!at_line_end() && text_[at_] != separator()) ++at_;
      std::size_t end = at_;
      while (end > begin && (text_[end - 1] == ' ' || text_[end - 1] == '\t')) --end;
      f.text = text_.substr(begin, end - begin);
    }
    if (!at_line_end()) {
      ++at_;
      return true;
    }
    next_line();
    return false;
  }

  void inside_quotes(Field& f) {
    for (++at_; !ended(); ++at_) {
      if (text_[at_] == '"' && text_.substr(at_, 2) != "\"\"") {
        ++at_;
        return;
      }
      if (text_[at_] == '"') ++at_;
      f.text += text_[at_];
      if (text_[at_] == '\n') {
        ++line_;
        line_begin_ = at_ + 1;
      }
    }
    fail(fmt::format("{}:{}:{}", where_, f.line, f.column),
         "expected a quote that ends the field, got the end of the file");
  }

  const std::string& where_;
  std::string_view text_;
  const CsvOptions& options_;
  std::size_t at_ = 0, line_ = 1, line_begin_ = 0;
  Field field_;  ///< the last one, whose memory serves again
};

/// A name as a field: between quotes where it could be read as something else.
std::string name_field(const std::string& name, char separator) {
  const bool plain = !name.empty() && name.front() != ' ' && name.back() != ' ' && name.front() != '\xef' &&
                     name.find_first_of(std::string("\"\r\n\t") + separator) == std::string::npos;
  if (plain) return name;
  std::string field = "\"";
  for (const char c : name) field += c == '"' ? "\"\"" : std::string(1, c);
  return field + '"';
}

template <class T>
void save(const std::filesystem::path& path, const TensorView<const T>& values,
          const std::vector<std::string>& columns, const CsvOptions& options) {
  const std::string where = path.string();
  const std::size_t rank = values.shape().size();
  require_separator(where, options.separator);
  if (rank != 1 && rank != 2)
    fail(where, "expected a vector or a matrix to write, got shape " + shape_text(values.shape()));
  const std::int64_t rows = values.shape()[0], width = rank == 2 ? values.shape()[1] : 1;
  if (width == 0)
    fail(where, "expected at least one column to write, got shape " + shape_text(values.shape()));
  if (!columns.empty() && columns.size() != static_cast<std::size_t>(width))
    fail(where, fmt::format("expected one name for each of {} columns, got {}", width, columns.size()));

  Replacement file(path);
  std::string text;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (i > 0) text += options.separator;
    text += name_field(columns[i], options.separator);
  }
  if (!columns.empty()) text += '\n';
  constexpr std::size_t chunk = 1 << 16;
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t i = 0; i < width; ++i) {
      if (i > 0) text += options.separator;
      fmt::format_to(std::back_inserter(text), "{}", values.at_flat(row * width + i));
    }
    text += '\n';
    if (text.size() < chunk) continue;
    file.write(bytes_of(text));
    text.clear();
  }
  file.write(bytes_of(text));
  file.take_place();
}

}  // namespace
}  // namespace core::data

template <CsvNumber T>
CsvTable<T> load_csv(std::span<const std::byte> bytes, const std::string& name, const CsvOptions& options) {
  return core::data::CsvReader(name, core::data::text_of(bytes), options).template table<T>();
}

template <CsvNumber T>
CsvTable<T> load_csv(const std::filesystem::path& path, const CsvOptions& options) {
  return load_csv<T>(core::data::FileBytes(path), path.string(), options);
}

template CsvTable<float> load_csv(std::span<const std::byte>, const std::string&, const CsvOptions&);
template CsvTable<double> load_csv(std::span<const std::byte>, const std::string&, const CsvOptions&);
template CsvTable<float> load_csv(const std::filesystem::path&, const CsvOptions&);
template CsvTable<double> load_csv(const std::filesystem::path&, const CsvOptions&);

void save_csv(const std::filesystem::path& path, const TensorView<const double>& values,
              const std::vector<std::string>& columns, const CsvOptions& options) {
  core::data::save(path, values, columns, options);
}
void save_csv(const std::filesystem::path& path, const TensorView<const float>& values,
              const std::vector<std::string>& columns, const CsvOptions& options) {
  core::data::save(path, values, columns, options);
}

}  // namespace lantern
