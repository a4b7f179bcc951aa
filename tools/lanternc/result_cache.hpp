// What lanternc has made before from the same files, with the same options.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "compiler.hpp"
#include "installation.hpp"
#include "lantern/codegen/toolchain/disk_cache.hpp"
#include "options.hpp"
#include "output.hpp"

namespace lantern::tool {

/// Whether a text's result is another one at every run.
bool tells_time(const std::string& text);

/// Which lanternc this is, with its libraries.
std::string identity(const Installation& installation);

/// Results by content. Two runs give the same where these are the same: the command line and the directory it
/// is given in, the files named there, every file that they include (of the user's files, all but comments where
/// the result shows none), lanternc with its libraries, the C++
/// compiler, the variables of the environment that it heeds, and the processor. Files that a model opens
/// while it is staged are not seen: --no-cache is for those.
class ResultCache {
 public:
  ResultCache(const Options& options, const Installation& installation, const Compiler& compiler);

  /// Writes the result kept of an earlier run, and says again what was said then; false where there is none.
  bool replay(Output& output);
  /// The files that the replayed result depends on.
  const std::vector<std::string>& replayed_files() const { return files_; }
  /// Keeps the result of this run; `files`: all that the compilers have read.
  void keep(const Output& output, const std::vector<std::string>& files);

 private:
  /// What a result depends on besides the files that the sources include: (what it is, its value).
  using Parts = std::vector<std::pair<std::string, std::string>>;
  struct Entry;

  std::optional<Entry> find();
  std::string reason() const;

  const Options& options_;
  const Installation& installation_;
  std::optional<codegen::DiskCache> cache_;
  Parts parts_;
  std::string subject_;  ///< the same for all runs on the same sources
  std::string name_;
  std::vector<std::string> files_;
  std::string why_;  ///< there is no result
};

}  // namespace lantern::tool
