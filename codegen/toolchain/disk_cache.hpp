// What has been made once, kept in the user's cache directory.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lantern::codegen {

/// $XDG_CACHE_HOME/lantern/PART or ~/.cache/lantern/PART, made where it is missing. Nothing else can read or
/// write there. Nothing where there is no such place, or where it belongs to somebody else.
std::optional<std::filesystem::path> private_cache_directory(const std::string& part);

/// The bytes that a cache may take: what LANTERN_CACHE_MEGABYTES in the environment says, otherwise so many megabytes.
/// Error: it is no number.
std::uintmax_t cache_limit(std::uintmax_t default_megabytes);

/// Removes the files of an extension that were not used for longest, until the others take at most `bytes`.
void remove_least_used(const std::filesystem::path& directory, const std::string& extension,
                       std::uintmax_t bytes);

/// Texts by name, in a directory, one a file. Processes may use it at the same time: a file appears by a
/// rename, when it is complete. A file that is not what was stored (cut off, changed) is removed and counts
/// as missing.
class DiskCache {
 public:
  /// Of all files together at most `bytes` are kept, the last used ones.
  DiskCache(std::filesystem::path directory, std::uintmax_t bytes)
      : directory_(std::move(directory)), limit_(bytes) {}

  /// What was stored under a name of letters, digits and '-'; counts as a use.
  std::optional<std::string> load(const std::string& name);
  /// False where it cannot be written: a cache that does not work is no reason to fail.
  bool store(const std::string& name, std::string_view contents);

  /// The names that begin so, the last used first.
  std::vector<std::string> names(const std::string& prefix) const;
  /// Whether load() found a file that was not what had been stored.
  bool found_corrupt() const { return corrupt_; }

 private:
  std::filesystem::path file(const std::string& name) const;

  std::filesystem::path directory_;
  std::uintmax_t limit_;
  bool corrupt_ = false;
};

}  // namespace lantern::codegen
