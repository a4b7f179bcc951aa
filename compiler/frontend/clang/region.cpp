// Ways out, composed from the inside.
#include "lantern/compiler/frontend/clang/region.hpp"

#include "lantern/compiler/frontend/clang/lines.hpp"

namespace lantern::frontend {

std::string statement_of(const Exit& exit) {
  const std::string leave = exit.value.empty() ? "return;" : "return " + exit.value + ";";
  return exit.first.empty() ? leave : "{ " + exit.first + " " + leave + " }";
}

Exit Region::early(const Exit& outer_exit) const {
  if (outer->is_void()) return {outer_exit.first, type + "(true)"};
  const bool list = begins_with(outer_exit.value, '{');
  return {outer_exit.first, type + "(" + (list ? outer->type : "") + outer_exit.value + ")"};
}

Exit Region::on_return(const std::string& value) const {
  switch (kind) {
    case Kind::function:
      return {"", value};
    case Kind::loop: {
      const std::string& type_of_function = function().type;
      std::string first;
      if (type_of_function == "void")
        first = result.empty() ? "" : result + " = decltype(" + result + ")(true);";
      else if (result_is_value)
        first = result + " = " + value + ";";
      else
        first = result + " = decltype(" + result + ")(" + (begins_with(value, '{') ? type_of_function : "") + value +
                ");";
      return {first, "false"};
    }
    case Kind::outcome:
      return early(outer->on_return(value));
    case Kind::group:
      return {};
  }
  return {};
}

Exit Region::on_break() const {
  if (kind == Kind::outcome) return breaks_fall ? Exit{"", "{}"} : early(outer->on_break());
  return kind == Kind::group ? Exit{} : Exit{"", "false"};
}

Exit Region::on_continue() const {
  if (kind == Kind::outcome) return early(outer->on_continue());
  return is_void() ? Exit{} : Exit{"", "true"};
}

std::optional<Exit> Region::at_end() const {
  if (kind == Kind::outcome) return Exit{"", "{}"};
  if (flagged()) return Exit{"", "true"};
  return std::nullopt;
}

}  // namespace lantern::frontend
