// Parse, lower, report.
#include "lantern/compiler/frontend/clang/rewrite.hpp"

#include <algorithm>

#include "lantern/compiler/frontend/clang/headers.hpp"
#include "lantern/compiler/frontend/clang/lines.hpp"
#include "lantern/compiler/frontend/clang/messages.hpp"
#include "lantern/compiler/frontend/clang/parse.hpp"
#include "lantern/ir/escape.hpp"

namespace lantern::frontend {

namespace {

void tell_parts(const Unit& unit, const Inclusions& inclusions, Rewritten& result) {
  result.staged_part = unit.staged_part;
  // Headers are read as they are.
  const auto has_functions = [](const Unit& header) { return !header.functions.empty(); };
  if (!unit.program_part || std::ranges::any_of(inclusions.files, has_functions)) return;
  result.program_part = "#line 1 " + ir::c_string(unit.path) + "\n" + *unit.program_part;
  const auto lines = [&](const std::vector<Span>& spans) {
    std::vector<std::pair<std::uint32_t, std::uint32_t>> all;
    for (const Span& s : spans)
      all.emplace_back(line_column(unit.text, s.begin).line, line_column(unit.text, s.end).line);
    return all;
  };
  result.left_out = lines(unit.left_out);
  result.kept = lines(unit.kept);
}

}  // namespace

Rewritten rewrite_native(const std::string& path, const std::vector<std::string>& arguments,
                         bool whole_program) {
  Rewritten result;
  Unit unit;
  Inclusions inclusions;
  const Parsed parsed = parse(path, arguments, unit, inclusions);
  const auto any = [&](const auto& what) {
    return what(unit) || std::ranges::any_of(inclusions.files, what);
  };
  const auto complains = [](const Unit& u) { return !u.complaints.empty(); };
  if (parsed.good) {
    tell_parts(unit, inclusions, result);
    result.exported = unit.exported;
  }
  if (!any([](const Unit& u) { return !u.functions.empty() || !u.complaints.empty(); })) {
    // Nothing for us: what is wrong with the file, its compiler will say.
    result.text = unit.text;
    return result;
  }
  if (!parsed.good) {
    result.failed = result.compiler_failed = true;
    result.messages = parsed.messages;
    return result;
  }
  unit.whole_program = whole_program;
  HeaderTexts texts(unit, inclusions);
  const std::string text = texts.text();
  if (any(complains)) {
    result.failed = true;
    for (const Unit& header : inclusions.files) result.messages += messages(header);
    result.messages += messages(unit);
    return result;
  }
  result.changed = true;
  result.copies = texts.copies();
  result.headers = texts.header_copies();
  // The lambda of a recursive function has parameters of the same names.
  const bool shadows = text.find("::lantern::core::native::recursive<") != std::string::npos;
  result.text = "#include \"lantern/compiler/frontend/native.hpp\"\n" +
                std::string(shadows ? "#pragma GCC diagnostic ignored \"-Wshadow\"\n" : "") + "#line 1 " +
                ir::c_string(path) + "\n" + text;
  return result;
}

}  // namespace lantern::frontend
