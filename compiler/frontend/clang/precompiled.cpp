// A file in the user's cache, named by all it depends on. Written under another name and renamed, so that a
// reader never sees half of one.
#include "lantern/compiler/frontend/clang/precompiled.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <sstream>
#include <string_view>

#include "lantern/codegen/toolchain/clang.hpp"
#include "lantern/codegen/toolchain/content_hash.hpp"
#include "lantern/codegen/toolchain/disk_cache.hpp"
#include "lantern/compiler/frontend/clang/parse.hpp"

namespace lantern::frontend {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t files_kept = 16;

/// Whether the effect of the arguments on headers is part of the file's name. Of arguments in two words, both are.
bool harmless(const std::vector<std::string>& arguments) {
  static constexpr std::array<std::string_view, 10> known{"-I", "-D", "-U", "-std=", "-W", "-f", "-m", "-O", "-g", "-isystem"};
  static constexpr std::array<std::string_view, 4> pairs{"-I", "-D", "-U", "-isystem"};
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (std::ranges::find(pairs, arguments[i]) != pairs.end() && i + 1 < arguments.size()) {
      ++i;
      continue;
    }
    const auto begins = [&](std::string_view prefix) { return arguments[i].starts_with(prefix); };
    if (arguments[i].size() < 3 || std::ranges::none_of(known, begins)) return false;
  }
  return true;
}

/// The sizes and times of Lantern's headers; false where they are not found in the arguments' directories.
bool add_headers(const std::vector<std::string>& arguments, codegen::ContentHash& hash) {
  for (const std::string& a : arguments) {
    std::error_code failed;
    const fs::path root = fs::path(a.starts_with("-I") ? a.substr(2) : "") / "lantern";
    if (!a.starts_with("-I") || !fs::exists(root / "lantern.hpp", failed)) continue;
    for (fs::recursive_directory_iterator at(root, fs::directory_options::follow_directory_symlink, failed),
         end;
         !failed && at != end; at.increment(failed)) {
      struct stat status {};
      if (at->path().extension() == ".cpp" || ::stat(at->path().c_str(), &status) != 0 ||
          S_ISDIR(status.st_mode))
        continue;
      hash.add(at->path().string() + ":" + std::to_string(status.st_size) + ":" +
               std::to_string(status.st_mtim.tv_sec) + "." + std::to_string(status.st_mtim.tv_nsec));
    }
    return !failed;
  }
  return false;
}

void remove_oldest(const fs::path& directory) {
  std::vector<std::pair<fs::file_time_type, fs::path>> all;
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator(directory, failed))
    if (entry.path().extension() == ".pch") all.emplace_back(entry.last_write_time(failed), entry.path());
  std::sort(all.rbegin(), all.rend());
  for (std::size_t i = files_kept; i < all.size(); ++i) fs::remove(all[i].second, failed);
}

}  // namespace

std::optional<std::string> precompiled_headers(Purpose purpose, const std::vector<std::string>& arguments) {
  if (!harmless(arguments)) return std::nullopt;
  codegen::ContentHash hash;
  hash.add(codegen::clang_version()).add(purpose == Purpose::reading ? "reading" : "compiling, ABI 16");
  std::error_code failed;
  hash.add(fs::current_path(failed).string());
  for (const std::string& a : arguments) hash.add(a);
  if (!add_headers(arguments, hash)) return std::nullopt;
  const std::optional<fs::path> directory = codegen::private_cache_directory("");
  if (!directory) return std::nullopt;
  const fs::path file = *directory / ("headers-" + hash.text() + ".pch");
  static std::mutex one_at_a_time;  // two files of one run want the same
  const std::lock_guard lock(one_at_a_time);
  if (fs::exists(file, failed)) return file.string();

  // Clang looks at the header again when it reads what was made from it: it stays, and stays as it is.
  const fs::path header = *directory / "headers.hpp";
  const std::string includes =
      "#include \"" + std::string(native_header) + "\"\n#include \"lantern/lantern.hpp\"\n";
  std::stringstream known;
  known << std::ifstream(header).rdbuf();
  if (known.str() != includes) std::ofstream(header) << includes;

  const fs::path unfinished = file.string() + "." + std::to_string(::getpid());
  const bool made = precompile(header.string(), purpose, arguments, unfinished.string());
  if (made) fs::rename(unfinished, file, failed);
  if (!made || failed) {
    fs::remove(unfinished, failed);
    return std::nullopt;
  }
  remove_oldest(*directory);
  return file.string();
}

}  // namespace lantern::frontend
