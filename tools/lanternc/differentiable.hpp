// What modules for frameworks that differentiate (JAX, PyTorch) share: a function and its pullbacks as one definition.
#pragma once

#include <string>
#include <vector>

#include "options.hpp"
#include "stage.hpp"

namespace lantern::tool {

/// PlacedError: a function takes a tree, which `framework` has no type for. `option` is that of --emit.
void refuse_trees(const std::vector<StagedFunction>& functions, const std::string& option, const std::string& framework);

/// The text of a Python module that holds `library`, and defines a function for each function that is no pullback.
/// `title` names the framework in the module's documentation, `needs` what the module imports. `framework` is Python text
/// behind the imports: it defines `_Custom`, a subclass of `_Signature`, and `_differentiable`, which makes a callable of a
/// tuple of `_Custom`: the function, its pullback, and the pullback of that, as far as there are any. Where functions have
/// pushforwards, it defines `_by_forward_mode`, which makes a callable of that and of a tuple of those.
std::string differentiable_module(const std::vector<StagedFunction>& functions, const std::vector<std::string>& symbols,
                                  const std::string& library, const Options& options, const std::string& title,
                                  const std::string& needs, const std::string& framework);

}  // namespace lantern::tool
