// Several functions as one source: their preludes merged, their names kept separate.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "lantern/codegen/print_options.hpp"
#include "lantern/codegen/target.hpp"
#include "lantern/ir/graph.hpp"

namespace lantern::codegen {

class Unit;

/// The modules as one source in which each entry has the name it has in its module, as far as that may be a
/// function's; `options.name` is not used. The entries' names must differ. With a suffix, which comes behind
/// each, the uniform way into NAME is `linked_entry(NAME)`. A stand-alone source declares what it
/// offers as a header does.
///
/// `workspace`, of a stand-alone source, says of each module that its entry takes a workspace though
/// this text may do without: a signature must not depend on the target, nor on what passes make of a program.
std::string print_library(std::span<const ir::Module* const> modules, const PrintOptions& options,
                          const Target& target, const std::string& suffix = {},
                          const std::vector<bool>& workspace = {});

/// What a stand-alone source offers of one function, declared with comments, as C reads it.
std::string offered(Unit& unit);
/// What a source for a GPU offers beside that: its stream, of a type so spelled, and what waits.
std::string offered_on_gpu(const Unit& unit, const std::string& stream);

/// The symbol by which a program finds the function of a LANTERN_FUNCTION; driver/function.hpp declares it.
std::string linked_entry(const std::string& function);

/// Whether the entry, printed so in a stand-alone source, asks for a workspace.
bool asks_for_workspace(const ir::Module& module, PrintOptions options, const Target& target);

/// The names of the functions NAME_try that `print_library` defines with the same options.
std::vector<std::string> status_names(std::span<const ir::Module* const> modules, const PrintOptions& options,
                                      const Target& target, const std::vector<bool>& workspace = {});

/// A C header, for C and C++, that declares what `print_library` defines with the same options and
/// `options.standalone`, in C and in C++. Comments give the types of the entries with their shapes.
/// `guard` becomes the name of the include guard. `on_gpu`: print_cuda defines them, for programs with tensors.
std::string print_header(std::span<const ir::Module* const> modules, PrintOptions options,
                         const std::string& guard, const std::vector<bool>& workspace = {}, bool on_gpu = false);

}  // namespace lantern::codegen
