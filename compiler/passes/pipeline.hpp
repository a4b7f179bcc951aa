// The pass pipeline: the table of contents of the compiler.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lantern/ir/graph.hpp"

namespace lantern::passes {
struct PassTiming { std::string name; double milliseconds = 0; };
struct PipelineOptions {
  int opt_level = 2;
  std::vector<std::string> disabled;
  bool verify_each = false;
  std::function<void(std::string_view pass, const ir::Module&)> after;
  std::vector<PassTiming>* timings = nullptr;
};
void run_pipeline(ir::Module& module, const PipelineOptions& options);
}  // namespace lantern::passes
