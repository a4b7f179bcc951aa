// The parts of the prelude as text, by name. $K is the kind of the elements (f64), $T their type, $P
// prints a number x. Where elements are stored in 16 bits, $S is the type that computes with them. In products $R is the type of
// the result, and $B and $C are what cuBLAS calls $T and $R.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lantern/codegen/target.hpp"

namespace lantern::codegen {

/// Kernels are functions of the device alone, which its compiler and the host's both read.
enum class PreludeGroup { basics, prototypes, types, functions, kernels };

struct PreludePart {
  std::string_view name;
  PreludeGroup group;
  std::vector<std::string_view>
      needs;  ///< "fail_at", or "K:1d" for a tensor structure, "K:new1d", "K:dot" ...
  std::string_view text;
  bool routine = false;  ///< ends with a function of its name that is called seldom and takes long to compile
};

/// A part's text for elements of one kind.
/// `stored`: see Prelude::kernel.
std::string instantiated(std::string_view text, ir::Kind kind, const Target& target, std::string_view stored = {});

/// The part of this name, or null. Kernels have names with a leading "K:".
const PreludePart* prelude_part(std::string_view name);

}  // namespace lantern::codegen
