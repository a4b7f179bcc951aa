// Compiled code kept on disk.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>

#include "lantern/codegen/toolchain/clang.hpp"
#include "lantern/compiler/driver/compile.hpp"

namespace lantern::core::driver {

/// A program before it is compiled, and what calling its code takes. By the key its code is found without running a
/// pass.
struct StagedProgram {
  std::string key;  ///< empty: code is found by the generated text alone
  CallFacts facts;
};

/// The level at which Clang compiles what passes of level `opt` made: that one, or the lower one that the environment's
/// LANTERN_CLANG_LEVEL names.
int clang_level(int opt);

/// The key of a program: of the staged graph and all that decides what it becomes, which is every option, the
/// processor, the version of Clang, and the build of Lantern that is running. Empty where the cache is off, for a
/// debugger's code, and where the running program has no build ID.
std::string staged_key(const ir::Module& staged, const CompileOptions& options);

/// Code found by a program's key.
struct KeptProgram {
  std::unique_ptr<codegen::LoadedCode> code;
  CallFacts facts;
};
std::optional<KeptProgram> kept_program(const std::string& key, const codegen::ClangOptions& options,
                                        const CodeCache& cache, std::span<const codegen::HostSymbol> symbols);

/// Compiles generated C and loads it, or loads what is kept of an earlier compilation of the same: the same
/// text, for the same processor, with the same options and versions. `symbols`: what the text calls of this process;
/// `staged`: the program that became the text, by whose key it is found from then on.
/// Processes and threads may use one
/// directory at a time. An entry that was cut off, changed, or made of something else counts as missing and
/// is made again.
///
/// lantern::Error where the directory belongs to somebody else, or others may write to it.
std::unique_ptr<codegen::LoadedCode> compile_cached(std::span<const codegen::SourcePart> parts,
                                                    const codegen::ClangOptions& options,
                                                    const CodeCache& cache,
                                                    std::span<const codegen::HostSymbol> symbols = {},
                                                    const StagedProgram& staged = {});

}  // namespace lantern::core::driver
