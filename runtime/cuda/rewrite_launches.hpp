// What turns the text of a .cu into C++ for the launch emulator.
#pragma once

#include <string>
#include <string_view>

namespace lantern {

/// The same text with `kernel<<<grid, block>>>(arguments)` as a call of launch_emulator.hpp, and with what
/// C++ cannot spell replaced: CUDA's headers, dynamic shared memory, `asm("exit;")`. Lines keep their
/// numbers. `space`: the namespace of what is called instead. Throws an Error with the line where a launch is malformed.
std::string rewrite_launches(std::string cu, const std::string& space = "lantern_emulator");

/// launch_emulator.hpp and emulated_functions.hpp themselves, so that generated code can be compiled where Lantern's headers are not
/// installed.
std::string_view launch_emulator_text();
/// race_detector.hpp, which follows it.
std::string_view race_detector_text();

}  // namespace lantern
