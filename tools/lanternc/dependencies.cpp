// make's quoting: "\ " is a space, "$$" a dollar, "\#" a hash, a backslash at the end of a line goes on.
#include "dependencies.hpp"

#include "lantern/codegen/toolchain/process.hpp"
#include "lantern/ir/text.hpp"

namespace lantern::tool {

std::vector<std::string> read_dependencies(const std::filesystem::path& rule) {
  std::error_code ignored;
  if (!std::filesystem::exists(rule, ignored)) return {};
  const std::string text = codegen::read_file(rule);
  std::size_t at = text.find(": ");
  if (at == std::string::npos) return {};
  std::vector<std::string> files;
  std::string file;
  const auto end_word = [&] {
    if (!file.empty()) files.push_back(std::move(file));
    file.clear();
  };
  for (++at; at < text.size(); ++at) {
    const char c = text[at], next = at + 1 < text.size() ? text[at + 1] : '\0';
    if (c == '\\' && next == '\n') {
      ++at;
      end_word();
    } else if ((c == '\\' && (next == ' ' || next == '#')) || (c == '$' && next == '$')) {
      file += next;
      ++at;
    } else if (c == '\n') {
      break;  // another rule
    } else if (ir::is_space(c)) {
      end_word();
    } else {
      file += c;
    }
  }
  end_word();
  return files;
}

}  // namespace lantern::tool
