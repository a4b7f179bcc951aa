#include "report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <limits>
#include <string_view>

#include "lantern/ir/error.hpp"
#include "plot.hpp"

namespace lantern::bench {
namespace {

std::string json_string(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\')
      out += '\\', out += c;
    else if (static_cast<unsigned char>(c) < 0x20)
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    else
      out += c;
  }
  return out + '"';
}

std::string json_number(double value) { return std::isfinite(value) ? fmt::format("{}", value) : "null"; }

/// Four significant digits, whole numbers in full.
std::string shown(double value) {
  if (!std::isfinite(value)) return "-";
  if (value == std::floor(value) && std::abs(value) < 1e15) return fmt::format("{:.0f}", value);
  return std::abs(value) >= 1000 ? fmt::format("{:.0f}", value) : fmt::format("{:.4g}", value);
}

std::optional<double> find(const Extras& extras, const std::string& name) {
  for (const auto& [key, value] : extras)
    if (key == name) return value;
  return std::nullopt;
}

}  // namespace

Row row(std::string problem, std::string form, const Timing& timing, Extras extra) {
  return {std::move(problem),  std::move(form), timing.ms,
          timing.reference_ms, timing.ratio,    std::move(extra)};
}

std::string table(const std::vector<Row>& rows) {
  std::vector<std::string> extras;
  for (const Row& r : rows)
    for (const auto& [name, value] : r.extra)
      if (std::find(extras.begin(), extras.end(), name) == extras.end()) extras.push_back(name);

  std::vector<std::vector<std::string>> cells{{"problem", "form", "ms", "reference_ms", "ratio"}};
  cells.front().insert(cells.front().end(), extras.begin(), extras.end());
  for (const Row& r : rows) {
    std::vector<std::string> line{r.problem, r.form, shown(r.ms), shown(r.reference_ms), shown(r.ratio)};
    for (const std::string& name : extras) {
      const std::optional<double> value = find(r.extra, name);
      line.push_back(value ? shown(*value) : "");
    }
    cells.push_back(std::move(line));
  }

  std::vector<std::size_t> width(cells.front().size());
  for (const auto& line : cells)
    for (std::size_t i = 0; i < line.size(); ++i) width[i] = std::max(width[i], line[i].size());
  std::string text;
  for (const auto& line : cells) {
    std::string out;
    for (std::size_t i = 0; i < line.size(); ++i) {
      if (i > 0) out += "  ";
      out += i < 2 ? fmt::format("{:<{}}", line[i], width[i]) : fmt::format("{:>{}}", line[i], width[i]);
    }
    out.erase(out.find_last_not_of(' ') + 1);
    text += out + '\n';
  }
  return text;
}

std::string json(const std::vector<Row>& rows) {
  std::string text = "[";
  for (const Row& r : rows) {
    text += text.size() == 1 ? "\n" : ",\n";
    text += fmt::format("  {{\"problem\": {}, \"form\": {}, \"ms\": {}, \"reference_ms\": {}, \"ratio\": {}",
                        json_string(r.problem), json_string(r.form), json_number(r.ms),
                        json_number(r.reference_ms), json_number(r.ratio));
    for (const auto& [name, value] : r.extra)
      text += fmt::format(", {}: {}", json_string(name), json_number(value));
    text += "}";
  }
  return text + "\n]\n";
}

std::string bar_plot(const std::string& title, const std::string& axis, const std::vector<Row>& rows,
                     const std::function<double(const Row&)>& value) {
  const auto index = [](std::vector<std::string>& names, const std::string& name) {
    const auto at = std::find(names.begin(), names.end(), name);
    if (at != names.end()) return static_cast<std::size_t>(at - names.begin());
    names.push_back(name);
    return names.size() - 1;
  };
  std::vector<std::string> problems, forms;
  for (const Row& r : rows) index(problems, r.problem), index(forms, r.form);
  std::vector<std::vector<double>> values(
      forms.size(), std::vector<double>(problems.size(), std::numeric_limits<double>::quiet_NaN()));
  for (const Row& r : rows) values[index(forms, r.form)][index(problems, r.problem)] = value(r);
  return bar_plot({title, "", axis}, problems, forms, values);
}

void write_file(const std::filesystem::path& file, const std::string& text) {
  std::ofstream out(file, std::ios::binary);
  if (!(out << text << std::flush))
    raise(fmt::format("{}: expected a file that can be written", file.string()));
}

}  // namespace lantern::bench
