// CUDA sources around a function, and nvcc.
#include "cuda_code.hpp"

#include <cctype>

#include "facts.hpp"
#include "lantern/codegen/cuda/print_cuda.hpp"
#include "lantern/codegen/library.hpp"
#include "lantern/codegen/naming.hpp"
#include "lantern/codegen/target.hpp"
#include "lantern/codegen/toolchain/nvcc.hpp"
#include "lantern/ir/error.hpp"

namespace lantern::tool {

namespace {

std::string source(const StagedFunction& function, const Options& options, const std::string& name) {
  codegen::PrintOptions print;
  print.line_directives = print.named_values = options.debug;
  print.check_nan = options.check == core::Check::nan;
  print.mappings = options.mappings;
  print.strict_math = options.strict_math;
  print.products = options.products;
  print.storage = options.storage;
  print.status_functions = options.emit != Emit::program;
  print.name = name;
  return codegen::print_cuda(*function.module, print);
}

std::string compiled(const std::string& text, const Options& options, std::vector<std::string> more) {
  codegen::NvccOptions nvcc;
  nvcc.opt_level = options.code_level();
  nvcc.pic = true;
  nvcc.more_arguments = std::move(more);
  nvcc.arch = options.arch;
  if (options.strict_math) nvcc.more_arguments.push_back("-fmad=false");
  if (options.debug) nvcc.more_arguments.push_back("-g");
  const std::vector<char> object = codegen::object_with_nvcc(text, nvcc);
  return {object.begin(), object.end()};
}

/// "const double*" for a parameter's array, "double*" for a result's.
std::string array(const ir::Type& type, bool result) {
  return (result ? "" : "const ") + codegen::CppTarget().element(type.kind()) + "*";
}

}  // namespace

std::string cuda_object(const StagedFunction& function, const Options& options, const std::string& more) {
  return compiled(source(function, options, function.name) + more, options, {});
}

namespace {

/// The entry of a function with tensors, whose results go to the host's memory; what fails, fails for the caller.
std::string tensor_glue(const StagedFunction& function, const std::string& name) {
  return "#include \"lantern/runtime/workspace.h\"\n\nextern \"C\" {\nvoid* " + name +
         "_workspace(void);\nvoid " + name + "_on_failure(void (*handler)(const char* message));\nvoid " +
         name +
         "_entry(void* ws, const void* const* in, void* const* out);\nvoid " + name +
         "_to_host(void* ws, void* const* out);\n}\n\n"
         "static thread_local lt_workspace* caller;\n"
         "static void failed(const char* message) { caller->fail(caller, message); }\n\nextern \"C\" void " +
         codegen::linked_entry(function.name) +
         "(lt_workspace* ws, const void* const* in, void* const* out) {\n  caller = ws;\n  " + name +
         "_on_failure(failed);\n  void* const own = " + name + "_workspace();\n  " + name + "_entry(own, in, out);\n  " + name +
         "_to_host(own, out);\n}\n" +
         "extern \"C\" " + facts(function, true) + "\n";
}

}  // namespace

std::vector<std::string> cuda_entry_objects(const StagedFunction& function, const Options& options,
                                            const std::filesystem::path& include) {
  const std::string name = codegen::function_identifier(function.name + linked_suffix);
  std::string text = source(function, options, name);
  if (!codegen::is_scalar_program(*function.module))
    return {compiled(text, options, {}),
            compiled(tensor_glue(function, name), options, {"-I" + include.string()})};
  const ir::Function& entry = *function.module->entry;
  const std::vector<ir::Type> parameters = entry.parameter_types();
  std::string list;
  for (std::size_t i = 0; i < parameters.size(); ++i)
    list += "(" + array(parameters[i], false) + ")in[" + std::to_string(i) + "], ";
  for (std::size_t i = 0; i < entry.result_types.size(); ++i)
    list += "(" + array(entry.result_types[i], true) + ")out[" + std::to_string(i) + "], ";
  const bool own_message = text.find(name + "_message(") != std::string::npos;
  const std::string cuda_message = "cudaGetErrorString((cudaError_t)status)";
  text += "\n#include \"lantern/runtime/workspace.h\"\n\nextern \"C\" void " +
          codegen::linked_entry(function.name) +
          "(lt_workspace* ws, const void* const* in, void* const* out) {\n  const int status = " + name +
          "_map(" + list + "1);\n  if (status != 0) ws->fail(ws, " +
          (own_message ? "status >= 20000 ? " + name + "_message() : " + cuda_message : cuda_message) +
          ");\n}\n" + "extern \"C\" " + facts(function, true) + "\n";
  return {compiled(text, options, {"-I" + include.string()})};
}

std::string cuda_header(const std::vector<StagedFunction>& functions, const std::string& file_name) {
  std::string guard = "LANTERN_", text;
  for (const char c : file_name) {
    const auto letter = static_cast<unsigned char>(c);
    guard += std::isalnum(letter) != 0 ? static_cast<char>(std::toupper(letter)) : '_';
  }
  std::vector<const ir::Module*> with_tensors;
  for (const StagedFunction& f : functions) {
    const ir::Function& entry = *f.module->entry;
    if (!codegen::is_scalar_program(*f.module)) {
      with_tensors.push_back(f.module.get());
      continue;
    }
    std::string list, types;
    codegen::NameScope names;
    names.reserve("n");
    for (const ir::Value* p : entry.body->params) {
      list += array(p->type, false) + (p->name ? " " + names.unique(p->name) : "") + ", ";
      types += (types.empty() ? "" : ", ") + p->type.str();
    }
    for (const ir::Type& t : entry.result_types) list += array(t, true) + ", ";
    const std::string name = codegen::function_identifier(f.name);
    text += "/* " + name + "(" + types +
            ") for each of n elements; arrays on the host. Returns 0 or an error code. */\n" + "int " + name +
            "_map(" + list + "int64_t n);\n";
  }
  std::string tensors;
  codegen::PrintOptions print;
  print.status_functions = true;
  if (!with_tensors.empty())
    tensors = codegen::print_header(with_tensors, print, file_name + (text.empty() ? "" : "_tensors"),
                                    std::vector<bool>(with_tensors.size(), true), true);
  if (text.empty()) return tensors;
  return tensors + "/* Generated by Lantern. */\n#ifndef " + guard + "\n#define " + guard +
         "\n\n#include <stdbool.h>\n#include <stdint.h>\n\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n" +
         text + "\n#ifdef __cplusplus\n}\n#endif\n\n#endif\n";
}

std::vector<std::string> cuda_link_arguments() {
  namespace fs = std::filesystem;
  const auto nvcc = codegen::find_nvcc();
  if (nvcc) {
    const fs::path root = fs::weakly_canonical(*nvcc).parent_path().parent_path();
    for (const char* folder : {"lib64", "lib"}) {
      const fs::path library = root / folder / "libcudart_static.a";
      if (fs::exists(library)) return {library.string(), "-lrt", "-ldl", "-pthread"};
    }
  }
  throw Error(
      "the CUDA run time (libcudart_static.a) was not found; install the CUDA toolkit and set "
      "LANTERN_CUDA_PATH to its "
      "folder, for instance /usr/local/cuda");
}

}  // namespace lantern::tool
