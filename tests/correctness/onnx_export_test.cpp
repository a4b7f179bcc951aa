// Programs written as ONNX files: read by the importer, and by onnxruntime where it is installed, they
// compute what they computed before.
#include <algorithm>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <lantern/data.hpp>

#include "lantern/codegen/toolchain/process.hpp"
#include "onnx_programs.hpp"

using namespace lantern;
using namespace onnx_programs;
namespace fs = std::filesystem;

namespace {

void require_close(const onnx::Value& a, const onnx::Value& b, double tolerance) {
  REQUIRE(a.element() == b.element());
  REQUIRE(a.shape() == b.shape());
  double largest = 1;
  for (std::size_t i = 0; i < static_cast<std::size_t>(b.size()); ++i)
    if (std::isfinite(b.at(i))) largest = std::max(largest, std::abs(b.at(i)));
  for (std::size_t i = 0; i < static_cast<std::size_t>(b.size()); ++i) {
    const double x = a.at(i), y = b.at(i);
    if (!(x == y || (std::isnan(x) && std::isnan(y)) || std::abs(x - y) <= tolerance * largest))
      FAIL("element " << i << ": expected " << y << ", got " << x);
  }
}

void check_cases(const std::vector<Case>& cases) {
  for (const Case& c : cases) {
    INFO(c.name);
    const std::string bytes = onnx::write(c.model);
    if (const char* kept = std::getenv("LANTERN_ONNX_KEEP"))
      onnx::detail::write_file(fs::path(kept) / (c.name + ".onnx"), bytes);
    const onnx::Model model = onnx::parse(std::as_bytes(std::span(bytes)), c.name);
    const std::vector<onnx::Value> results = onnx::eager(model).run(c.arguments);
    REQUIRE(results.size() == c.expected.size());
    for (std::size_t i = 0; i < results.size(); ++i) {
      INFO("result " << i);
      require_close(results[i], c.expected[i], c.tolerance);
    }
  }
}

template <class T>
void add(std::map<std::string, AnyTensor>& arrays, const std::string& name, const onnx::Value& v) {
  arrays.emplace(name, v.tensor<T>());
}
void add_array(std::map<std::string, AnyTensor>& arrays, const std::string& name, const onnx::Value& v) {
  switch (v.element()) {
    case onnx::Element::boolean:
      return add<bool>(arrays, name, v);
    case onnx::Element::int32:
      return add<std::int32_t>(arrays, name, v);
    case onnx::Element::int64:
      return add<std::int64_t>(arrays, name, v);
    case onnx::Element::float32:
      return add<float>(arrays, name, v);
    default:
      return add<double>(arrays, name, v);
  }
}

/// Python with onnx and onnxruntime: $LANTERN_ONNX_PYTHON, or that of a virtual environment in the cache
/// directory.
fs::path python() {
  if (const char* named = std::getenv("LANTERN_ONNX_PYTHON")) return named;
  const char* home = std::getenv("HOME");
  const fs::path own = fs::path(home ? home : "/") / ".cache/lantern/onnx-peer/bin/python";
  return fs::exists(own) ? own : fs::path();
}

}  // namespace

TEST_CASE("operations element by element come back from a file", "[onnx]") {
  check_cases(elementwise_programs());
}
TEST_CASE("operations on tensors come back from a file", "[onnx]") { check_cases(tensor_programs()); }
TEST_CASE("networks come back from a file", "[onnx]") { check_cases(network_programs()); }
TEST_CASE("loops and branches come back from a file", "[onnx]") { check_cases(control_programs()); }
TEST_CASE("derivatives come back from a file", "[onnx]") { check_cases(derivative_programs()); }

namespace {

void add_operators(const onnx::Graph& g, std::vector<std::string>& all) {
  for (const onnx::Node& n : g.nodes) {
    all.push_back(n.op);
    for (const onnx::Attribute& a : n.attributes)
      if (const auto* inner = std::get_if<onnx::GraphPointer>(&a.content)) add_operators(**inner, all);
  }
}
/// Of the nodes in order, those in graphs of control flow among them.
std::vector<std::string> operators(const onnx::Model& m) {
  std::vector<std::string> all;
  add_operators(m.graph, all);
  return all;
}
using Words = std::vector<std::string>;

const onnx::Model& model_of(const std::vector<Case>& cases, const std::string& name) {
  for (const Case& c : cases)
    if (c.name == name) return c.model;
  throw std::logic_error(name);
}

}  // namespace

TEST_CASE("the newest operators say the same", "[onnx]") {
  exported_opset = 28;
  check_cases(tensor_programs());
  check_cases(network_programs());
  check_cases(control_programs());
  exported_opset = 0;
}

TEST_CASE("networks are written in the operators that they were thought in", "[onnx]") {
  const std::vector<Case> cases = network_programs();
  const onnx::Model& mlp = model_of(cases, "mlp");
  CHECK(operators(mlp) == Words{"Transpose", "MatMul", "Add", "Relu", "Transpose", "MatMul", "Add"});
  CHECK(mlp.graph.inputs.size() == 1);
  CHECK(mlp.graph.inputs[0].name == "x");
  CHECK((*mlp.graph.inputs[0].shape)[0].symbol == "batch");
  CHECK(mlp.graph.outputs[0].name == "scores");
  CHECK((*mlp.graph.outputs[0].shape)[0].symbol == "batch");
  CHECK((*mlp.graph.outputs[0].shape)[1].size == 4);
  Words weights;
  for (const onnx::Initialiser& i : mlp.graph.initialisers) weights.push_back(i.name);
  CHECK(weights == Words{"hidden.weight", "hidden.bias", "output.weight", "output.bias"});
  CHECK(mlp.ir_version == 8);
  CHECK(mlp.opset() == 17);

  const Words cnn = operators(model_of(cases, "cnn"));
  for (const char* op : {"Conv", "Relu", "MaxPool", "Reshape", "MatMul"})
    CHECK(std::ranges::count(cnn, op) == 1);
  CHECK(std::ranges::count(cnn, "Loop") == 0);
  CHECK(operators(model_of(cases, "conv_strided")) == Words{"Conv"});
  CHECK(operators(model_of(cases, "conv_transposed")) == Words{"ConvTranspose"});
  const Words pools = operators(model_of(cases, "pools"));
  CHECK(std::ranges::count(pools, "MaxPool") == 2);
  CHECK(std::ranges::count(pools, "AveragePool") == 1);
  CHECK(std::ranges::count(pools, "Loop") == 0);
  for (const char* name : {"softmax", "layer_norm", "attention", "causal", "embedding"}) {
    INFO(name);
    CHECK(std::ranges::count(operators(model_of(cases, name)), "Loop") == 0);
  }
  CHECK(std::ranges::count(operators(model_of(cases, "lstm")), "Loop") == 1);
}

TEST_CASE("derivatives of networks have no loops, those of loops two", "[onnx]") {
  const std::vector<Case> cases = derivative_programs();
  for (const char* name : {"grad_mlp", "grad_cnn", "grad_cnn_image", "grad_pool", "grad_softmax"}) {
    INFO(name);
    CHECK(std::ranges::count(operators(model_of(cases, name)), "Loop") == 0);
  }
  for (const char* name : {"grad_for", "grad_while", "grad_mixed", "grad_lstm"}) {
    INFO(name);
    CHECK(std::ranges::count(operators(model_of(cases, name)), "Loop") == 2);
  }
  const Words image = operators(model_of(cases, "grad_cnn_image"));
  CHECK(std::ranges::count(image, "ConvTranspose") == 1);
}

namespace {

using D = Rep<double>;

std::string message_of(auto&& f, const onnx::ExportOptions& options = {}) {
  try {
    onnx::export_model(f, options);
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

extern "C" double doubled(double x) { return 2 * x; }

}  // namespace

TEST_CASE("what ONNX cannot say is an error with its place and a remedy", "[onnx]") {
  using Catch::Contains;
  CHECK_THAT(message_of([](D x) { return lgamma(x); }),
             Contains("export_onnx: ONNX has no operator for lgamma; replace it by an approximation of "
                      "elementary functions"));
  CHECK_THAT(message_of([](D x) { return lgamma(x); }), Contains("onnx_export_test.cpp:"));
  CHECK_THAT(message_of([](D x) {
               print(x, "x");
               return x * 2.0;
             }),
             Contains("ONNX cannot print; leave the print out"));
  CHECK_THAT(message_of([](D x, Rep<Tree<double>> tree) {
               return TREE(x, tree, [](D l, D r, Rep<Tree<double>> node) { return l + r * node.value(); });
             }),
             Contains("expected numbers and tensors as arguments, got a tree"));
  const auto power = FUN<double(double, std::int64_t)>("power", [](auto self, D x, Rep<std::int64_t> n) {
    return IF(n == 0, [&] { return D(1.0); }, [&] { return x * self(x, n - 1); });
  });
  CHECK_THAT(message_of([&](D x, Rep<std::int64_t> n) { return power(x, n); }),
             Contains("ONNX has no recursion") && Contains("calls itself; write a WHILE or FOR"));
  const auto twice = external<double, double>("doubled", doubled);
  CHECK_THAT(message_of([&](D x) { return twice(x) + 1.0; }),
             Contains("ONNX cannot call the external function"));
  const auto bits = [](Rep<std::int64_t> a, Rep<std::int64_t> b) { return (a & b) ^ (a | 5); };
  CHECK_THAT(
      message_of(bits),
      Contains("operations on bits need version 18 of ONNX's operators, got 17; export with {.opset = 18}"));
  const onnx::Model m = onnx::export_model(bits, {.opset = 18});
  CHECK(onnx::eager(m)
            .run({onnx::Value(std::int64_t{12}), onnx::Value(std::int64_t{10})})[0]
            .number<std::int64_t>() == ((12 & 10) ^ (12 | 5)));
  CHECK_THAT(message_of([](Rep<Tensor<float>> x) { return x; }), Contains("write Tensor<float, dyn, dyn>"));
  CHECK_THAT(message_of([](D x) { return x; }, {.opset = 9}),
             Contains("expected a version of the operators from 16 to 28, got 9"));
  CHECK_THAT(message_of([](D x) { return x; }, {.arguments = {"a", "b"}}),
             Contains("expected names for at most 1 arguments, got 2"));
}

TEST_CASE("onnxruntime computes from files what Lantern does", "[onnx]") {
  const fs::path interpreter = python();
  if (interpreter.empty()) {
    WARN(
        "skipped: no python with onnx and onnxruntime in $LANTERN_ONNX_PYTHON or ~/.cache/lantern/onnx-peer");
    return;
  }
  const fs::path folder = fs::temp_directory_path() / ("lantern-onnx-" + std::to_string(::getpid()));
  fs::create_directories(folder);
  const char* const opset = std::getenv("LANTERN_ONNX_OPSET");  // of the exporter
  exported_opset = opset ? std::stoll(opset) : 0;
  for (const auto& programs :
       {elementwise_programs, tensor_programs, network_programs, control_programs, derivative_programs})
    for (const Case& c : programs()) {
      onnx::detail::write_file(folder / (c.name + ".onnx"), onnx::write(c.model));
      std::map<std::string, AnyTensor> arrays;
      for (std::size_t i = 0; i < c.arguments.size(); ++i)
        add_array(arrays, "in" + std::to_string(i), c.arguments[i]);
      for (std::size_t i = 0; i < c.expected.size(); ++i)
        add_array(arrays, "out" + std::to_string(i), c.expected[i]);
      arrays.emplace("tolerance", TensorValue<double>(std::vector<std::int64_t>{}, c.tolerance));
      save_npz(folder / (c.name + ".npz"), arrays);
    }
  exported_opset = 0;
  const codegen::ProcessResult result = codegen::run_process(
      {interpreter.string(), LANTERN_TEST_DIR "/correctness/onnx_peer.py", folder.string()});
  INFO(result.out + result.err);
  CHECK(result.status == 0);
  fs::remove_all(folder);
}
