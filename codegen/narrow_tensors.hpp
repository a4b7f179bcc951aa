// Which tensors a program for a GPU stores in 16 bits, where that is asked for (PrintOptions::storage).
#pragma once

#include <unordered_set>
#include <vector>

#include "lantern/codegen/analysis.hpp"
#include "lantern/codegen/kernels.hpp"

namespace lantern::codegen {

/// Tensors of float with at least two dimensions that the host makes, and of which kernels read and set
/// elements, or products of matrices are made. What leaves a function, is added to, is carried by a loop of
/// the host, or is taken by any other operation stays float.
class NarrowTensors {
 public:
  NarrowTensors(const std::vector<const ir::Function*>& functions, const Kernels& kernels);
  bool contains(const ir::Value* v) const { return values_.contains(v); }

 private:
  std::unordered_set<const ir::Value*> values_;
};

}  // namespace lantern::codegen
