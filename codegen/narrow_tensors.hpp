// Which tensors a program for a GPU stores in 16 bits, where that is asked for (PrintOptions::storage).
#pragma once

#include <string>
#include <unordered_set>
#include <vector>

#include "lantern/codegen/analysis.hpp"
#include "lantern/codegen/kernels.hpp"

namespace lantern::codegen {

/// Tensors of float, with at least two dimensions, that the host allocates and that only kernels and products of
/// matrices use. Tensors that a function returns, that are added to, or that a loop of the host carries stay float; so
/// do those that any other operation takes.
class NarrowTensors {
 public:
  NarrowTensors(const std::vector<const ir::Function*>& functions, const Kernels& kernels);
  bool contains(const ir::Value* v) const { return values_.contains(v); }

  /// A tensor of float that the host allocates, in the order of the program.
  struct Choice {
    const ir::Value* tensor;
    std::string name;         ///< the user's, where there is one
    std::string why_float;    ///< "a convolution reads it"; empty: it lies in 16 bits
    const ir::Op* use = nullptr;  ///< that is the reason
  };
  const std::vector<Choice>& choices() const { return choices_; }

 private:
  std::unordered_set<const ir::Value*> values_;
  std::vector<Choice> choices_;
};

}  // namespace lantern::codegen
