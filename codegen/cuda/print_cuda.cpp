// Device functions are what the statement printer prints; around them stand a kernel and a host function.
#include "lantern/codegen/cuda/print_cuda.hpp"

#include <algorithm>
#include <set>
#include <vector>

#include "lantern/codegen/analysis.hpp"
#include "lantern/codegen/c/prelude_text.hpp"
#include "lantern/codegen/cuda/cuda_text.hpp"
#include "lantern/codegen/cuda/tensor_program.hpp"
#include "lantern/codegen/naming.hpp"
#include "lantern/codegen/statement.hpp"
#include "lantern/codegen/target.hpp"
#include "lantern/codegen/unit.hpp"
#include "lantern/ir/error.hpp"
#include "lantern/ir/text.hpp"

namespace lantern::codegen {

using ir::Kind;
using ir::Opcode;

namespace {

/// C with bool: several results and cells go by pointer, which needs no structures.
class CudaTarget final : public CTarget {
 public:
  std::string scalar(Kind kind) const override {
    return kind == Kind::boolean ? "bool" : CTarget::scalar(kind);
  }
  std::string element(Kind kind) const override { return scalar(kind); }
  std::string boolean(bool value) const override { return value ? "true" : "false"; }
  std::string public_boolean() const override { return "bool"; }
  std::size_t most_arguments() const override { return Target::most_arguments(); }
  std::string exported() const override { return "static __device__ "; }
  std::string internal() const override { return "static __device__ "; }
  bool contiguous_tapes() const override { return false; }
  bool integers_wrap() const override { return false; }
  bool has_threads() const override { return false; }
  bool knows_stack_end() const override { return true; }
  bool calls_host() const override { return false; }
};

// ---- what can be printed

std::string at(const ir::Op& op) { return op.loc.known() ? op.loc.str() + ": " : ""; }

/// Continuations need a stack of their own, and lanes are what threads are on a GPU.
void require_direct(const std::vector<const ir::Function*>& functions) {
  for (const ir::Function* f : functions) {
    const auto direct = [&] {
      throw Error("cuda: expected a function in direct style, got a continuation in '" + f->name +
                  "'; run the pass 'unwind' first, or print the function as C++");
    };
    if (f->cps || std::ranges::any_of(f->body->params, [](const ir::Value* p) { return p->type.is_cont(); }))
      direct();
    ir::walk(f->body, [&](const ir::Op* op) {
      if (op->is(Opcode::fun_) || op->is(Opcode::jump_) || op->is(Opcode::closure_)) direct();
      for (const ir::Value* v : op->results)
        if (v->type.is_vector())
          throw Error(
              at(*op) + "cuda: expected loops that run iteration by iteration, got vectors (" + v->type.str() +
              ") in '" + f->name +
              "'; compile the function for Target::cuda, Target::c or at opt 1, where no vectors are made");
    });
  }
}

// ---- text

/// The helpers of the prelude that a text calls, by name: lt_push_f64, lt_div_i64, ... No other name begins
/// so; what literals and comments hold is the user's.
std::set<std::string> helpers_in(const std::string& text) {
  std::set<std::string> names;
  for (std::size_t at = 0; at < text.size();) {
    if (text.compare(at, 2, "//") == 0) {
      at = std::min(text.find('\n', at), text.size());
    } else if (text[at] == '"') {
      for (++at; at < text.size() && text[at] != '"'; ++at)
        if (text[at] == '\\') ++at;
      ++at;
    } else {
      std::size_t end = at;
      end = ir::end_of_word(text, end);
      if (text.compare(at, 3, "lt_") == 0 && end < text.size() && text[end] == '(')
        names.insert(text.substr(at, end - at));
      at = std::max(end, at + 1);
    }
  }
  return names;
}

bool on_tape(const std::string& helper) {
  return helper.starts_with("lt_push_") || helper.starts_with("lt_pop_");
}

Kind kind_of(const std::string& helper) {
  for (const Kind k : {Kind::boolean, Kind::i32, Kind::i64, Kind::f32, Kind::f64})
    if (helper.find(std::string("_") + ir::kind_name(k)) != std::string::npos) return k;
  throw InternalError("no scalar kind in " + helper);
}

/// Helpers of the C prelude as device code.
class DeviceParts {
 public:
  explicit DeviceParts(const Target& target) : target_(target) {}

  /// "lt_div_i64", with what it needs.
  void add(const std::string& helper) {
    if (on_tape(helper)) {
      const bool push = helper.starts_with("lt_push_");
      const std::string text = ir::replaced(push ? cuda_text::push : cuda_text::pop, "$NAME", helper);
      text_ += ir::replaced(text, "$T", target_.element(kind_of(helper))) + "\n";
      return;
    }
    const std::string name = helper.substr(3);
    if (prelude_part(name)) return part(name, Kind::f64);
    part("K:" + name.substr(0, name.rfind('_')), kind_of(helper));
  }
  const std::string& text() const { return text_; }

 private:
  /// The compilers for devices know printf and int64_t; the workspace is another one.
  void part(const std::string& name, Kind kind) {
    const PreludePart* const row = prelude_part(name);
    if (!row) throw InternalError("no part of the prelude is called " + name);
    if (name == "workspace" || row->group == PreludeGroup::basics || row->group == PreludeGroup::prototypes) return;
    if (!there_.insert(name.starts_with("K:") ? name + ir::kind_name(kind) : name).second) return;
    for (const std::string_view need : row->needs) part(std::string(need), kind);
    std::string text = "\n" + instantiated(row->text, kind, target_);
    for (const char* start : {"\nstatic ", "\nLT_SELDOM static ", "\nLT_FAILS static "})
      text = ir::replaced(text, start, "\nstatic __device__ ");
    text_ += text.substr(1) + "\n";
  }

  const Target& target_;
  std::set<std::string> there_;
  std::string text_;
};

struct Array {
  std::string type, name;
  bool result = false;
};

class Printer {
 public:
  Printer(const ir::Module& module, const PrintOptions& options)
      : module_(module), functions_(reachable(module)), unit_(module, limited(options), target_) {
    if (module.entry->result_types.empty())
      throw Error(
          "cuda: expected a function that returns what is to be computed, got one of numbers without a "
          "result");
  }

  CudaText print() {
    unit_.discover();
    const Unit::Functions functions = unit_.functions();
    const FunctionInfo& entry = unit_.info(module_.entry);
    code_ = entry.name + "_code";
    fails_ = entry.workspace;
    name_arrays();

    const std::set<std::string> helpers = helpers_in(functions.declarations + functions.definitions);
    tapes_ = std::any_of(helpers.begin(), helpers.end(), on_tape);
    DeviceParts parts(target_);
    for (const std::string& helper : helpers) parts.add(helper);
    std::string prelude = !fails_ ? "" : ir::replaced(cuda_text::failure, "$FAILED", std::to_string(cuda_check_failed));
    const bool composes = parts.text().find("ws->message") != std::string::npos;
    if (fails_)
      prelude = ir::replaced(prelude, "$FIELDS",
                             std::string(recursive() ? cuda_text::stack_field : "") + (tapes_ ? tape_fields() : "") +
                                 (composes ? cuda_text::message_field : ""));
    if (tapes_) prelude += ir::replaced(cuda_text::tape, "$OVERFLOW", std::to_string(cuda_tape_overflow));
    prelude += parts.text();

    std::string text = ir::replaced(cuda_text::title, "$NAME", entry.name);
    if (prelude.find("printf(") != std::string::npos)
      text = ir::replaced(text, "#include <stdint.h>\n", "#include <stdint.h>\n#include <stdio.h>\n");
    if (recursive()) text += cuda_text::stack_bytes;
    text += "namespace " + code_ + " {\n\n" + prelude;
    if (!functions.declarations.empty()) text += functions.declarations + "\n";
    text += functions.definitions + "}  // namespace " + code_ + "\n\n";
    return {text, kernel() + "\n", host()};
  }

 private:
  /// Calls nest as deep as the data says, on a stack of a few kilobytes.
  static PrintOptions limited(PrintOptions options) {
    options.limited_stack = true;
    return options;
  }
  bool recursive() const {
    return std::ranges::any_of(functions_, [&](const ir::Function* f) { return unit_.info(f).recursive; });
  }
  const std::string& name() const { return unit_.info(module_.entry).name; }

  std::string tape_fields() const {
    return "  char* tape;      /* of this thread: value i lies at tape + i * stride, so that neighbours "
           "share a line */\n"
           "  int64_t stride;\n  int64_t values;  /* a tape holds */\n  int64_t used[" +
           std::to_string(module_.tapes()) + "];\n";
  }

  void name_arrays() {
    for (const char* taken : {"stack_before", "tape", "values", "error", "thread", "threads", "status", "blocks", "wanted",
                              "fitting", "code", "cudaFree", "cudaSuccess", "cudaDeviceSetLimit"})
      scope_.reserve(taken);
    const auto parameter_types = module_.entry->parameter_types();
    const auto& params = module_.entry->body->params;
    for (const ir::Value* p : params) {
      const std::string wanted = p->name              ? scope_.unique(p->name)
                                 : params.size() == 1 ? scope_.unique("x")
                                                      : scope_.numbered("x");
      arrays_.push_back({target_.element(p->type.kind()), wanted, false});
    }
    const auto& results = module_.entry->result_types;
    for (std::size_t i = 0; i < results.size(); ++i) {
      const std::string wanted = results.size() == 1 ? "y" : "result" + std::to_string(i);
      arrays_.push_back({target_.element(results[i].kind()), scope_.unique(wanted), true});
    }
    n_ = scope_.unique("n");
    i_ = scope_.unique("i");
  }

  std::string array_parameters() const {
    std::string list;
    for (const Array& a : arrays_) list += (a.result ? "" : "const ") + a.type + "* " + a.name + ", ";
    return list;
  }

  /// "y[i] = f(x[i]);" with whatever the function takes besides.
  std::string element() const {
    const FunctionInfo& entry = unit_.info(module_.entry);
    std::string list = fails_ ? "&ws" : "", target;
    for (const Array& a : arrays_) {
      const std::string place = a.name + "[" + i_ + "]";
      if (a.result && !entry.by_pointer) {
        target = place + " = ";
      } else {
        list += (list.empty() ? "" : ", ") + std::string(a.result ? "&" : "") + place;
      }
    }
    return target + code_ + "::" + entry.name + "(" + list + ");";
  }

  std::string kernel() const {
    std::string more, body;
    if (tapes_) more += "char* tape, int64_t values, ";
    if (fails_) more += code_ + "::lt_error* error, ";
    if (tapes_) {
      body = "    " + code_ + "::lt_workspace ws = {error, " + (recursive() ? "0, " : "") +
             "tape + 8 * thread, 8 * threads, values, {0}};\n";
    } else if (fails_) {
      body = "    " + code_ + "::lt_workspace ws = {error" + (recursive() ? ", 0" : "") + "};\n";
    }
    if (fails_ && recursive()) body += "    ws.stack_end = (char*)&ws - LT_STACK_BYTES + 4096;\n";
    return wrapped("extern \"C\" __global__ void " + name() + "_kernel(" + array_parameters() + more +
                   "int64_t " + n_ + ") {") +
           "\n  const int64_t threads = (int64_t)gridDim.x * blockDim.x;\n"
           "  const int64_t thread = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;\n"
           "  for (int64_t " +
           i_ + " = thread; " + i_ + " < " + n_ + "; " + i_ + " += threads) {\n" + body +
           wrapped("    " + element()) + "\n  }\n}\n";
  }

  /// The host function. Every step does nothing once `status` is an error; freeing always happens.
  std::string host() const {
    NameScope scope(&scope_);
    std::string in, out, free, list;
    for (const Array& a : arrays_) {
      const std::string device = scope.unique("device_" + a.name),
                        size = n_ + " * (int64_t)sizeof(" + a.type + ")";
      in += "  " + a.type + "* " + device + " = (" + a.type + "*)" + code_ + "::lt_" +
            (a.result ? "allocate(" + size : "copy_in(" + a.name + ", " + size) + ", &status);\n";
      if (a.result)
        out += "  " + code_ + "::lt_copy_out(" + a.name + ", " + device + ", " + size + ", &status);\n";
      free += "  cudaFree(" + device + ");\n";
      list += device + ", ";
    }
    std::string text = tapes_ ? cuda_text::limits : "";
    text += "namespace " + code_ + " {\n\n" + cuda_text::host_helpers +
            (fails_ ? cuda_text::error_helpers : "") + "}  // namespace " + code_ + "\n\n";
    if (fails_) text += ir::replaced(ir::replaced(cuda_text::message, "$NAME", name()), "$CODE", code_);
    text +=
        wrapped("extern \"C\" int " + name() + "_map(" + array_parameters() + "int64_t " + n_ + ") {") + "\n";
    if (fails_) text += "  " + code_ + "::lt_last = {};\n";
    text += "  if (" + n_ + " == 0) return 0;\n  if (" + n_ + " < 0) return cudaErrorInvalidValue;\n" +
            "  cudaError_t status = cudaSuccess;\n";
    if (fails_) text += "  int code = 0;\n";
    text += in;
    if (recursive()) text += cuda_text::more_stack;
    text += tapes_ ? tape_launches(list) : launch(list);
    if (recursive()) text += cuda_text::stack_before;
    text += (fails_ ? "  if (code == 0) {\n" + ir::replaced("\n" + out, "\n  ", "\n    ").substr(1) + "  }\n" : out) + free;
    return text + (fails_ ? "  return status == cudaSuccess ? code : (int)status;\n}\n"
                          : "  return (int)status;\n}\n");
  }

  std::string launch(const std::string& list) const {
    const std::string blocks =
        "  const int64_t blocks = (" + n_ + " + 255) / 256 < 65536 ? (" + n_ + " + 255) / 256 : 65536;\n";
    const auto call = [&](const std::string& arguments) {
      return wrapped("    " + name() + "_kernel<<<(unsigned)blocks, 256>>>(" + arguments + n_ + ");") + "\n";
    };
    if (!fails_)
      return blocks + "  if (status == cudaSuccess) {\n" + call(list) + "    status = " + code_ +
             "::lt_finish();\n  }\n";
    return blocks + "  " + code_ + "::lt_error* error = " + code_ + "::lt_new_error(&status);\n" +
           "  if (status == cudaSuccess) {\n" + call(list + "error, ") + "    status = " + code_ +
           "::lt_finish();\n  }\n  code = " + code_ + "::lt_result(error, &status);\n";
  }

  /// With a tape: fewer threads where each needs much memory, and more memory as long as it overflows.
  std::string tape_launches(const std::string& list) const {
    std::string text = ir::replaced(cuda_text::tape_launches, "$CODE", code_);
    text = ir::replaced(text, "$TAPES", std::to_string(module_.tapes()));
    text = ir::replaced(text, "$OVERFLOW", std::to_string(cuda_tape_overflow));
    text = ir::replaced(text, "$N", n_);
    return ir::replaced(
        text, "$LAUNCH",
        wrapped("      " + name() + "_kernel<<<(unsigned)blocks, 128>>>(" + list + "(char*)tape, values, error, " + n_ + ");"));
  }

  const ir::Module& module_;
  CudaTarget target_;
  std::vector<const ir::Function*> functions_;
  Unit unit_;
  NameScope scope_;
  std::vector<Array> arrays_;
  std::string code_, n_, i_;
  bool fails_ = false, tapes_ = false;
};

}  // namespace

bool is_scalar_program(const ir::Module& module) {
  bool scalar = true;
  const auto look = [&](const ir::Type& t) {
    scalar &= t.is_scalar() || (t.is_ref() && t.content().is_scalar());
  };
  for (const ir::Function* f : reachable(module)) {
    for (const ir::Value* p : f->body->params) look(p->type);
    for (const ir::Type& t : f->result_types) look(t);
    ir::walk(f->body, [&](const ir::Op* op) {
      for (const ir::Value* v : op->results) look(v->type);
    });
  }
  return scalar;
}

std::string CudaText::joined() const {
  return with_own_lines(both + kernels + "#ifndef __CUDACC_RTC__\n" + host + "#endif\n");
}

CudaText print_cuda_text(const ir::Module& module, const PrintOptions& options) {
  if (!module.entry) throw InternalError("cuda: expected a module with an entry");
  require_direct(reachable(module));
  if (!is_scalar_program(module)) return print_tensor_program(module, options);
  return Printer(module, options).print();
}

std::string hosted_entry(const ir::Module& module, const std::string& entry) {
  const std::string name = function_identifier(module.entry->name);
  const std::string head = "\nextern \"C\" void " + entry +
                           "(struct lt_caller* caller, const void* const* in, void* const* out) {\n  lantern_gpu_enter(caller);\n";
  if (is_scalar_program(module)) {
    const CudaTarget target;
    std::string list;
    const auto parameters = module.entry->parameter_types();
    for (std::size_t i = 0; i < parameters.size(); ++i)
      list += "(const " + target.element(parameters[i].kind()) + "*)in[" + std::to_string(i) + "], ";
    for (std::size_t i = 0; i < module.entry->result_types.size(); ++i)
      list += "(" + target.element(module.entry->result_types[i].kind()) + "*)out[" + std::to_string(i) + "], ";
    const bool message = Printer(module, {}).print().host.find(name + "_message(") != std::string::npos;
    return head + "  const int status = " + name + "_map(" + list + "1);\n  if (status != 0) lantern_gpu_fail(" +
           (message ? "status >= 20000 ? " + name + "_message() : " : "") + "cudaGetErrorString(status));\n}\n\nextern \"C\" void " +
           device_entry_name + "(struct lt_caller* caller, const void* const* in, void* const* out, void*, cudaStream_t) {\n  " + entry +
           "(caller, in, out); /* numbers are the host's: no stream has anything of them */\n}\n";
  }
  return head + "  lt_workspace* ws = lt_own_workspace();\n  lt_use_stream(ws, 0);\n  " + name + "_entry(ws, in, out);\n  " + name +
         "_to_host(ws, out);\n}\n\nextern \"C\" void " + device_entry_name +
         "(struct lt_caller* caller, const void* const* in, void* const* out,\n    lt_target* targets, cudaStream_t stream) {\n"
         "  lantern_gpu_enter(caller);\n  lt_workspace* ws = lt_own_workspace();\n  ws->device->targets = targets;\n"
         "  lt_use_stream(ws, stream);\n  " + name + "_entry(ws, in, out);\n}\n";
}

std::string print_cuda(const ir::Module& module, const PrintOptions& options) {
  return print_cuda_text(module, options).joined();
}

}  // namespace lantern::codegen
