#include "options.hpp"

#include <CLI/CLI.hpp>

namespace lantern::bench {

std::optional<Options> parse_options(int argc, char** argv, const std::string& what, const std::string& files,
                                     int& status, bool with_threads, bool with_kernels,
                                     bool with_peers) {
  Options options;
  CLI::App app(what, argv[0]);
  app.add_flag("--quick", options.quick, "shorter measurements, fewer sizes");
  app.add_option("--json", options.json, "write the rows as JSON")->type_name("FILE");
  app.add_option("--svg", options.svg, "write a plot")->type_name("FILE");
  if (with_peers)
    app.add_option("--python", options.python, "measure peers too, those that this interpreter has the packages of")
        ->type_name("PYTHON");
  if (with_threads)
    app.add_option("--threads", options.threads, "measure derivatives in so many threads too")
        ->check(CLI::Range(1, 64));
  if (with_kernels) {
    app.add_flag("--large", options.large, "sizes that give several threads enough to do");
    app.add_flag("--second", options.second, "measure Hessian-vector products beside gradients");
    app.add_option("--arguments", options.arguments, "write arguments and gradients of all kernels, for other programs")
        ->check(CLI::ExistingDirectory)
        ->type_name("DIRECTORY");
    app.add_option("--without", options.without, "say how much slower it is without these passes")
        ->delimiter(',')
        ->allow_extra_args(false)
        ->type_name("PASS,...");
  }
  if (!files.empty()) app.add_option("files", options.files, files);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    status = app.exit(e);
    return std::nullopt;
  }
  return options;
}

}  // namespace lantern::bench
