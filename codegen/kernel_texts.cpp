// A scan of the tokens: declarations first, then the names.
#include "lantern/codegen/kernel_texts.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "lantern/ir/text.hpp"

namespace lantern::codegen {

namespace {

bool is_type(std::string_view token) {
  constexpr std::array<std::string_view, 10> known{"bool", "char",  "int",    "unsigned", "long",
                                                   "auto", "float", "double", "int64_t",  "__restrict__"};
  return token.starts_with("lt_") || token.starts_with("__nv_") ||
         std::ranges::find(known, token) != known.end();
}

}  // namespace

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  for (std::size_t i = 0; i < text.size();) {
    std::size_t end = i + 1;
    if (ir::is_space(text[i])) {
      i = end;
      continue;
    }
    if (text.substr(i, 2) == "//") {
      i = std::min(text.find('\n', i), text.size());
      continue;
    }
    if (text.substr(i, 2) == "/*") {
      end = text.find("*/", i);
      i = end == std::string_view::npos ? text.size() : end + 2;
      continue;
    }
    if (text[i] == '"') {
      while (end < text.size() && text[end] != '"') end += text[end] == '\\' ? 2 : 1;
      end = std::min(end + 1, text.size());
    } else if (ir::is_word(text[i])) {
      end = ir::end_of_word(text, i);
    }
    words.push_back(text.substr(i, end - i));
    i = end;
  }
  return words;
}

std::unordered_set<std::string_view> declared_in(const std::vector<std::string_view>& words) {
  std::unordered_set<std::string_view> names;
  for (std::size_t i = 1; i < words.size(); ++i) {
    if (!ir::is_identifier(words[i]) || is_type(words[i])) continue;
    const bool pointer = (words[i - 1] == "*" || words[i - 1] == "&") && i > 1 && is_type(words[i - 2]);
    if (is_type(words[i - 1]) || pointer || words[i - 1] == "void") names.insert(words[i]);
  }
  return names;
}

bool is_member_name(const std::vector<std::string_view>& words, std::size_t at) {
  return at > 0 && (words[at - 1] == "." || (at > 1 && words[at - 1] == ">" && words[at - 2] == "-"));
}

std::string without_names(std::string_view text) {
  const std::vector<std::string_view> words = words_of(text);
  const std::unordered_set<std::string_view> declared = declared_in(words);
  std::unordered_map<std::string_view, std::size_t> numbers;
  std::string key;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (!declared.contains(words[i]) || is_member_name(words, i))
      key += words[i];
    else
      key += '$' + std::to_string(numbers.try_emplace(words[i], numbers.size() + 1).first->second);
    key += ' ';
  }
  return key;
}

std::string EqualKernels::add(const std::vector<KernelText>& kernels, std::string launching) {
  for (const KernelText& kernel : kernels) {
    const auto [first, added] = names_.try_emplace(without_names(kernel.text), kernel.name);
    if (added)
      text_ += kernel.text;
    else
      launching = ir::replaced(std::move(launching), " " + kernel.name + "<<<", " " + first->second + "<<<");
  }
  return launching;
}

}  // namespace lantern::codegen
