// The parameters of NAME_try and NAME_strided by name.
#pragma once

#include <string>
#include <vector>

#include "lantern/codegen/naming.hpp"
#include "lantern/ir/graph.hpp"

namespace lantern::codegen {

struct StatusNames {
  std::vector<std::string> arguments, results;
};

/// Names that differ from each other, from those of `outer` and from `message`.
StatusNames status_names(const ir::Function& f, const NameScope& outer);

}  // namespace lantern::codegen
