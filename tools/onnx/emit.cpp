// --emit: the model's function as text or code, and its weights.
#include <algorithm>
#include <array>
#include <filesystem>
#include <iostream>

#include "lantern/codegen/cpp/print_cpp.hpp"
#include "lantern/codegen/cuda/print_cuda.hpp"
#include "lantern/codegen/library.hpp"
#include "lantern/codegen/toolchain/clang.hpp"
#include "lantern/codegen/toolchain/process.hpp"
#include "lantern/codegen/toolchain/system_compiler.hpp"
#include "lantern/compiler/passes/direct/close.hpp"
#include "lantern/compiler/passes/direct/unwind.hpp"
#include "lantern/compiler/passes/pipeline.hpp"
#include "lantern/data.hpp"
#include "lantern/ir/parse.hpp"
#include "lantern/ir/print.hpp"
#include "lantern/onnx.hpp"
#include "tool.hpp"

namespace lantern::tool {

namespace {

bool is_text(const OnnxOptions& o) {
  return o.emit == "c" || o.emit == "cpp" || o.emit == "cuda" || o.emit == "header";
}

int lanes_of(const OnnxOptions& o, const std::string& emit) {
  return o.opt < 2 || emit == "c" || emit == "cuda" ? 0 : codegen::arithmetic_of(o.cpu).lanes;
}

codegen::PrintOptions print_options(const OnnxOptions& o, const std::string& emit) {
  codegen::PrintOptions print;
  print.standalone = true;
  print.named_values = true;
  print.vectors = lanes_of(o, emit) > 0;
  print.register_lanes = lanes_of(o, emit);
  print.threads = o.threads;
  print.processor = o.cpu;
  print.with_main = o.with_main;
  print.strict_math = o.strict_math;
  print.contraction = is_text(o) && !o.strict_math;
  print.vector_library = !is_text(o);
  return print;
}

/// What was staged, after the passes for one kind of output.
std::unique_ptr<ir::Module> optimised(const std::string& staged, const OnnxOptions& o,
                                      const std::string& emit) {
  std::unique_ptr<ir::Module> module = ir::parse(staged);
  passes::PipelineOptions pipeline;
  pipeline.opt_level = o.opt;
  pipeline.vector_lanes = lanes_of(o, emit);
  pipeline.packed_products = o.opt >= 2 && emit == "c";
  pipeline.device = emit == "cuda";
  pipeline.threads = o.threads;
  passes::run_pipeline(*module, pipeline);
  if (emit == "cuda") passes::unwind(*module);
  return module;
}

void write(const OnnxOptions& o, const std::string& text) {
  if (o.output.empty())
    std::cout << text;
  else
    codegen::write_file(o.output, text);
}

/// Whether the entry takes a workspace, as C or as C++: the signature is the same for all.
bool asks_for_workspace(const std::string& staged, const OnnxOptions& o) {
  const auto cpp = optimised(staged, o, "cpp");
  if (codegen::asks_for_workspace(*cpp, print_options(o, "cpp"), codegen::CppTarget())) return true;
  return std::ranges::any_of(std::array{"c", "object"}, [&](const char* emit) {
    const auto c = optimised(staged, o, emit);
    passes::close(*c);
    return codegen::asks_for_workspace(*c, print_options(o, emit), codegen::CTarget());
  });
}

/// As a text for others, or as what becomes an object.
std::string c_source(const std::string& staged, const OnnxOptions& o, bool workspace, const std::string& emit = "c") {
  const auto module = optimised(staged, o, emit);
  passes::close(*module);
  const ir::Module* const one = module.get();
  return codegen::print_library(std::span(&one, 1), print_options(o, emit), codegen::CTarget(), {}, {workspace});
}

std::string cpp_source(const std::string& staged, const OnnxOptions& o, bool workspace) {
  const auto module = optimised(staged, o, "cpp");
  const ir::Module* const one = module.get();
  return codegen::print_library(std::span(&one, 1), print_options(o, "cpp"), codegen::CppTarget(), {},
                                {workspace});
}

std::vector<char> object(const std::string& staged, const OnnxOptions& o, bool workspace) {
  codegen::ClangOptions clang;
  clang.opt_level = o.opt;
  clang.pic = true;
  clang.target_cpu = o.cpu;
  clang.contract = !o.strict_math;
  return codegen::object_with_clang(c_source(staged, o, workspace, "object"), codegen::Language::c, clang);
}

void link_shared(const std::vector<char>& bytes, const OnnxOptions& o) {
  const codegen::TemporaryDirectory directory;
  const std::filesystem::path path = directory.path() / "model.o";
  codegen::write_file(path, std::string(bytes.begin(), bytes.end()));
  std::vector<std::string> command = codegen::system_compiler_command();
  command.insert(command.end(), {"-shared", path.string(), "-o", o.output, "-lm"});
  const codegen::ProcessResult linking = codegen::run_process(command);
  if (linking.status != 0) throw Error("the generated code did not link: " + linking.out + linking.err);
}

/// The parts of the vector of weights, by their names.
template <class E>
void add_parts(const onnx::ImportedModel& imported, NamedTensors& all) {
  const std::vector<E> values = imported.parameters<E>();
  for (const onnx::Parameter& p : imported.layout()) {
    const auto from = values.begin() + p.offset;
    all.emplace(p.name, TensorValue<E>(std::vector<E>(from, from + p.size), p.shape));
  }
}

void write_weights(const onnx::Model& model, const OnnxOptions& o) {
  const onnx::ImportedModel imported = imported_of(model, o);
  NamedTensors all;
  if (imported.kind() == ir::Kind::f64)
    add_parts<double>(imported, all);
  else
    add_parts<float>(imported, all);
  save_safetensors(o.output, all, {{"format", "lantern"}, {"model", model.graph.name}});
}

}  // namespace

void emit(const onnx::Model& model, const OnnxOptions& o) {
  if (o.emit == "weights") return write_weights(model, o);
  const std::string staged = ir::print(*program_of(model, o), {.locations = true, .names = true});
  const std::string order =
      "// The weights are one vector: where each begins, its name in the model and its shape.\n" +
      layout_of(model, o);
  if (o.emit == "ir") return write(o, ir::print(*optimised(staged, o, "ir")));
  if (o.emit == "cuda")
    return write(o, order + codegen::print_cuda(*optimised(staged, o, "cuda"), print_options(o, "cuda")));
  const bool workspace = asks_for_workspace(staged, o);
  if (o.emit == "cpp") return write(o, order + cpp_source(staged, o, workspace));
  if (o.emit == "c") return write(o, order + c_source(staged, o, workspace));
  if (o.emit == "header") {
    const auto module = optimised(staged, o, "cpp");
    passes::close(*module);
    const ir::Module* const one = module.get();
    const std::string guard = o.output.empty() ? function_name(model, o) + ".h"
                                               : std::filesystem::path(o.output).filename().string();
    return write(
        o, order + codegen::print_header(std::span(&one, 1), print_options(o, "header"), guard, {workspace}));
  }
  const std::vector<char> bytes = object(staged, o, workspace);
  if (o.emit == "object") return codegen::write_file(o.output, std::string(bytes.begin(), bytes.end()));
  link_shared(bytes, o);
}

}  // namespace lantern::tool
