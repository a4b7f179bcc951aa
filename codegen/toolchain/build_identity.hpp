// Which build of a program or library is running.
#pragma once

#include <string>

namespace lantern::codegen {

/// The build ID of whatever has this address, in hexadecimal: linkers make it of all contents, so that another build
/// has another. Empty where the linker was told to leave it out.
std::string build_identity(const void* address);

}  // namespace lantern::codegen
