// --explain: what became of each function, for its author.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lantern/compiler/passes/support/remarks.hpp"
#include "lantern/ir/graph.hpp"

namespace lantern::tool {

/// What is written down while a function is compiled.
struct Progress {
  std::size_t staged = 0;                                   ///< operations before the first pass
  std::vector<std::pair<std::string, std::size_t>> passes;  ///< each that ran, and the operations after it
  std::vector<passes::Remark> remarks;
  std::string traffic;  ///< bytes that loops move, before they have lanes
};

/// "bytes moved: 16 * x.size(); arguments and results alone 8 * x.size()". Empty for a function that moves nothing.
std::string traffic_text(const ir::Module& module);

/// Parameters and results, loops and recursion, what is on the tape and for what, memory, passes, vectors.
/// All of it is read off the graph that the passes leave, and off their remarks.
/// `mappings`: that are asked for, of a program for a GPU; `storage`: what it keeps its own tensors of float in.
std::string explained(const std::string& name, const ir::Module& module, const Progress& progress,
                      const std::vector<std::string>& mappings, const std::string& storage);

}  // namespace lantern::tool
