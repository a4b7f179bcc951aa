// What a benchmark reports: rows, printed as a table and written as JSON.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "timing.hpp"

namespace lantern::bench {

/// Further columns of a row, by name. A number that is not finite represents one that could not be measured.
using Extras = std::vector<std::pair<std::string, double>>;

/// One measurement: a form of a problem beside the problem's reference.
struct Row {
  std::string problem, form;
  double ms = 0, reference_ms = 0, ratio = 0;
  Extras extra = {};
};
Row row(std::string problem, std::string form, const Timing& timing, Extras extra = {});

/// The rows as aligned columns under a head; one column for each name among the extras, in order of
/// appearance.
std::string table(const std::vector<Row>& rows);

/// The rows as a JSON array of objects with the keys problem, form, ms, reference_ms, ratio, then the extras.
/// Numbers that are not finite become null.
std::string json(const std::vector<Row>& rows);

/// The rows as bars (plot.hpp): a group for each problem, a series for each form, as high as `value` says.
std::string bar_plot(const std::string& title, const std::string& axis, const std::vector<Row>& rows,
                     const std::function<double(const Row&)>& value);

/// Writes text to a file. Error where the file cannot be written.
void write_file(const std::filesystem::path& file, const std::string& text);

}  // namespace lantern::bench
