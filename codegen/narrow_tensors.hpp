// Which tensors a program for a GPU stores in 16 bits, where that is asked for (PrintOptions::storage).
#pragma once

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

 private:
  std::unordered_set<const ir::Value*> values_;
};

}  // namespace lantern::codegen
