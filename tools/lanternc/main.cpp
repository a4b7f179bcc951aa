// lanternc: a C++ file with LANTERN_FUNCTIONs to a program, an object, a library or a source, ahead of time.
#include <malloc.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <set>

#include "build_program.hpp"
#include "emit.hpp"
#include "explain.hpp"
#include "illustrate.hpp"
#include "installation.hpp"
#include "interruption.hpp"
#include "kept_stages.hpp"
#include "lantern/codegen/toolchain/process.hpp"
#include "linked_libraries.hpp"
#include "options.hpp"
#include "output.hpp"
#include "report.hpp"
#include "result_cache.hpp"
#include "rewrite.hpp"
#include "stage.hpp"
#include "staging_image.hpp"
#include "user_code.hpp"

namespace lantern::tool {
namespace {

std::string explanations(const std::vector<StagedFunction>& functions, const Options& options) {
  std::string all;
  for (const StagedFunction& f : functions)
    all += (all.empty() ? "" : "\n") + explained(f.name, *f.module, f.progress, options.mappings, options.storage);
  return all;
}

/// OUTPUT: FILE..., as make and ninja read it.
void write_depfile(const Options& options, const std::vector<std::string>& files) {
  if (options.depfile.empty()) return;
  const auto escaped = [](const std::string& file) {
    std::string out;
    for (const char c : std::filesystem::absolute(file).string()) {
      if (c == ' ' || c == '#') out += '\\';
      if (c == '$') out += '$';
      out += c;
    }
    return out;
  };
  std::set<std::string> all;
  for (const std::string& file : files) all.insert(escaped(file));
  std::string text = escaped(options.output) + ":";
  for (const std::string& file : all) text += " \\\n  " + file;
  codegen::write_file(options.depfile, text + "\n");
}

void run(const Options& options) {
  Output output(options);
  if (options.emit == Emit::rewritten) {
    const std::string& source = options.sources.front();
    const frontend::Rewritten result = rewritten(source, options, find_installation());
    return output.write(result.changed ? result.text : codegen::read_file(source));
  }
  const Installation installation = find_installation();
  const Compiler compiler = find_compiler();
  ResultCache cache(options, installation, compiler);
  if (cache.replay(output)) return write_depfile(options, cache.replayed_files());
  check_libraries(options, installation, compiler);
  UserCode code(options, installation, compiler);
  KeptStages kept(options, code);
  std::optional<std::vector<StagedFunction>> known = kept.find(code);
  std::vector<StagedFunction> functions;
  // Graphs refer to texts in it.
  StagingImage image;
  if (known) {
    functions = std::move(*known);
  } else {
    image = load_staging_image(code, options);
    try {
      functions = stage_functions(image, options);
    } catch (const PlacedError& e) {
      throw PlacedError(illustrated(e.what(), code));
    }
    kept.keep(functions, code.files_read());
  }
  if (options.explain)
    output.write(explanations(functions, options));
  else if (options.emit == Emit::program)
    build_program(functions, code, options, output);
  else
    emit(functions, options, output);
  std::vector<std::string> files = code.files_read();
  files.insert(files.end(), options.sources.begin(), options.sources.end());
  write_depfile(options, files);
  cache.keep(output, files);
}

}  // namespace
}  // namespace lantern::tool

int main(int argc, char** argv) {
  // Passes free millions of small blocks between tables of many megabytes. glibc would sort its list of small free blocks at each
  // large one.
  mallopt(M_MXFAST, 0);
  lantern::tool::tidy_up_when_interrupted();
  const int status = lantern::tool::reporting([&] {
    if (const auto options = lantern::tool::parse_options(argc, argv)) lantern::tool::run(*options);
  });
  // Without the destructors of the user's static objects: they belong to a program that never ran.
  std::fflush(nullptr);
  std::_Exit(status);
}
