// A kept text begins with a line for each file: its state, a tab, its name; then an empty line.
#include "file_state.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

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

}  // namespace

std::string file_state(const std::string& file, const Installation& installation) {
  const std::string all = codegen::file_hash(file);
  const bool of_others = file.starts_with("/usr/") || file.starts_with(installation.include.string());
  return all.empty() || of_others ? all : all + " " + hash_without_comments(file);
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

KeptTexts::KeptTexts(const std::string& part, unsigned megabytes, const Installation& installation, bool on)
    : installation_(installation) {
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
    kept.files.emplace_back(line.substr(tab + 1));
    if (!is_in_state(kept.files.back(), line.substr(0, tab), true)) return std::nullopt;
    at = end + 1;
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
  cache_->store(name, all + "\n" + text);
}

}  // namespace lantern::tool
