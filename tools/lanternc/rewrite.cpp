// The frontend, with the flags that the file will be compiled with.
#include "rewrite.hpp"

#include "lantern/codegen/toolchain/process.hpp"
#include "report.hpp"

namespace lantern::tool {

std::vector<std::string> frontend_arguments(const Options& options, const Installation& installation) {
  std::vector<std::string> arguments{"-I" + installation.include.string()};
  for (const std::string& flag : options.compile_flags) arguments.push_back(flag);
  return arguments;
}

std::optional<frontend::Rewritten> rewritten(const std::string& source, const Options& options,
                                             const Installation& installation) {
  frontend::Rewritten result = frontend::rewrite_native(source, frontend_arguments(options, installation));
  if (result.failed) {
    tell(result.messages);
    throw Error("the native control flow of " + source + " cannot be staged");
  }
  if (!result.changed) return std::nullopt;
  return result;
}

}  // namespace lantern::tool
