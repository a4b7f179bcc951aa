// A file holds the digest of its contents, a newline, and the contents. Its time is that of its last use.
#include "lantern/codegen/toolchain/disk_cache.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <system_error>

#include "lantern/codegen/toolchain/content_hash.hpp"
#include "lantern/ir/error.hpp"

namespace lantern::codegen {

namespace fs = std::filesystem;

namespace {

constexpr const char* extension = ".entry";
constexpr std::size_t digest_size = 32;

struct Kept {
  fs::file_time_type used;
  fs::path path;
  std::uintmax_t size;
};

/// The last used first.
std::vector<Kept> kept_files(const fs::path& directory, const std::string& ending) {
  std::vector<Kept> all;
  std::error_code failed;
  for (fs::directory_iterator at(directory, failed), end; !failed && at != end; at.increment(failed)) {
    std::error_code gone;
    if (at->path().extension() != ending) continue;
    const fs::file_time_type used = at->last_write_time(gone);
    const std::uintmax_t size = at->file_size(gone);
    if (!gone) all.push_back({used, at->path(), size});
  }
  std::sort(all.begin(), all.end(), [](const Kept& a, const Kept& b) { return a.used > b.used; });
  return all;
}

}  // namespace

std::optional<fs::path> private_cache_directory(const std::string& part) {
  const char* base = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  fs::path directory;
  if (base != nullptr && *base == '/')
    directory = fs::path(base) / "lantern";
  else if (home != nullptr && *home == '/')
    directory = fs::path(home) / ".cache" / "lantern";
  else
    return std::nullopt;
  std::error_code failed;
  fs::create_directories(directory, failed);
  struct stat status {};
  if (::stat(directory.c_str(), &status) != 0 || status.st_uid != ::getuid()) return std::nullopt;
  if ((status.st_mode & 077U) != 0 && ::chmod(directory.c_str(), S_IRWXU) != 0) return std::nullopt;
  if (part.empty()) return directory;
  fs::create_directories(directory / part, failed);
  if (failed) return std::nullopt;
  return directory / part;
}

std::uintmax_t cache_limit(std::uintmax_t default_megabytes) {
  constexpr std::uintmax_t megabyte = 1U << 20U;
  const char* given = std::getenv("LANTERN_CACHE_MEGABYTES");
  if (given == nullptr) return default_megabytes * megabyte;
  char* end = nullptr;
  const unsigned long long n = std::strtoull(given, &end, 10);
  if (*given == '\0' || *end != '\0')
    throw Error("LANTERN_CACHE_MEGABYTES: expected a number, got '" + std::string(given) + "'");
  return n * megabyte;
}

void remove_least_used(const fs::path& directory, const std::string& ending, std::uintmax_t bytes) {
  std::uintmax_t total = 0;
  for (const Kept& k : kept_files(directory, ending)) {
    total += k.size;
    std::error_code ignored;
    if (total > bytes) fs::remove(k.path, ignored);
  }
}

fs::path DiskCache::file(const std::string& name) const { return directory_ / (name + extension); }

std::optional<std::string> DiskCache::load(const std::string& name) {
  std::ifstream in(file(name), std::ios::binary);
  if (!in) return std::nullopt;
  std::stringstream stream;
  stream << in.rdbuf();
  std::string text = std::move(stream).str();
  std::error_code ignored;
  if (text.size() <= digest_size || text[digest_size] != '\n' ||
      content_hash(std::string_view(text).substr(digest_size + 1)) != text.substr(0, digest_size)) {
    corrupt_ = true;
    fs::remove(file(name), ignored);
    return std::nullopt;
  }
  fs::last_write_time(file(name), fs::file_time_type::clock::now(), ignored);
  text.erase(0, digest_size + 1);
  return text;
}

bool DiskCache::store(const std::string& name, std::string_view contents) {
  static std::atomic<unsigned> number{0};
  const fs::path unfinished =
      directory_ / (name + "." + std::to_string(::getpid()) + "." + std::to_string(number++) + ".unfinished");
  std::error_code failed;
  {
    std::ofstream out(unfinished, std::ios::binary);
    out << content_hash(contents) << '\n' << contents;
    out.flush();
    if (!out) failed = std::make_error_code(std::errc::io_error);
  }
  if (!failed) fs::rename(unfinished, file(name), failed);
  if (failed) {
    std::error_code ignored;
    fs::remove(unfinished, ignored);
    return false;
  }
  remove_least_used(directory_, extension, limit_);
  return true;
}

std::vector<std::string> DiskCache::names(const std::string& prefix) const {
  std::vector<std::string> all;
  for (const Kept& k : kept_files(directory_, extension))
    if (const std::string name = k.path.stem().string(); name.starts_with(prefix)) all.push_back(name);
  return all;
}

}  // namespace lantern::codegen
