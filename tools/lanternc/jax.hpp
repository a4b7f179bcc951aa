// --emit=jax: functions for JAX, as custom calls of XLA on the CPU or on GPUs.
#pragma once

#include <string>
#include <vector>

#include "options.hpp"
#include "stage.hpp"

namespace lantern::tool {

/// The folder of XLA's headers, of the interpreter that LANTERN_PYTHON names, or python3. Error: there is no jaxlib.
std::string xla_headers();

/// An object with a handler of XLA's foreign function interface for each function, compiled against XLA's headers in
/// the folder `headers` by the C++ compiler. `symbols` are the names of NAME_try, which `header` declares. `cuda`: these run on a GPU, on
/// JAX's stream.
std::string jax_handlers(const std::vector<StagedFunction>& functions, const std::vector<std::string>& symbols,
                         const std::string& header, const std::string& headers, bool cuda);

/// The text of a Python module that holds `library`, with these handlers in it, and registers them. Each function with
/// pullbacks has a rule for reverse mode (jax.custom_vjp), to the second order; NAME.forward is the same function with one for
/// forward mode (jax.custom_jvp).
std::string jax_module(const std::vector<StagedFunction>& functions, const std::vector<std::string>& symbols,
                       const std::string& library, const Options& options);

}  // namespace lantern::tool
