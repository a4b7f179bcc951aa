// One function for each kind of output.
#include "emit.hpp"

#include <algorithm>
#include <filesystem>

#include "cuda_code.hpp"
#include "differentiable.hpp"
#include "fortran.hpp"
#include "jax.hpp"
#include "julia.hpp"
#include "lantern/codegen/cpp/print_cpp.hpp"
#include "lantern/codegen/cuda/print_cuda.hpp"
#include "lantern/codegen/library.hpp"
#include "lantern/codegen/toolchain/clang.hpp"
#include "lantern/codegen/toolchain/process.hpp"
#include "lantern/codegen/toolchain/system_compiler.hpp"
#include "lantern/compiler/control/control.hpp"
#include "lantern/compiler/passes/direct/close.hpp"
#include "lantern/ir/print.hpp"
#include "mex.hpp"
#include "page.hpp"
#include "page_drawing.hpp"
#include "python.hpp"
#include "report.hpp"
#include "torch.hpp"
#include "torch_text.hpp"
#include "wheel.hpp"

namespace lantern::tool {

using namespace core;

namespace {

using Functions = std::vector<StagedFunction>;

codegen::PrintOptions standalone(const Options& options) {
  codegen::PrintOptions print;
  print.standalone = true;
  print.status_functions = true;
  print.strided_functions = options.strided;
  print.limited_stack = options.limited_stack;
  print.prefix = options.prefix;
  print.mappings = options.mappings;
  print.products = options.products;
  print.storage = options.storage;
  print.line_directives = options.debug;
  print.named_values = options.debug || options.is_text();
  print.check_nan = options.check == Check::nan;
  print.vectors = vector_lanes(options) > 0;
  print.register_lanes = vector_lanes(options);
  print.threads = options.threads;
  print.processor = options.cpu;
  print.with_main = options.with_main;
  print.strict_math = options.strict_math;
  print.contraction = options.is_text() && !options.strict_math;
  print.vector_library = !options.is_text();  // who compiles a text chooses what it is linked with
  return print;
}

bool deep(const ir::Module& module) {
  return std::ranges::any_of(module.functions(), [](const ir::Function* f) {
    return codegen::continuation_depth(*f) >= codegen::deepest_nest;
  });
}

/// Whether an entry asks for a workspace when the module is printed as C++, or as C.
bool asks_for_workspace(ir::Module& module, const codegen::PrintOptions& print) {
  if (!deep(module) && codegen::asks_for_workspace(module, print, codegen::CppTarget())) return true;
  passes::close(module);
  return codegen::asks_for_workspace(module, print, codegen::CTarget()) ||
         codegen::asks_for_workspace(module, print, codegen::CppTarget());
}

/// Of each function the same for c, cpp, header, object and shared: what one of them needs is in the
/// signature of all.
std::vector<bool> workspaces(const Functions& functions, Options options) {
  std::vector<bool> all;
  for (const StagedFunction& f : functions) {
    bool any = false;
    for (const Emit kind : {Emit::cpp, Emit::c}) {
      options.emit = kind;
      if (!any)
        any = asks_for_workspace(*optimised(f.staged, options, vector_lanes(options)), standalone(options));
    }
    all.push_back(any);
  }
  return all;
}

std::string graphs(const Functions& functions) {
  std::string text;
  for (const StagedFunction& f : functions) text += (text.empty() ? "" : "\n") + ir::print(*f.module);
  return text;
}

std::string c_source(const Functions& functions, const Options& options) {
  close_functions(functions);
  return codegen::print_library(modules(functions), standalone(options), codegen::CTarget(), {},
                                workspaces(functions, options));
}

/// Continuations that are left become nested lambdas where compilers can take as many brackets.
std::string cpp_source(const Functions& functions, const Options& options) {
  if (std::ranges::any_of(functions, [](const StagedFunction& f) { return deep(*f.module); }))
    close_functions(functions);
  return codegen::print_library(modules(functions), standalone(options), codegen::CppTarget(), {},
                                workspaces(functions, options));
}

std::string header(const Functions& functions, const Options& options) {
  const std::string name = options.output.empty() ? functions.front().name + ".h"
                                                  : std::filesystem::path(options.output).filename().string();
  if (options.cuda) return cuda_header(functions, name);
  close_functions(functions);
  return codegen::print_header(modules(functions), standalone(options), name, workspaces(functions, options));
}

/// Objects of the stand-alone sources. `more` is text behind the first of a GPU.
std::vector<std::string> objects(const Functions& functions, const Options& options, const std::string& more = {}) {
  std::vector<std::string> all;
  if (options.cuda) {
    for (const StagedFunction& f : functions) all.push_back(cuda_object(f, options, &f == &functions.front() ? more : ""));
    return all;
  }
  codegen::ClangOptions clang;
  clang.opt_level = options.code_level();
  clang.debug_info = options.debug;
  clang.pic = true;
  clang.target_cpu = options.cpu;
  clang.contract = !options.strict_math;
  const auto bytes = codegen::object_with_clang(c_source(functions, options), codegen::Language::c, clang);
  all.emplace_back(bytes.begin(), bytes.end());
  return all;
}

/// Several objects as one, or as a shared library, in the directory.
std::filesystem::path link(const Options& options,
                           const codegen::TemporaryDirectory& directory, std::vector<std::string> contents) {
  const std::filesystem::path result = directory.path() / "linked";
  std::vector<std::string> command = codegen::system_compiler_command();
  if (options.emit == Emit::object)
    command.insert(command.end(), {"-r", "-nostdlib"});
  else
    command.push_back("-shared");
  for (std::size_t i = 0; i < contents.size(); ++i) {
    const std::filesystem::path path = directory.path() / (std::to_string(i) + ".o");
    codegen::write_file(path, contents[i]);
    command.push_back(path.string());
  }
  command.insert(command.end(), {"-o", result.string()});
  if (options.emit != Emit::object) {
    for (const std::string& flag : options.link_flags) command.push_back(flag);
    if (options.cuda)
      for (const std::string& flag : cuda_link_arguments()) command.push_back(flag);
    command.push_back("-lm");
    // Functions call each other, whatever names the process has besides: the C library has a `times`.
    command.push_back("-Wl,-Bsymbolic");
  }
  const codegen::ProcessResult linking = codegen::run_process(command);
  tell(linking.out + linking.err);
  if (linking.status != 0) throw Error("the generated code did not link");
  return result;
}

void linked(const Functions& functions, const Options& options, Output& output) {
  const codegen::TemporaryDirectory directory;
  output.take(link(options, directory, objects(functions, options)));
}

/// A shared library with the functions, and the names of NAME_try there.
struct ModuleLibrary {
  std::string bytes;
  std::vector<std::string> symbols;
};

/// Whether the entry of each function takes a workspace in the library. All of a GPU do.
std::vector<bool> library_workspaces(const Functions& functions, const Options& options) {
  return options.cuda ? std::vector<bool>(functions.size(), true) : workspaces(functions, options);
}

std::vector<std::string> status_names(const Functions& functions, const Options& options, const std::vector<bool>& workspace) {
  return codegen::status_names(modules(functions), standalone(options), codegen::CTarget(), workspace);
}

ModuleLibrary module_library(const Functions& functions, const Options& options, const std::string& more = {}) {
  const codegen::TemporaryDirectory directory;
  const std::filesystem::path library = link(options, directory, objects(functions, options, more));
  return {codegen::read_file(library), status_names(functions, options, library_workspaces(functions, options))};
}

std::string python(const Functions& functions, const Options& options) {
  const ModuleLibrary library = module_library(functions, options);
  return python_module(functions, library.symbols, library.bytes, options);
}

std::string packed(const Functions& functions, const Options& options) {
  const bool needs_numpy = std::ranges::any_of(functions, [](const StagedFunction& f) {
    const auto is_array = [](const ir::Type& t) { return !t.is_scalar(); };
    const ir::Function& entry = *f.module->entry;
    return std::ranges::any_of(entry.parameter_types(), is_array) || std::ranges::any_of(entry.result_types, is_array);
  });
  return wheel(wheel_name(options.output), python(functions, options), needs_numpy);
}

std::string julia(const Functions& functions, const Options& options) {
  refuse_trees(functions, "julia", "Julia");
  const ModuleLibrary library = module_library(functions, options);
  return julia_module(functions, library.symbols, library.bytes, options);
}

std::string fortran(const Functions& functions, const Options& options) {
  return fortran_module(functions, status_names(functions, options, workspaces(functions, options)), options);
}

std::string mex(const Functions& functions, const Options& options) {
  const std::string code = c_source(functions, options);
  return mex_source(functions, status_names(functions, options, workspaces(functions, options)), code, options);
}

std::string torch(const Functions& functions, const Options& options) {
  refuse_trees(functions, "torch", "PyTorch");
  const ModuleLibrary library = module_library(functions, options, options.cuda ? torch_copy : "");
  return torch_module(functions, library.symbols, library.bytes, options);
}

std::string jax(const Functions& functions, const Options& options) {
  const codegen::TemporaryDirectory directory;
  refuse_trees(functions, "jax", "JAX");
  const std::string headers = xla_headers();  // where there are none, that is told before functions are compiled
  std::vector<std::string> contents = objects(functions, options);
  const std::vector<bool> workspace = library_workspaces(functions, options);
  const std::vector<std::string> symbols = status_names(functions, options, workspace);
  const std::string header =
      codegen::print_header(modules(functions), standalone(options), "LANTERN_JAX_MODULE", workspace, options.cuda);
  contents.push_back(jax_handlers(functions, symbols, header, headers, options.cuda));
  const std::filesystem::path library = link(options, directory, std::move(contents));
  return jax_module(functions, symbols, codegen::read_file(library), options);
}

}  // namespace

void emit(const Functions& functions, const Options& options, Output& output) {
  run_on_large_stack([&] {
    switch (options.emit) {
      case Emit::ir:
      case Emit::cps:
        return output.write(graphs(functions));
      case Emit::c:
        return output.write(c_source(functions, options));
      case Emit::cpp:
        return output.write(cpp_source(functions, options));
      case Emit::cuda:
        return output.write(codegen::print_cuda(*functions.front().module, standalone(options)));
      case Emit::header:
        return output.write(header(functions, options));
      case Emit::svg:
        return output.write(ir::svg(ir::drawing(*functions.front().module), source_lines()));
      case Emit::html:
        return output.write(page(functions, options));
      case Emit::object:
      case Emit::shared:
        return linked(functions, options, output);
      case Emit::python:
        return output.write(python(functions, options));
      case Emit::wheel:
        return output.write(packed(functions, options));
      case Emit::jax:
        return output.write(jax(functions, options));
      case Emit::torch:
        return output.write(torch(functions, options));
      case Emit::julia:
        return output.write(julia(functions, options));
      case Emit::mex:
        return output.write(mex(functions, options));
      case Emit::fortran:
        return output.write(fortran(functions, options));
      case Emit::program:
      case Emit::rewritten:
        throw InternalError("a program is built, not emitted");
    }
  });
}

}  // namespace lantern::tool
