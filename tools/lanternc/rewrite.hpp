// Native control flow over Rep in the user's files.
#pragma once

#include <string>
#include <vector>

#include "compiler_messages.hpp"
#include "installation.hpp"
#include "lantern/compiler/frontend/clang/rewrite.hpp"
#include "options.hpp"

namespace lantern::tool {

/// For the frontend, in the form of clang++.
std::vector<std::string> frontend_arguments(const Options& options, const Installation& installation);

/// Of what a compiler says about the user's files: what is not the user's.
MessageOptions message_options(const Options& options, const Installation& installation);

/// A file's text with its native control flow over Rep rewritten, where there is some. PlacedError: it cannot be staged.
frontend::Rewritten rewritten(const std::string& source, const Options& options,
                                             const Installation& installation);

}  // namespace lantern::tool
