// Kernels that are equal but for the names in them are one.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace lantern::codegen {

/// Names and numbers, strings, and other characters one by one; no comments, no spaces.
std::vector<std::string_view> words_of(std::string_view text);
/// The names that words declare, behind a type.
std::unordered_set<std::string_view> declared_in(const std::vector<std::string_view>& words);
/// True where a word names a member of a structure.
bool is_member_name(const std::vector<std::string_view>& words, std::size_t at);

/// The text of a function with each name that it declares replaced by a number, the first one by 1, and
/// without comments: two functions whose texts are equal so are equal up to renaming (alpha equivalence).
/// Names in it that it does not declare, and strings, stay as they are.
std::string without_names(std::string_view text);

/// The definition of a kernel.
struct KernelText {
  std::string name, text;
};

/// The kernels of a source, each once, so that NVRTC and nvcc compile none twice.
class EqualKernels {
 public:
  /// Adds a function's kernels, and gives its text, which launches them: those that an earlier kernel equals
  /// become launches of that.
  std::string add(const std::vector<KernelText>& kernels, std::string launching);
  const std::string& text() const { return text_; }

 private:
  std::unordered_map<std::string, std::string> names_;  ///< by texts without names
  std::string text_;
};

}  // namespace lantern::codegen
