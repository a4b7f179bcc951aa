// Commands for the system's compiler. No shell: arguments are passed as they are.
#include "user_code.hpp"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <semaphore>
#include <thread>
#include <utility>

#include "compiler_messages.hpp"
#include "dependencies.hpp"
#include "lantern/codegen/toolchain/content_hash.hpp"
#include "lantern/codegen/toolchain/disk_cache.hpp"
#include "lantern/ir/error.hpp"
#include "precompiled_headers.hpp"
#include "report.hpp"
#include "rewrite.hpp"

namespace lantern::tool {

namespace {

using Words = std::vector<std::string>;

void append(Words& to, const Words& more) { to.insert(to.end(), more.begin(), more.end()); }

/// As many compilers at a time as there are processors.
codegen::ProcessResult run_in_turn(const Compiler& compiler, const Words& flags, bool unusual,
                                   const Words& more, const std::string& source) {
  static std::counting_semaphore<> places(std::max(2U, std::thread::hardware_concurrency()));
  places.acquire();
  const std::unique_ptr<std::counting_semaphore<>, void (*)(std::counting_semaphore<>*)> place(
      &places, [](std::counting_semaphore<>* p) { p->release(); });
  Words command = compiler.command;
  append(command, precompiled_headers(compiler, flags, unusual, source));
  append(command, flags);
  append(command, more);
  return codegen::run_process(command);
}

/// Whether files were rewritten the last time. No result depends on it, only what is begun first.
class LastTime {
 public:
  LastTime() {
    const auto directory = codegen::private_cache_directory("rewritten");
    if (directory) cache_.emplace(*directory, 1U << 20U);
  }
  bool was_rewritten(const std::string& source) { return cache_ && cache_->load(name(source)) == "yes"; }
  void note(const std::string& source, bool rewritten) {
    if (cache_ && was_rewritten(source) != rewritten) cache_->store(name(source), rewritten ? "yes" : "no");
  }

 private:
  static std::string name(const std::string& source) {
    std::error_code ignored;
    return codegen::content_hash(std::filesystem::absolute(source, ignored).string());
  }
  std::optional<codegen::DiskCache> cache_;
};

}  // namespace

UserCode::UserCode(const Options& options, Installation installation, Compiler compiler)
    : options_(options), installation_(std::move(installation)), compiler_(std::move(compiler)) {
  LastTime last_time;
  const std::size_t n = options.sources.size();
  staging_.resize(n);
  program_.resize(options.emit == Emit::program && !options.explain ? n : 0);
  rewritten_ = options.sources;
  // A file that is not going to be rewritten is compiled meanwhile. Most know of themselves: it was so the
  // last time.
  std::vector<bool> started(n);
  for (std::size_t i = 0; i < n; ++i)
    if (!options.rewrite || !last_time.was_rewritten(options.sources[i])) {
      started[i] = true;
      start(i);
    }
  for (std::size_t i = 0; i < n; ++i) {
    const std::string& source = options.sources[i];
    auto result = options.rewrite ? rewritten(source, options, installation_) : std::nullopt;
    if (options.rewrite) last_time.note(source, result.has_value());
    if (result) {
      rewritten_[i] = (directory() / ("rewritten" + std::to_string(i) + ".cpp")).string();
      codegen::write_file(rewritten_[i], result->text);
      copies_[source] = std::move(result->copies);
      copies_.merge(result->headers);
    }
    if (started[i] && !result) continue;
    if (started[i]) {
      abandoned_.push_back(std::move(staging_[i]));
      if (!program_.empty()) abandoned_.push_back(std::move(program_[i]));
    }
    start(i);
  }
}

/// Compiles a source for the staging image, and for the program where one is wanted.
void UserCode::start(std::size_t i) {
  // The optimiser would be the slower part of the image, and its code runs once.
  staging_[i] = started(i, "staging", {"-O0", "-fPIC", "-DLANTERN_STAGING_IMAGE"});
  if (!program_.empty())
    program_[i] =
        started(i, "program", {"-O" + std::to_string(options_.code_level()), "-DLANTERN_AHEAD_OF_TIME"});
}

UserCode::Object UserCode::started(std::size_t i, const std::string& kind, const Words& flags) {
  const std::string& source = options_.sources[i];
  const std::string& compiled = rewritten_[i];
  Object object;
  object.source = source;
  object.path = directory() / (kind + (compiled == source ? "" : "_rewritten") + std::to_string(i) + ".o");
  Words common{"-std=c++20", "-I" + installation_.include.string()};
  common.push_back("-Werror=return-type");  // a program without its result would be staged all the same
  append(common, installation_.flags);
  append(common, options_.compile_flags);
  append(common, flags);
  // Advice differs where native control flow is left as it is.
  common.push_back(options_.rewrite ? "-DLANTERN_REWRITTEN=1" : "-DLANTERN_REWRITTEN=0");
  if (options_.debug) common.push_back("-g");
  // No file of the compiler's own in between: where it is interrupted, a part of it may write that after all is tidy.
  Words command{"-pipe"};
  if (messages_in_colour()) command.push_back("-fdiagnostics-color=always");
  if (!options_.all_messages) {
    // Chains of templates lead to the user's lines; columns count as ours do.
    command.push_back("-ftemplate-backtrace-limit=0");
    if (!compiler_.is_clang) command.push_back("-fdiagnostics-column-unit=byte");
  }
  if (compiled != source)
    append(command, {"-iquote", std::filesystem::absolute(source).parent_path().string()});
  append(command, {"-MD", "-MF", object.path.string() + ".d", "-c", "-o", object.path.string(), "-x", "c++",
                   compiled});
  const bool unusual = !options_.compile_flags.empty() || !options_.rewrite;
  object.result = std::async(std::launch::async, run_in_turn, compiler_, std::move(common), unusual,
                             std::move(command), source);
  return object;
}

void UserCode::tell_messages(const std::string& text) const {
  if (options_.all_messages) return tell(text);
  MessageOptions messages = message_options(options_, installation_);
  messages.not_of_user.push_back(directory().string());
  messages.column = [this](const std::string& file, std::uint32_t line,
                           std::uint32_t column) -> std::optional<std::uint32_t> {
    const auto* copied = copies(file);
    if (copied == nullptr) return column;
    const auto offset = frontend::original_offset(*copied, line, column);
    if (!offset) return std::nullopt;
    const frontend::LineColumn at = frontend::line_column(codegen::read_file(file), *offset);
    return at.line == line ? std::optional(at.column) : std::nullopt;
  };
  tell(messages_for_users(text, messages));
}

Words UserCode::finished(std::vector<Object>& objects, bool show_warnings) {
  Words paths;
  std::string refused;
  for (Object& object : objects) {
    const codegen::ProcessResult result = object.result.get();
    if (result.status != 0 || show_warnings) tell_messages(result.out + result.err);
    if (result.status != 0) refused += (refused.empty() ? "" : ", ") + object.source;
    paths.push_back(object.path.string());
  }
  if (!refused.empty()) throw Error(refused + " did not compile");
  return paths;
}

codegen::ProcessResult UserCode::link(Words arguments, const std::filesystem::path& to) {
  Words command = compiler_.command;
  append(command, installation_.flags);
  append(command, arguments);
  append(command, options_.link_flags);
  append(command, {"-o", to.string()});
  codegen::ProcessResult result = codegen::run_process(command);
  tell(result.out + result.err);
  return result;
}

std::filesystem::path UserCode::staging_image(const Words& missing) {
  // What the program's compilation will say again is said once.
  if (staging_objects_.empty())
    staging_objects_ = finished(staging_, options_.emit != Emit::program || options_.explain);
  Words arguments = staging_objects_;
  for (const std::string& name : missing) arguments.push_back("-Wl,--defsym=" + name + "=0");
  // Functions that only main calls may be missing here: -z lazy.
  append(arguments, {"-shared", "-Wl,-z,lazy"});
  append(arguments, installation_.optional_arguments());
  const std::filesystem::path image = directory() / "staging_image.so";
  if (link(arguments, image).status != 0) throw Error("the staging image did not link");
  return image;
}

std::filesystem::path UserCode::link_program(const std::vector<std::filesystem::path>& generated,
                                             const Words& more_arguments, const Words& external) {
  Words arguments = finished(program_, true);
  for (const auto& path : generated) arguments.push_back(path.string());
  append(arguments, installation_.link_arguments(options_.with_jit));
  append(arguments, more_arguments);
  const std::filesystem::path program = directory() / "program";
  const codegen::ProcessResult linking = link(arguments, program);
  if (linking.status == 0) return program;
  for (const std::string& name : external)
    if (linking.err.find("`" + name + "'") != std::string::npos)
      tell("note: the external function '" + name +
           "' is called by its name: it has to be a C function, declared "
           "extern \"C\", of the program or of what is linked to it: lanternc ... -- more.o -lmore\n");
  throw Error("the program did not link");
}

const std::vector<frontend::Copied>* UserCode::copies(const std::string& source) const {
  const auto found = copies_.find(source);
  return found == copies_.end() || found->second.empty() ? nullptr : &found->second;
}

std::vector<std::string> UserCode::frontend_arguments() const {
  return tool::frontend_arguments(options_, installation_);
}

std::vector<std::string> UserCode::files_read() const {
  std::vector<std::string> all;
  // The compiler has seen these as part of what was rewritten.
  for (const auto& [file, copies] : copies_) all.push_back(file);
  for (const auto* objects : {&staging_, &program_})
    for (const Object& object : *objects)
      for (std::string& file : read_dependencies(object.path.string() + ".d"))
        if (!file.starts_with(directory().string())) all.push_back(std::move(file));
  return all;
}

}  // namespace lantern::tool
