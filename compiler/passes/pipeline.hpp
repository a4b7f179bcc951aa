// The pass pipeline: the table of contents of the compiler.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lantern/ir/form.hpp"
#include "lantern/ir/graph.hpp"

namespace lantern::passes {

struct PipelineOptions;

struct Pass {
  std::string_view name;
  std::string_view what;
  void (*run)(ir::Module&, const PipelineOptions&);
  bool for_vectors = false;  ///< only for targets with vectors
  bool for_threads = false;  ///< only where several threads may be used
  bool for_fused = false;    ///< only for targets with a fused multiply-add
  bool for_device = false;   ///< only for a GPU
  bool for_checks = false;   ///< only where values are checked
};

/// All passes in the order in which they run.
std::span<const Pass> passes();

struct PassTiming {
  std::string name;
  double milliseconds = 0;
};

#ifdef NDEBUG
inline constexpr bool verify_by_default = false;
#else
inline constexpr bool verify_by_default = true;
#endif

struct PipelineOptions {
  int opt_level = 2;                       ///< 0: no pass runs
  std::vector<std::string> disabled = {};  ///< names of passes to leave out
  int vector_lanes = 0;                    ///< how many f64 a register of the target holds; 0: no vectorise
  bool packed_products = false;            ///< products call the packed routine without vector_lanes, too
  int threads = 1;                         ///< that a loop may use; 1: no parallel
  bool device = false;                     ///< for a GPU: products stay operations, iterations keep arrays of their own
  bool reassociate = true;                 ///< false: sums that the program forms keep their order
  bool fused_multiply_add = false;         ///< the target has one, and it is wanted; false: no contract
  bool check_values = false;               ///< a NaN, or an infinity that arises, is an error: value_checks
  bool verify_each = verify_by_default;  ///< the graph after each pass, its form after each phase
  std::function<void(std::string_view pass, const ir::Module&)> after = {};  ///< called after each pass
  std::vector<PassTiming>* timings = nullptr;                                ///< one entry per pass that ran
};

/// Runs the passes. Error when a disabled pass is none; InternalError when a pass leaves a graph that the
/// verifier refuses, or a phase one that is not of the form that it gives. At level 0, or with passes disabled, continuations may remain: `close` then comes before
/// printing.
void run_pipeline(ir::Module& module, const PipelineOptions& options = {});

}  // namespace lantern::passes
