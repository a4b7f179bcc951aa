// Work in a copy of this process, whose memory goes back to the system when it is done.
#pragma once

#include <functional>
#include <optional>
#include <string>

namespace lantern::codegen {

/// What `work` gives in a child process; nothing where it ends without a result, and where this process has other threads:
/// the child would find locked what they were at.
std::optional<std::string> made_in_child(const std::function<std::string()>& work);

}  // namespace lantern::codegen
