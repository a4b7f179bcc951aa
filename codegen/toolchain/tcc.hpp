// The fastest tool chain: libtcc compiles C in this process, in well under a millisecond, without optimising.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "lantern/codegen/toolchain/loaded_code.hpp"

namespace lantern::codegen {

/// Compiles header-free C99 and loads it. The code may call the C mathematical functions (`exp`, `expf`,
/// ...), `memcpy`, `memmove` and `memset`, and the given host functions, after declaring them; nothing else
/// is found.
///
/// Throws lantern::InternalError when the text does not compile or calls something unknown; warnings count as
/// errors. Safe to call from several threads.
///
/// Limits of tcc to generate around: no tail calls, no `_Thread_local`, no atomics, no `__builtin_*`; vector
/// attributes are silently ignored; floating-point expressions are never contracted.
std::unique_ptr<LoadedCode> compile_with_tcc(const std::string& c_source,
                                             std::span<const HostSymbol> symbols = {});

}  // namespace lantern::codegen
