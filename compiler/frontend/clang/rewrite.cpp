// Parse, lower, report.
#include "lantern/compiler/frontend/clang/rewrite.hpp"

#include "lantern/compiler/frontend/clang/lines.hpp"
#include "lantern/compiler/frontend/clang/lower.hpp"
#include "lantern/compiler/frontend/clang/messages.hpp"
#include "lantern/compiler/frontend/clang/parse.hpp"

namespace lantern::frontend {

Rewritten rewrite_native(const std::string& path, const std::vector<std::string>& arguments) {
  Rewritten result;
  Unit unit;
  const Parsed parsed = parse(path, arguments, unit);
  if (unit.functions.empty() && unit.complaints.empty()) {
    // Nothing for us: what is wrong with the file, its compiler will say.
    result.text = unit.text;
    return result;
  }
  if (!parsed.good) {
    result.failed = true;
    result.messages = parsed.messages;
    return result;
  }
  const std::string marked = lower(unit);
  if (!unit.complaints.empty()) {
    result.failed = true;
    result.messages = messages(unit);
    return result;
  }
  result.changed = true;
  // The lambda of a recursive function has parameters of the same names.
  const bool shadows = marked.find("::lantern::native::recursive<") != std::string::npos;
  result.text = "#include \"lantern/compiler/frontend/native.hpp\"\n" +
                std::string(shadows ? "#pragma GCC diagnostic ignored \"-Wshadow\"\n" : "") + "#line 1 " +
                quoted_path(path) + "\n" + resolve_lines(marked, unit.text, path, result.copies);
  return result;
}

}  // namespace lantern::frontend
