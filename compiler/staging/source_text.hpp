// What a C++ file declares where, as far as names need it: parameter lists and their bodies, variables and
// their initialisers. A reader of text, not a parser: it need not understand what it skips.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "lantern/compiler/staging/source_types.hpp"

namespace lantern::core {

/// A stretch of the text: [begin, end).
struct TextRange {
  std::size_t begin = 0, end = 0;
  bool contains(std::size_t at) const { return begin <= at && at < end; }
  bool meets(const TextRange& r) const { return begin < r.end && r.begin < end; }
};

class SourceText {
 public:
  using Parameter = Declared;
  /// A function or lambda: from its parameter list to the end of its body.
  struct Body {
    TextRange range;
    std::vector<Parameter> parameters;
  };
  /// `T name = ...;`, `auto [a, b] = ...;`, `name = ...;` or `name += ...;`
  struct Assignment {
    TextRange range;
    std::vector<std::string> names;
    std::string value;  ///< what is assigned, where that is a name alone
  };

  /// `file` says where headers are looked for, beside it.
  explicit SourceText(std::string text, const std::string& file = {});

  /// The file's, read once in the life of the process; null where it cannot be read.
  static std::shared_ptr<const SourceText> of(const char* file);

  /// The innermost come last.
  const std::vector<Body>& bodies() const { return bodies_; }
  const std::vector<Assignment>& assignments() const { return assignments_; }

  /// The values that parameters hold, by the types that the text and the headers beside it give names to.
  std::vector<Parameter> values(const std::vector<Parameter>& parameters) const;

  /// A line without its end; empty for a line that is not there.
  TextRange line(std::uint32_t number) const;
  /// The text without comments and literals.
  std::string_view text() const { return text_; }
  /// Past the bracket that closes the one at `open`.
  std::size_t closed(std::size_t open) const;

 private:
  void find_headers(const std::string& file);
  const NamedType* find_type(const std::string& name, int depth = 0) const;
  void blank();
  void find_bodies();
  void find_assignments();
  bool find_body(std::size_t brace);
  void find_assignment(std::size_t start);

  std::string text_;
  std::vector<std::size_t> lines_;
  std::vector<Body> bodies_;
  std::vector<Assignment> assignments_;
  std::vector<std::string> headers_;  ///< that are included by a name in quotes
  std::unordered_map<std::string, NamedType> types_;
};

}  // namespace lantern::core
