// A header is put in where it has staged functions, where it includes such a header, and where it would
// include one again that has been put in: its guard may be "#pragma once", which knows files and not texts.
#include "lantern/compiler/frontend/clang/headers.hpp"

#include <algorithm>
#include <filesystem>

#include "lantern/compiler/frontend/clang/lower.hpp"
#include "lantern/ir/error.hpp"
#include "lantern/ir/escape.hpp"

namespace lantern::frontend {

namespace {

std::size_t count_lines(std::string_view text, std::string_view line, std::size_t end) {
  std::size_t n = 0;
  for (std::size_t at = 0; at < end;) {
    const std::size_t newline = std::min(text.find('\n', at), text.size());
    if (text.substr(at, newline - at) == line && newline < end) ++n;
    at = newline + 1;
  }
  return n;
}

/// Where the line is that is the same and has so many others of its kind before it.
std::size_t find_line(std::string_view text, std::string_view line, std::size_t before) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t newline = std::min(text.find('\n', at), text.size());
    if (text.substr(at, newline - at) == line && before-- == 0) return at;
    at = newline + 1;
  }
  return std::string::npos;
}

bool is_pragma_once(std::string_view line) {
  std::string words;
  for (const char c : line)
    if (c != ' ' && c != '\t' && c != '\r') words += c;
  return words.starts_with("#pragmaonce");
}

void drop_pragma_once(std::string& text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t newline = std::min(text.find('\n', at), text.size());
    if (is_pragma_once(std::string_view(text).substr(at, newline - at))) {
      text.erase(at, newline - at);
      return;
    }
    at = newline + 1;
  }
}

/// Its name knows no escapes: what ends it cannot be in it.
std::string include_line(const std::string& path) {
  if (path.find_first_of("\"\n") != std::string::npos)
    throw Error("a header that others include cannot have a quotation mark or a line break in its path: '" +
                path + "'; rename it, or its directory");
  return "#include \"" + path + "\"";
}

}  // namespace

HeaderTexts::HeaderTexts(Unit& main, Inclusions& inclusions)
    : main_(main), inclusions_(inclusions), copies_(inclusions.files.size() + 1) {
  for (std::size_t i = 0; i < inclusions.files.size(); ++i)
    if (!inclusions.files[i].functions.empty()) need(i + 1);
  for (bool again = true; again;) {
    const std::size_t before = needed_.size();
    for (const Inclusion& i : inclusions.all)
      if (!i.file && needed_paths_.count(i.path) != 0) need(i.in);
    again = needed_.size() != before;
  }
  for (const std::string& path : needed_paths_) {
    const auto times = std::ranges::count_if(
        inclusions.all, [&](const Inclusion& i) { return i.file.has_value() && i.path == path; });
    if (times < 2) continue;
    const auto first =
        std::ranges::find_if(inclusions.all, [&](const Inclusion& i) { return i.path == path; });
    unit(first->in).complaints.push_back({first->at,
                                          static_cast<std::uint32_t>(1),
                                          "this header branches on staged values and is read " +
                                              std::to_string(times) +
                                              " times; let a guard or '#pragma once' have it read once",
                                          {}});
  }
}

void HeaderTexts::need(std::size_t file) {
  while (file != 0 && needed_.insert(file).second) {
    needed_paths_.insert(unit(file).path);
    const auto by =
        std::ranges::find_if(inclusions_.all, [&](const Inclusion& i) { return i.file == file - 1; });
    if (by == inclusions_.all.end()) return;
    file = by->in;
  }
}

std::string HeaderTexts::text() { return expanded(0); }

std::string HeaderTexts::expanded(std::size_t file) {
  Unit& own = unit(file);
  std::string text =
      own.functions.empty() ? own.text : resolve_lines(lower(own), own.text, own.path, copies_[file]);
  std::vector<const Inclusion*> here;
  for (const Inclusion& i : inclusions_.all)
    if (i.in == file) here.push_back(&i);
  std::ranges::sort(here, [](const Inclusion* a, const Inclusion* b) { return a->at > b->at; });
  for (const Inclusion* i : here) {
    const std::string line(line_at(own.text, i->at));
    const std::size_t at = find_line(text, line, count_lines(own.text, line, i->at));
    if (at == std::string::npos) continue;
    std::string instead;
    if (i->file && needed_.count(*i->file + 1) != 0) {
      const std::size_t next = line_column(own.text, i->at).line + 1;
      instead = "#line 1 " + ir::c_string(i->path) + "\n" + expanded(*i->file + 1) + "\n#line " +
                std::to_string(next) + " " + ir::c_string(own.path);
    } else if (!i->file && needed_paths_.count(i->path) != 0) {
      instead = "";  // it has been put in before
    } else if (file != 0 && line.find('"') != std::string::npos) {
      // Relative to a directory that the text is not in any more.
      std::error_code ignored;
      instead = include_line(std::filesystem::absolute(i->path, ignored).string());
    } else {
      continue;
    }
    text.replace(at, line.size(), instead);
  }
  if (file != 0) drop_pragma_once(text);
  return text;
}

std::map<std::string, std::vector<Copied>> HeaderTexts::header_copies() const {
  std::map<std::string, std::vector<Copied>> all;
  for (const std::size_t file : needed_) all[inclusions_.files[file - 1].path] = copies_[file];
  return all;
}

}  // namespace lantern::frontend
