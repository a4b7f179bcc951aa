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
    return nullptr;
  }
};

std::string named(std::string text, const std::string& name) {
  for (std::size_t at = 0; (at = text.find("$NAME", at)) != std::string::npos; at += name.size())
    text.replace(at, 5, name);
  return text;
}

}  // namespace

std::string print_tensor_program(const ir::Module& module, PrintOptions options) {
  options.standalone = options.entry_workspace = true;
  options.threads = 1;
  const HostTarget target;
  Unit unit(module, options, target);
  for (const char* part : {"await", "device_mark", "own_workspace"}) unit.prelude().need(part);
  const Unit::Functions parts = unit.complete();
  for (const char* part : {"await", "device_mark", "own_workspace"}) unit.prelude().need(part);
  std::string workspace;
  if (unit.scalar_entry())
    workspace = "\n/* Memory for a call of " + unit.entry_name() + ". */\nextern \"C\" lt_workspace* " +
                unit.workspace_name() + "(void) { return lt_own_workspace(); }\n";
  const Prelude::Sides prelude = unit.prelude_sides();
  std::string text = named(cuda_text::tensor_title, unit.public_name()) + prelude.types + prelude.both + prelude.kernels +
                     parts.device;
  text += "#ifndef __CUDACC_RTC__\n\n" + prelude.host + "extern \"C\" {\n\n" + offered(unit) + "\n}\n\n";
  if (!parts.declarations.empty()) text += parts.declarations + "\n";
  return with_own_lines(text + parts.definitions + workspace + named(cuda_text::stream, unit.public_name()) +
                        "\n#endif\n");
}

}  // namespace lantern::codegen
