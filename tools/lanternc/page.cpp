// Lines are joined by classes: the printers say of each line where it comes from.
#include "page.hpp"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "lantern/codegen/cpp/print_cpp.hpp"
#include "lantern/codegen/toolchain/process.hpp"
#include "lantern/compiler/passes/direct/close.hpp"
#include "lantern/ir/escape.hpp"
#include "lantern/ir/print.hpp"
#include "page_drawing.hpp"
#include "page_style.hpp"

namespace lantern::tool {

namespace {

std::string class_of(const std::string& file, const std::string& line) {
  std::string name = "at-";
  for (const char c : file)
    name += std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '_' ? c : '-';
  return name + "-" + line;
}

/// What a literal of C or of a printed graph represents: \\, \n, \012, \x0a.
std::string unescaped(const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\' || i + 1 == text.size()) {
      out += text[i];
      continue;
    }
    const char c = text[++i];
    const bool octal = c >= '0' && c <= '7';
    if (octal || c == 'x') {
      const std::string digits = text.substr(octal ? i : i + 1, octal ? 3 : 2);
      out += static_cast<char>(std::strtol(digits.c_str(), nullptr, octal ? 8 : 16));
      i += 2;
    } else {
      out += c == 'n' ? '\n' : c == 't' ? '\t' : c;
    }
  }
  return out;
}

/// A line of a program, and the class of the user's line that it comes from.
struct Line {
  std::string text, from;
  std::size_t number = 0;
};

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

/// The graph's lines end with their places.
std::vector<Line> graph(const ir::Module& module) {
  static const std::regex place(R"re( @ "((?:[^"\\]|\\.)*)":(\d+)(?::\d+)?)re");
  std::vector<Line> lines;
  for (const std::string& line : split(ir::print(module, {.locations = true}))) {
    std::smatch found;
    if (std::regex_search(line, found, place))
      lines.push_back({found.prefix().str() + found.suffix().str(), class_of(unescaped(found[1]), found[2]),
                       lines.size() + 1});
    else
      lines.push_back({line, "", lines.size() + 1});
  }
  return lines;
}

/// Generated code says `#line` where what follows comes from. What is before the functions is the same
/// for all programs, and left out.
std::vector<Line> code(const ir::Module& module) {
  static const std::regex directive(R"re(#line (\d+) "((?:[^"\\]|\\.)*)")re");
  codegen::PrintOptions options;
  options.line_directives = true;
  options.comments = false;
  std::vector<Line> lines;
  std::string from;
  for (const std::string& line : split(codegen::print_cpp(module, options))) {
    std::smatch found;
    if (std::regex_match(line, found, directive)) {
      from = class_of(unescaped(found[2]), found[1]);
      continue;
    }
    const bool bracket = line.find_first_not_of(" {};") == std::string::npos || line.ends_with("} else {");
    // A function's head belongs to no line.
    if (!line.empty() && line[0] != ' ') from.clear();
    lines.push_back({line, bracket ? "" : from, lines.size() + 1});
  }
  const auto first = std::ranges::find_if(lines, [](const Line& l) { return !l.from.empty(); });
  auto head = first;
  while (head != lines.begin() && !(head - 1)->text.empty()) --head;
  if (first != lines.end()) lines.erase(lines.begin(), head);
  return lines;
}

std::string listing(const std::vector<Line>& lines, const std::set<std::string>& linked) {
  std::string out;
  for (const Line& line : lines) {
    const bool link = linked.count(line.from) != 0;
    out += "<div data-n=\"" + std::to_string(line.number) + "\"" +
           (link ? " class=\"linked " + line.from + "\"" : "") + ">" + ir::markup(line.text) + "</div>\n";
  }
  return out;
}

}  // namespace

std::string page(const std::vector<StagedFunction>& functions, const Options& options) {
  const ir::SourceLine source_line = source_lines();
  std::vector<std::vector<ir::DrawnItem>> drawings;
  std::vector<std::vector<Line>> graphs, codes;
  std::set<std::string> linked;
  for (const StagedFunction& f : functions) {
    graphs.push_back(graph(*f.module));
    drawings.push_back(ir::drawing(*f.module));
    if (codegen::continuation_depth(*f.module->entry) >= codegen::deepest_nest) passes::close(*f.module);
    codes.push_back(code(*f.module));
    for (const auto* lines : {&graphs.back(), &codes.back()})
      for (const Line& line : *lines)
        if (!line.from.empty()) linked.insert(line.from);
  }

  std::set<std::string> shown;
  std::string sources, files;
  for (const std::string& source : options.sources) {
    std::vector<Line> lines;
    for (const std::string& text : split(codegen::read_file(source)))
      lines.push_back({text, class_of(source, std::to_string(lines.size() + 1)), lines.size() + 1});
    for (const Line& line : lines) shown.insert(line.from);
    const std::string name = std::filesystem::path(source).filename().string();
    files += (files.empty() ? "" : ", ") + name;
    if (options.sources.size() > 1) sources += "<h3>" + ir::markup(name) + "</h3>\n";
    sources += listing(lines, linked);
  }

  // What comes from a header has nothing on the page to be joined with.
  std::erase_if(linked, [&](const std::string& line) { return shown.count(line) == 0; });

  const auto linked_class = [&](const ir::Location& loc) -> std::string {
    if (!loc.known()) return "";
    const std::string name = class_of(loc.file, std::to_string(loc.line));
    return linked.count(name) != 0 ? name : "";
  };
  std::string tabs, pictures, ir, cpp;
  for (std::size_t i = 0; i < functions.size(); ++i) {
    const std::string name = ir::markup(functions[i].name);
    const std::string of = " data-of=\"" + name + "\"" + (i == 0 ? "" : " hidden=\"\"");
    tabs += "<button data-show=\"" + name + "\">" + name + "</button>\n";
    pictures += "<div" + of + ">\n" + drawn(drawings[i], source_line, linked_class) + "</div>\n";
    ir += "<div" + of + ">\n" + listing(graphs[i], linked) + "</div>\n";
    cpp += "<div" + of + ">\n" + listing(codes[i], linked) + "</div>\n";
  }
  return "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
         "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n<title>" +
         ir::markup(files) + " - Lantern</title>\n<style>" + page_style +
         "</style>\n</head>\n<body>\n<header>\n<h1>" + ir::markup(files) + "</h1>\n<nav>\n" + tabs +
         "</nav>\n" + page_legend +
         "</header>\n<main>\n<section class=\"source\"><h2>Source</h2>\n<div class=\"pane code\">\n" +
         sources + "</div></section>\n<section><h2>Graph after the passes" + page_views +
         "</h2>\n<div class=\"pane drawn\">\n" + pictures +
         "</div>\n<div class=\"pane code\" hidden=\"\">\n" + ir +
         "</div></section>\n<section><h2>Generated C++</h2>\n<div class=\"pane code\">\n" + cpp +
         "</div></section>\n</main>\n<script>//<![CDATA[\n" + page_script +
         "//]]></script>\n</body>\n</html>\n";
}

}  // namespace lantern::tool
