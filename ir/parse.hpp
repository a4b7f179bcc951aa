// Reads the textual form of the IR; the grammar is in print.hpp.
#pragma once

#include <memory>
#include <string_view>

#include "lantern/ir/graph.hpp"

namespace lantern::ir {

/// The module that prints as `text`, up to layout, comments and the numbers of unnamed values. Throws an
/// Error "line:column: expected ..., got ..." where the text is not of the grammar; whether the graph makes
/// sense is the verifier's business.
///
/// Looser than what is printed: a name may be used again once the block that defined it has ended, the type
/// of a pure operation may be left out, functions may be called before they are defined.
std::unique_ptr<Module> parse(std::string_view text);

}  // namespace lantern::ir
