// An entry: what the result depends on, one line each; then how long the messages and the result are; then
// these.
#include "result_cache.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string_view>

#include "file_state.hpp"
#include "lantern/codegen/toolchain/content_hash.hpp"
#include "lantern/codegen/toolchain/host.hpp"
#include "lantern/codegen/toolchain/process.hpp"
#include "report.hpp"

namespace lantern::tool {

namespace fs = std::filesystem;

namespace {

constexpr std::uintmax_t result_megabytes = 512;
constexpr std::string_view searched = "looked for ";  ///< before a place of searched_places

/// In one line.
std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\' || c == '\n' || c == '\t') out += '\\';
    out += c == '\n' ? 'n' : c == '\t' ? 't' : c;
  }
  return out;
}
std::string unescaped(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\' || i + 1 == text.size()) {
      out += text[i];
      continue;
    }
    ++i;
    out += text[i] == 'n' ? '\n' : text[i] == 't' ? '\t' : text[i];
  }
  return out;
}

/// Which file it is, and since when it is as it is: reading it would take longer than all the rest.
std::string state_of(const fs::path& file) {
  struct stat s{};
  if (::stat(file.c_str(), &s) != 0) return "none";
  return std::to_string(s.st_dev) + "." + std::to_string(s.st_ino) + "." + std::to_string(s.st_size) + "." +
         std::to_string(s.st_mtim.tv_sec) + "." + std::to_string(s.st_mtim.tv_nsec);
}

/// The command line's files, whatever they are for.
std::vector<std::string> given_files(const Options& options) {
  std::vector<std::string> files = options.sources;
  std::error_code ignored;
  for (const std::string& flag : options.link_flags)
    if (fs::is_regular_file(flag, ignored)) files.push_back(flag);
  return files;
}

/// Whether nothing that is made shows comments: a program has none, while texts and messages may quote them.
bool shows_no_comment(const Options& options) {
  return !options.explain && (options.emit == Emit::program || options.emit == Emit::object ||
                              options.emit == Emit::shared || options.emit == Emit::header);
}

bool file_tells_time(const std::string& file) {
  std::error_code ignored;
  return fs::is_regular_file(file, ignored) && tells_time(codegen::read_file(file));
}

}  // namespace

bool tells_time(const std::string& text) {
  return std::ranges::any_of(std::vector<std::string>{"__DATE__", "__TIME__", "__TIMESTAMP__"},
                             [&](const std::string& word) { return text.find(word) != std::string::npos; });
}

std::string identity(const Installation& installation) {
  codegen::ContentHash hash;
  hash.add(state_of("/proc/self/exe"));
  for (const char* library : {"liblantern_core.a", "liblantern_aot.a", "liblantern.a", "liblantern_data.a", "liblantern_linalg.a", "liblantern_distributed.a", "liblantern_onnx.a"})
    hash.add(state_of(installation.libraries / library));
  return LANTERNC_VERSION " " + hash.text();
}

struct ResultCache::Entry {
  Parts parts;  ///< with a "file PATH" for each file read
  bool executable = false;
  std::string messages, result;

  std::string text() const {
    std::string out;
    for (const auto& [what, value] : parts) out += escaped(what) + "\t" + escaped(value) + "\n";
    return out + "\n" + (executable ? "1 " : "0 ") + std::to_string(messages.size()) + "\n" + messages +
           result;
  }
  /// Nothing where the text has another form, that of an earlier version.
  static std::optional<Entry> read(const std::string& text) {
    Entry entry;
    std::size_t at = 0;
    for (;;) {
      const std::size_t end = text.find('\n', at);
      if (end == std::string::npos) return std::nullopt;
      const std::string_view line = std::string_view(text).substr(at, end - at);
      at = end + 1;
      if (line.empty()) break;
      const std::size_t tab = line.find('\t');
      if (tab == std::string_view::npos) return std::nullopt;
      entry.parts.emplace_back(unescaped(line.substr(0, tab)), unescaped(line.substr(tab + 1)));
    }
    const std::size_t end = text.find('\n', at);
    if (end == std::string::npos || end < at + 3) return std::nullopt;
    entry.executable = text[at] == '1';
    const std::size_t length = std::strtoull(text.c_str() + at + 2, nullptr, 10);
    if (length > text.size() - end - 1) return std::nullopt;
    entry.messages = text.substr(end + 1, length);
    entry.result = text.substr(end + 1 + length);
    return entry;
  }
};

ResultCache::ResultCache(const Options& options, const Installation& installation, const Compiler& compiler)
    : options_(options), installation_(installation) {
  if (!options.cache) {
    why_ = "it is turned off";
    return;
  }
  // What they print is not the same at every run, or is about this run.
  if (options.time_passes || options.verify || !options.dump_after.empty()) {
    why_ = "--time-passes, --dump-after and --verify ask for a run";
    return;
  }
  const auto directory = codegen::private_cache_directory("results");
  if (!directory) {
    why_ = "there is no directory for it";
    return;
  }
  cache_.emplace(*directory, codegen::cache_limit(result_megabytes));
  std::error_code ignored;
  std::string words;
  for (const std::string& w : options.words) words += (words.empty() ? "" : " ") + w;
  codegen::ContentHash subject, all;
  for (const std::string& file : options.sources) subject.add(fs::absolute(file, ignored).string());
  subject_ = subject.text().substr(0, 16);
  parts_ = {{"the command line", words},
            {"the working directory", fs::current_path(ignored).string()},
            {"lanternc", identity(installation)},
            {"the C++ compiler", compiler.identity},
            {"the environment", environment_state()},
            {"the processor", codegen::host_processor()},
            {"the terminal", messages_in_colour() ? "colours" : "plain"}};
  for (const std::string& file : given_files(options)) parts_.emplace_back("file " + file, file_state(file, installation));
  // Each word of the command line is delimited.
  for (const std::string& w : options.words) all.add(w);
  for (const auto& [what, value] : parts_)
    all.add(what).add(what.starts_with("file ") ? but_for_comments(value) : std::string_view(value));
  name_ = subject_ + "-" + all.text();
}

std::optional<ResultCache::Entry> ResultCache::find() {
  const std::optional<std::string> text = cache_->load(name_);
  if (!text) {
    why_ = cache_->found_corrupt() ? "the entry was damaged" : reason();
    return std::nullopt;
  }
  std::optional<Entry> entry = Entry::read(*text);
  if (!entry) {
    why_ = "the entry was damaged";
    return std::nullopt;
  }
  for (const auto& [what, value] : entry->parts) {
    if (what.starts_with(searched) && presence(what.substr(searched.size())) != value) {
      why_ = "'" + what.substr(searched.size()) + (value == "there" ? "' is gone" : "' has appeared, where a header is looked for");
      return std::nullopt;
    }
    if (!what.starts_with("file ")) continue;
    const std::string file = what.substr(5);
    if (is_in_state(file, value, shows_no_comment(options_) && entry->messages.empty())) continue;
    std::error_code ignored;
    why_ = "'" + file + (fs::exists(file, ignored) ? "' has changed" : "' is gone");
    return std::nullopt;
  }
  return entry;
}

/// What differs from the last run on these sources.
std::string ResultCache::reason() const {
  const std::vector<std::string> others = cache_->names(subject_ + "-");
  if (others.empty()) return "no result of this file is kept";
  codegen::DiskCache other = *cache_;
  const std::optional<std::string> text = other.load(others.front());
  const std::optional<Entry> entry = text ? Entry::read(*text) : std::nullopt;
  if (!entry) return "no result of this file is kept";
  std::string changed;
  for (const auto& [what, value] : parts_) {
    const auto same = [&, &what = what](const auto& part) { return part.first == what; };
    const auto before = std::ranges::find_if(entry->parts, same);
    if (before != entry->parts.end() && before->second == value) continue;
    std::string one =
        what.starts_with("file ") ? "'" + what.substr(5) + "' has changed" : what + " is another one";
    if (what == "the command line" && before != entry->parts.end())
      one += " (it was '" + before->second + "')";
    changed += (changed.empty() ? "" : "; ") + one;
  }
  return changed.empty() ? "no result of this command is kept" : changed;
}

bool ResultCache::replay(Output& output) {
  const std::optional<Entry> entry = cache_ ? find() : std::nullopt;
  if (options_.explain_cache)
    report("lanternc: cache: " + (entry ? std::string("hit") : "miss: " + why_) + "\n");
  if (!entry) return false;
  for (const auto& [what, value] : entry->parts)
    if (what.starts_with("file ")) files_.push_back(what.substr(5));
  report(entry->messages);
  output.write(entry->result, entry->executable);
  return true;
}

void ResultCache::keep(const Output& output, const std::vector<std::string>& files) {
  if (!cache_ || std::ranges::any_of(options_.sources, file_tells_time)) return;
  Entry entry{parts_, output.executable(), told(), output.contents()};
  std::vector<std::string> all = files;
  std::ranges::sort(all);
  all.erase(std::unique(all.begin(), all.end()), all.end());
  for (const std::string& file : all) {
    const std::string what = "file " + file;
    if (std::ranges::any_of(parts_, [&](const auto& part) { return part.first == what; })) continue;
    const std::string hash = file_state(file, installation_);
    if (hash.empty()) return;  // it is gone already: nothing can be said of the next run
    entry.parts.emplace_back(what, hash);
  }
  for (const std::string& place : searched_places(all, options_.compile_flags, installation_))
    entry.parts.emplace_back(std::string(searched) + place, presence(place));
  cache_->store(name_, entry.text());
}

}  // namespace lantern::tool
