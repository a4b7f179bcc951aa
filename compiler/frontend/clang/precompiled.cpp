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

constexpr std::uintmax_t default_megabytes = 512;  // some 25 files

/// Whether a word names a directory from where the compiler runs.
bool is_relative(std::string_view flag) {
  if (flag == "-I" || flag == "-isystem") return true;  // the next one may
  for (const std::string_view prefix : {"-isystem", "-I"})
    if (flag.starts_with(prefix)) return !fs::path(flag.substr(prefix.size())).is_absolute();
  return false;
}

/// Headers of C and C++, and folders of Lantern's and the standard library's.
constexpr std::string_view included =
    " algorithm any array assert.h atomic barrier bit bits bitset cassert ccomplex cctype cerrno cfenv cfloat charconv chrono "
    "cinttypes ciso646 climits clocale cmath codecvt compare complex complex.h concepts condition_variable coroutine csetjmp "
    "csignal cstdalign cstdarg cstdbool cstddef cstdint cstdio cstdlib cstring ctgmath ctime ctype.h cuchar cwchar cwctype "
    "debug deque errno.h exception execution ext features.h fenv.h filesystem float.h fmt format forward_list fstream functional "
    "future gnu initializer_list inttypes.h iomanip ios iosfwd iostream istream iterator lantern latch limits limits.h list locale "
    "locale.h map math.h memory memory_resource mutex new numbers numeric optional ostream pstl queue random ranges ratio regex "
    "scoped_allocator semaphore set setjmp.h shared_mutex signal.h source_location span sstream stack stdalign.h stdarg.h "
    "stdbool.h stddef.h stdexcept stdint.h stdio.h stdlib.h stop_token streambuf string string.h string_view strstream "
    "syncstream sys system_error tgmath.h thread time.h tuple type_traits typeindex typeinfo uchar.h unistd.h unordered_map "
    "unordered_set utility valarray variant vector version wchar.h wctype.h ";

/// Whether a directory has a header, or a folder of headers, of such a name.
bool has_included(const fs::path& directory) {
  std::error_code failed;
  for (fs::directory_iterator at(directory, failed), end; !failed && at != end; at.increment(failed))
    if (included.find(" " + at->path().filename().string() + " ") != std::string_view::npos) return true;
  return false;
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

}  // namespace

bool all_begin_with(const std::vector<std::string>& flags, std::span<const std::string_view> prefixes) {
  static constexpr std::array<std::string_view, 4> pairs{"-I", "-D", "-U", "-isystem"};
  for (std::size_t i = 0; i < flags.size(); ++i) {
    if (std::ranges::none_of(prefixes, [&](std::string_view prefix) { return flags[i].starts_with(prefix); })) return false;
    if (std::ranges::find(pairs, flags[i]) != pairs.end()) ++i;
  }
  return true;
}

std::vector<std::string> without_other_directories(const std::vector<std::string>& flags) {
  std::vector<std::string> all;
  for (std::size_t i = 0; i < flags.size(); ++i) {
    std::string directory;
    std::size_t words = 1;
    for (const std::string_view option : {"-isystem", "-I"}) {
      if (!flags[i].starts_with(option)) continue;
      words = flags[i] == option && i + 1 < flags.size() ? 2 : 1;
      directory = words == 2 ? flags[i + 1] : flags[i].substr(option.size());
      break;
    }
    if (directory.empty() || has_included(directory))
      all.insert(all.end(), flags.begin() + static_cast<std::ptrdiff_t>(i), flags.begin() + static_cast<std::ptrdiff_t>(i + words));
    i += words - 1;
  }
  return all;
}

std::vector<std::string> flags_of_headers(const std::vector<std::string>& flags) {
  std::vector<std::string> all = without_other_directories(flags);
  std::string level = "-O0";
  std::erase_if(all, [&](const std::string& f) {
    if (f.starts_with("-O")) level = f;
    return f.starts_with("-O") || (f.starts_with("-W") && f.find(',') == std::string::npos);
  });
  const bool is_common = level == "-O" || level == "-O1" || level == "-O3" || level == "-Og";
  all.insert(all.begin(), is_common ? "-O2" : level);
  return all;
}

void add_header_flags(const std::vector<std::string>& flags, codegen::ContentHash& hash) {
  bool anywhere = true;
  for (const std::string& f : flags) {
    hash.add(f);
    anywhere &= !is_relative(f) && !f.starts_with("-g");
  }
  std::error_code failed;
  if (!anywhere) hash.add(fs::current_path(failed).string());
}

void discard(const std::string& precompiled) {
  std::error_code failed;
  fs::remove(precompiled, failed);
}

std::optional<std::string> precompiled_headers(Purpose purpose, const std::vector<std::string>& given) {
  if (!all_begin_with(given, header_flags)) return std::nullopt;
  const std::vector<std::string> arguments = flags_of_headers(given);
  codegen::ContentHash hash;
  hash.add(codegen::clang_version()).add(purpose == Purpose::reading ? "reading" : "compiling, ABI 16");
  add_header_flags(arguments, hash);
  if (!add_headers(arguments, hash)) return std::nullopt;
  const std::optional<fs::path> directory = codegen::private_cache_directory("headers");
  if (!directory) return std::nullopt;
  const fs::path file = *directory / (hash.text() + ".pch");
  static std::mutex one_at_a_time;  // two files of one run want the same
  const std::lock_guard lock(one_at_a_time);
  std::error_code failed;
  if (fs::exists(file, failed)) {
    fs::last_write_time(file, fs::file_time_type::clock::now(), failed);
    return file.string();
  }

  // Clang looks at the header again when it reads what was made from it: it stays, and stays as it is.
  const fs::path header = *directory / "headers.hpp";
  const std::string includes =
      "#include \"" + std::string(native_header) + "\"\n#include \"lantern/compiler/frontend/usual.hpp\"\n";
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
  codegen::remove_least_used(*directory, ".pch", codegen::cache_limit(default_megabytes));
  return file.string();
}

}  // namespace lantern::frontend
