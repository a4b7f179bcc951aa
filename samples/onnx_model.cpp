// A network in an ONNX file: written, read, and trained further with its loss in one compiled function.
//
//   onnx_model         prints what the file gives before and after training
//   onnx_model FILE    also draws both into an .svg file
//
// docs/tutorials/onnx.md tells this program step by step.
#include <fmt/core.h>

#include <cmath>
#include <filesystem>
#include <lantern/nn.hpp>
#include <lantern/onnx.hpp>
#include <string>
#include <vector>

#include "chart.hpp"

using namespace lantern;

// [write]
template <class S>
struct Network {
  nn::Linear<S> hidden, output;
};
using Column = Rep<Tensor<float, dyn, 1>>;
using Matrix = Rep<Tensor<float, dyn, dyn>>;

/// The network as a program: of its weights, and of a column of points.
Matrix network(Network<Rep<float>> m, Column x) { return m.output(tanh(m.hidden(x))); }
// [/write]

// [step]
using Weights = Rep<Array<float>>;

/// `net` is the model of a file: a function of its weights and its inputs, like any other of a program.
template <class Net>
auto training_step(const Net& net) {
  return [net](Weights w, Weights speed, Column x, Column y) {
    const auto loss = [&](Weights v) { return nn::mse(net(v, x), y); };
    const auto [value, g] = value_and_grad(loss)(w);
    const Weights faster = 0.9f * speed - 0.05f * g;
    return std::tuple(value, Weights(w + faster), faster);
  };
}
// [/step]

int main(int argc, char** argv) {
  const auto file = std::filesystem::temp_directory_path() / "lantern_onnx_model.onnx";
  // [export]
  nn::Generator rng(3);
  const Network<float> model{nn::Linear<float>::init(1, 16, rng), nn::Linear<float>::init(16, 1, rng)};
  onnx::export_onnx(network, file, {.arguments = {"x"}, .results = {"y"}}, model);
  // [/export]

  // [import]
  const auto net = onnx::import_onnx<Tensor<float, dyn, dyn>(Tensor<float, dyn, 1>)>(file);
  std::vector<float> weights = net.parameters();
  for (const onnx::Parameter& p : net.layout()) fmt::print("{}: {} numbers\n", p.name, p.size);
  // [/import]

  // [run]
  TensorValue<float> x({61, 1}), y({61, 1});
  for (std::size_t i = 0; i < 61; ++i) x[i] = 0.1f * float(i) - 3.0f, y[i] = std::sin(2.0f * x[i]);
  const auto run = compile(net);
  const auto before = run(weights, x);
  // [/run]

  // [train]
  const auto step = compile(training_step(net));
  std::vector<float> speed(weights.size());
  float first = 0, last = 0;
  for (int i = 0; i < 3000; ++i) {
    std::tie(last, weights, speed) = step(weights, speed, x, y);
    if (i == 0) first = last;
  }
  const auto after = run(weights, x);
  fmt::print("mean square {:.3f} as read, {:.4f} after training\n", first, last);
  // [/train]
  std::filesystem::remove(file);

  if (argc > 1) {
    Chart chart;
    Chart::Points goal, read, trained;
    for (std::size_t i = 0; i < 61; ++i) {
      goal.emplace_back(x[i], y[i]);
      read.emplace_back(x[i], before[i]);
      trained.emplace_back(x[i], after[i]);
    }
    chart.dots(goal, "#d62728", "the goal");
    chart.line(read, "gray", "as read");
    chart.line(trained, "#1f77b4", "after training");
    chart.write(argv[1], "a network from an ONNX file", "x");
  }
  if (last < 0.1f * first) return 0;
  fmt::print("expected a tenth of the mean square\n");
  return 1;
}
