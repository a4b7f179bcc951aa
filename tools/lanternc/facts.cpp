// The array that driver/function.hpp reads.
#include "facts.hpp"

#include "lantern/compiler/driver/loops.hpp"
#include "lantern/ir/recursion.hpp"

namespace lantern::tool {

using namespace core;

std::string facts(const StagedFunction& function, bool strict_math) {
  const bool flush = !strict_math && driver::has_loops(*function.module);
  std::string values = std::to_string((ir::has_recursion(*function.module) ? 1 : 0) + (flush ? 2 : 0));
  for (const ir::Type& t : function.module->entry->result_types) values += ", " + std::to_string(t.rank());
  return "const signed char lantern_facts_" + function.name + "[] = {" + values + "};";
}

}  // namespace lantern::tool
