// A message is text by the time it arrives here: its form is that of compiler/staging/operand_notes.hpp.
#include "illustrate.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <optional>
#include <regex>
#include <sstream>

#include "lantern/codegen/toolchain/process.hpp"
#include "lantern/compiler/frontend/clang/expressions.hpp"
#include "lantern/compiler/frontend/clang/lines.hpp"
#include "lantern/ir/text.hpp"

namespace lantern::tool {

namespace {

using frontend::Expression;
using frontend::Marked;

struct IllustratedMessage {
  std::string line;  ///< as it came
  std::string file, kind, text;
  std::uint32_t at_line = 0, at_column = 0;  ///< 0: not known
  std::string operation;
  std::optional<std::size_t> operand;  ///< of the error before, where it represents itself
  std::optional<Expression> found;
};

IllustratedMessage read(const std::string& line) {
  static const std::regex form(R"((.+?):(\d+)(?::(\d+))?: (error|note): (.*))");
  static const std::regex failed(R"(([a-z_0-9]+): expected .*)"), made(R"(.* made by '([a-z_0-9]+)' here)"),
      own(R"(the (?:([a-z]+) )?operand(?:, argument \d+ of '[^']*',)? is .*)");
  IllustratedMessage m;
  m.line = line;
  std::smatch parts;
  if (!std::regex_match(line, parts, form)) return m;
  m.file = parts[1];
  m.at_line = static_cast<std::uint32_t>(std::stoul(parts[2]));
  if (parts[3].matched) m.at_column = static_cast<std::uint32_t>(std::stoul(parts[3]));
  m.kind = parts[4];
  m.text = parts[5];
  if (std::regex_match(m.text, parts, failed) || std::regex_match(m.text, parts, made)) {
    m.operation = parts[1];
  } else if (m.kind == "note" && std::regex_match(m.text, parts, own) &&
             m.text.find("this loop") == std::string::npos && m.text.find("made here") == std::string::npos) {
    static constexpr std::array<const char*, 6> ordinals{"first",  "second", "third",
                                                         "fourth", "fifth",  "sixth"};
    const std::string which = parts[1];
    const auto found = std::ranges::find(ordinals, which);
    m.operand = which == "right"          ? 1
                : found == ordinals.end() ? 0
                                          : static_cast<std::size_t>(found - ordinals.begin());
  }
  return m;
}

/// The line with a caret and, around it, the rest of the expression as far as it is on that line.
std::string underlined(const std::string& text, const Marked& marked) {
  const std::string line(frontend::line_at(text, marked.caret));
  const auto column = frontend::line_column(text, marked.caret).column - 1;
  const std::uint32_t start = marked.caret - column;
  const std::uint32_t from = std::max(marked.range.begin, start) - start;
  const auto to = static_cast<std::uint32_t>(
      std::min<std::size_t>(std::max(marked.range.end, marked.caret + 1) - start, line.size()));
  std::string below;
  for (std::uint32_t i = 0; i < std::max(to, column + 1); ++i)
    below += i == column ? '^' : i >= from ? '~' : i < line.size() && line[i] == '\t' ? '\t' : ' ';
  return line + "\n" + below;
}

std::string shown(const std::string& file, const std::string& text, const Marked& marked,
                  const std::string& kind, const std::string& message) {
  const frontend::LineColumn at = frontend::line_column(text, marked.caret);
  return file + ":" + std::to_string(at.line) + ":" + std::to_string(at.column) + ": " + kind + ": " +
         message + "\n" + underlined(text, marked);
}

/// "the left operand, argument 1 of 'f', is ..." with the variable's name instead.
std::string with_name(const std::string& message, const std::string& text, std::uint32_t at) {
  const std::size_t end = ir::end_of_word(text, at);
  static const std::regex position(R"(, argument \d+ of '[^']*',)");
  return std::regex_replace(message, position, " '" + text.substr(at, end - at) + "'");
}

/// The place in the file as the user wrote it; false where the user wrote nothing there.
bool to_original(IllustratedMessage& m, const UserCode& code) {
  const auto* copies = code.copies(m.file);
  if (copies == nullptr || m.at_column == 0) return m.at_column != 0;
  const auto offset = frontend::original_offset(*copies, m.at_line, m.at_column);
  m.at_column = 0;
  if (!offset) return false;
  const frontend::LineColumn at = frontend::line_column(codegen::read_file(m.file), *offset);
  if (at.line != m.at_line) return false;
  m.at_column = at.column;
  return true;
}

}  // namespace

std::string illustrated(const std::string& messages, const UserCode& code) {
  std::vector<IllustratedMessage> all;
  std::istringstream stream(messages);
  for (std::string line; std::getline(stream, line);) all.push_back(read(line));

  std::map<std::string, std::vector<std::size_t>> asked;
  for (std::size_t i = 0; i < all.size(); ++i) {
    std::error_code ignored;
    if (all[i].kind.empty() || !std::filesystem::is_regular_file(all[i].file, ignored)) continue;
    if (to_original(all[i], code)) asked[all[i].file].push_back(i);
  }
  std::map<std::string, std::string> texts;
  for (const auto& [file, messages_of] : asked) {
    std::vector<frontend::PlaceAsked> places;
    for (const std::size_t i : messages_of)
      places.push_back({all[i].at_line, all[i].at_column, all[i].operation});
    frontend::Expressions found = frontend::find_expressions(file, code.frontend_arguments(), places);
    for (std::size_t k = 0; k < messages_of.size(); ++k)
      all[messages_of[k]].found = std::move(found.found[k]);
    texts[file] = std::move(found.text);
  }

  std::string out;
  const IllustratedMessage* error = nullptr;
  for (const IllustratedMessage& m : all) {
    out += out.empty() ? "" : "\n";
    if (m.kind == "error") error = &m;
    if (m.kind.empty()) {
      out += m.line;
    } else if (m.operand && error != nullptr && error->found && *m.operand < error->found->operands.size()) {
      const auto& declared = error->found->declarations[*m.operand];
      const bool argument = m.text.find(", argument ") != std::string::npos;
      const std::string& text = texts[error->file];
      if (argument && declared)
        out += shown(error->file, text, *declared, m.kind, with_name(m.text, text, declared->caret));
      else
        out += shown(error->file, text, error->found->operands[*m.operand], m.kind, m.text);
    } else if (m.found && !m.operand) {
      out += shown(m.file, texts[m.file], m.found->whole, m.kind, m.text);
    } else {
      out += m.file + ":" + std::to_string(m.at_line) +
             (m.at_column != 0 ? ":" + std::to_string(m.at_column) : "") + ": " + m.kind + ": " + m.text;
    }
  }
  return out;
}

}  // namespace lantern::tool
