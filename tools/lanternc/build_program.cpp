// Generated code is compiled in this process while the system's compiler works on the user's files.
#include "build_program.hpp"

#include <string>

#include "cuda_code.hpp"
#include "facts.hpp"
#include "lantern/codegen/library.hpp"
#include "lantern/codegen/toolchain/clang.hpp"
#include "lantern/codegen/toolchain/process.hpp"
#include "lantern/compiler/control/control.hpp"
#include "lantern/ir/prototype.hpp"

namespace lantern::tool {

using namespace core;

namespace {

std::vector<std::string> cpu_objects(const std::vector<StagedFunction>& functions, const Options& options) {
  close_functions(functions);
  codegen::PrintOptions print;
  print.line_directives = print.named_values = options.debug;
  print.check_nan = options.check == Check::nan;
  print.vectors = vector_lanes(options) > 0;
  print.limited_stack = true;
  print.strict_math = options.strict_math;
  std::string text;
  run_on_large_stack(
      [&] { text = codegen::print_library(modules(functions), print, codegen::CTarget(), linked_suffix); });
  for (const StagedFunction& f : functions) text += facts(f, options.strict_math) + "\n";

  codegen::ClangOptions clang;
  clang.opt_level = options.code_level();
  clang.debug_info = options.debug;
  clang.pic = true;  // programs are position-independent by default
  clang.target_cpu = options.cpu;
  clang.contract = !options.strict_math;
  const std::vector<char> object = codegen::object_with_clang(text, codegen::Language::c, clang);
  return {std::string(object.begin(), object.end())};
}

std::vector<std::string> gpu_objects(const std::vector<StagedFunction>& functions, const UserCode& code,
                                     const Options& options) {
  std::vector<std::string> objects;
  for (const StagedFunction& f : functions)
    objects.push_back(cuda_entry_object(f, options, code.installation().include));
  return objects;
}

}  // namespace

void build_program(const std::vector<StagedFunction>& functions, UserCode& code, const Options& options,
                   Output& output) {
  const std::vector<std::string> objects =
      functions.empty() ? std::vector<std::string>{}
      : options.cuda ? gpu_objects(functions, code, options) : cpu_objects(functions, options);
  std::vector<std::filesystem::path> generated;
  for (const std::string& contents : objects) {
    generated.push_back(code.directory() / ("generated" + std::to_string(generated.size()) + ".o"));
    codegen::write_file(generated.back(), contents);
  }
  std::vector<std::string> external;
  for (const StagedFunction& f : functions)
    for (const ir::Prototype& p : ir::external_functions(*f.module)) external.push_back(p.name);
  output.take(code.link_program(generated, options.cuda ? cuda_link_arguments() : std::vector<std::string>{}, external));
}

}  // namespace lantern::tool
