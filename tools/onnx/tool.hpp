// lantern-onnx: what its command line asks for, and one function for each.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lantern/compiler/onnx/import.hpp"
#include "lantern/compiler/onnx/model.hpp"
#include "lantern/ir/graph.hpp"

namespace lantern::tool {

struct OnnxOptions {
  std::string model;
  std::string output;  ///< empty: standard output
  std::string emit;    ///< empty: the model is described
  std::string name;    ///< of the function; empty: the graph's
  std::string inputs;  ///< --run: arrays by the names of the arguments, .npz
  bool train = false, train_constants = false;
  std::string loss = "cross_entropy", optimizer;
  double learning_rate = 1e-3;
  int opt = 3, threads = 1;
  std::string half = "wide";  ///< --half
  int repeat = 0;             ///< --repeat: runs that are timed
  bool strict_math = false, with_main = false;
  bool cache = true;  ///< --run keeps the code
  std::string cpu;
};

/// What the model is, and what of it nothing computes. `supported` says whether there is none of that.
std::string described(const onnx::Model& model, bool& supported);

/// The model as a function of its weights, one vector, and its arguments; with `train`, of the targets of a
/// loss as well: its value and gradient, or with an optimiser the loss and the weights after a step. Error: a
/// model whose arguments or results are no tensors of known rank; an operator that nothing computes.
std::unique_ptr<ir::Module> program_of(const onnx::Model& model, const OnnxOptions& options);
/// The weights of the model in the order of that vector.
std::string layout_of(const onnx::Model& model, const OnnxOptions& options);
/// The model with its weights, as functions are made of it.
onnx::ImportedModel imported_of(const onnx::Model& model, const OnnxOptions& options);

/// ir, c, cpp, cuda, header, object, shared or weights, written to the output.
void emit(const onnx::Model& model, const OnnxOptions& options);

/// Runs the model on the arrays of a file, and writes its results to another.
void run_model(onnx::Model model, const OnnxOptions& options);

/// The function's name: letters, digits and _.
std::string function_name(const onnx::Model& model, const OnnxOptions& options);

}  // namespace lantern::tool
