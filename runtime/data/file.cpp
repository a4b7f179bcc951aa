#include "lantern/runtime/data/file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <string>
#include <system_error>
#include <utility>

#include "lantern/runtime/data/report.hpp"

namespace lantern::core::data {

namespace fs = std::filesystem;

namespace {

/// A file descriptor that closes itself.
class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return number_; }

 private:
  int number_;
};

/// Reads at most `most` bytes: how many there were, less only at the end of the file.
std::size_t read_some(const fs::path& path, int file, std::byte* to, std::size_t most) {
  std::size_t got = 0;
  while (got < most) {
    const ssize_t n = ::read(file, to + got, most - got);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail(path.string(), std::string("cannot be read: ") + std::strerror(errno));
    if (n == 0) break;
    got += static_cast<std::size_t>(n);
  }
  return got;
}

}  // namespace

FileBytes::FileBytes(const fs::path& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status{};
  if (file.get() < 0 || ::fstat(file.get(), &status) != 0)
    fail(path.string(), std::string("cannot be opened: ") + std::strerror(errno));
  // The size is a hint: a pipe has none, and a file may grow meanwhile.
  std::size_t room =
      S_ISREG(status.st_mode) ? static_cast<std::size_t>(status.st_size) + 1 : std::size_t{1} << 16;
  bytes_ = std::make_unique_for_overwrite<std::byte[]>(room);
  while ((size_ += read_some(path, file.get(), bytes_.get() + size_, room - size_)) == room) {
    auto larger = std::make_unique_for_overwrite<std::byte[]>(2 * room);
    std::copy_n(bytes_.get(), size_, larger.get());
    bytes_ = std::move(larger);
    room *= 2;
  }
}

Replacement::Replacement(const fs::path& path) : path_(path), target_(path) {
  std::error_code ignored;
  for (int links = 0; links < 40 && fs::is_symlink(target_, ignored); ++links)
    target_ = target_.parent_path() / fs::read_symlink(target_, ignored);
  struct stat former{};
  const bool replaces = ::stat(target_.c_str(), &former) == 0;
  if (replaces && !S_ISREG(former.st_mode))
    fail(path.string(), std::string("expected a file to write, got ") +
                            (S_ISDIR(former.st_mode) ? "a folder" : "a pipe or a device"));
  // A rename would not ask.
  if (replaces && ::access(target_.c_str(), W_OK) != 0) cannot_write(errno);
  static std::atomic<unsigned> number{0};
  do {
    own_ = target_.parent_path() /
           (".lantern-" + std::to_string(::getpid()) + "-" + std::to_string(number++) + ".unfinished");
    file_ = ::open(own_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  } while (file_ < 0 && errno == EEXIST);
  if (file_ < 0) cannot_write(errno);
  if (replaces) static_cast<void>(::fchmod(file_, former.st_mode & 07777U));
}

Replacement::~Replacement() {
  if (file_ >= 0) ::close(file_);
  if (!own_.empty()) ::unlink(own_.c_str());
}

void Replacement::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(file_, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) cannot_write(errno);
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
}

void Replacement::take_place(Durable durable) {
  if (durable == Durable::yes && ::fsync(file_) != 0) cannot_write(errno);
  if (::close(std::exchange(file_, -1)) != 0) cannot_write(errno);
  if (::rename(own_.c_str(), target_.c_str()) != 0) cannot_write(errno);
  own_.clear();
  if (durable == Durable::no) return;
  const fs::path folder = target_.has_parent_path() ? target_.parent_path() : ".";
  const Descriptor opened(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  // File systems that cannot sync a folder (EINVAL) keep its names in another way.
  if (opened.get() < 0 || (::fsync(opened.get()) != 0 && errno != EINVAL)) cannot_write(errno);
}

void Replacement::cannot_write(int error) const {
  fail(path_.string(), std::string("cannot be written: ") + std::strerror(error));
}

}  // namespace lantern::core::data
