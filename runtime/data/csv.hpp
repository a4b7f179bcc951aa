// Tables of numbers as text: comma-separated values.
//
// Format: RFC 4180, with any separator, spaces around fields, and lines that end in LF, CR LF or CR.
#pragma once

#include <concepts>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lantern/runtime/tensor.hpp"

namespace lantern {

template <class T>  ///< what a table may hold
concept CsvNumber = std::same_as<T, float> || std::same_as<T, double>;

struct CsvOptions {  ///< how a table of text is read and written
  /// Whether the first line names the columns. Not set: it does where one of its fields is neither empty nor
  /// a number, or where it is 0,1,2,... or ,0,1,2,... and numbers with fractions follow, as pandas writes
  /// tables without names; where whole numbers follow such a line, that is an error.
  std::optional<bool> header = std::nullopt;
  char separator = ',';
  bool empty_as_nan = false;  ///< an empty field is NaN; else it is an error
};

template <CsvNumber T>
struct CsvTable {                    ///< numbers, and the names of their columns
  TensorValue<T> values;             ///< [rows, columns]
  std::vector<std::string> columns;  ///< their names; none without a header
};

/// The table of a file. Fields may be quoted, with "" for a quote inside; numbers are decimal, with a '.',
/// whatever the locale, or nan or inf; True and False are 1 and 0. Blank lines and a byte order mark are
/// skipped. A number that is not a T is rounded to the nearest. Errors, "t.csv:line:column: error: expected
/// ..., got ...", where columns count bytes from 1: a field that is no number or is out of range, a line with
/// more or fewer fields than the first, a quote without an end.
template <CsvNumber T = double>
CsvTable<T> load_csv(const std::filesystem::path& path, const CsvOptions& options = {});

/// The same from a file's contents; `name` represents it in messages.
template <CsvNumber T = double>
CsvTable<T> load_csv(std::span<const std::byte> bytes, const std::string& name = "csv",
                     const CsvOptions& options = {});

/// Writes a matrix [rows, columns], or a vector as one column, with the shortest numbers that read back as
/// the same. A former file is replaced when all is written. Of the options the separator counts. Error: the
/// file cannot be written, another rank, no columns, or names that are not one for each column.
void save_csv(const std::filesystem::path& path, const TensorView<const double>& values,
              const std::vector<std::string>& columns = {}, const CsvOptions& options = {});
void save_csv(const std::filesystem::path& path, const TensorView<const float>& values,
              const std::vector<std::string>& columns = {}, const CsvOptions& options = {});

}  // namespace lantern
