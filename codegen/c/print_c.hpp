// A module as C99: for tcc, gcc and clang, in process or as a source of its own.
#pragma once

#include <string>
#include <vector>

#include "lantern/codegen/print_options.hpp"
#include "lantern/codegen/source_part.hpp"
#include "lantern/ir/graph.hpp"

namespace lantern::codegen {

/// The functions reachable from the entry. The text includes no header. It exports
///
///   NAME          the entry itself: double NAME(double x). A function that may fail, allocates tensors or
///   uses a
///                 tape takes `lt_workspace* ws` first; several results go out through pointers.
///   NAME_entry    void NAME_entry(lt_workspace* ws, const void* const* in, void* const* out), see lt_entry
///   in
///                 runtime/workspace.h. A bool is one byte there.
///
/// With `standalone` the workspace is behind the scenes, one for each thread: NAME takes none when all
/// arguments and results are scalars, else NAME_workspace() gives one. A failure prints its message and
/// aborts, unless NAME_on_failure(handler) was called.
///
/// Integers wrap: compile with -fwrapv. Continuations must have been closed (passes/direct/close.hpp), else
/// an InternalError.
std::string print_c(const ir::Module& module, const PrintOptions& options = {});

/// The same for a compiler in this process: one text, or for a huge module several, which are loaded together.
/// Functions that cross from one to another have hidden visibility, which takes gcc or clang.
std::vector<SourcePart> print_c_parts(const ir::Module& module, const PrintOptions& options = {});

}  // namespace lantern::codegen
