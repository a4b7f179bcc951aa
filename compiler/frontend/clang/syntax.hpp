// Clang's syntax tree of a file, for the few sources that look at it themselves.
#pragma once

#include <clang/AST/ASTContext.h>

#include <functional>
#include <string>
#include <vector>

#include "lantern/compiler/frontend/clang/parse.hpp"

namespace lantern::frontend {

/// Parses the file as C++20, after Lantern's headers, and calls `look` with its tree while that lives; it may
/// be called a second time where the first tree was of no use. `arguments` as for clang++.
Parsed parse_tree(const std::string& path, const std::vector<std::string>& arguments,
                  const std::function<void(clang::ASTContext&)>& look);

}  // namespace lantern::frontend
