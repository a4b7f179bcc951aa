// A user's file to an object file by Clang, inside the process: in half the time that a compiler of its own takes, at -O0.
#pragma once

#include <string>
#include <vector>

namespace lantern::frontend {

/// Compiles `path`, whose first includes are Lantern's, without optimising. `flags`: those that headers depend on, as
/// for clang++; `more`: others. `dependencies`: the rule for make to write, with all files read. False, and nothing is
/// said, where Clang has anything to say of the file, a warning or an error, or does not know a flag: what the user's
/// own compiler says is what the user knows. False, too, where the user's files ask which compiler reads them.
bool compile_object(const std::string& path, const std::vector<std::string>& flags, const std::vector<std::string>& more,
                    const std::string& object, const std::string& dependencies);

}  // namespace lantern::frontend
