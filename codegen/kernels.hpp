// Which loops of a program become kernels, and how the threads of a GPU share their iterations.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "lantern/ir/graph.hpp"

namespace lantern::codegen {

/// How iterations are shared.
enum class Mapping {
  element,  ///< a thread takes an iteration of the innermost loop of a nest, and does all of it
  rows,     ///< a block of threads takes an iteration, and shares the iterations of the loops inside
  host,     ///< they are not, and the loop is no kernel: where that is asked for
};

/// What a user asks for: "model.cpp:12=rows", or "12=rows", is about the loops that begin at that line.
struct AskedMapping {
  std::string place, file;  ///< "model.cpp:12", and "model.cpp"; empty for any file
  std::uint32_t line = 0;
  Mapping mapping = Mapping::element;
  bool is_about(const ir::Location& loc) const;
};
/// Error where the text is no such request.
AskedMapping asked_mapping(const std::string& text);

/// A loop whose iterations the threads of a kernel run.
struct Kernel {
  Mapping mapping = Mapping::element;
  bool asked = false;  ///< the mapping is the user's
  /// The loops of the nest, outermost first: each but the last holds the next one, and nothing else that has to run.
  std::vector<const ir::Op*> nest;
  /// With `rows`, the loops inside that the threads of a block share.
  std::unordered_set<const ir::Op*> shared;
  /// What the iterations ask for from around, in order.
  std::vector<const ir::Value*> captured;

  /// How the iterations of the outermost loop come together in a piece of its state.
  ir::Combine combine(std::size_t state) const { return ir::combine(*nest.front(), state); }
  /// Iterations reduce to a number: blocks reduce what they have, and the last one reduces what blocks have.
  bool reduces() const;
  /// Iterations add to elements of a tensor that others add to as well: each block has a tensor of its own for it.
  bool sums_into_tensors() const;
};

/// "element", "rows", "host": as --explain says it.
std::string_view name(Mapping mapping);

/// The kernels of a module, by loop, and the functions that they call.
class Kernels {
 public:
  /// `asked`: see AskedMapping. Each holds for all loops of its line that can be mapped so; where there are loops, and none
  /// can, that is an Error.
  explicit Kernels(const ir::Module& module, const std::vector<std::string>& asked = {});

  /// The kernel that a loop becomes; null for loops that the host runs, and for those inside kernels.
  const Kernel* of(const ir::Op* loop) const;
  bool empty() const { return kernels_.empty(); }
  /// True for a function that kernels call.
  bool on_device(const ir::Function* f) const { return on_device_.contains(f); }
  /// True for a loop or a call that works on elements one by one and has no kernel inside, for a call of a function of
  /// the host that takes tensors, and for a tensor that is printed: it runs on the host, on copies of its tensors.
  bool on_host(const ir::Op* op) const { return on_host_.contains(op); }
  /// True for a function that has tensors in the host's memory: only such loops, and such functions, call it.
  bool host_function(const ir::Function* f) const { return host_functions_.contains(f); }
  /// Whether there is a loop that the request, by its number, is about.
  bool met(std::size_t asked) const { return met_.contains(asked); }

 private:
  void find_host_parts(const std::vector<const ir::Function*>& functions);

  std::unordered_map<const ir::Op*, Kernel> kernels_;
  std::unordered_set<const ir::Function*> on_device_, host_functions_;
  std::unordered_set<const ir::Op*> on_host_;
  std::unordered_set<std::size_t> met_;
};

/// Error where a request is about no loop of any of the modules.
void require_met(const std::vector<const ir::Module*>& modules, const std::vector<std::string>& asked);

}  // namespace lantern::codegen
