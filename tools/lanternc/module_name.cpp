// Names of files, which languages take as names of modules.
#include "module_name.hpp"

#include <cctype>
#include <filesystem>
#include <regex>

#include "lantern/ir/error.hpp"
#include "python_parts.hpp"

namespace lantern::tool {

namespace {

/// The name with an underscore for each character that it cannot have.
std::string possible_name(std::string name) {
  static const std::regex other("[^A-Za-z0-9_]");
  name = std::regex_replace(name, other, "_");
  return !name.empty() && std::isalpha(static_cast<unsigned char>(name[0])) ? name : "m" + name;
}

}  // namespace

std::string module_name(const Options& options) {
  const std::filesystem::path file(options.output.empty() ? options.sources.front() : options.output);
  const std::string name = file.stem().string();
  static const std::regex form("[A-Za-z][A-Za-z0-9_]{0,62}");  // a compiler of Fortran takes 63 characters
  static const std::regex python("[A-Za-z_][A-Za-z0-9_]*");
  const bool fits = options.is_python() ? std::regex_match(name, python) && !is_python_keyword(name) : std::regex_match(name, form);
  if (!fits) {
    const std::string possible = (is_python_keyword(name) ? name + "_" : possible_name(name)).substr(0, 63);
    const std::string kind = options.is_python() ? ".py" : options.emit == Emit::julia ? ".jl" : ".f90";
    throw Error("--emit=" + name_of(options.emit) + ": the module is named after the output, and '" + name +
                "' is no name: write -o " + std::filesystem::path(file).replace_filename(possible + kind).string());
  }
  return name;
}

}  // namespace lantern::tool
