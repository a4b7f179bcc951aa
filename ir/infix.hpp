// Operations as people write them: "a[i + 1] * x".
#pragma once

#include <span>
#include <string>

#include "lantern/ir/graph.hpp"

namespace lantern::ir {

/// The text of a value, and how tightly its outermost operation binds.
struct Infix {
  enum class Binds { choice, either, both, comparison, sum, product, prefix, name };
  std::string text;
  Binds binds = Binds::name;
};

/// What an operation without blocks computes or does, from the texts of its operands.
Infix infix(const Op& op, std::span<const Infix> operands);

/// "a, b, c".
std::string joined(std::span<const Infix> list);
std::string joined(std::span<const Type> list);

}  // namespace lantern::ir
