// Which loops of a program become kernels: the outermost parallel ones whose trips do what a thread of a GPU
// can do.
#pragma once

#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "lantern/ir/graph.hpp"

namespace lantern::codegen {

/// A loop whose trips the threads of a kernel run.
struct Kernel {
  /// The loops of the nest, outermost first: each but the last holds the next one alone and nothing else that
  /// has to run, so that a thread runs one trip of the innermost.
  std::vector<const ir::Op*> nest;
  /// Loops inside, all over the same numbers, whose trips work on columns of their own: a thread does one
  /// number of them all, and what stands beside them as every thread of the trip does.
  std::vector<const ir::Op*> columns;
  /// What the trips ask for from around, in order.
  std::vector<const ir::Value*> captured;

  /// How the trips of the outermost loop come together in a piece of its state.
  ir::Combine combine(std::size_t state) const { return ir::combine(*nest.front(), state); }
  /// Reductions: each thread takes a range of trips, as the number of trips alone says.
  bool in_ranges() const;
};

/// The kernels of a module, by loop, and the functions that they call.
class Kernels {
 public:
  explicit Kernels(const ir::Module& module);

  /// The kernel that a loop becomes; null for loops that the host runs, and for those inside kernels.
  const Kernel* of(const ir::Op* loop) const;
  bool empty() const { return kernels_.empty(); }
  /// True for a function that kernels call.
  bool on_device(const ir::Function* f) const { return on_device_.contains(f); }

 private:
  std::unordered_map<const ir::Op*, Kernel> kernels_;
  std::unordered_set<const ir::Function*> on_device_;
};

}  // namespace lantern::codegen
