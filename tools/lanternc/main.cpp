// lanternc: a C++ file with LANTERN_FUNCTIONs to a program, an object, a library or a source, ahead of time.
#include <cstdio>
#include <cstdlib>
#include <optional>

#include "build_program.hpp"
#include "emit.hpp"
#include "explain.hpp"
#include "illustrate.hpp"
#include "installation.hpp"
#include "interruption.hpp"
#include "lantern/codegen/toolchain/process.hpp"
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

std::string explanations(const std::vector<StagedFunction>& functions) {
  std::string all;
  for (const StagedFunction& f : functions)
    all += (all.empty() ? "" : "\n") + explained(f.name, *f.module, f.progress);
  return all;
}

void run(const Options& options) {
  Output output(options);
  if (options.emit == Emit::rewritten) {
    const std::string& source = options.sources.front();
    const auto text = rewritten(source, options, find_installation());
    return output.write(text ? text->text : codegen::read_file(source));
  }
  const Installation installation = find_installation();
  const Compiler compiler = find_compiler();
  ResultCache cache(options, installation, compiler);
  if (cache.replay(output)) return;
  UserCode code(options, installation, compiler);
  const StagingImage image = load_staging_image(code, options);
  std::vector<StagedFunction> functions;
  try {
    functions = stage_functions(image, options);
  } catch (const PlacedError& e) {
    throw PlacedError(illustrated(e.what(), code));
  }
  if (options.explain)
    output.write(explanations(functions));
  else if (options.emit == Emit::program)
    build_program(functions, code, options, output);
  else
    emit(functions, options, output);
  cache.keep(output, code.files_read());
}

}  // namespace
}  // namespace lantern::tool

int main(int argc, char** argv) {
  lantern::tool::tidy_up_when_interrupted();
  const int status = lantern::tool::reporting([&] {
    if (const auto options = lantern::tool::parse_options(argc, argv)) lantern::tool::run(*options);
  });
  // Without the destructors of the user's static objects: they belong to a program that never ran.
  std::fflush(nullptr);
  std::_Exit(status);
}
