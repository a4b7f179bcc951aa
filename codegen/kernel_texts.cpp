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

/// Names and numbers, strings, and other characters one by one; no comments, no spaces.
std::vector<std::string_view> tokens_of(std::string_view text) {
  std::vector<std::string_view> tokens;
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
    tokens.push_back(text.substr(i, end - i));
    i = end;
  }
  return tokens;
}

}  // namespace

std::string without_names(std::string_view text) {
  const std::vector<std::string_view> tokens = tokens_of(text);
  const auto of_member = [&](std::size_t i) {
    return i > 0 && (tokens[i - 1] == "." || (i > 1 && tokens[i - 1] == ">" && tokens[i - 2] == "-"));
  };
  std::unordered_map<std::string_view, std::size_t> numbers;  // 0 until it is met
  for (std::size_t i = 1; i < tokens.size(); ++i) {
    if (!ir::is_identifier(tokens[i]) || is_type(tokens[i])) continue;
    const bool pointer = (tokens[i - 1] == "*" || tokens[i - 1] == "&") && i > 1 && is_type(tokens[i - 2]);
    if (is_type(tokens[i - 1]) || pointer || tokens[i - 1] == "void") numbers.try_emplace(tokens[i], 0);
  }
  std::string key;
  std::size_t met = 0;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const auto found = of_member(i) ? numbers.end() : numbers.find(tokens[i]);
    if (found == numbers.end()) {
      key += tokens[i];
    } else {
      if (found->second == 0) found->second = ++met;
      key += '$' + std::to_string(found->second);
    }
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
