// What lanternc leaves behind: one file, complete, or none.
#pragma once

#include <filesystem>
#include <string>

#include "options.hpp"

namespace lantern::tool {

/// The output named on the command line. Unless something was written by the end of its life, an earlier file
/// of that name is removed, as compilers do: nothing shall mistake it for the result.
class Output {
 public:
  /// Error where it could not be written in the end: better now than after a minute's work.
  explicit Output(const Options& options);
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;
  ~Output();

  void write(const std::string& contents, bool executable = false);
  /// A finished file, which may be executable.
  void take(const std::filesystem::path& file);

  /// What was written last.
  const std::string& contents() const { return contents_; }
  bool executable() const { return executable_; }

 private:
  void require_writable() const;

  std::filesystem::path path_;  // empty: standard output
  std::string contents_;
  bool executable_ = false;
  bool written_ = false;
};

}  // namespace lantern::tool
