// Handlers in C++ against XLA's headers, and the module that registers them.
#include "jax.hpp"

#include <cstdlib>
#include <filesystem>

#include "device_numbers.hpp"
#include "differentiable.hpp"
#include "jax_text.hpp"
#include "lantern/codegen/target.hpp"
#include "lantern/codegen/toolchain/process.hpp"
#include "lantern/codegen/toolchain/system_compiler.hpp"
#include "lantern/ir/error.hpp"
#include "python_parts.hpp"
#include "report.hpp"

namespace lantern::tool {

using namespace core;
using ir::Kind;

namespace {

const char* xla_type(Kind kind) {
  switch (kind) {
    case Kind::boolean:
      return "PRED";
    case Kind::i32:
      return "S32";
    case Kind::i64:
      return "S64";
    case Kind::f32:
      return "F32";
    default:
      return "F64";
  }
}

/// As the header has elements.
std::string jax_element(Kind kind) { return codegen::CTarget().element(kind); }

/// With so many dimensions before its own.
std::string jax_tensor(const ir::Type& t, bool constant, int more = 0) {
  return std::string("lt_") + (constant ? "const_" : "") + ir::kind_name(kind_of(t)) + "_" +
         std::to_string(rank_of(t) + more) + "d";
}

/// What a call of a function on the GPU has besides.
constexpr const char* cuda_stream = "using lt_stream = struct CUstream_st*;\n";

/// Of any rank: under vmap there are dimensions before those of one example.
std::string buffer(const ir::Type& t) {
  return std::string("ffi::Buffer<ffi::") + xla_type(kind_of(t)) + ">";
}

/// What all handlers share.
constexpr const char* batches = R"cpp(
  // An argument or result of a batch. Dimensions before those of an example have size 1 where all examples
  // share it.
  template <class Buffer>
  struct Operand {
    Buffer& buffer;
    std::size_t lead;  // the number of these dimensions
    int64_t elements;  // of an example

    Operand(Buffer& b, std::size_t rank) : buffer(b), lead(b.dimensions().size() - rank), elements(1) {
      for (std::size_t k = 0; k < rank; ++k) elements *= dim(k);
    }
    int64_t dim(std::size_t k) const { return buffer.dimensions()[lead + k]; }
    int64_t examples() const {
      int64_t n = 1;
      for (std::size_t k = 0; k < lead; ++k) n *= buffer.dimensions()[k];
      return n;
    }
    // The data of an example, whose number counts through the dimensions of `results`.
    template <class Results>
    auto* at(const Results& results, int64_t example) const {
      int64_t offset = 0, stride = elements;
      for (std::size_t k = lead; k-- > 0;) {
        const int64_t size = buffer.dimensions()[k], all = results.buffer.dimensions()[k];
        if (size != 1) offset += example % all * stride;
        example /= all;
        stride *= size;
      }
      return buffer.typed_data() + offset;
    }
  };

  // A number of each example, also where all share one.
  template <class T>
  struct Numbers {
    std::vector<T> copies;
    const T* data;

    Numbers(const void* given, bool shared, int64_t n) : data(static_cast<const T*>(given)) {
      if (!shared) return;
      copies.assign(static_cast<std::size_t>(n), *data);
      data = copies.data();
    }
  };
)cpp";

/// "{x.dim(0), ...}", for a tensor of rank 0 "{1}"; with a size before them, "{n, x.dim(0), ...}".
std::string dimensions(const std::string& x, int rank, std::string text = {}) {
  for (int r = 0; r < rank; ++r) text += (text.empty() ? "" : ", ") + x + ".dim(" + std::to_string(r) + ")";
  return "{" + (text.empty() ? "1" : text) + "}";
}

/// All examples by one call of the function that has rows of them, where all have arrays of their own. A number that they share is
/// copied for each of them, on the processor.
std::string call_of_batch(const StagedFunction& function, const std::string& symbol, bool cuda) {
  const std::vector<ir::Type> parameters = caller_parameters(function), results = caller_results(function);
  std::string condition = "n > 1", numbers, targets, call;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const ir::Type& t = parameters[i];
    const std::string n = std::to_string(i), given = "a" + n + ".typed_data()", c = jax_element(kind_of(t));
    condition +=
        " && (o" + n + ".examples() == n" + (t.is_tensor() || cuda ? ")" : " || o" + n + ".examples() == 1)");
    if (!t.is_tensor() && !cuda)
      numbers += "    const Numbers<" + c + "> x" + n + "(" + given + ", o" + n + ".examples() == 1, n);\n";
    call += jax_tensor(t, true, 1) + "{" +
            (t.is_tensor() || cuda ? "reinterpret_cast<const " + c + "*>(" + given + ")" : "x" + n + ".data") + ", " +
            dimensions("o" + n, rank_of(t), "n") + "}, ";
  }
  for (std::size_t i = 0; i < results.size(); ++i) {
    const ir::Type& t = results[i];
    const std::string n = std::to_string(i);
    targets += "    " + jax_tensor(t, false, 1) + " t" + n + " = {reinterpret_cast<" + jax_element(kind_of(t)) + "*>(r" + n +
               "->typed_data()), " + dimensions("q" + n, rank_of(t), "n") + "};\n";
    call += "&t" + n + ", ";
  }
  return "  if (" + condition + ") {\n" + numbers + targets + "    if (" + symbol + "(" + call +
         (cuda ? "stream, &message" : "&message") + ") != 0) return ffi::Error::Internal(message);\n    return ffi::Error::Success();\n  }\n";
}

/// Where JAX has arrays of the processor for a function on the GPU.
std::string refusing_handler(const std::string& name, const std::string& symbol) {
  return "static ffi::Error refuse_" + symbol + "(ffi::RemainingArgs, ffi::RemainingRets) {\n  return ffi::Error::InvalidArgument(\"" +
         name + ": expected arrays on a GPU, got arrays of the CPU\");\n}\nXLA_FFI_DEFINE_HANDLER_SYMBOL(lt_jax_cpu_" + symbol +
         ", refuse_" + symbol + ", ffi::Ffi::Bind().RemainingArgs().RemainingRets());\n";
}

/// `batch`: the symbol of the function that has rows of examples, or nothing. A number that lies in the GPU's memory is a tensor
/// of one element for the function, and an array of no dimensions for JAX.
std::string handler(const StagedFunction& function, const std::string& symbol, const std::string& batch, bool cuda) {
  const ir::Function& f = *function.module->entry;
  const std::vector<ir::Type> seen = caller_parameters(function), seen_results = caller_results(function);
  std::string parameters = cuda ? "lt_stream stream" : "", binding = cuda ? ".Ctx<ffi::PlatformStream<lt_stream>>()" : "";
  const std::string last = cuda ? "stream, &message" : "&message";
  std::string operands, targets, call;
  for (std::size_t i = 0; i < f.body->params.size(); ++i) {
    const ir::Type& t = f.body->params[i]->type;
    const std::string n = std::to_string(i), data = "o" + n + ".at(q0, e)";
    parameters += (parameters.empty() ? "" : ", ") + buffer(t) + " a" + n;
    binding += ".Arg<" + buffer(t) + ">()";
    operands += "  const Operand o" + n + "(a" + n + ", " + std::to_string(rank_of(seen[i])) + ");\n";
    call += t.is_tensor() ? jax_tensor(t, true) + "{reinterpret_cast<const " + jax_element(t.element()) + "*>(" + data + "), " +
                                dimensions("o" + n, rank_of(seen[i])) + "}, "
                          : "*" + data + ", ";
  }
  for (std::size_t i = 0; i < f.result_types.size(); ++i) {
    const ir::Type& t = f.result_types[i];
    const std::string n = std::to_string(i), data = "q" + n + ".at(q0, e)";
    parameters += (parameters.empty() ? "" : ", ") + std::string("ffi::Result<") + buffer(t) + "> r" + n;
    binding += ".Ret<" + buffer(t) + ">()";
    operands += "  const Operand q" + n + "(*r" + n + ", " + std::to_string(rank_of(seen_results[i])) + ");\n";
    if (!t.is_tensor()) {
      call += data + ", ";
      continue;
    }
    targets += "    " + jax_tensor(t, false) + " t" + n + " = {reinterpret_cast<" + jax_element(t.element()) + "*>(" + data +
               "), " + dimensions("q" + n, rank_of(seen_results[i])) + "};\n";
    call += "&t" + n + ", ";
  }
  return "static ffi::Error call_" + symbol + "(" + parameters + ") {\n  const char* message = nullptr;\n" +
         operands + "  const int64_t n = q0.examples();\n" + (batch.empty() ? "" : call_of_batch(function, batch, cuda)) +
         "  for (int64_t e = 0; e < n; ++e) {\n" + targets + "    if (" + symbol + "(" + call + last +
         ") != 0) return ffi::Error::Internal(message);\n  }\n" +
         "  return ffi::Error::Success();\n}\nXLA_FFI_DEFINE_HANDLER_SYMBOL(lt_jax_" + symbol + ", call_" +
         symbol + ", ffi::Ffi::Bind()" + binding + ");\n";
}

/// A call with ones, for the shapes of its results.
std::string shape_finder(const StagedFunction& function, const std::string& symbol, bool cuda) {
  const ir::Function& f = *function.module->entry;
  const std::vector<ir::Type> seen = caller_parameters(function), seen_results = caller_results(function);
  std::string before, call, after;
  for (std::size_t i = 0; i < f.body->params.size(); ++i) {
    const ir::Type& t = f.body->params[i]->type;
    const std::string x = "a" + std::to_string(i);
    if (!t.is_tensor()) {
      if (t.is_integer())
        before += std::string("  const auto ") + x + " = static_cast<" + jax_element(t.kind()) + ">(*integers++);\n";
      call += t.is_integer() ? x + ", " : std::string("1, ");
      continue;
    }
    if (seen[i].is_scalar()) {
      const std::string c = jax_element(t.element());
      before += "  const " + c + " " + x + " = " + (seen[i].is_integer() ? "static_cast<" + c + ">(*integers++)" : "1") + ";\n";
      call += jax_tensor(t, true) + "{&" + x + ", {1}}, ";
      continue;
    }
    const std::string rank = std::to_string(t.rank());
    before += "  " + jax_tensor(t, true) + " t" + x + " = {nullptr, {1}};\n  std::size_t n" + x +
              " = 1;\n  for (int r = 0; r < " + rank + "; ++r) n" + x + " *= static_cast<std::size_t>(t" + x +
              ".dim[r] = *sizes++);\n  const std::vector<" + jax_element(t.element()) + "> " + x + "(n" + x + ", 1);\n  t" + x +
              ".data = " + x + ".data();\n";
    call += "t" + x + ", ";
  }
  for (std::size_t i = 0; i < f.result_types.size(); ++i) {
    const ir::Type& t = f.result_types[i];
    const std::string r = "r" + std::to_string(i);
    before += "  " +
              (t.is_tensor() ? jax_tensor(t, false)
               : t.is_bool() ? std::string("bool")
                             : jax_element(t.kind())) +
              " " + r + " = {};\n";
    call += "&" + r + ", ";
    if (seen_results[i].is_tensor())
      after += "  for (int r = 0; r < " + std::to_string(t.rank()) + "; ++r) *out++ = " + r + ".dim[r];\n";
  }
  return "extern \"C\" int lt_shapes_" + symbol +
         "(const int64_t* integers, const int64_t* sizes, int64_t* out, const char** message) try {\n" +
         before + "  (void)integers, (void)sizes;\n  if (" + symbol + "(" + call +
         (cuda ? "nullptr, " : "") + "message) != 0) return 1;\n" + after +
         "  (void)out;\n  return 0;\n} catch (const std::bad_alloc&) {\n  *message = \"out of memory\";\n  "
         "return 1;\n}\n\n";
}

}  // namespace

std::string xla_headers() {
  const char* given = std::getenv("LANTERN_PYTHON");
  const std::string python = given != nullptr ? given : "python3";
  const std::string remedy = "; activate an environment with jax, or name its interpreter by LANTERN_PYTHON";
  if (!codegen::find_program(python)) throw Error("--emit=jax: there is no '" + python + "'" + remedy);
  const codegen::ProcessResult found = codegen::run_process(
      {python, "-c",
       "import jaxlib, os; print(os.path.join(os.path.dirname(jaxlib.__file__), 'include'), end='')"});
  if (found.status != 0)
    throw Error("--emit=jax: '" + python + "' has no jaxlib, whose headers are needed" + remedy);
  if (!std::filesystem::is_regular_file(found.out + "/xla/ffi/api/ffi.h"))
    throw Error("--emit=jax: the jaxlib of '" + python +
                "' has no xla/ffi/api/ffi.h: it is too old (0.4.31 has it)");
  return found.out;
}

std::string jax_handlers(const std::vector<StagedFunction>& functions,
                         const std::vector<std::string>& symbols, const std::string& header,
                         const std::string& headers, bool cuda) {
  std::string text = "#include <new>\n#include <vector>\n#include \"xla/ffi/api/ffi.h\"\n" + header +
                     "namespace ffi = xla::ffi;\n" + (cuda ? cuda_stream : "") + batches;
  for (std::size_t i = 0; i < functions.size(); ++i) {
    if (functions[i].batch) continue;
    const bool batch = i + 1 < functions.size() && functions[i + 1].batch;
    text += shape_finder(functions[i], symbols[i], cuda) + handler(functions[i], symbols[i], batch ? symbols[i + 1] : "", cuda) +
            (cuda ? refusing_handler(functions[i].name, symbols[i]) : "") + "\n";
  }
  const codegen::TemporaryDirectory directory;
  const std::filesystem::path source = directory.path() / "handlers.cpp",
                              object = directory.path() / "handlers.o";
  codegen::write_file(source, text);
  std::vector<std::string> command = codegen::system_compiler_command();
  // Below -O2 the header's decoding of a call is not inlined, and takes a quarter of a microsecond.
  for (const std::string& word :
       {std::string("-std=c++17"), std::string("-O2"), std::string("-fPIC"), std::string("-w"),
        "-I" + headers, std::string("-c"), source.string(), std::string("-o"), object.string()})
    command.push_back(word);
  const codegen::ProcessResult result = codegen::run_process(command);
  if (result.status != 0) {
    tell(result.out + result.err);
    throw Error("--emit=jax: the handlers do not compile with the headers in " + headers);
  }
  return codegen::read_file(object);
}

std::string jax_module(const std::vector<StagedFunction>& functions, const std::vector<std::string>& symbols,
                       const std::string& library, const Options& options) {
  const std::string places = options.cuda ? "(\"CUDA\", \"lt_jax_\"), (\"cpu\", \"lt_jax_cpu_\")" : "(\"cpu\", \"lt_jax_\"),";
  return differentiable_module(functions, symbols, library, options, "JAX", options.cuda ? "jax with its CUDA plugin" : "jax",
                               "\n_handlers = (" + places + ")  # platforms, and what handlers of functions there begin with\n" + jax_text);
}

}  // namespace lantern::tool
