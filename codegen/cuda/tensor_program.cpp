// The statement printer prints C++ with kernels; here its parts are put in order.
#include "lantern/codegen/cuda/tensor_program.hpp"

#include "lantern/codegen/c/prelude_text.hpp"
#include "lantern/codegen/communication.hpp"
#include "lantern/codegen/cuda/layouts.hpp"
#include "lantern/codegen/cuda/tensor_text.hpp"
#include "lantern/codegen/library.hpp"
#include "lantern/codegen/target.hpp"
#include "lantern/codegen/unit.hpp"
#include "lantern/ir/error.hpp"
#include "lantern/ir/escape.hpp"
#include "lantern/ir/text.hpp"

namespace lantern::codegen {

namespace {

/// C++ of the host.
class HostTarget final : public CppTarget {
 public:
  /// `exchanges`: the place of the first exchange between ranks; empty: there is none.
  HostTarget(const PrintOptions& options, const std::string& exchanges)
      : workspace_(ir::replaced(ir::replaced(cuda_text::workspace, "$CONTROL", cuda_text::control_layout), "$DEVICE", cuda_text::device_layout)),
        own_workspace_(ir::replaced(ir::replaced(cuda_text::own_workspace, "$FAIL", failure(options)), "$MEMORY",
                                    options.hosted ? cuda_text::hosted_memory : cuda_text::own_memory)),
        blas_(ir::replaced(codegen::prelude_part("blas")->text.data(), "LT_F32_PRODUCTS 68",
                       "LT_F32_PRODUCTS " + std::to_string(f32_products(options.products)) + " /* " + options.products + " */")) {
    if (exchanges.empty()) return;
    // All ranks begin a call together; one that waits for its GPU learns whether another one has failed.
    const std::string choose = options.hosted ? "" : cuda_text::choose_gpu;
    const std::string enter = "  lt_exchanged(ws, distributed_gpu_enter(" + exchanges + ", &lt_queue, device->stream));\n";
    const std::string wait = "  lt_exchanged(ws, distributed_gpu_wait(&lt_queue, device->stream));\n";
    start_ = before(std::string(codegen::prelude_part("gpu_start")->text), "  if (!device->control) {\n", choose);
    start_ = before(start_, "  device->pending =", enter);
    await_ = before(std::string(codegen::prelude_part("await")->text), "  lt_gpu(ws, cudaStreamSynchronize(device->stream));\n", wait);
  }
  bool has_threads() const override { return false; }
  bool has_kernels() const override { return true; }
  const char* prelude_part(std::string_view name) const override {
    if (name == "integers") return "";  // in <stdint.h>
    if (name == "workspace") return workspace_.c_str();
    if (name == "own_workspace") return own_workspace_.c_str();
    if (name == "bring") return cuda_text::gpu_bring;
    if (name == "blas") return blas_.c_str();
    if (name == "gpu_start" && !start_.empty()) return start_.c_str();
    if (name == "await" && !await_.empty()) return await_.c_str();
    return nullptr;
  }

 private:
  static const char* failure(const PrintOptions& options) {
    if (options.hosted) return cuda_text::hosted_failure;
    return options.status_functions ? cuda_text::returned_failure : cuda_text::own_failure;
  }
  static std::string before(const std::string& text, const std::string& line, const std::string& more) {
    return ir::replaced(text, line, more + line);
  }

  std::string workspace_, own_workspace_, blas_, start_, await_;
};

/// Where the first exchange between ranks is in the program, as text of C; empty where none is queued on a GPU.
std::string first_exchange(const ir::Module& module) {
  const ir::Op* first = nullptr;
  for (const ir::Function* f : module.functions())
    if (f->body)
      ir::walk(f->body, [&](const ir::Op* op) {
        if (!first && is_queued(*op)) first = op;
      });
  if (!first) return {};
  return ir::c_string(first->loc.known() ? std::string(first->loc.file) + ":" + std::to_string(first->loc.line) : "");
}

std::string named(const std::string& text, const std::string& name) { return ir::replaced(text, "$NAME", name); }

/// What brings the tensors among the results to the host.
std::string to_host(Unit& unit) {
  const ir::Function& f = *unit.module().entry;
  std::string body;
  for (std::size_t i = 0; i < f.result_types.size(); ++i) {
    const ir::Type& t = f.result_types[i];
    if (!t.is_tensor()) continue;
    const std::string result = "*(" + unit.type(t) + "*)out[" + std::to_string(i) + "]";
    body += "  " + result + " = " + unit.prelude().tensor_function("to_host", t.element(), t.rank()) + "(ws, " + result + ");\n";
  }
  return "\nextern \"C\" void " + unit.public_name() +
         "_to_host(lt_workspace* ws, void* const* out) {\n" + (body.empty() ? "  (void)out;\n" : body) +
         "  lt_await(ws);\n}\n";
}

}  // namespace

int f32_products(const std::string& name) {
  for (const auto& [known, arithmetic] : {std::pair{"f32", 68}, {"tf32", 77}, {"bf16", 75}, {"f16", 74}})  // cublasComputeType_t
    if (name == known) return arithmetic;
  throw Error("products: expected f32, tf32, bf16 or f16, got '" + name + "'");
}

void require_storage(const std::string& name) {
  if (name != "f32" && name != "f16" && name != "bf16") throw Error("storage: expected f32, f16 or bf16, got '" + name + "'");
}

CudaText print_tensor_program(const ir::Module& module, PrintOptions options) {
  options.standalone = options.entry_workspace = true;
  options.threads = 1;
  const std::string exchanges = first_exchange(module);
  if (options.status_functions) options.stream = "cudaStream_t";
  const HostTarget target(options, exchanges);
  Unit unit(module, options, target);
  if (!exchanges.empty()) unit.prelude().need("exchange");
  for (const char* part : {"await", "device_mark", "own_workspace"}) unit.prelude().need(part);
  const Unit::Functions parts = unit.complete();
  for (const char* part : {"await", "device_mark", "own_workspace"}) unit.prelude().need(part);
  const std::string& name = unit.public_name();
  std::string more;
  if (unit.scalar_entry()) more = "\nextern \"C\" lt_workspace* " + unit.workspace_name() + "(void) { return lt_own_workspace(); }\n";
  more += named(cuda_text::stream, name) + to_host(unit);
  const Prelude::Sides prelude = unit.prelude_sides();
  CudaText text;
  text.both = named(cuda_text::tensor_title, name) + prelude.types + prelude.both + parts.device;
  text.kernels = prelude.kernels + parts.kernels;
  text.host = prelude.host + "extern \"C\" {\n\n" + offered(unit) + offered_on_gpu(unit, "cudaStream_t") + "\n}\n\n" +
              (parts.declarations.empty() ? "" : parts.declarations + "\n") + parts.definitions + more;
  return text;
}

}  // namespace lantern::codegen
