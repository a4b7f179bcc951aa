// Identifiers of generated code: the user's names, made legal in C, C++ and CUDA, and unique.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace lantern::codegen {

/// The text as the name of a value: other characters become '_', and what would begin with '_' begins behind
/// it. Keywords and names that generated code itself uses (exp, ws) get a trailing '_', what begins as ours
/// do, lt_ or lantern_, a leading "n_". Never empty; what is an identifier already keeps its name.
std::string identifier(std::string_view text);

/// The same for functions, which functions of the C library must not meet either, and not cut off: others
/// call them by their name.
std::string function_identifier(std::string_view text);

/// Hands out identifiers, each once: x, x_2, x_3, ...
class NameScope {
 public:
  /// `outer`, if any, holds names that must not be hidden; it must outlive the scope.
  explicit NameScope(const NameScope* outer = nullptr) : outer_(outer) {}

  std::string unique(std::string_view wanted);
  std::string unique_function(std::string_view wanted);
  /// v1, v2, ... for what has no name of its own.
  std::string numbered(const std::string& stem);
  void reserve(const std::string& name) { taken_.insert(name); }

  /// Names handed out since a mark become free again when their block of code ends.
  std::size_t mark() const { return log_.size(); }
  void release(std::size_t mark);

 private:
  bool free(const std::string& name) const;
  std::string made_unique(const std::string& base);

  const NameScope* outer_;
  std::unordered_set<std::string> taken_;
  std::vector<std::string> log_;
  std::unordered_map<std::string, int> next_;
};

}  // namespace lantern::codegen
