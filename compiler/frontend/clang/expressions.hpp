// The expression at a place that a compiler gave: std::source_location tells where, not how far.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lantern/compiler/frontend/clang/tree.hpp"

namespace lantern::frontend {

/// A part of the file, and the place in it that a caret points to.
struct Marked {
  Span range;
  std::uint32_t caret = 0;
};

struct Expression {
  Marked whole;
  std::vector<Marked> operands;                     ///< as written, `x` of x.f(y) first
  std::vector<std::optional<Marked>> declarations;  ///< of operands that are parameters or variables
};

/// A place and, where it is known, the operation of the graph that was made there ("add", "matmul"):
/// compilers give one place to several expressions.
struct PlaceAsked {
  std::uint32_t line = 0, column = 0;
  std::string operation;
};

struct Expressions {
  std::string text;                              ///< the file's
  std::vector<std::optional<Expression>> found;  ///< one for each place asked
};

/// Parses a file and looks for the calls and operators that g++ or Clang would give as the place of a call in
/// which std::source_location::current() is a default argument.
Expressions find_expressions(const std::string& path, const std::vector<std::string>& arguments,
                             const std::vector<PlaceAsked>& places);

}  // namespace lantern::frontend
