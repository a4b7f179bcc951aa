// The options that subcommands share.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "timing.hpp"

namespace lantern::bench {

struct Options {
  bool quick = false;              ///< a look instead of a result: within a minute
  bool large = false;              ///< sizes for several threads
  bool second = false;             ///< Hessian-vector products beside gradients
  int threads = 1;                 ///< that the forms with several may use
  std::vector<std::string> without;  ///< passes that the comparison leaves out
  std::string json, svg;           ///< files to write; empty: none
  std::string arguments;           ///< a directory to write arguments and gradients into; empty: none
  std::string python;              ///< an interpreter that has the peers' packages; empty: no peers
  std::vector<std::string> files;  ///< what is named besides

  TimingOptions timing() const { return quick ? TimingOptions::quick() : TimingOptions(); }
};

/// Reads `[--quick] [--json FILE] [--svg FILE] [FILES...]`. Nothing where the program should end with
/// `status`: after --help, or after a message about a mistake.
/// `with_threads`: reads `--threads N` too, `with_kernels`: `--large`, `--second`, `--without PASS`
/// and `--arguments DIRECTORY`, `with_peers`: `--python PYTHON`.
std::optional<Options> parse_options(int argc, char** argv, const std::string& what, const std::string& files,
                                     int& status, bool with_threads = false, bool with_kernels = false,
                                     bool with_peers = false);

}  // namespace lantern::bench
