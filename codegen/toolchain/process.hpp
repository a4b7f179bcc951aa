// Child processes without a shell, and private temporary directories: what external tool chains need.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace lantern::codegen {

struct ProcessResult {
  int status;  ///< the exit status, or 128 + the number of the signal that ended the process
  std::string out;
  std::string err;
};

struct ProcessOptions {
  /// Where the process runs; empty: the caller's directory.
  std::filesystem::path working_directory;
};

/// Runs `argv[0]` (searched on PATH if it has no slash) with exactly these arguments and waits for its end.
/// `stdin_text` is its standard input. Throws lantern::Error when the program cannot be started; a status
/// other than 0 is the caller's to judge.
ProcessResult run_process(const std::vector<std::string>& argv, const std::string& stdin_text = {},
                          const ProcessOptions& options = {});

/// The executable file that `name` means: itself if it has a slash, otherwise the first match on PATH.
std::optional<std::string> find_program(const std::string& name);

/// A directory only this user can enter, removed with all it contains at the end of its life.
class TemporaryDirectory {
 public:
  TemporaryDirectory();
  TemporaryDirectory(TemporaryDirectory&& other) noexcept;
  TemporaryDirectory& operator=(TemporaryDirectory&& other) noexcept;
  ~TemporaryDirectory();

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

/// A file that is written under a name of its own and renamed when it is complete. What still lies under that
/// name at the end of its life is removed.
class UnfinishedFile {
 public:
  explicit UnfinishedFile(std::filesystem::path path);
  UnfinishedFile(const UnfinishedFile&) = delete;
  UnfinishedFile& operator=(const UnfinishedFile&) = delete;
  ~UnfinishedFile();

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

/// For a program that is about to be ended by a signal: ends the processes that `run_process` waits for, and
/// removes temporary directories and unfinished files, of all threads. A thread that asks for another of
/// these, or is done with one, waits for the end of the program.
void abandon_work();

/// Reads or writes a whole file. Throws lantern::Error naming the file when that fails.
std::string read_file(const std::filesystem::path& path);
void write_file(const std::filesystem::path& path, const std::string& contents);

}  // namespace lantern::codegen
