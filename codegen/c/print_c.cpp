// C is what the statement printer prints by itself.
#include "lantern/codegen/c/print_c.hpp"

#include "lantern/codegen/target.hpp"
#include "lantern/codegen/unit.hpp"

namespace lantern::codegen {

std::string print_c(const ir::Module& module, const PrintOptions& options) {
  const CTarget target;
  return Unit(module, options, target).print();
}

}  // namespace lantern::codegen
