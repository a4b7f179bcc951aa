// By the wordings of GNU ld.
#include "link_errors.hpp"

#include <algorithm>
#include <vector>

namespace lantern::tool {

namespace {

/// The names in quotation marks behind these words, each once, as users write them.
std::vector<std::string> names_behind(std::string_view text, const std::string& words) {
  std::vector<std::string> names;
  for (std::size_t at = text.find(words); at != std::string_view::npos; at = text.find(words, at + 1)) {
    const std::size_t from = at + words.size(), to = text.find('\'', from);
    if (to == std::string_view::npos) break;
    std::string name(text.substr(from, to - from));
    for (const std::string_view space : {"lantern::core::", "lantern::"})
      for (std::size_t i = name.find(space); i != std::string::npos; i = name.find(space, i))
        name.erase(i, space.size());
    if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  }
  return names;
}

/// The first three of a list, and how many more there are.
std::string first_of(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < names.size() && i < 3; ++i) text += (i == 0 ? "" : ", ") + names[i];
  return names.size() > 3 ? text + " and " + std::to_string(names.size() - 3) + " more" : text;
}

}  // namespace

std::optional<std::string> link_error(std::string_view linker) {
  if (const auto twice = names_behind(linker, "multiple definition of `"); !twice.empty())
    return "two files define " + first_of(twice) +
           ": make it static in each, or define it in one of them and declare it in a header";
  const auto missing = names_behind(linker, "undefined reference to `");
  if (std::ranges::find(missing, "main") != missing.end())
    return "no file defines main: name the file that does behind lanternc, or write -c for an object, "
           "--emit=shared for a library";
  if (missing.empty()) return std::nullopt;
  return "no file and no library defines " + first_of(missing) +
         ": name the file that does behind lanternc, or its library, -lNAME";
}

}  // namespace lantern::tool
