// Where items stand in their row is known in characters; where rows stand the browser finds, and page_script
// draws the edges between them.
#include "page_drawing.hpp"

#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <sstream>

#include "lantern/codegen/toolchain/process.hpp"

namespace lantern::tool {

namespace {

class DrawingWriter {
 public:
  DrawingWriter(const ir::SourceLine& source_line, const std::function<std::string(const ir::Location&)>& class_of)
      : source_line_(source_line), class_of_(class_of) {}

  void item(const ir::DrawnItem& item, std::size_t number, double after) {
    if (item.is_box()) return box(item, number);
    char margin[32];
    std::snprintf(margin, sizeof margin, "%.1f", item.left - after);
    out_ += "<span class=\"node " + classes(item) + "\" data-i=\"" + std::to_string(number) +
            "\" style=\"margin-left:" + margin + "ch;width:" + std::to_string(item.width()) + "ch\"" +
            title(item) + ">" + ir::markup(item.text) +
            (item.loc.known() ? "<i>" + std::to_string(item.loc.line) + "</i>" : "") + "</span>";
  }

  std::string take() { return std::move(out_); }

 private:
  void box(const ir::DrawnItem& item, std::size_t number) {
    out_ += "<details class=\"node box " + classes(item) + "\" data-i=\"" + std::to_string(number) + "\"" +
            (item.open ? " open=\"\"" : "") + "><summary" + title(item) + "><b>" + ir::markup(item.text) +
            "</b> <i>" + ir::note(item) + "</i></summary><div class=\"blocks\">";
    for (const ir::DrawnBlock& b : item.blocks) block(b);
    out_ += "</div></details>\n";
  }

  void block(const ir::DrawnBlock& block) {
    out_ += "<div class=\"block\" data-wires=\"";
    for (const auto& [from, to] : block.edges) out_ += std::to_string(from) + "-" + std::to_string(to) + " ";
    out_ += "\"><svg xmlns=\"http://www.w3.org/2000/svg\"></svg>";
    if (!block.title.empty()) out_ += "<h4>" + ir::markup(block.title) + "</h4>";
    for (const auto& row : block.rows) {
      out_ += "<div class=\"row\">";
      double after = 0;
      for (const std::size_t i : row) {
        item(block.items[i], i, after);
        after = block.items[i].left + static_cast<double>(block.items[i].width());
      }
      out_ += "</div>\n";
    }
    if (block.left_out > 0) out_ += "<p>... " + ir::amount(block.left_out) + " more</p>";
    out_ += "</div>";
  }

  std::string classes(const ir::DrawnItem& item) const {
    std::string all = ir::style_class(item.kind);
    if (item.loc.part != ir::Part::plain)
      all += item.loc.part == ir::Part::forward ? " forward" : " backward";
    const std::string line = class_of_(item.loc);
    return line.empty() ? all : all + " linked " + line;
  }

  std::string title(const ir::DrawnItem& item) const {
    const std::string told = ir::hint(item, source_line_);
    return told.empty() ? "" : " title=\"" + ir::markup(told) + "\"";
  }

  const ir::SourceLine& source_line_;
  const std::function<std::string(const ir::Location&)>& class_of_;
  std::string out_;
};

}  // namespace

std::string drawn(const std::vector<ir::DrawnItem>& functions, const ir::SourceLine& source_line,
                  const std::function<std::string(const ir::Location&)>& class_of) {
  DrawingWriter writer(source_line, class_of);
  for (const ir::DrawnItem& f : functions) writer.item(f, 0, 0);
  return writer.take();
}

ir::SourceLine source_lines() {
  const auto files = std::make_shared<std::map<std::string, std::vector<std::string>>>();
  return [files](const ir::Location& loc) -> std::string {
    const auto [it, added] = files->try_emplace(loc.file);
    std::error_code ignored;
    if (added && std::filesystem::is_regular_file(loc.file, ignored)) {
      std::istringstream stream(codegen::read_file(loc.file));
      for (std::string line; std::getline(stream, line);) {
        const std::size_t first = line.find_first_not_of(" \t");
        it->second.push_back(first == std::string::npos ? "" : line.substr(first, 200));
      }
    }
    return loc.line <= it->second.size() ? it->second[loc.line - 1] : "";
  };
}

}  // namespace lantern::tool
