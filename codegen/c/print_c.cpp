// C is what the statement printer prints by itself.
#include "lantern/codegen/c/print_c.hpp"

#include "lantern/codegen/target.hpp"
#include "lantern/codegen/unit.hpp"

namespace lantern::codegen {

std::string print_c(const ir::Module& module, const PrintOptions& options) {
  const CTarget target;
  return Unit(module, options, target).print();
}

namespace {

/// C whose functions may be called from other parts of the program, and from nowhere else.
class PartTarget : public CTarget {
 public:
  std::string internal() const override { return "__attribute__((visibility(\"hidden\"))) "; }
};

// In operations; and in bytes: what a compiler takes a fifth of a second for.
constexpr std::size_t large_module = 10'000, part_size = 100'000;

}  // namespace

std::vector<SourcePart> print_c_parts(const ir::Module& module, const PrintOptions& options) {
  if (options.standalone || options.line_directives || ir::size(module) < large_module)
    return {{print_c(module, options)}};
  const PartTarget target;
  return Unit(module, options, target).parts(part_size);
}

}  // namespace lantern::codegen
