// One complaint: place, text, line, caret; one note: the same, with the replacement under the caret.
#include "lantern/compiler/frontend/clang/messages.hpp"

#include <algorithm>

#include "lantern/compiler/frontend/clang/lines.hpp"

namespace lantern::frontend {

namespace {

std::string shown(const Unit& unit, std::uint32_t at, std::uint32_t length, const std::string& kind,
                  const std::string& text) {
  const LineColumn place = line_column(unit.text, at);
  const std::string line(line_at(unit.text, at));
  std::string out = unit.path + ":" + std::to_string(place.line) + ":" + std::to_string(place.column) + ": " +
                    kind + ": " + text + "\n";
  std::string caret;
  for (std::uint32_t i = 0; i + 1 < place.column && i < line.size(); ++i)
    caret += line[i] == '\t' ? '\t' : ' ';
  const auto room = static_cast<std::uint32_t>(line.size()) + 1 -
                    std::min(place.column, static_cast<std::uint32_t>(line.size()));
  return out + line + "\n" + caret + "^" + std::string(std::max(1U, std::min(length, room)) - 1, '~') + "\n";
}

}  // namespace

std::string messages(const Unit& unit) {
  std::vector<const Complaint*> all;
  for (const Complaint& c : unit.complaints) all.push_back(&c);
  std::stable_sort(all.begin(), all.end(),
                   [](const Complaint* a, const Complaint* b) { return a->at < b->at; });
  std::string out;
  for (const Complaint* c : all) {
    out += shown(unit, c->at, c->length, "error", c->text);
    for (const Note& note : c->notes) {
      const bool fix = note.replace.size() > 0;
      out +=
          shown(unit, fix ? note.replace.begin : note.at, fix ? note.replace.size() : 1, "note", note.text);
      if (!fix) continue;
      const LineColumn place = line_column(unit.text, note.replace.begin);
      out += std::string(place.column - 1, ' ') + note.replacement + "\n";
    }
  }
  return out;
}

}  // namespace lantern::frontend
