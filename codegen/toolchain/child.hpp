// Work in a copy of this process, whose memory goes back to the system when it is done.
#pragma once

#include <functional>
#include <optional>
#include <shared_mutex>
#include <string>

namespace lantern::codegen {

/// To be held by a thread that works in Clang or LLVM: a child process is made while none does, for it would find locked what
/// another thread of the parent was at.
[[nodiscard]] std::shared_lock<std::shared_mutex> in_tool_chain();

/// What `work` gives in a child process; nothing where there can be none, or it ends without a result. The child has this
/// thread alone. `work` may be in Clang or LLVM, and must not need what other threads hold locks for.
std::optional<std::string> made_in_child(const std::function<std::string()>& work);

}  // namespace lantern::codegen
