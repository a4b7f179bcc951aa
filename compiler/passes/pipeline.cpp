#include "lantern/compiler/passes/pipeline.hpp"
#include "lantern/compiler/passes/unwind.hpp"
namespace lantern::passes {
void run_pipeline(ir::Module& module, const PipelineOptions& options) {
  if (options.opt_level > 0) unwind(module);
}
}  // namespace lantern::passes
