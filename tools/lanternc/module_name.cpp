// Names of files, which languages take as names of modules.
#include "module_name.hpp"

#include <filesystem>
#include <regex>

#include "lantern/ir/error.hpp"

namespace lantern::tool {

std::string module_name(const Options& options) {
  const std::string name =
      std::filesystem::path(options.output.empty() ? options.sources.front() : options.output)
          .stem()
          .string();
  static const std::regex form("[A-Za-z][A-Za-z0-9_]{0,62}");  // a compiler of Fortran takes 63 characters
  if (!std::regex_match(name, form))
    throw Error("--emit=" + std::string(options.emit == Emit::julia ? "julia" : "fortran") +
                ": the module is named after the output, and '" + name +
                "' is no name; choose another by -o");
  return name;
}

}  // namespace lantern::tool
