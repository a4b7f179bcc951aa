// The user's files and the system's C++ compiler: the two compilations, which run at the same time, and
// linking.
#pragma once

#include <filesystem>
#include <future>
#include <map>
#include <string>
#include <vector>

#include "compiler.hpp"
#include "installation.hpp"
#include "lantern/codegen/toolchain/process.hpp"
#include "lantern/compiler/frontend/clang/lines.hpp"
#include "options.hpp"

namespace lantern::tool {

class UserCode {
 public:
  /// Starts compiling: for the staging image, and for the program where one is wanted. Error: no compiler.
  UserCode(const Options& options, Installation installation, Compiler compiler);

  /// The shared library whose static initialisers register the functions. Waits for it. What is `missing` is at
  /// address 0.
  std::filesystem::path staging_image(const std::vector<std::string>& missing = {});

  /// Links the user's files with what was generated. Waits for them. The program's path. `external`: functions of the
  /// user's that generated code calls, for messages.
  std::filesystem::path link_program(const std::vector<std::filesystem::path>& generated,
                                     const std::vector<std::string>& more_arguments,
                                     const std::vector<std::string>& external);

  /// Of a file that was rewritten: where its text came from; null for other files.
  const std::vector<frontend::Copied>* copies(const std::string& source) const;
  std::vector<std::string> frontend_arguments() const;

  /// All files that the compiler has read so far, without its own.
  std::vector<std::string> files_read() const;

  /// Private, and gone in the end.
  const std::filesystem::path& directory() const { return directory_.path(); }
  const Installation& installation() const { return installation_; }

 private:
  struct Object {
    std::string source;  ///< the user's
    std::filesystem::path path;
    std::future<codegen::ProcessResult> result;
  };
  void start(std::size_t i);
  Object started(std::size_t i, const std::string& kind, const std::vector<std::string>& flags);
  /// The objects' paths; an Error where the compiler refused one.
  std::vector<std::string> finished(std::vector<Object>& objects, bool show_warnings);
  /// What the compiler said about the user's files.
  void tell_messages(const std::string& text) const;
  codegen::ProcessResult link(std::vector<std::string> arguments, const std::filesystem::path& to);

  const Options& options_;
  Installation installation_;
  Compiler compiler_;
  codegen::TemporaryDirectory directory_;
  std::vector<std::string> rewritten_;  ///< what is compiled for each source
  std::map<std::string, std::vector<frontend::Copied>>
      copies_;  ///< of sources and headers that were rewritten
  std::vector<Object> staging_, program_;
  std::vector<Object> abandoned_;  ///< begun, and then the source was rewritten
  std::vector<std::string> staging_objects_;
};

}  // namespace lantern::tool
