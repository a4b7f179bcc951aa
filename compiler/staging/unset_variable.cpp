// Reads the name of a variable without a value from the source: C++ does not tell it.
#include "lantern/compiler/staging/unset_variable.hpp"

#include <algorithm>
#include <cctype>
#include <regex>
#include <set>
#include <string>
#include <string_view>

#include "lantern/compiler/staging/operation.hpp"
#include "lantern/compiler/staging/source_text.hpp"

namespace lantern::core {

namespace {

bool in_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

/// The names of a stretch of the text.
std::set<std::string> names_in(std::string_view text) {
  std::set<std::string> names;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (!in_name(text[i])) continue;
    const std::size_t from = i;
    while (i < text.size() && in_name(text[i])) ++i;
    if (!std::isdigit(static_cast<unsigned char>(text[from]))) names.emplace(text.substr(from, i - from));
  }
  return names;
}

constexpr std::size_t near = 200;  // characters before and after a name that are looked at
/// Whether the text reads the name, from a place on, where nothing after its declaration, as in `Rep<double> name;` or
/// `Real a, name;`, gave it a value. A parameter has one.
bool reads_unset(std::string_view text, const std::string& name, std::size_t from) {
  constexpr std::string_view type = "(const\\s+)?(?!return\\b|using\\b|typedef\\b|goto\\b|delete\\b|throw\\b)"
                                    "[A-Za-z_][\\w:]*\\s*(<[^;{}()]*>)?";
  const std::regex use("\\b" + name + "\\b"), value("\\s*=[^=]"), update("\\s*([-+*/%&|^]|<<|>>)=[^=]"), end("\\s*[;,]"), end_of_parameter("\\s*[,)]");
  const std::regex declaration("(^|[;{}])\\s*" + std::string(type) + "\\s+(\\w+\\s*,\\s*)*$");
  const std::regex parameter("[(,]\\s*" + std::string(type) + "[&\\s]+$");
  bool unset = false;
  std::size_t given = std::string_view::npos;  // the end of a statement that gives it a value
  using Places = std::regex_iterator<std::string_view::const_iterator>;
  for (Places at(text.begin(), text.end(), use); at != Places(); ++at) {
    const auto place = static_cast<std::size_t>(at->position());
    const std::string_view rest = text.substr(place + name.size(), near);
    const std::size_t start = place > near ? place - near : 0;
    const std::string_view left = text.substr(start, place - start);
    const auto follows = [&](const std::regex& what) {
      return std::regex_search(rest.begin(), rest.end(), what, std::regex_constants::match_continuous);
    };
    const auto precedes = [&](const std::regex& what) { return std::regex_search(left.begin(), left.end(), what); };
    if (place > given) unset = false, given = std::string_view::npos;
    if (follows(value)) given = text.find(';', place);
    else if (follows(end_of_parameter) && precedes(parameter)) unset = false;
    else if (follows(end) && precedes(declaration)) unset = true;
    else if (unset && place >= from) return true;
    else if (follows(update)) unset = false;
  }
  return false;
}

std::string unset_variable(const ir::Location& loc) {
  const auto source = loc.known() ? SourceText::of(loc.file) : nullptr;
  if (!source) return "";
  const TextRange line = source->line(loc.line);
  const std::string_view text = source->text();
  std::size_t from = line.end;
  for (const SourceText::Body& body : source->bodies())
    if (body.range.begin < line.end && line.begin < body.range.end) from = std::min({from, body.range.begin, line.begin});
  std::string found;
  for (const std::string& name : names_in(text.substr(line.begin, line.end - line.begin))) {
    if (!reads_unset(text.substr(from, line.end - from), name, line.begin - from)) continue;
    if (!found.empty()) return "";
    found = name;
  }
  return found;
}

}  // namespace

void refuse_empty(const ir::Location& loc) {
  const std::string name = unset_variable(loc);
  raise_at(loc, "an empty Rep is used: give " + (name.empty() ? "it" : name) + " a value first");
}

}  // namespace lantern::core
