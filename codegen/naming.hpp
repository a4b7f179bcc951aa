// Identifiers of generated code: the user's names, made legal in C, C++ and CUDA, and unique.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace lantern::codegen {

/// The text as an identifier: other characters become '_'; keywords and names that generated code itself uses
/// (exp, ws, anything starting with lt_) get a trailing '_'. Never empty.
std::string identifier(std::string_view text);

/// Hands out identifiers, each once: x, x_2, x_3, ...
class NameScope {
 public:
  /// `outer`, if any, holds names that must not be hidden; it must outlive the scope.
  explicit NameScope(const NameScope* outer = nullptr) : outer_(outer) {}

  std::string unique(std::string_view wanted);
  /// v1, v2, ... for what has no name of its own.
  std::string numbered(const std::string& stem);
  void reserve(const std::string& name) { taken_.insert(name); }

  /// Names handed out since a mark become free again when their block of code ends.
  std::size_t mark() const { return log_.size(); }
  void release(std::size_t mark);

 private:
  bool free(const std::string& name) const;

  const NameScope* outer_;
  std::unordered_set<std::string> taken_;
  std::vector<std::string> log_;
  std::unordered_map<std::string, int> next_;
};

}  // namespace lantern::codegen
