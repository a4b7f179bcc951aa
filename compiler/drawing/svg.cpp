// Sizes from the inside, then places from the outside.
#include "lantern/compiler/drawing/svg.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <unordered_map>

namespace lantern::ir {

namespace {

// In pixels; texts are in a font of one width.
constexpr double character = 6.65, line_height = 20, row_gap = 12, long_gap = 22, padding = 12, header = 26,
                 title_height = 16, baseline = 14;

constexpr const char* style = R"css(
text { font: 11px "DejaVu Sans Mono", ui-monospace, Menlo, Consolas, monospace; fill: #1f2328; white-space: pre; }
.faint { fill: #8b949e; }
.head { font-weight: bold; }
.box { stroke: #c9d1d9; rx: 6px; }
.function { fill: #f6f8fa; } .loop { fill: #fdf8ea; } .branch { fill: #f4f1fb; } .group { fill: #fff; stroke-dasharray: 4 3; }
.item { fill: #fff; stroke: #d0d7de; rx: 4px; }
.parameter { fill: #e6f4ea; stroke: #b7dfc3; } .effect { fill: #fdecea; stroke: #f2c4be; } .call { fill: #eef0fb; stroke: #c5cbef; }
.result { fill: #eaf1fb; stroke: #bcd3f2; }
.part { rx: 1.5px; } .forward { fill: #3f83d8; } .backward { fill: #e07b1a; }
.wire { fill: none; stroke: #9aa4af; stroke-width: 1.2; }
)css";

std::string number(double v) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, v, std::chars_format::fixed, 1).ptr;
  return std::string(text, end);
}

struct Size {
  double width = 0, height = 0;
};
struct Rectangle {
  double x = 0, y = 0, width = 0, height = 0;
  double middle() const { return x + width / 2; }
};

class Painter {
 public:
  explicit Painter(const SourceLine& source_line) : source_line_(source_line) {}

  std::string paint(const std::vector<DrawnItem>& functions) {
    double width = 0, y = padding;
    for (const DrawnItem& f : functions) width = std::max(width, size(f).width);
    for (const DrawnItem& f : functions) {
      const double height = size(f).height;
      draw(f, {padding, y, width, height});
      y += height + long_gap;
    }
    y -= functions.empty() ? 0 : long_gap;
    if (parts_) y = legend(y + row_gap);
    const std::string w = number(width + 2 * padding), h = number(y + padding);
    return "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + w + "\" height=\"" + h +
           "\" viewBox=\"0 0 " + w + " " + h + "\">\n<style>" + style +
           "</style>\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n" + out_ + "</svg>\n";
  }

 private:
  // ---- sizes

  Size size(const DrawnItem& item) {
    const auto [it, added] = sizes_.try_emplace(&item);
    if (added) {
      const Size measured = measure(item);
      sizes_[&item] = measured;
      return measured;
    }
    return it->second;
  }

  Size measure(const DrawnItem& item) {
    if (!item.is_box()) return {static_cast<double>(item.width()) * character, line_height};
    Size s{head_width(item), header};
    if (!item.open) return s;
    double width = 0, height = 0;
    for (const DrawnBlock& b : item.blocks) {
      const Size block = size(b);
      width += block.width + padding;
      height = std::max(height, block.height);
    }
    return {std::max(s.width, width + padding), header + height + padding};
  }

  static double head_width(const DrawnItem& item) {
    return static_cast<double>(item.width() + note(item).size() + 2) * character + 10;
  }

  double row_height(const DrawnBlock& block, const std::vector<std::size_t>& row) {
    double most = 0;
    for (const std::size_t i : row) most = std::max(most, size(block.items[i]).height);
    return most;
  }

  /// Below a row: more room where many edges leave it.
  static double gap_after(const DrawnBlock& block, const std::vector<std::size_t>& row) {
    const auto leaves = [&](const auto& e) { return std::ranges::find(row, e.first) != row.end(); };
    return std::ranges::any_of(block.edges, leaves) ? long_gap : row_gap;
  }

  Size size(const DrawnBlock& block) {
    Size s{static_cast<double>(block.title.size() + 2) * character, block.title.empty() ? 0 : title_height};
    for (std::size_t r = 0; r < block.rows.size(); ++r) {
      for (const std::size_t i : block.rows[r])
        s.width = std::max(s.width, block.items[i].left * character + size(block.items[i]).width);
      s.height += row_height(block, block.rows[r]);
      if (r + 1 < block.rows.size()) s.height += gap_after(block, block.rows[r]);
    }
    if (block.left_out > 0) {
      s.width = std::max(s.width, static_cast<double>(left_out(block).size() + 2) * character);
      s.height += line_height;
    }
    return s;
  }

  // ---- what is drawn

  void draw(const DrawnItem& item, const Rectangle& at) {
    open_group(item);
    if (item.is_box()) {
      rectangle(at, std::string("box ") + style_class(item.kind));
      part(item, at, header);
      const double y = at.y + 17;
      text(at.x + 10, y, (item.open ? "\xe2\x96\xbe " : "\xe2\x96\xb8 ") + item.text, "head");
      text(at.x + 10 + static_cast<double>(item.width() + 1) * character, y, note(item), "faint");
      close_group();
      double x = at.x + padding;
      for (const DrawnBlock& b : item.blocks) {
        if (!item.open) break;
        // What is left of the width goes to the last.
        const double width = &b == &item.blocks.back() ? at.x + at.width - padding - x : size(b).width;
        draw(b, x, at.y + header, width);
        x += size(b).width + padding;
      }
      return;
    }
    rectangle(at, std::string("item ") + style_class(item.kind));
    part(item, at, at.height);
    text(at.x + 1.5 * character, at.y + baseline, item.text, "");
    if (item.loc.known())
      text(at.x + at.width - static_cast<double>(std::to_string(item.loc.line).size() + 1) * character,
           at.y + baseline, std::to_string(item.loc.line), "faint");
    close_group();
  }

  void draw(const DrawnBlock& block, double left, double y, double width) {
    if (!block.title.empty()) {
      text(left, y + 10, block.title, "faint");
      y += title_height;
    }
    std::vector<Rectangle> places(block.items.size());
    for (std::size_t r = 0; r < block.rows.size(); ++r) {
      for (const std::size_t i : block.rows[r]) {
        const DrawnItem& item = block.items[i];
        const Size s = size(item);
        places[i] = {left + item.left * character, y, item.is_box() && item.open ? width : s.width, s.height};
      }
      y += row_height(block, block.rows[r]);
      if (r + 1 < block.rows.size()) y += gap_after(block, block.rows[r]);
    }
    for (const auto& [from, to] : block.edges) wire(places[from], places[to]);
    for (std::size_t i = 0; i < block.items.size(); ++i) draw(block.items[i], places[i]);
    if (block.left_out > 0) text(left, y + baseline, left_out(block), "faint");
  }

  /// From the bottom of one to the top of the other; wide ends are met where it is nearest.
  void wire(const Rectangle& from, const Rectangle& to) {
    const auto near = [](const Rectangle& r, double x) {
      return std::clamp(x, r.x + 8, std::max(r.x + r.width - 8, r.x + 8));
    };
    const bool wide_from = from.width > to.width;
    const double x0 = wide_from ? near(from, to.middle()) : from.middle();
    const double x1 = wide_from ? to.middle() : near(to, from.middle());
    const double y0 = from.y + from.height, y1 = to.y, bend = std::max((y1 - y0) / 2, 8.0);
    out_ += "<path class=\"wire\" d=\"M" + number(x0) + " " + number(y0) + "C" + number(x0) + " " +
            number(y0 + bend) + " " + number(x1) + " " + number(y1 - bend) + " " + number(x1) + " " +
            number(y1) + "\"/>\n";
  }

  double legend(double y) {
    double x = padding;
    for (const auto& [name, what] :
         {std::pair{"forward", "forward part"}, std::pair{"backward", "backward part"}}) {
      rectangle({x, y, 4, 12}, std::string("part ") + name);
      text(x + 10, y + 10, what, "faint");
      x += 130;
    }
    return y + 14;
  }

  void part(const DrawnItem& item, const Rectangle& at, double height) {
    if (item.loc.part == Part::plain) return;
    parts_ = true;
    rectangle({at.x, at.y + 3, 3, height - 6},
              item.loc.part == Part::forward ? "part forward" : "part backward");
  }

  void open_group(const DrawnItem& item) {
    const std::string told = hint(item, source_line_);
    out_ += "<g>";
    if (!told.empty()) out_ += "<title>" + markup(told) + "</title>";
    out_ += "\n";
  }
  void close_group() { out_ += "</g>\n"; }

  void rectangle(const Rectangle& r, const std::string& name) {
    out_ += "<rect class=\"" + name + "\" x=\"" + number(r.x) + "\" y=\"" + number(r.y) + "\" width=\"" +
            number(r.width) + "\" height=\"" + number(r.height) + "\"/>\n";
  }

  void text(double x, double y, const std::string& what, const std::string& name) {
    out_ += "<text" + (name.empty() ? "" : " class=\"" + name + "\"") + " x=\"" + number(x) + "\" y=\"" +
            number(y) + "\">" + markup(what) + "</text>\n";
  }

  static std::string left_out(const DrawnBlock& block) { return "... " + amount(block.left_out) + " more"; }

  const SourceLine& source_line_;
  std::string out_;
  std::unordered_map<const DrawnItem*, Size> sizes_;
  bool parts_ = false;
};

}  // namespace

std::string svg(const std::vector<DrawnItem>& functions, const SourceLine& source_line) {
  return Painter(source_line).paint(functions);
}

std::string hint(const DrawnItem& item, const SourceLine& source_line) {
  std::string told = item.types;
  if (item.loc.known()) {
    const std::string line = source_line ? source_line(item.loc) : "";
    told += (told.empty() ? "" : "\n") + std::filesystem::path(item.loc.file).filename().string() + ":" +
            std::to_string(item.loc.line) + (line.empty() ? "" : ": " + line);
    if (item.loc.part != Part::plain)
      told += item.loc.part == Part::forward ? "\nforward part" : "\nbackward part";
  }
  return told;
}

const char* style_class(DrawnItem::Kind kind) {
  switch (kind) {
    case DrawnItem::Kind::parameter:
      return "parameter";
    case DrawnItem::Kind::effect:
      return "effect";
    case DrawnItem::Kind::call:
      return "call";
    case DrawnItem::Kind::result:
      return "result";
    case DrawnItem::Kind::loop:
      return "loop";
    case DrawnItem::Kind::branch:
      return "branch";
    case DrawnItem::Kind::function:
      return "function";
    case DrawnItem::Kind::group:
      return "group";
    case DrawnItem::Kind::statement:
      break;
  }
  return "statement";
}

std::string note(const DrawnItem& item) {
  const bool one_line = item.loc.known() && item.kind != DrawnItem::Kind::group;
  return (one_line ? "line " + std::to_string(item.loc.line) + ", " : "") + amount(item.operations);
}

std::string amount(std::size_t operations) {
  return std::to_string(operations) + (operations == 1 ? " operation" : " operations");
}

}  // namespace lantern::ir
