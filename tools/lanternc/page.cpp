// Lines are joined by classes: the printers say of each line where it comes from.
#include "page.hpp"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "lantern/codegen/cpp/print_cpp.hpp"
#include "lantern/codegen/toolchain/process.hpp"
#include "lantern/compiler/passes/close.hpp"
#include "lantern/ir/print.hpp"
#include "page_style.hpp"

namespace lantern::tool {

namespace {

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        // Control characters have no place in a page.
        out += static_cast<unsigned char>(c) < 32 && c != '\t' ? ' ' : c;
    }
  }
  return out;
}

std::string class_of(const std::string& file, const std::string& line) {
  std::string name = "at-";
  for (const char c : file)
    name += std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '_' ? c : '-';
  return name + "-" + line;
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
      lines.push_back(
          {found.prefix().str() + found.suffix().str(), class_of(found[1], found[2]), lines.size() + 1});
    else
      lines.push_back({line, "", lines.size() + 1});
  }
  return lines;
}

/// Generated code says `#line` where what follows comes from. What stands before the functions is the same
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
      from = class_of(found[2], found[1]);
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
           (link ? " class=\"linked " + line.from + "\"" : "") + ">" + escaped(line.text) + "</div>\n";
  }
  return out;
}

/// The picture without what stands before <svg>, its nodes able to be pointed at.
std::string picture(const std::string& svg) {
  const std::size_t begin = svg.find("<svg");
  if (begin == std::string::npos) return "";
  static const std::regex hyphen("&#45;"), node(R"re(class="node (at-[^"]*)")re");
  std::string text = std::regex_replace(svg.substr(begin), hyphen, "-");
  text = std::regex_replace(text, node, "class=\"node linked $1\"");
  // Node numbers begin anew in each picture; an id may stand once in a page. So do titles, which browsers
  // show.
  text = std::regex_replace(text, std::regex(R"re( id="[^"]*")re"), "");
  return std::regex_replace(text, std::regex(R"re(<title>[^<]*</title>\n?)re"), "");
}

}  // namespace

std::string line_class(const ir::Location& loc) {
  return loc.known() ? class_of(loc.file, std::to_string(loc.line)) : "";
}

std::string page(const std::vector<StagedFunction>& functions, const Options& options,
                 const std::vector<std::string>& pictures) {
  std::vector<std::vector<Line>> graphs, codes;
  std::set<std::string> linked;
  for (const StagedFunction& f : functions) {
    graphs.push_back(graph(*f.module));
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
    if (options.sources.size() > 1) sources += "<h3>" + escaped(name) + "</h3>\n";
    sources += listing(lines, linked);
  }

  // What comes from a header has nothing on the page to be joined with.
  std::erase_if(linked, [&](const std::string& line) { return shown.count(line) == 0; });

  std::string tabs, ir, cpp, drawn;
  for (std::size_t i = 0; i < functions.size(); ++i) {
    const std::string name = escaped(functions[i].name);
    const std::string of = " data-of=\"" + name + "\"" + (i == 0 ? "" : " hidden=\"\"");
    tabs += "<button data-show=\"" + name + "\">" + name + "</button>\n";
    ir += "<div" + of + " class=\"code\">\n" + listing(graphs[i], linked) + "</div>\n";
    cpp += "<div" + of + " class=\"code\">\n" + listing(codes[i], linked) + "</div>\n";
    drawn += "<div" + of + " class=\"picture\">\n" +
             (pictures[i].empty() ? "<p>The picture needs Graphviz (dot), which was not found.</p>\n"
                                  : picture(pictures[i])) +
             "</div>\n";
  }
  return "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
         "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n<title>" +
         escaped(files) + " - Lantern</title>\n<style>" + page_style +
         "</style>\n</head>\n<body>\n<header>\n<h1>" + escaped(files) + "</h1>\n<nav>\n" + tabs +
         "</nav>\n<p>Point at a line to see what it became; click to hold it.</p>\n</header>\n<main>\n"
         "<section class=\"source\"><h2>Source</h2><div class=\"code\">\n" +
         sources + "</div></section>\n<section><h2>Graph after the passes</h2>\n" + ir +
         "</section>\n<section><h2>Generated C++</h2>\n" + cpp +
         "</section>\n</main>\n<div id=\"graph\"><h2>The graph, drawn</h2>\n" + drawn +
         "</div>\n<script>//<![CDATA[\n" + page_script + "//]]></script>\n</body>\n</html>\n";
}

}  // namespace lantern::tool
