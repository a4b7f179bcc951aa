// A kept text begins with a line for each file: its state, or whether it is there, a tab, its name; then an empty line.
#include "file_state.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <sstream>

#include "comments.hpp"
#include "lantern/codegen/toolchain/content_hash.hpp"
#include "lantern/codegen/toolchain/process.hpp"

namespace lantern::tool {

namespace {

std::string hash_without_comments(const std::string& file) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(file, ignored)) return {};
  const std::string text = codegen::read_file(file);
  return codegen::content_hash(text.find('\0') == std::string::npos ? without_comments(text) : text);
}

bool of_user(const std::string& file, const Installation& installation) {
  return !file.starts_with("/usr/") && !file.starts_with(installation.include.string());
}

/// The directories that are searched for headers, as the flags and the environment name them.
std::vector<std::string> searched_directories(const std::vector<std::string>& flags) {
  std::vector<std::string> all;
  for (std::size_t i = 0; i < flags.size(); ++i)
    for (const std::string_view kind : {"-iquote", "-isystem", "-idirafter", "-I"}) {
      if (!flags[i].starts_with(kind)) continue;
      const std::string joined = flags[i].substr(kind.size());
      if (!joined.empty())
        all.push_back(joined);
      else if (i + 1 < flags.size())
        all.push_back(flags[i + 1]);
      break;
    }
  for (const char* name : {"CPATH", "CPLUS_INCLUDE_PATH"}) {
    const char* value = std::getenv(name);
    std::istringstream list(value != nullptr ? value : "");
    for (std::string directory; std::getline(list, directory, ':');) all.push_back(directory.empty() ? "." : directory);
  }
  return all;
}

/// The name in <> or "" at a place of a text, if there is one.
std::optional<std::string> quoted_name(std::string_view text, std::size_t open) {
  if (open >= text.size() || (text[open] != '<' && text[open] != '"')) return std::nullopt;
  const std::size_t close = text.find_first_of(text[open] == '<' ? ">\n" : "\"\n", open + 1);
  if (close == std::string_view::npos || text[close] == '\n') return std::nullopt;
  return std::string(text.substr(open + 1, close - open - 1));
}

/// What macros may name: each name in <> or "" that a #define, or a -D, gives.
std::set<std::string> headers_of_macros(const std::string& text, const std::vector<std::string>& flags) {
  std::set<std::string> names;
  const auto add = [&](std::string_view line) {
    if (const auto name = quoted_name(line, line.find_first_of("<\""))) names.insert(*name);
  };
  constexpr std::string_view define = "define";
  for (std::size_t at = text.find(define); at != std::string::npos; at = text.find(define, at + 1))
    add(std::string_view(text).substr(at, text.find('\n', at) - at));
  for (const std::string& flag : flags)
    if (const std::size_t value = flag.find('='); value != std::string::npos)
      add(std::string_view(flag).substr(value));
  return names;
}

/// The names behind #include, #include_next and __has_include. `by_macro`: whether a macro gives one.
std::set<std::string> named_headers(const std::string& text, bool& by_macro) {
  std::set<std::string> names;
  for (const std::string_view word : {"include", "__has_include"})
    for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
      const std::size_t open = text.find_first_not_of(" \t(", text.find_first_of(" \t(<\"", at));
      if (const auto name = quoted_name(text, open))
        names.insert(*name);
      else if (at > 0 && text.find_last_of("#\n", at) != std::string::npos &&
               text[text.find_last_of("#\n", at)] == '#')
        by_macro = true;
    }
  return names;
}

}  // namespace

std::vector<std::string> searched_places(const std::vector<std::string>& files, const std::vector<std::string>& flags,
                                         const Installation& installation) {
  const std::vector<std::string> directories = searched_directories(flags);
  std::set<std::string> places;
  std::error_code ignored;
  const auto looked_for = [&](const std::string& file, const std::string& name) {
    places.insert((std::filesystem::path(file).parent_path() / name).string());
    for (const std::string& directory : directories)
      places.insert((std::filesystem::path(directory) / name).string());
  };
  std::set<std::string> by_macros, including;
  for (const std::string& file : files) {
    if (!of_user(file, installation) || !std::filesystem::is_regular_file(file, ignored)) continue;
    const std::string text = codegen::read_file(file);
    bool by_macro = false;
    for (const std::string& name : named_headers(text, by_macro)) looked_for(file, name);
    if (by_macro) including.insert(file);
    by_macros.merge(headers_of_macros(text, flags));
  }
  for (const std::string& file : including)
    for (const std::string& name : by_macros) looked_for(file, name);
  return {places.begin(), places.end()};
}

std::string_view presence(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored) ? "there" : "not there";
}

std::string file_state(const std::string& file, const Installation& installation) {
  const std::string all = codegen::file_hash(file);
  return all.empty() || !of_user(file, installation) ? all : all + " " + hash_without_comments(file);
}

std::string_view but_for_comments(std::string_view state) {
  const std::size_t space = state.find(' ');
  return space == std::string_view::npos ? state : state.substr(space + 1);
}

bool is_in_state(const std::string& file, std::string_view state, bool but_comments) {
  const std::string now = codegen::file_hash(file);
  const std::size_t space = state.find(' ');
  if (now == state.substr(0, space)) return true;
  return but_comments && space != std::string_view::npos && hash_without_comments(file) == but_for_comments(state);
}

std::string environment_state() {
  std::string all;
  for (const char* name : {"PATH", "CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH", "LIBRARY_PATH",
                           "COMPILER_PATH", "GCC_EXEC_PREFIX", "SOURCE_DATE_EPOCH", "LD_LIBRARY_PATH",
                           "LD_RUN_PATH", "LANG", "LC_ALL", "LC_MESSAGES", "LANTERN_CUDA_PATH",
                           "LANTERN_CHECK", "LANTERN_PYTHON"}) {
    const char* value = std::getenv(name);
    if (value != nullptr) all += (all.empty() ? "" : " ") + std::string(name) + "=" + value;
  }
  return all;
}

KeptTexts::KeptTexts(const std::string& part, unsigned megabytes, const Installation& installation,
                     const Options& options, bool on)
    : installation_(installation), options_(options) {
  if (!on) return;
  if (const auto directory = codegen::private_cache_directory(part))
    cache_.emplace(*directory, codegen::cache_limit(megabytes));
}

std::optional<KeptTexts::Kept> KeptTexts::find(const std::string& name) {
  const std::optional<std::string> all = cache_ ? cache_->load(name) : std::nullopt;
  if (!all) return std::nullopt;
  Kept kept;
  for (std::size_t at = 0;;) {
    const std::size_t end = all->find('\n', at);
    if (end == std::string::npos) return std::nullopt;
    if (end == at) {
      kept.text = all->substr(end + 1);
      return kept;
    }
    const std::string_view line = std::string_view(*all).substr(at, end - at);
    const std::size_t tab = line.find('\t');
    if (tab == std::string_view::npos) return std::nullopt;
    const std::string file(line.substr(tab + 1));
    const std::string_view state = line.substr(0, tab);
    at = end + 1;
    if (state == "there" || state == "not there") {
      if (presence(file) != state) return std::nullopt;
      continue;
    }
    if (!is_in_state(file, state, true)) return std::nullopt;
    kept.files.push_back(file);
  }
}

void KeptTexts::keep(const std::string& name, const std::string& text, std::vector<std::string> files) {
  if (!cache_) return;
  std::ranges::sort(files);
  files.erase(std::unique(files.begin(), files.end()), files.end());
  std::string all;
  for (const std::string& file : files) {
    const std::string state = file_state(file, installation_);
    if (state.empty() || file.find('\n') != std::string::npos) return;
    all += state + "\t" + file + "\n";
  }
  files.insert(files.end(), options_.sources.begin(), options_.sources.end());  // their contents are a part of the name
  for (const std::string& place : searched_places(files, options_.compile_flags, installation_))
    if (place.find('\n') == std::string::npos) all += std::string(presence(place)) + "\t" + place + "\n";
  cache_->store(name, all + "\n" + text);
}

}  // namespace lantern::tool
