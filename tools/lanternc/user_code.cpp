// Commands for the system's compiler. No shell: arguments are passed as they are.
#include "user_code.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <semaphore>
#include <span>
#include <sstream>
#include <string_view>
#include <thread>
#include <utility>

#include "comments.hpp"
#include "compiler_messages.hpp"
#include "dependencies.hpp"
#include "lantern/codegen/toolchain/content_hash.hpp"
#include "lantern/codegen/toolchain/host.hpp"
#include "lantern/compiler/frontend/clang/object.hpp"
#include "lantern/compiler/frontend/clang/precompiled.hpp"
#include "lantern/ir/error.hpp"
#include "lantern/ir/escape.hpp"
#include "link_errors.hpp"
#include "precompiled_headers.hpp"
#include "report.hpp"
#include "result_cache.hpp"
#include "rewrite.hpp"

namespace lantern::tool {

namespace {

using Words = std::vector<std::string>;

void append(Words& to, const Words& more) { to.insert(to.end(), more.begin(), more.end()); }

/// Ends with what the linker's errors mean, or with them and these words.
[[noreturn]] void refuse_link(const codegen::ProcessResult& linking, const std::string& otherwise) {
  if (const auto told = link_error(linking.err)) throw Error(*told);
  tell(linking.out + linking.err);
  throw Error(otherwise);
}

/// One compilation of a file.
struct Compilation {
  std::string source, compiled, object;  ///< paths: the user's, and files
  std::filesystem::path include;         ///< where Lantern's headers are
  Words flags;                           ///< those that headers depend on
  Words own;                             ///< what this part of the program is compiled for, and at which level
  Words more;                            ///< others that any compiler knows
  Words report;                          ///< how to say what is wrong
  Words given;                           ///< of the flags, those of the user's, behind the usual level
  bool rewritten = true;                 ///< native control flow
  bool is_part = false;                  ///< where it has errors, the whole file is compiled
  std::optional<int> clang_level;        ///< where Clang has nothing to say, its object of this level will do
};

bool is_level(const std::string& flag) { return flag.starts_with("-O"); }

/// The level that the last of such flags gives; nothing where it is more than a level.
std::optional<int> level_of(const Words& flags) {
  std::string level = "-O0";
  for (const std::string& f : flags)
    if (is_level(f)) level = f;
  if (level == "-O" || level == "-Og") return 1;
  if (level.size() != 3 || level[2] < '0' || level[2] > '3') return std::nullopt;
  return level[2] - '0';
}

/// As many compilers at a time as there are processors.
codegen::ProcessResult run_in_turn(const Compiler& compiler, const Compilation& c) {
  static std::counting_semaphore<> places(std::max(2U, std::thread::hardware_concurrency()));
  places.acquire();
  const std::unique_ptr<std::counting_semaphore<>, void (*)(std::counting_semaphore<>*)> place(
      &places, [](std::counting_semaphore<>* p) { p->release(); });
  if (c.clang_level && begins_with_includes(c.source, c.include)) {
    Words flags = c.flags, more = c.more;
    std::erase_if(flags, is_level);
    std::ranges::copy_if(c.own, std::back_inserter(more), std::not_fn(is_level));
    const auto made = frontend::compile_object(c.compiled, flags, more, *c.clang_level, c.object, c.object + ".d");
    if (made == frontend::ObjectResult::made) return {0, "", ""};
    if (made == frontend::ObjectResult::refused && c.is_part) return {1, "", ""};
  }
  // No file of the compiler's own in between: where it is interrupted, a part of it may write that after all is tidy.
  Words command = compiler.command;
  Words flags = c.flags;
  append(flags, c.own);
  // Others than the usual flags may never come again.
  const bool unusual = !c.rewritten || flags_of_headers(compiler, c.given) != Words{"-O2"};
  append(command, precompiled_headers(compiler, flags, unusual, c.source, c.include));
  append(command, flags);
  for (const Words* words : {&c.more, &c.report}) append(command, *words);
  append(command, {"-pipe", "-MD", "-MF", c.object + ".d", "-c", "-o", c.object, "-x", "c++", c.compiled});
  return codegen::run_process(command);
}

bool makes_errors_of_warnings(const Words& flags) {
  return std::ranges::any_of(flags, [](const std::string& f) { return f.starts_with("-Werror"); });
}

/// An object to keep: how long the messages are, these, then the object.
std::string object_text(const std::string& messages, const std::string& object) {
  return std::to_string(messages.size()) + "\n" + messages + object;
}

}  // namespace

UserCode::UserCode(const Options& options, Installation installation, Compiler compiler)
    : options_(options),
      installation_(std::move(installation)),
      compiler_(std::move(compiler)),
      kept_objects_("objects", 256, installation_, options, options.cache) {
  for (std::size_t i = 0; i < options.sources.size(); ++i)
    sources_.push_back(prepared(options.sources[i], i));
  require_functions();
  if (options.emit == Emit::program && !options.explain)
    for (std::size_t i = 0; i < sources_.size(); ++i) program_.push_back(program_object(i));
}

UserCode::Source UserCode::prepared(const std::string& path, std::size_t i) {
  Source source;
  source.path = source.whole = source.staged = source.program = path;
  if (!options_.rewrite) return source;
  frontend::Rewritten result = rewritten(path, options_, installation_);
  const auto written = [&](const std::string& name, const std::string& text) {
    const std::string to = (directory() / (name + std::to_string(i) + ".cpp")).string();
    codegen::write_file(to, text);
    return to;
  };
  source.exported = std::move(result.exported);
  source.staged_part = std::move(result.staged_part);
  if (result.changed) {
    source.whole = source.staged = source.program = written("rewritten", result.text);
    copies_[path] = std::move(result.copies);
    copies_.merge(result.headers);
  }
  // A debugger shows all of a program; and messages of parts would not be what the compiler says of the file.
  const bool others_may_call = options_.object_only && !options_.whole_program;
  if (result.program_part && !others_may_call && !options_.debug && !options_.all_messages) {
    source.program = written("program", *result.program_part);
    source.program_text = std::move(result.program_part);
    source.left_out = std::move(result.left_out);
    source.kept = std::move(result.kept);
    // What runs in the program alone need not be compiled for the image, but for errors of -Werror.
    if (!result.changed && source.staged_part && !makes_errors_of_warnings(options_.compile_flags))
      source.staged = written("staged", "#line 1 " + ir::c_string(path) + "\n" + *source.staged_part);
  }
  return source;
}

void refuse_without_functions(const Options& options) {
  std::string files;
  for (const std::string& f : options.sources) files += (files.empty() ? "" : ", ") + f;
  throw Error("no LANTERN_FUNCTION in " + files + "; write LANTERN_FUNCTION(name, program) at namespace scope");
}

/// Whether a file is linked that brings code of its own.
static bool brings_objects(const std::string& flag) {
  return !flag.starts_with('-') || flag.starts_with("-l") || flag.starts_with("-Wl,") ||
         flag.starts_with("-X") || flag.starts_with("-T");
}

void UserCode::require_functions() const {
  const auto has_none = [](const Source& s) { return s.exported && s.exported->empty(); };
  if (!options_.with_jit && std::ranges::all_of(sources_, has_none) &&
      std::ranges::none_of(options_.link_flags, brings_objects))
    refuse_without_functions(options_);
}

Words UserCode::program_flags() const {
  const Words& given = options_.compile_flags;
  const bool own_level = std::ranges::any_of(given, [](const std::string& f) { return f.starts_with("-O"); });
  Words flags;
  // What the user asks for comes last.
  if (options_.level_given || options_.debug)
    flags.push_back("-O" + std::to_string(options_.code_level()));
  else if (!own_level)
    flags.push_back("-O2");
  flags.push_back("-DLANTERN_AHEAD_OF_TIME");
  return flags;
}

/// What was made of the same text in an earlier run is taken.
UserCode::Object UserCode::kept_or_compiling(const Source& source, const std::string& compiled, const std::string& kind,
                                             std::size_t i, const Words& flags) {
  const std::string text = codegen::read_file(compiled);
  if (tells_time(text)) return compiling(source, compiled, kind, i, flags);
  codegen::ContentHash hash;
  hash.add(identity(installation_)).add(compiler_.identity).add(environment_state());
  std::error_code ignored;
  hash.add(std::filesystem::current_path(ignored).string()).add(source.path);
  for (const Words* words : {&options_.compile_flags, &flags})
    for (const std::string& w : *words) hash.add(w);
  for (const bool given : {options_.debug, options_.rewrite, options_.all_messages, messages_in_colour()}) hash.add(given ? "1" : "0");
  const std::string name = hash.add(kind).add(without_comments(text)).text();
  if (auto kept = kept_objects_.find(name)) {
    Object object{source.path, directory() / (kind + std::to_string(i) + ".o"), {}, std::move(kept->files)};
    const std::size_t newline = kept->text.find('\n'), length = std::stoul(kept->text);
    codegen::write_file(object.path, kept->text.substr(newline + 1 + length));
    std::promise<codegen::ProcessResult> done;
    object.result = done.get_future();
    done.set_value({0, kept->text.substr(newline + 1, length), ""});
    return object;
  }
  Object object = compiling(source, compiled, kind, i, flags);
  object.name = name;
  return object;
}

/// The program's part, or the whole file.
UserCode::Object UserCode::program_object(std::size_t i) {
  const Source& source = sources_[i];
  Words flags = program_flags();
  if (!source.program_text) return compiling(source, source.program, "program", i, flags);
  if (makes_errors_of_warnings(options_.compile_flags))
    for (const char* what : {"function", "variable", "const-variable"})
      flags.push_back(std::string("-Wno-error=unused-") + what);
  return kept_or_compiling(source, source.program, "program", i, flags);
}

/// Under its object's name, for the next run.
void UserCode::keep(const Object& object, const std::string& said) {
  if (!object.name.empty()) kept_objects_.keep(object.name, object_text(said, codegen::read_file(object.path)), files_of(object));
}

void UserCode::compile_whole(std::size_t i) {
  Source& source = sources_[i];
  source.program_text.reset();
  source.program = source.whole;
  source.left_out.clear();
  source.kept.clear();
  abandoned_.push_back(std::exchange(program_[i], compiling(source, source.program, "whole", i, program_flags())));
}

std::optional<std::string> UserCode::staged_name() const {
  codegen::ContentHash hash;
  hash.add(identity(installation_)).add(compiler_.identity).add(environment_state()).add(codegen::host_processor());
  std::error_code ignored;
  hash.add(std::filesystem::current_path(ignored).string()).add(messages_in_colour() ? "colours" : "plain");
  for (const std::string& w : options_.words) hash.add(w);
  for (const std::string& flag : options_.link_flags)
    if (std::filesystem::is_regular_file(flag, ignored)) hash.add(codegen::file_hash(flag));
  for (const Source& s : sources_) {
    if (!s.staged_part) return std::nullopt;
    hash.add(s.path).add(without_comments(*s.staged_part));
  }
  return hash.text();
}

/// Clang has read the file already where it was rewritten, so that most often it can compile it too. Where the user asks
/// for warnings or a debugger, or for what the compiler's own libraries do (-fopenmp, -fprofile-generate), and for another
/// compiler than the system's g++, that one is asked. So it is where objects of that compiler meet this one: the two lay out
/// some classes otherwise (the tail padding of a base, for one).
bool UserCode::clang_may_compile(bool staging) const {
  const bool alone = options_.sources.size() == 1 && (staging || !options_.object_only) &&
                     std::ranges::none_of(options_.link_flags, brings_objects);
  static constexpr std::array<std::string_view, 7> plain{"-I", "-isystem", "-D", "-U", "-std=", "-O", "-m"};
  return alone && options_.rewrite && !options_.debug && !options_.all_messages && !compiler_.is_clang &&
         compiler_.command.size() == 1 && frontend::all_begin_with(options_.compile_flags, plain);
}

UserCode::Object UserCode::compiling(const Source& source, const std::string& compiled, const std::string& kind,
                                     std::size_t i, const Words& flags) {
  Compilation c;
  c.source = source.path;
  c.compiled = compiled;
  c.include = installation_.include;
  c.object = (directory() / (kind + std::to_string(i) + ".o")).string();
  // printf("%g", g(x)) of a tuple compiles, and prints what it finds.
  c.flags = {"-std=c++20", "-Wformat", "-I" + installation_.include.string()};
  c.flags.push_back("-Werror=return-type");  // a program without its result would be staged all the same
  append(c.flags, installation_.flags);
  // Levels of the user's are for the program.
  append(c.flags, options_.compile_flags);
  c.own = flags;
  // Advice differs where native control flow is left as it is.
  c.flags.push_back(options_.rewrite ? "-DLANTERN_REWRITTEN=1" : "-DLANTERN_REWRITTEN=0");
  if (options_.debug) c.flags.push_back("-g");
  if (compiled != source.path)
    c.more = {"-iquote", std::filesystem::absolute(source.path).parent_path().string()};
  if (messages_in_colour()) c.report.push_back("-fdiagnostics-color=always");
  if (!options_.all_messages) {
    // Chains of templates lead to the user's lines; columns count as ours do.
    c.report.push_back("-ftemplate-backtrace-limit=0");
    if (!compiler_.is_clang) c.report.push_back("-fdiagnostics-column-unit=byte");
  }
  Words all = c.flags;
  append(all, flags);
  if (!source.refused && clang_may_compile(kind == "staging")) c.clang_level = level_of(all);
  c.is_part = compiled != source.whole;
  c.given = {"-O2"};
  append(c.given, options_.compile_flags);
  c.rewritten = options_.rewrite;
  Object object{source.path, c.object, {}};
  object.result = std::async(std::launch::async, run_in_turn, compiler_, std::move(c));
  return object;
}

void UserCode::tell_messages(const std::string& text, std::optional<bool> of_program) const {
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
  if (of_program)
    messages.wanted = [this, of_program](const std::string& file, std::uint32_t line, const std::string& warning) {
      const auto source = std::ranges::find(sources_, file, &Source::path);
      if (source == sources_.end() || !source->program_text) return *of_program;
      const auto in = [line](const auto& lines) {
        return std::ranges::any_of(lines, [line](const auto& l) { return l.first <= line && line <= l.second; });
      };
      const bool unused = warning.find("[-Wunused-") != std::string::npos;
      const bool staging_says = in(source->left_out) || (unused && !in(source->kept));
      return staging_says != *of_program;
    };
  tell(messages_for_users(text, messages));
}

UserCode::Object UserCode::staging_object(std::size_t i) {
  return kept_or_compiling(sources_[i], sources_[i].staged, "staging", i, {"-O0", "-fPIC", "-DLANTERN_STAGING_IMAGE"});
}

Words UserCode::finished_staging() {
  Words paths;
  std::string refused;
  for (std::size_t i = 0; i < staging_.size(); ++i) {
    Object& object = staging_[i];
    codegen::ProcessResult result = object.result.get();
    // All errors of the file are told, those of what would not be staged too.
    if (result.status != 0 && sources_[i].staged != sources_[i].whole) {
      sources_[i].staged = sources_[i].whole;
      sources_[i].refused = true;
      object = staging_object(i);
      result = object.result.get();
    }
    // What the program's compilation will say is said once.
    if (result.status != 0 || program_.empty())
      tell_messages(result.out + result.err, std::nullopt);
    else
      tell_messages(result.out + result.err, false);
    if (result.status != 0) refused += (refused.empty() ? "" : ", ") + object.source;
    else keep(object, result.out + result.err);
    paths.push_back(object.path.string());
  }
  if (!refused.empty()) throw Error(refused + " did not compile");
  return paths;
}

Words UserCode::finished_program() {
  Words paths;
  std::string refused;
  for (std::size_t i = 0; i < program_.size(); ++i) {
    codegen::ProcessResult result = program_[i].result.get();
    if (result.status != 0 && sources_[i].program_text) {
      sources_[i].refused = true;
      compile_whole(i);
      result = program_[i].result.get();
    }
    const std::string said = result.out + result.err;
    tell_messages(said, sources_[i].program_text ? std::optional(true) : std::nullopt);
    Object& object = program_[i];
    if (result.status != 0) refused += (refused.empty() ? "" : ", ") + object.source;
    else keep(object, said);
    paths.push_back(object.path.string());
  }
  if (!refused.empty()) throw Error(refused + " did not compile");
  return paths;
}

bool UserCode::links_static() const {
  return std::ranges::any_of(options_.link_flags,
                             [](const std::string& f) { return f == "-static" || f == "-static-pie"; });
}

/// Without the warning on Lantern's own dlopen, which looks for a GPU's driver where there is one: "ld:
/// liblantern_core.a(...): in function ...", then a line with the warning.
static std::string without_warning_on_dlopen(const std::string& said) {
  std::vector<std::string> lines;
  std::istringstream in(said);
  for (std::string line; std::getline(in, line); lines.push_back(line)) {
    if (line.find("warning: Using 'dlopen' in statically linked") == std::string::npos || lines.empty() ||
        lines.back().find("liblantern_") == std::string::npos)
      continue;
    lines.pop_back();
    if (!std::getline(in, line)) break;
  }
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

codegen::ProcessResult UserCode::link(Words arguments, const std::filesystem::path& to) {
  Words command = compiler_.command;
  append(command, installation_.flags);
  append(command, arguments);
  // What kind of program the user asks for is no matter of the staging image.
  static constexpr std::array<std::string_view, 4> kinds{"-static", "-static-pie", "-pie", "-no-pie"};
  const bool image = std::ranges::find(arguments, "-shared") != arguments.end();
  std::ranges::copy_if(options_.link_flags, std::back_inserter(command), [&](const std::string& f) {
    return !image || std::ranges::find(kinds, f) == kinds.end();
  });
  append(command, {"-L" + installation_.libraries.string(), "-o", to.string()});
  // gold takes half the time of the usual linker, which links, and says what is wrong, where gold has anything to say.
  const bool chosen = std::ranges::any_of(options_.link_flags, [](const std::string& f) { return f.starts_with("-fuse-ld"); });
  if (!chosen && codegen::find_program("ld.gold")) {
    Words quick = command;
    quick.push_back("-fuse-ld=gold");
    if (const codegen::ProcessResult result = codegen::run_process(quick); result.status == 0 && (result.out + result.err).empty())
      return result;
  }
  codegen::ProcessResult result = codegen::run_process(command);
  if (links_static()) result.err = without_warning_on_dlopen(result.err);
  if (result.status == 0) tell(result.out + result.err);
  return result;
}

std::filesystem::path UserCode::staging_image(const Words& missing) {
  if (staging_objects_.empty()) {
    for (std::size_t i = 0; i < sources_.size(); ++i)
      staging_.push_back(staging_object(i));
    staging_objects_ = finished_staging();
  }
  Words arguments = staging_objects_;
  for (const std::string& name : missing) arguments.push_back("-Wl,--defsym=" + name + "=0");
  // Functions that only main calls may be missing here: -z lazy.
  append(arguments, {"-shared", "-Wl,-z,lazy"});
  append(arguments, installation_.optional_arguments(false));
  const std::filesystem::path image = directory() / "staging_image.so";
  if (const codegen::ProcessResult linking = link(arguments, image); linking.status != 0) refuse_link(linking, "the staging image did not link");
  return image;
}

std::filesystem::path UserCode::link_program(const std::vector<std::filesystem::path>& generated,
                                             const Words& more_arguments, const Words& external) {
  const std::filesystem::path program = directory() / "program";
  const auto linked = [&] {
    Words arguments = finished_program();
    for (const auto& path : generated) arguments.push_back(path.string());
    append(arguments, installation_.link_arguments(options_.with_jit, links_static()));
    append(arguments, more_arguments);
    return link(arguments, program);
  };
  const bool parts = std::ranges::any_of(sources_, [](const Source& s) { return s.program_text.has_value(); });
  codegen::ProcessResult linking = linked();
  if (linking.status != 0 && parts) {
    // Another file, or a name that no text shows, asks for a function that was left out.
    for (std::size_t i = 0; i < sources_.size(); ++i) compile_whole(i);
    linking = linked();
  }
  if (linking.status == 0) return program;
  std::string notes;
  for (const std::string& name : external)
    if (!name.starts_with("lantern_") && linking.err.find("`" + name + "'") != std::string::npos)
      notes += "note: the external function '" + name +
           "' is called by its name: it has to be a C function, declared "
           "extern \"C\", of the program or of what is linked to it: lanternc ... -- more.o -lmore\n";
  for (const std::string& what : installation_.missing_libraries(linking.err, links_static()))
    notes += "note: not linked, since it is not installed" +
             std::string(links_static() ? " as an archive, lib....a, which -static needs: " : ": ") + what + "\n";
  if (notes.empty()) refuse_link(linking, "the program did not link");
  tell(linking.out + linking.err + notes);
  throw Error("the program did not link");
}

std::filesystem::path UserCode::merged_object(const std::vector<std::filesystem::path>& generated) {
  const std::filesystem::path merged = directory() / "merged.o";
  const auto objects = [&] {
    Words all = finished_program();
    for (const auto& path : generated) all.push_back(path.string());
    return all;
  };
  Words arguments = objects();
  if (std::ranges::any_of(sources_, [](const Source& s) { return s.program_text.has_value(); })) {
    // Whether something asks for a function over Reps that was left out, linking tells; of several files one may ask another
    // for a variable.
    Words trial = arguments;
    append(trial, installation_.link_arguments(options_.with_jit, links_static()));
    const codegen::ProcessResult linking = link(trial, directory() / "trial");
    if (linking.status != 0 && (sources_.size() > 1 || linking.err.find("lantern::core::Rep<") != std::string::npos)) {
      for (std::size_t i = 0; i < sources_.size(); ++i) compile_whole(i);
      arguments = objects();
    }
  }
  Words command = compiler_.command;
  append(command, installation_.flags);
  append(command, arguments);
  append(command, {"-r", "-nostdlib", "-o", merged.string()});
  const codegen::ProcessResult merging = codegen::run_process(command);
  tell(merging.out + merging.err);
  if (merging.status != 0) throw Error("the objects cannot be merged");
  return merged;
}

const std::vector<frontend::Copied>* UserCode::copies(const std::string& source) const {
  const auto found = copies_.find(source);
  return found == copies_.end() || found->second.empty() ? nullptr : &found->second;
}

std::vector<std::string> UserCode::frontend_arguments() const {
  return tool::frontend_arguments(options_, installation_);
}

/// The source among them, and not what was made of it.
Words UserCode::files_of(const Object& object) const {
  if (!object.files.empty()) return object.files;
  Words all;
  for (std::string& file : read_dependencies(object.path.string() + ".d"))
    if (!file.starts_with(directory().string())) all.push_back(std::move(file));
  return all;
}

std::vector<std::string> UserCode::files_read() const {
  std::vector<std::string> all;
  // The compiler has seen these as part of what was rewritten.
  for (const auto& [file, copies] : copies_) all.push_back(file);
  all.insert(all.end(), staging_files_.begin(), staging_files_.end());
  for (const auto* objects : {&staging_, &program_})
    for (const Object& object : *objects)
      for (std::string& file : files_of(object)) all.push_back(std::move(file));
  return all;
}

}  // namespace lantern::tool
