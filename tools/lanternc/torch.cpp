// Operators over the wrappers of --emit=python.
#include "torch.hpp"

#include "differentiable.hpp"
#include "python.hpp"
#include "torch_text.hpp"

namespace lantern::tool {

std::string torch_module(const std::vector<StagedFunction>& functions, const std::vector<std::string>& symbols,
                         const std::string& library, const Options& options) {
  std::string calls = std::string(torch_operators) + torch_on_gpu;
  if (!options.cuda) {
    const PythonWrappers wrappers = python_wrappers(functions, symbols, true);
    calls = wrappers.structures + wrappers.functions + torch_operators + torch_on_cpu;
  }
  return differentiable_module(functions, symbols, library, options, "PyTorch", "torch (2.4 or later) and NumPy", calls + torch_rules);
}

}  // namespace lantern::tool
