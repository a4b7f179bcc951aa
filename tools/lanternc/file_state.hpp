// What files hold, for what was made of them before.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "installation.hpp"
#include "lantern/codegen/toolchain/disk_cache.hpp"
#include "options.hpp"

namespace lantern::tool {

/// A digest of a file's contents; of one of the user's, followed by a space and one of its contents without comments
/// (see comments.hpp; of a file that is no text, of its contents). Empty where it cannot be read.
std::string file_state(const std::string& file, const Installation& installation);

/// The second digest of a state, or its only one.
std::string_view but_for_comments(std::string_view state);

/// Whether the file is still in that state; `but_comments`: whatever its comments are now.
bool is_in_state(const std::string& file, std::string_view state, bool but_comments);

/// Where headers that these files name in #include and __has_include are looked for: each name in each directory that the
/// flags, the environment or the file's own place give, of the user's files. A result depends on which of them are there.
std::vector<std::string> searched_places(const std::vector<std::string>& files, const std::vector<std::string>& flags,
                                         const Installation& installation);
/// "there" or "not there".
std::string_view presence(const std::string& path);

/// The variables of the environment that compilers and lanternc heed, with their values.
std::string environment_state();

/// Texts by name, each good for as long as the files that it was made from are the same but for comments, and no other
/// header would be read in the place of one.
class KeptTexts {
 public:
  /// In a part of the user's cache that takes so many megabytes. `on`: otherwise nothing is kept and nothing found.
  KeptTexts(const std::string& part, unsigned megabytes, const Installation& installation, const Options& options, bool on);

  struct Kept {
    std::string text;
    std::vector<std::string> files;
  };
  std::optional<Kept> find(const std::string& name);
  void keep(const std::string& name, const std::string& text, std::vector<std::string> files);

 private:
  const Installation& installation_;
  const Options& options_;
  std::optional<codegen::DiskCache> cache_;
};

}  // namespace lantern::tool
