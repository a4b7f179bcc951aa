// Compiled code kept on disk.
#pragma once

#include <span>
#include <vector>

#include "lantern/codegen/toolchain/clang.hpp"
#include "lantern/compiler/driver/compile.hpp"

namespace lantern::core::driver {

/// Compiles generated C and loads it, or loads what is kept of an earlier compilation of the same: the same
/// text, for the same processor, with the same options and versions. `symbols`: what the text calls of this process.
/// Processes and threads may use one
/// directory at a time. An entry that was cut off, changed, or made of something else counts as missing and
/// is made again.
///
/// lantern::Error where the directory belongs to somebody else, or others may write to it.
std::unique_ptr<codegen::LoadedCode> compile_cached(std::span<const codegen::SourcePart> parts,
                                                    const codegen::ClangOptions& options,
                                                    const CodeCache& cache,
                                                    std::span<const codegen::HostSymbol> symbols = {});

}  // namespace lantern::core::driver
