// A trial: the linker is asked for the libraries alone, since it knows where it searches.
#include "linked_libraries.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "lantern/codegen/toolchain/process.hpp"
#include "lantern/ir/error.hpp"

namespace lantern::tool {

void check_libraries(const Options& options, const Installation& installation, const Compiler& compiler) {
  if (options.object_only || options.explain || (options.emit != Emit::program && options.emit != Emit::shared)) return;
  std::vector<std::string> names, command = compiler.command;
  const std::vector<std::string>& flags = options.link_flags;
  command.insert(command.end(), {"-shared", "-nostdlib"});
  for (std::size_t i = 0; i < flags.size(); ++i) {
    const bool pair = (flags[i] == "-l" || flags[i] == "-L") && i + 1 < flags.size();
    const std::string flag = pair ? flags[i] + flags[i + 1] : flags[i];
    i += pair ? 1 : 0;
    if (flag.starts_with("-l") && flag.size() > 2) names.push_back(flag.substr(2));
    if (flag.starts_with("-l") || flag.starts_with("-L") || flag == "-static") command.push_back(flag);
  }
  if (names.empty()) return;
  const codegen::TemporaryDirectory directory;
  command.insert(command.end(), {"-L" + installation.libraries.string(), "-o", (directory.path() / "trial").string()});
  const codegen::ProcessResult trial = codegen::run_process(command);
  if (trial.status == 0) return;
  std::string missing;
  for (const std::string& name : names) {
    // "cannot find -lfoo: No such file", "unable to find library -lfoo", "library not found: foo"
    for (const std::string& words : {"find -l" + name, "find library -l" + name, "library not found: " + name}) {
      const std::size_t at = trial.err.find(words);
      const std::size_t end = at + words.size();
      if (at == std::string::npos || (end < trial.err.size() && trial.err[end] != '\n' && trial.err[end] != ':')) continue;
      missing += (missing.empty() ? "-l" : ", -l") + name;
      break;
    }
  }
  if (!missing.empty())
    throw Error(missing + ": the linker finds no such library; name its directory with -L, or install the package that "
                          "has the file for linking (Debian: lib...-dev)");
}

}  // namespace lantern::tool
