// From a registered function to its optimised graph.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "explain.hpp"
#include "lantern/ir/graph.hpp"
#include "options.hpp"
#include "staging_image.hpp"

namespace lantern::tool {

struct StagedFunction {
  std::string name;
  std::unique_ptr<ir::Module> module;  ///< after the passes, unless the graph is wanted as staged, or for a program
  Progress progress;
  core::Location loc;  ///< of the LANTERN_FUNCTION
  int pullbacks = 0;   ///< how often a derivative was taken of it for others: 1, the pullback of a function; 2, of that
  int pushforwards = 0;  ///< the same by forward mode: 1, the tangents of a function's results; 2, those of that
  bool gives_values = false;  ///< a pullback that has the results of its function before the cotangents
  bool batch = false;         ///< the function before it, of many examples at once: each argument and result has rows
  std::vector<ir::Type> parameters = {}, results = {};  ///< that callers see, where the graph has others (device_numbers.hpp)
  std::string staged = {};  ///< as text, for a program, and where it is to be printed as a source: see `optimised`
};

/// Errors in the user's program carry its place and say which function was being staged.
std::vector<StagedFunction> stage_functions(const StagingImage& image, const Options& options);

/// Runs the passes over a staged function.
void optimise(StagedFunction& function, const Options& options);

/// How many f64 the target's registers hold; 0 where vectors are not to be had: C99 and CUDA have none.
int vector_lanes(const Options& options);

/// A function as it was staged, after the passes for registers that hold so many f64.
std::unique_ptr<ir::Module> optimised(const std::string& staged, const Options& options, int lanes);

/// Closes what continuations are left, so that C can be printed.
void close_functions(const std::vector<StagedFunction>& functions);

/// The modules alone.
std::vector<const ir::Module*> modules(const std::vector<StagedFunction>& functions);

}  // namespace lantern::tool
