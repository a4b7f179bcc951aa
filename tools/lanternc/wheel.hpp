// --emit=wheel: the module of --emit=python as a package that pip installs.
#pragma once

#include <filesystem>
#include <string>

#include "options.hpp"

namespace lantern::tool {

/// What a wheel's file name says: NAME-VERSION-py3-none-PLATFORM.whl.
struct WheelName {
  std::string name, version, platform;
};

/// Error: the file is not named so.
WheelName wheel_name(const std::filesystem::path& output);
/// The name for a module of version 0 on this machine.
std::string default_wheel(const std::string& module);

/// The bytes of a wheel ("binary distribution format" of PyPA) with this module alone. It requires NumPy where
/// `needs_numpy`.
std::string wheel(const WheelName& name, const std::string& module, bool needs_numpy);

}  // namespace lantern::tool
