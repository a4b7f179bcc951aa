// fork, a pipe for the results, and a watch over memory and time.
#include "child.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstring>
#include <exception>
#include <fstream>
#include <thread>

#include "lantern/ir/error.hpp"

namespace lantern::bench {
namespace {

/// Writes all of it; what a broken pipe loses, nothing waits for.
void send(int to, const void* data, std::size_t bytes) {
  const char* at = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t n = ::write(to, at, bytes);
    if (n <= 0) return;
    at += n;
    bytes -= static_cast<std::size_t>(n);
  }
}

[[noreturn]] void run(const std::function<std::vector<double>()>& work, int to) {
  char kind = 'v';
  std::vector<double> values;
  std::string failure;
  try {
    values = work();
  } catch (const std::exception& e) {
    kind = 'e';
    failure = e.what();
  }
  send(to, &kind, 1);
  if (kind == 'v')
    send(to, values.data(), values.size() * sizeof(double));
  else
    send(to, failure.data(), failure.size());
  _exit(0);
}

std::int64_t resident_bytes(pid_t child) {
  std::int64_t pages = 0, resident = 0;
  std::ifstream(fmt::format("/proc/{}/statm", child)) >> pages >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

/// Everything that is in the pipe now.
void drain(int from, std::string& received) {
  char buffer[4096];
  for (ssize_t n = 0; (n = ::read(from, buffer, sizeof buffer)) > 0;)
    received.append(buffer, static_cast<std::size_t>(n));
}

}  // namespace

ChildResult in_child(const std::function<std::vector<double>()>& work, std::int64_t limit_bytes,
                     double limit_seconds) {
  int pipe_ends[2];
  if (::pipe(pipe_ends) != 0) raise(fmt::format("expected a pipe, got: {}", std::strerror(errno)));
  const pid_t child = ::fork();
  if (child < 0) raise(fmt::format("expected a new process, got: {}", std::strerror(errno)));
  if (child == 0) {
    ::close(pipe_ends[0]);
    run(work, pipe_ends[1]);
  }
  ::close(pipe_ends[1]);
  ::fcntl(pipe_ends[0], F_SETFL, O_NONBLOCK);

  ChildResult result;
  std::string received;
  int status = 0;
  rusage usage{};
  const auto start = std::chrono::steady_clock::now();
  while (::wait4(child, &status, WNOHANG, &usage) == 0) {
    drain(pipe_ends[0], received);
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    if (result.ok() && resident_bytes(child) > limit_bytes)
      result.failure = fmt::format("took more than {:.1f} GB", static_cast<double>(limit_bytes) / 1e9);
    if (result.ok() && elapsed.count() > limit_seconds)
      result.failure = fmt::format("took longer than {:g} s", limit_seconds);
    if (!result.ok()) ::kill(child, SIGKILL);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  drain(pipe_ends[0], received);
  ::close(pipe_ends[0]);
  result.peak_bytes = usage.ru_maxrss * std::int64_t{1024};
  if (!result.ok()) return result;
  if (WIFSIGNALED(status))
    result.failure = fmt::format("ended by signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)));
  else if (WEXITSTATUS(status) != 0)
    result.failure = fmt::format("ended with status {}", WEXITSTATUS(status));
  else if (received.empty())
    result.failure = "ended without a result";
  else if (received[0] == 'e')
    result.failure = received.substr(1);
  if (!result.ok()) return result;
  result.values.resize((received.size() - 1) / sizeof(double));
  if (!result.values.empty())
    std::memcpy(result.values.data(), received.data() + 1, result.values.size() * sizeof(double));
  return result;
}

}  // namespace lantern::bench
