// --run: arrays in, arrays out, and how long it takes.
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <utility>

#include "lantern/codegen/toolchain/disk_cache.hpp"
#include "lantern/data.hpp"
#include "lantern/onnx.hpp"
#include "tool.hpp"

namespace lantern::tool {

namespace {

template <class T>
void copy_elements(const AnyTensor& from, onnx::Value& to) {
  const TensorValue<T> t = from.convert<T>();
  std::copy(t.data.begin(), t.data.end(), to.mutable_elements<T>().begin());
}

/// An array as a value of the element type that is declared. Error: elements that it has no place for.
onnx::Value value_of(const AnyTensor& array, const onnx::ValueInfo& declared) {
  if (declared.structure != onnx::ValueInfo::Structure::tensor || !onnx::is_supported(declared.element))
    throw Error("argument '" + declared.name + "': expected a model whose arguments are tensors of numbers");
  onnx::Value v(declared.element, array.shape());
  switch (onnx::kind_of(declared.element)) {
    case ir::Kind::boolean:
      copy_elements<bool>(array, v);
      break;
    case ir::Kind::i32:
      copy_elements<std::int32_t>(array, v);
      break;
    case ir::Kind::i64:
      copy_elements<std::int64_t>(array, v);
      break;
    case ir::Kind::f32:
      copy_elements<float>(array, v);
      break;
    default:
      copy_elements<double>(array, v);
      break;
  }
  return v;
}

AnyTensor array_of(const onnx::Value& v, const std::string& name) {
  if (!onnx::is_supported(v.element()))
    throw Error("result '" + name + "': expected numbers or strings, got a " + v.describe());
  switch (onnx::kind_of(v.element())) {
    case ir::Kind::boolean:
      return v.tensor<bool>();
    case ir::Kind::i32:
      return v.tensor<std::int32_t>();
    case ir::Kind::i64:
      return v.tensor<std::int64_t>();
    case ir::Kind::f32:
      return v.tensor<float>();
    default:
      return v.tensor<double>();
  }
}

/// A result among the arrays: a sequence as one for each item, 'NAME.0' the first; no value as none. Strings,
/// which the archive has no place for, are printed, a line for each tensor.
void add_result(const onnx::Value& v, const std::string& name, NamedTensors& out) {
  if (v.is_sequence()) {
    for (std::size_t k = 0; k < v.items().size(); ++k)
      add_result(v.items()[k], name + "." + std::to_string(k), out);
  } else if (v.element() == onnx::Element::string) {
    std::string line = name + " : " + v.describe();
    const char* before = " = '";
    for (const std::string& text : v.texts()) {
      line += before + text + "'";
      before = ", '";
    }
    std::printf("%s\n", line.c_str());
  } else if (v.element() != onnx::Element::undefined) {
    out.emplace(name, array_of(v, name));
  }
}

/// Prints how long a run takes: the median by the clock, and the least time of the processor.
void time_runs(const onnx::Session& session, const std::vector<onnx::Value>& arguments, int runs) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> elapsed, used;
  for (int i = 0; i < runs; ++i) {
    const std::clock_t processor = std::clock();
    const Clock::time_point start = Clock::now();
    session.run(arguments);
    elapsed.push_back(std::chrono::duration<double, std::milli>(Clock::now() - start).count());
    used.push_back(1e3 * static_cast<double>(std::clock() - processor) / CLOCKS_PER_SEC);
  }
  const auto median = elapsed.begin() + static_cast<std::ptrdiff_t>(elapsed.size() / 2);
  std::nth_element(elapsed.begin(), median, elapsed.end());
  std::printf("a run takes %.3f ms, median of %d; %.3f ms of the processor, at least\n", *median, runs,
              *std::ranges::min_element(used));
}

/// Compiles into the cache in a child process, so that this one never has the compiler's memory. Whatever
/// goes wrong there goes wrong here again, or does not. The child ends with this process.
void prepare_in_child(const onnx::Session& session, const std::vector<onnx::Value>& arguments) {
  const pid_t parent = getpid(), child = fork();
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(0);
    try {
      session.prepare(arguments);
    } catch (...) {
    }
    _exit(0);
  }
  if (child > 0) waitpid(child, nullptr, 0);
}

}  // namespace

void run_model(onnx::Model model, const OnnxOptions& options) {
  const NamedTensors arrays = load_npz(options.inputs);
  std::vector<onnx::ValueInfo> with_default;  // inputs that weights represent may be given another value
  for (const onnx::ValueInfo& v : model.graph.inputs)
    if (model.graph.initialiser(v.name)) with_default.push_back(v);
  onnx::Session session = onnx::compile(std::move(model),
                                        {.target = core::Target::cpp,
                                         .opt = options.opt,
                                         .strict_math = options.strict_math,
                                         .threads = options.threads,
                                         .cache = options.cache},
                                        options.half == "exact" ? onnx::Half::exact : onnx::Half::wide);
  std::vector<onnx::Value> arguments;
  for (const onnx::ValueInfo& v : session.arguments()) {
    const auto at = arrays.find(v.name);
    if (at == arrays.end()) {
      std::string have;
      for (const auto& entry : arrays) have += (have.empty() ? "" : ", ") + entry.first;
      throw Error(options.inputs + ": expected an array '" + v.name + "' for the model's argument, got " +
                  (have.empty() ? "none" : have));
    }
    arguments.push_back(value_of(at->second, v));
  }
  for (const onnx::ValueInfo& v : with_default)
    if (const auto at = arrays.find(v.name); at != arrays.end())
      session.set_parameter(v.name, value_of(at->second, v));
  if (options.cache && codegen::private_cache_directory("code")) prepare_in_child(session, arguments);
  const std::vector<onnx::Value> results = session.run(arguments);
  if (options.repeat > 0) time_runs(session, arguments, options.repeat);
  NamedTensors out;
  for (std::size_t i = 0; i < results.size(); ++i) add_result(results[i], session.results()[i].name, out);
  save_npz(options.output, out);
}

}  // namespace lantern::tool
