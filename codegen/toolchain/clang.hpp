// The optimising tool chain: Clang and LLVM as libraries in this process, no file or process involved.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lantern/codegen/source_part.hpp"
#include "lantern/codegen/toolchain/loaded_code.hpp"

namespace lantern::codegen {

struct ClangOptions {
  /// 0 to 3. From 2 on, loops and straight-line code are vectorised.
  int opt_level = 3;
  /// DWARF for the generated text; loaded code is also announced to an attached gdb.
  bool debug_info = false;
  /// Allow a fused multiply-add within one expression, unless the text says otherwise. Without it, results are
  /// those of separate operations.
  bool contract = true;
  /// Only for object_with_clang: code fit for a shared library.
  bool pic = false;
  /// The name of the text in diagnostics and debug information.
  std::string file_name = "generated.c";
  /// The processor to generate for, by its LLVM name ("x86-64-v3"). Empty: this machine's, with all it
  /// offers.
  std::string target_cpu;
  /// Whether the result is of no use any more; asked between passes, from any thread. Then compilation ends by Abandoned.
  std::function<bool()> abandoned = [] { return false; };
};

/// What ends a compilation that is of no use any more.
struct Abandoned {};

/// Compiles header-free C or C++ and loads it. Functions of the C library and the mathematical functions are
/// those of this process; only other host functions have to be given.
///
/// Throws lantern::InternalError with Clang's diagnostics (file:line, the offending line) when the text does
/// not compile, calls something unknown, or needs code to run at load time (global constructors).
/// Safe to call from several threads, which then compile in parallel. lantern::Error where no thread can be made:
/// Clang needs a larger stack than the caller may have.
std::unique_ptr<LoadedCode> compile_with_clang(const std::string& source, Language language,
                                               const ClangOptions& options = {},
                                               std::span<const HostSymbol> symbols = {});

/// A part of a program as a relocatable object, and what may be looked up in it. (Fit for a file.)
struct CompiledPart {
  std::vector<char> bytes;
  std::vector<std::string> names;
};

/// The same compilation of a program in parts, on as many threads as the machine has processors.
std::vector<CompiledPart> compile_parts(std::span<const SourcePart> parts, Language language,
                                        const ClangOptions& options = {});

/// Loads the parts of one program together: what is visible in one may be called from the others.
/// lantern::InternalError where something is missing.
std::unique_ptr<LoadedCode> load_parts(std::span<const CompiledPart> parts, const ClangOptions& options = {},
                                       std::span<const HostSymbol> symbols = {});

/// The same compilation to a relocatable object (the bytes of an ELF .o file).
std::vector<char> object_with_clang(const std::string& source, Language language,
                                    const ClangOptions& options = {});

/// What a processor has that decides how code is generated.
struct Arithmetic {
  int lanes = 2;                    ///< how many f64 a vector register holds
  bool fused_multiply_add = false;  ///< as one instruction
};
/// Of a processor by its LLVM name; empty: this machine. Of a name that LLVM does not know, the least.
Arithmetic arithmetic_of(const std::string& target_cpu = {});

/// Whether Clang generates code for a processor of this name, on this machine.
bool is_processor(const std::string& name);

/// Gives the memory that holds the code of Clang and LLVM back to the system, which reads it again where it runs.
void release_clang();

/// The version of the Clang library in use, for instance "19.1.7".
std::string clang_version();

}  // namespace lantern::codegen
