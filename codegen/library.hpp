// Several functions as one source: their preludes merged, their names kept apart.
#pragma once

#include <span>
#include <string>

#include "lantern/codegen/print_options.hpp"
#include "lantern/codegen/target.hpp"
#include "lantern/ir/graph.hpp"

namespace lantern::codegen {

/// The modules as one source in which each entry has the name it has in its module, followed by `suffix`;
/// `options.name` is not used. The entries' names must differ.
std::string print_library(std::span<const ir::Module* const> modules, const PrintOptions& options,
                          const Target& target, const std::string& suffix = {});

/// A C header, for C and C++, that declares what `print_library` defines for C with `options.standalone`.
/// Comments give the types of the entries with their shapes. `guard` becomes the name of the include guard.
std::string print_header(std::span<const ir::Module* const> modules, const std::string& guard);

}  // namespace lantern::codegen
