// Recursive functions that became staged ones.
#include "lantern/compiler/frontend/native.hpp"

#include <map>

#include "lantern/compiler/staging/staging.hpp"

namespace lantern::core::native::detail {

bool staging() { return context().staging != nullptr; }

std::shared_ptr<FunctionDefinition>& recursive_definition(const void* function, const std::string& plain) {
  thread_local std::uint32_t graph = 0;
  thread_local std::map<std::pair<const void*, std::string>, std::shared_ptr<FunctionDefinition>> known;
  const std::uint32_t now = current_graph();
  if (graph != now) known.clear();
  graph = now;
  return known[{function, plain}];
}

}  // namespace lantern::core::native::detail
