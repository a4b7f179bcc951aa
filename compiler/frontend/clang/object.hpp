// A user's file to an object file by Clang, inside the process: in half the time that a compiler of its own takes.
#pragma once

#include <string>
#include <vector>

namespace lantern::frontend {

enum class ObjectResult {
  made,
  refused,  ///< the file has errors
  left,     ///< another compiler has to say
};

/// Compiles `path`, whose first includes are Lantern's, to position-independent code. `flags`: those that headers depend
/// on, as for clang++, without a level; `more`: others. `dependencies`: the rule for make to write, with all files read. No object is made, and
/// nothing is said, where Clang has anything to say of the file, a warning or an error, or does not know a flag: what the user's
/// own compiler says is what the user knows. None is made, too, where the user's files ask which compiler reads them, or whether it optimises: one
/// precompiled header serves all levels.
ObjectResult compile_object(const std::string& path, const std::vector<std::string>& flags, const std::vector<std::string>& more,
                            int level, const std::string& object, const std::string& dependencies);

}  // namespace lantern::frontend
