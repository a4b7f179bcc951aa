// The frontend, with the flags that the file will be compiled with.
#include "rewrite.hpp"

#include <algorithm>
#include <string_view>

#include "lantern/codegen/toolchain/disk_cache.hpp"
#include "report.hpp"

namespace lantern::tool {

std::vector<std::string> frontend_arguments(const Options& options, const Installation& installation) {
  // The level at which the program's part is compiled: a file may ask whether there is one.
  const bool chosen = options.level_given || options.debug;
  std::vector<std::string> arguments{"-I" + installation.include.string(), "-O" + std::to_string(chosen ? options.code_level() : 2)};
  for (const std::string& flag : options.compile_flags) arguments.push_back(flag);
  return arguments;
}

MessageOptions message_options(const Options& options, const Installation& installation) {
  MessageOptions messages;
  messages.include = installation.include.lexically_normal().string();
  if (const auto headers = codegen::private_cache_directory(""))
    messages.not_of_user.push_back(headers->string());
  const std::vector<std::string>& flags = options.compile_flags;
  for (std::size_t i = 0; i < flags.size(); ++i) {
    if (flags[i].starts_with("-D")) {
      const std::string definition = flags[i].size() > 2 ? flags[i].substr(2) : i + 1 < flags.size() ? flags[i + 1] : "";
      messages.macros.push_back(definition.substr(0, definition.find_first_of("=(")));
    }
    constexpr std::string_view system = "-isystem";
    if (!flags[i].starts_with(system)) continue;
    if (flags[i].size() > system.size())
      messages.not_of_user.push_back(flags[i].substr(system.size()));
    else if (i + 1 < flags.size())
      messages.not_of_user.push_back(flags[i + 1]);
  }
  return messages;
}

/// Whether a program is made of one file, and nothing is linked that could call its functions by their names.
static bool is_whole_program(const Options& options) {
  const auto is_library_or_plain = [](const std::string& flag) {
    return flag.starts_with('-') && !flag.starts_with("-Wl") && !flag.starts_with("-X") && flag != "-rdynamic" &&
           flag != "-shared";
  };
  return options.emit == Emit::program && options.sources.size() == 1 && (!options.object_only || options.whole_program) &&
         std::ranges::all_of(options.link_flags, is_library_or_plain);
}

frontend::Rewritten rewritten(const std::string& source, const Options& options, const Installation& installation) {
  frontend::Rewritten result = frontend::rewrite_native(
      source, frontend_arguments(options, installation), is_whole_program(options));
  if (result.failed) {
    tell(result.compiler_failed && !options.all_messages
             ? messages_for_users(result.messages, message_options(options, installation))
             : result.messages);
    throw Error(result.compiler_failed ? source + " did not compile"
                                       : "the native control flow of " + source + " cannot be staged");
  }
  return result;
}

}  // namespace lantern::tool
