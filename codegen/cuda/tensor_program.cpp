// The statement printer prints C++ with kernels; here its parts are put in order.
#include "lantern/codegen/cuda/tensor_program.hpp"

#include "lantern/codegen/cuda/tensor_text.hpp"
#include "lantern/codegen/library.hpp"
#include "lantern/codegen/target.hpp"
#include "lantern/codegen/unit.hpp"

namespace lantern::codegen {

namespace {

/// C++ of the host.
class HostTarget final : public CppTarget {
 public:
  bool has_threads() const override { return false; }
  bool has_kernels() const override { return true; }
  const char* prelude_part(std::string_view name) const override {
    if (name == "integers") return "";  // in <stdint.h>
    if (name == "workspace") return cuda_text::workspace;
    if (name == "own_workspace") return cuda_text::own_workspace;
    if (name == "K:fill") return cuda_text::fill;
    return nullptr;
  }
};

}  // namespace

std::string print_tensor_program(const ir::Module& module, PrintOptions options) {
  options.standalone = options.entry_workspace = true;
  options.threads = 1;
  const HostTarget target;
  Unit unit(module, options, target);
  unit.prelude().need("own_workspace");
  const Unit::Functions parts = unit.complete();
  unit.prelude().need("own_workspace");
  std::string workspace;
  if (unit.scalar_entry())
    workspace = "\n/* Memory for a call of " + unit.entry_name() + ". */\nextern \"C\" lt_workspace* " +
                unit.workspace_name() + "(void) { return lt_own_workspace(); }\n";
  const Prelude::Sides prelude = unit.prelude_sides();
  std::string title = cuda_text::tensor_title;
  title.replace(title.find("$NAME"), 5, unit.public_name());
  std::string text = title + prelude.types + prelude.both + parts.device;
  text += "#ifndef __CUDACC_RTC__\n\n" + prelude.host + "extern \"C\" {\n\n" + offered(unit) + "\n}\n\n";
  if (!parts.declarations.empty()) text += parts.declarations + "\n";
  return with_own_lines(text + parts.definitions + workspace + "\n#endif\n");
}

}  // namespace lantern::codegen
