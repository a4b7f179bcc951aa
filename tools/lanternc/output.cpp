// Files appear under their name by a rename, when they are complete.
#include "output.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <system_error>

#include "lantern/codegen/toolchain/process.hpp"
#include "lantern/ir/error.hpp"

namespace lantern::tool {

namespace fs = std::filesystem;

namespace {

[[noreturn]] void cannot_write(const fs::path& path, const std::string& why) {
  throw Error("cannot write '" + path.string() + "': " + why);
}

/// A device, a pipe: something to write into rather than to replace.
bool special(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored) && !fs::is_regular_file(path, ignored);
}

/// A name beside the output, on the same file system.
fs::path neighbour(const fs::path& path) {
  fs::path name = path;
  name += ".lanternc-" + std::to_string(::getpid());
  return name;
}

}  // namespace

Output::Output(const Options& options) : path_(options.output) {
  if (path_.empty()) return;
  for (const std::string& source : options.sources) {
    std::error_code ignored;
    if (fs::equivalent(source, path_, ignored))
      throw Error("the output '" + path_.string() + "' is also an input");
  }
  require_writable();
}

Output::~Output() {
  std::error_code ignored;
  if (!written_ && !path_.empty() && fs::is_regular_file(path_, ignored)) fs::remove(path_, ignored);
}

void Output::require_writable() const {
  std::error_code ignored;
  if (fs::is_directory(path_, ignored)) cannot_write(path_, "it is a directory");
  const fs::path folder = path_.has_parent_path() ? path_.parent_path() : ".";
  const fs::path& touched = special(path_) ? path_ : folder;
  if (::access(touched.c_str(), W_OK) != 0) cannot_write(path_, std::strerror(errno));
  if (!special(path_) && !fs::is_directory(folder, ignored)) cannot_write(path_, std::strerror(ENOTDIR));
}

void Output::write(const std::string& contents, bool executable) {
  contents_ = contents;
  executable_ = executable;
  if (path_.empty()) {
    if (std::fwrite(contents.data(), 1, contents.size(), stdout) != contents.size() ||
        std::fflush(stdout) != 0)
      cannot_write("standard output", std::strerror(errno));
    return;
  }
  if (special(path_)) {
    codegen::write_file(path_, contents);
    return;
  }
  const codegen::UnfinishedFile unfinished(neighbour(path_));
  const fs::path& beside = unfinished.path();
  try {
    codegen::write_file(beside, contents);
    // What the user's umask allows to read may be run as well.
    if (executable) {
      const fs::perms now = fs::status(beside).permissions();
      fs::permissions(beside, now | static_cast<fs::perms>((static_cast<unsigned>(now) & 0444U) >> 2U));
    }
    fs::rename(beside, path_);
  } catch (const std::exception&) {
    cannot_write(path_, std::strerror(errno));
  }
  written_ = true;
}

void Output::take(const fs::path& file) {
  const bool executable = (fs::status(file).permissions() & fs::perms::owner_exec) != fs::perms::none;
  write(codegen::read_file(file), executable);
}

}  // namespace lantern::tool
