// The user's files and the system's C++ compiler: the two compilations, which run at the same time, and
// linking.
#pragma once

#include <filesystem>
#include <future>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "compiler.hpp"
#include "file_state.hpp"
#include "installation.hpp"
#include "lantern/codegen/toolchain/process.hpp"
#include "lantern/compiler/frontend/clang/lines.hpp"
#include "lantern/compiler/frontend/clang/rewrite.hpp"
#include "options.hpp"

namespace lantern::tool {

/// Raises for files that have no function.
[[noreturn]] void refuse_without_functions(const Options& options);

/// A file is compiled twice. For the staging image, whose code runs once, it is not optimised, and Clang compiles it
/// inside the process unless it has something to say of the file. For the program it is compiled with the user's flags,
/// without the functions that are staged and not called there (see compiler/frontend/clang/parts.hpp): an object of
/// what is left is kept, and taken again while that is the same. Where what is left does not compile or link, for a
/// name that it needs after all, the whole file is compiled.
class UserCode {
 public:
  /// Rewrites native control flow, and starts compiling for the program where one is wanted. Error: no compiler.
  UserCode(const Options& options, Installation installation, Compiler compiler);

  /// The shared library whose static initialisers register the functions. Waits for it. What is `missing` is at
  /// address 0.
  std::filesystem::path staging_image(const std::vector<std::string>& missing = {});

  /// A name for what is staged: of the same name is the same. Nothing where that cannot be told from the files.
  std::optional<std::string> staged_name() const;

  /// Links the user's files with what was generated. Waits for them. The program's path. `external`: functions of the
  /// user's that generated code calls, for messages.
  std::filesystem::path link_program(const std::vector<std::filesystem::path>& generated,
                                     const std::vector<std::string>& more_arguments,
                                     const std::vector<std::string>& external);

  /// The same as one object, for the user's linker.
  std::filesystem::path merged_object(const std::vector<std::filesystem::path>& generated);

  /// Of a file that was rewritten: where its text came from; null for other files.
  const std::vector<frontend::Copied>* copies(const std::string& source) const;
  std::vector<std::string> frontend_arguments() const;

  /// All files that the compiler has read so far, without its own.
  std::vector<std::string> files_read() const;
  /// In place of compiling for the staging image, its result was known: what it read.
  void staging_read(std::vector<std::string> files) { staging_files_ = std::move(files); }

  /// Private, and gone in the end.
  const std::filesystem::path& directory() const { return directory_.path(); }
  const Installation& installation() const { return installation_; }

 private:
  /// A file of the user's: what is compiled in its place, for staging and for the program.
  struct Source {
    std::string path, whole, staged, program;  ///< the user's, and files
    std::optional<std::vector<std::string>> exported;  ///< names of LANTERN_FUNCTIONs, where they are known
    std::optional<std::string> staged_part;
    std::optional<std::string> program_text;  ///< of the part that runs in the program, where that is compiled
    bool refused = false;  ///< a part of it has errors: the system's compiler tells those of the file
    std::vector<std::pair<std::uint32_t, std::uint32_t>> left_out, kept;  ///< lines of functions
  };
  struct Object {
    std::string source;  ///< the user's
    std::filesystem::path path;
    std::future<codegen::ProcessResult> result;
    std::vector<std::string> files{};  ///< read, where it was kept
    std::string name{};                ///< to keep it by
  };
  using Words = std::vector<std::string>;

  bool clang_may_compile(bool staging) const;
  Source prepared(const std::string& path, std::size_t i);
  /// Error where no file has a function, which staging would find after all was compiled.
  void require_functions() const;
  std::vector<std::string> program_flags() const;
  Object compiling(const Source& source, const std::string& text, const std::string& kind, std::size_t i,
                   const Words& flags);
  Object kept_or_compiling(const Source& source, const std::string& compiled, const std::string& kind, std::size_t i,
                           const Words& flags);
  void keep(const Object& object, const std::string& said);
  Object program_object(std::size_t i);
  Object staging_object(std::size_t i);
  void compile_whole(std::size_t i);
  /// The objects' paths; an Error where the compiler refused one. What is said of lines that the program's part is
  /// without, and of names that nothing uses, the staging image's compilation says.
  Words finished_staging();
  Words finished_program();
  /// What the compiler said about the user's files. `of_program`: about the program's part; nothing: about whole files.
  void tell_messages(const std::string& text, std::optional<bool> of_program) const;
  /// Whether the user asks for a program without shared libraries.
  bool links_static() const;
  codegen::ProcessResult link(Words arguments, const std::filesystem::path& to);
  Words files_of(const Object& object) const;

  const Options& options_;
  Installation installation_;
  Compiler compiler_;
  codegen::TemporaryDirectory directory_;
  std::vector<Source> sources_;
  KeptTexts kept_objects_;
  std::map<std::string, std::vector<frontend::Copied>>
      copies_;  ///< of sources and headers that were rewritten
  std::vector<Object> staging_, program_;
  std::vector<Object> abandoned_;  ///< of parts that did not do
  std::vector<std::string> staging_objects_, staging_files_;
};

}  // namespace lantern::tool
