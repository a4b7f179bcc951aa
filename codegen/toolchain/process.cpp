// posix_spawn with anonymous memory files as the child's standard streams.
//
// A pipe has to be drained while the child runs, on both sides at once, and writing to one whose reader has
// gone raises SIGPIPE. A memory file needs none of that: fill it before, read it after.
#include "lantern/codegen/toolchain/process.hpp"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>
#include <mutex>
#include <thread>
#include <utility>

#include "lantern/ir/error.hpp"

extern char** environ;

namespace lantern::codegen {

namespace {

std::string reason(int error_number) { return std::strerror(error_number); }

class MemoryFile {
 public:
  explicit MemoryFile(const char* name) : descriptor_(::memfd_create(name, MFD_CLOEXEC)) {
    if (descriptor_ < 0) throw Error("cannot create a memory file: " + reason(errno));
  }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  ~MemoryFile() { ::close(descriptor_); }

  int descriptor() const { return descriptor_; }

  /// Replaces the contents and leaves the position, which a child shares, at the beginning.
  void fill(const std::string& text) {
    std::size_t done = 0;
    while (done < text.size()) {
      const ssize_t count =
          ::pwrite(descriptor_, text.data() + done, text.size() - done, static_cast<off_t>(done));
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) throw Error("cannot write to a memory file: " + reason(errno));
      done += static_cast<std::size_t>(count);
    }
  }

  std::string contents() const {
    struct stat status {};
    if (::fstat(descriptor_, &status) != 0) throw Error("cannot read a memory file: " + reason(errno));
    std::string text(static_cast<std::size_t>(status.st_size), '\0');
    std::size_t done = 0;
    while (done < text.size()) {
      const ssize_t count =
          ::pread(descriptor_, text.data() + done, text.size() - done, static_cast<off_t>(done));
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) break;
      done += static_cast<std::size_t>(count);
    }
    text.resize(done);
    return text;
  }

 private:
  int descriptor_;
};

class FileActions {
 public:
  FileActions() { ::posix_spawn_file_actions_init(&actions_); }
  FileActions(const FileActions&) = delete;
  FileActions& operator=(const FileActions&) = delete;
  ~FileActions() { ::posix_spawn_file_actions_destroy(&actions_); }
  posix_spawn_file_actions_t* get() { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_;
};

class SpawnAttributes {
 public:
  // The child starts with no signal blocked or ignored, whatever the calling thread has set up.
  SpawnAttributes() {
    ::posix_spawnattr_init(&attributes_);
    sigset_t none;
    ::sigemptyset(&none);
    ::posix_spawnattr_setsigmask(&attributes_, &none);
    sigset_t pipe;
    ::sigemptyset(&pipe);
    ::sigaddset(&pipe, SIGPIPE);
    ::posix_spawnattr_setsigdefault(&attributes_, &pipe);
    ::posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  }
  SpawnAttributes(const SpawnAttributes&) = delete;
  SpawnAttributes& operator=(const SpawnAttributes&) = delete;
  ~SpawnAttributes() { ::posix_spawnattr_destroy(&attributes_); }
  const posix_spawnattr_t* get() const { return &attributes_; }

 private:
  posix_spawnattr_t attributes_;
};

/// What is to be ended and removed when a signal ends the program.
class Work {
 public:
  static Work& all() {
    static Work& work = *new Work;  // outlives the threads that wait here
    return work;
  }

  void add(const std::filesystem::path& path) {
    const auto lock = when_going_on();
    paths_.push_back(path);
  }
  /// Of what is made, nothing is there that `abandon` does not know.
  std::filesystem::path add_made(const std::function<std::filesystem::path()>& make) {
    const auto lock = when_going_on();
    return paths_.emplace_back(make());
  }
  void remove(const std::filesystem::path& path) {
    const auto lock = when_going_on();
    std::erase(paths_, path);
  }

  /// Starts a process; none is started that `abandon` does not know.
  pid_t start(const std::function<pid_t()>& spawn) {
    const auto lock = when_going_on();
    const pid_t child = spawn();
    children_.push_back(child);
    return child;
  }
  void ended(pid_t child) {
    {
      const std::lock_guard lock(mutex_);
      std::erase(children_, child);
    }
    changed_.notify_all();
    const auto lock = when_going_on();
  }

  void abandon() {
    constexpr int patience = 100;
    std::unique_lock lock(mutex_);
    abandoned_ = true;
    const auto none_left = [this] { return children_.empty(); };
    for (const int signal : {SIGTERM, SIGKILL}) {
      for (const pid_t child : children_) ::kill(child, signal);
      if (changed_.wait_for(lock, std::chrono::seconds(5), none_left)) break;
    }
    // A thread may be writing one more file there.
    for (const std::filesystem::path& path : paths_)
      for (int i = 0; i < patience; ++i) {
        std::error_code failed;
        std::filesystem::remove_all(path, failed);
        if (!failed) break;
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
      }
  }

 private:
  std::unique_lock<std::mutex> when_going_on() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !abandoned_; });
    return lock;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::filesystem::path> paths_;
  std::vector<pid_t> children_;
  bool abandoned_ = false;
};

int wait_for(pid_t child) {
  int state = 0;
  while (::waitpid(child, &state, 0) < 0) {
    if (errno != EINTR) throw Error("cannot wait for a child process: " + reason(errno));
  }
  return WIFSIGNALED(state) ? 128 + WTERMSIG(state) : WEXITSTATUS(state);
}

bool is_executable_file(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) && ::access(path.c_str(), X_OK) == 0;
}

}  // namespace

std::optional<std::string> find_program(const std::string& name) {
  if (name.find('/') != std::string::npos)
    return is_executable_file(name) ? std::optional(name) : std::nullopt;
  const char* variable = std::getenv("PATH");
  const std::string search = variable != nullptr ? variable : "/usr/local/bin:/usr/bin:/bin";
  for (std::size_t begin = 0; begin <= search.size();) {
    const std::size_t end = std::min(search.find(':', begin), search.size());
    // An empty entry would mean the current directory: a compiler from there is never what is wanted.
    if (end > begin) {
      const std::string candidate = search.substr(begin, end - begin) + "/" + name;
      if (is_executable_file(candidate)) return candidate;
    }
    begin = end + 1;
  }
  return std::nullopt;
}

ProcessResult run_process(const std::vector<std::string>& argv, const std::string& stdin_text,
                          const ProcessOptions& options) {
  if (argv.empty()) throw InternalError("run_process needs a program to run");
  const std::optional<std::string> program = find_program(argv.front());
  if (!program) throw Error("cannot run '" + argv.front() + "': no such program");

  MemoryFile in("stdin"), out("stdout"), err("stderr");
  in.fill(stdin_text);
  FileActions actions;
  ::posix_spawn_file_actions_adddup2(actions.get(), in.descriptor(), STDIN_FILENO);
  ::posix_spawn_file_actions_adddup2(actions.get(), out.descriptor(), STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(actions.get(), err.descriptor(), STDERR_FILENO);
  std::string executable = *program;
  if (!options.working_directory.empty()) {
    // The program was found from here, so its name must not depend on where it runs.
    executable = std::filesystem::absolute(executable).string();
    ::posix_spawn_file_actions_addchdir_np(actions.get(), options.working_directory.c_str());
  }

  std::vector<char*> arguments;
  for (const std::string& argument : argv) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  const SpawnAttributes attributes;
  const pid_t child = Work::all().start([&] {
    pid_t started = 0;
    const int failure = ::posix_spawn(&started, executable.c_str(), actions.get(), attributes.get(),
                                      arguments.data(), environ);
    if (failure != 0) throw Error("cannot run '" + argv.front() + "': " + reason(failure));
    return started;
  });
  const int status = wait_for(child);
  Work::all().ended(child);
  return {status, out.contents(), err.contents()};
}

TemporaryDirectory::TemporaryDirectory() {
  const char* parent = std::getenv("TMPDIR");
  std::string pattern =
      std::string(parent != nullptr && *parent != '\0' ? parent : "/tmp") + "/lantern-XXXXXX";
  path_ = Work::all().add_made([&] {
    if (::mkdtemp(pattern.data()) == nullptr)  // creates it with mode 0700
      throw Error("cannot create a temporary directory " + pattern + ": " + reason(errno));
    return std::filesystem::path(pattern);
  });
}

TemporaryDirectory::TemporaryDirectory(TemporaryDirectory&& other) noexcept
    : path_(std::exchange(other.path_, {})) {}

TemporaryDirectory& TemporaryDirectory::operator=(TemporaryDirectory&& other) noexcept {
  std::swap(path_, other.path_);
  return *this;
}

TemporaryDirectory::~TemporaryDirectory() {
  if (path_.empty()) return;
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
  Work::all().remove(path_);
}

UnfinishedFile::UnfinishedFile(std::filesystem::path path) : path_(std::move(path)) {
  Work::all().add(path_);
}

UnfinishedFile::~UnfinishedFile() {
  std::error_code ignored;
  std::filesystem::remove(path_, ignored);
  Work::all().remove(path_);
}

void abandon_work() { Work::all().abandon(); }

std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::string contents{std::istreambuf_iterator<char>(file), {}};
  if (!file) throw Error("cannot read " + path.string());
  return contents;
}

void write_file(const std::filesystem::path& path, const std::string& contents) {
  std::ofstream file(path, std::ios::binary);
  file << contents;
  file.close();
  if (!file) throw Error("cannot write " + path.string());
}

}  // namespace lantern::codegen
