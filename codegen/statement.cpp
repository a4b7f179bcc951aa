// The layout of statements.
#include "lantern/codegen/statement.hpp"

#include "lantern/ir/escape.hpp"

namespace lantern::codegen {

namespace {

void write(std::string& out, const Statements& statements, int depth) {
  const std::string indent(2 * static_cast<std::size_t>(depth), ' ');
  for (const Statement& s : statements) {
    for (const std::string& comment : s.comments) out += indent + "// " + comment + "\n";
    out += line_directive(s.place);
    const Statement* part = &s;
    std::string head = s.text;
    for (;;) {  // an `if`, and each `else if` behind it
      out += (s.place.known() ? indent + head : wrapped(indent + head)) + "\n";
      write(out, part->body, depth + 1);
      if (part->otherwise.size() != 1 || !part->otherwise[0].joins) break;
      part = &part->otherwise[0];
      head = "} else " + part->text;
    }
    if (!part->otherwise.empty()) {
      out += indent + "} else {\n";
      write(out, part->otherwise, depth + 1);
    }
    if (s.is_construct()) out += line_directive(part->end_place) + indent + s.end + "\n";
  }
}

}  // namespace

std::string text_of(const Statements& statements, int depth) {
  std::string out;
  write(out, statements, depth);
  return out;
}

std::string line_directive(const ir::Location& place) {
  if (!place.known()) return "";
  return "#line " + std::to_string(place.line) + " " + ir::c_string(place.file) + "\n";
}

std::string wrapped(std::string line) {
  constexpr std::size_t columns = 100;
  const std::size_t indent = line.find_first_not_of(' ');
  for (std::size_t start = 0; line.size() - start > columns;) {
    std::size_t best = 0;
    bool quoted = false;
    for (std::size_t i = start + indent + 1; i + 1 < line.size() && (i - start < columns || best == 0); ++i) {
      if (quoted && line[i] == '\\') {
        ++i;
        continue;
      }
      if (line[i] == '"') quoted = !quoted;
      if (quoted || line[i] != ' ' || i < start + indent + 5) continue;
      const char before = line[i - 1];
      // After a comma, or after an operator that itself follows a space.
      const bool operation =
          line[i - 2] == ' ' && (before == '+' || before == '-' || before == '*' || before == '/');
      const bool logic = line.compare(i - 2, 2, "||") == 0 || line.compare(i - 2, 2, "&&") == 0;
      const bool assignment = line[i - 2] == ' ' && before == '=' && line.compare(i, 2, " {") != 0;
      if (before == ',' || before == ';' || operation || logic || (assignment && best == 0)) best = i;
    }
    if (best == 0) break;
    line.replace(best, 1, "\n" + std::string(indent + 4, ' '));
    start = best + 1;
  }
  return line;
}

std::string local_array(std::string& text, const std::string& type, const std::string& name, const std::string& elements) {
  if (elements.empty()) return "0";
  text += wrapped("  " + type + " " + name + "[] = {" + elements + "};") + "\n";
  return name;
}

}  // namespace lantern::codegen
