// The frontend, with the flags that the file will be compiled with.
#include "rewrite.hpp"

#include "lantern/codegen/toolchain/process.hpp"
#include "lantern/compiler/frontend/clang/rewrite.hpp"
#include "report.hpp"

namespace lantern::tool {

std::optional<std::string> rewritten(const std::string& source, const Options& options,
                                     const Installation& installation) {
  std::vector<std::string> arguments{"-I" + installation.include.string()};
  for (const std::string& flag : options.compile_flags) arguments.push_back(flag);
  frontend::Rewritten result = frontend::rewrite_native(source, arguments);
  if (result.failed) {
    tell(result.messages);
    throw Error("the native control flow of " + source + " cannot be staged");
  }
  if (!result.changed) return std::nullopt;
  return std::move(result.text);
}

}  // namespace lantern::tool
