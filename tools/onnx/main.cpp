// lantern-onnx: ONNX models described and checked, run, and made into sources, derivatives and training
// steps.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <iostream>
#include <utility>

#include "lantern/codegen/toolchain/clang.hpp"
#include "lantern/compiler/control/control.hpp"
#include "lantern/ir/error.hpp"
#include "tool.hpp"

namespace lantern::tool {
namespace {

constexpr const char* footer =
    "lantern-onnx model.onnx                               what the model is, and whether all of it is "
    "supported\n"
    "lantern-onnx model.onnx --emit=cpp -o model.cpp       y = model(weights, x...) as C++ that stands "
    "alone\n"
    "lantern-onnx model.onnx --emit=weights -o model.safetensors\n"
    "lantern-onnx model.onnx --train --emit=cpp            loss and gradient by the weights\n"
    "lantern-onnx model.onnx --train --optimizer=adam ...  one training step\n"
    "lantern-onnx model.onnx --run x.npz -o y.npz [--repeat 100]";

void describe(CLI::App& app, OnnxOptions& o) {
  app.add_option("model", o.model, "an ONNX file")->required()->type_name("FILE");
  app.add_option("-o", o.output, "write to FILE; default standard output")->type_name("FILE");
  app.add_option("--emit", o.emit,
                 "write the model as a function of its weights, one vector, and its arguments:\n"
                 "ir, c, cpp, cuda, header, object, shared as lanternc does;\n"
                 "weights: the vector's parts by their names, as .safetensors")
      ->type_name("KIND");
  app.add_option("--name", o.name, "of the function; default the graph's")->type_name("NAME");
  app.add_flag("--train", o.train, "with a loss: its value, and its gradient by the weights");
  app.add_option("--loss", o.loss,
                 "cross_entropy (default): the first result has logits [batch, classes], the targets are "
                 "labels;\nmse: the targets are as the first result")
      ->type_name("LOSS");
  app.add_option("--optimizer", o.optimizer,
                 "instead of the gradient the weights after a step of sgd or adam")
      ->type_name("NAME");
  app.add_flag("--train-constants", o.train_constants, "train constants that stand in nodes, as weights are");
  app.add_option("--learning-rate", o.learning_rate, "of that step; default 0.001")->type_name("RATE");
  app.add_option("--run", o.inputs,
                 "run the model on arrays named as its arguments; -o: where the results go")
      ->type_name("FILE.npz");
  app.add_option("--half", o.half,
                 "with --run: float16 and bfloat16 as float32 (wide, default), or rounded after each "
                 "operator (exact)")
      ->type_name("HOW");
  app.add_option("--repeat", o.repeat, "run it N times more, and print how long a run takes")->type_name("N");
  app.add_flag_callback(
      "--no-cache", [&o] { o.cache = false; }, "with --run: keep no code for the next run");
  app.add_option("-O", o.opt, "level of optimisation, 0 to 3 (default)")->type_name("LEVEL");
  app.add_option("--threads", o.threads, "let loops use up to N threads; default 1")->type_name("N");
  app.add_option("--cpu", o.cpu, "with --emit: generate code for this processor, by its LLVM name")->type_name("NAME");
  app.add_flag("--strict-math", o.strict_math, "round each operation by itself and keep subnormal numbers");
  app.add_flag("--with-main", o.with_main, "with --emit=c or cpp: a main function that calls it");
  app.footer(footer);
}

void check(const OnnxOptions& o) {
  const auto one_of = [](const char* option, const std::string& value,
                         std::initializer_list<const char*> all) {
    std::string known;
    for (const char* each : all) {
      if (value == each) return;
      known += (known.empty() ? "" : ", ") + std::string(each);
    }
    throw Error(std::string(option) + ": expected " + known + ", got '" + value + "'");
  };
  if (!o.emit.empty())
    one_of("--emit", o.emit, {"ir", "c", "cpp", "cuda", "header", "object", "shared", "weights"});
  if (o.train) one_of("--loss", o.loss, {"cross_entropy", "mse"});
  if (!o.optimizer.empty()) one_of("--optimizer", o.optimizer, {"sgd", "adam"});
  if (!o.optimizer.empty() && !o.train) throw Error("--optimizer is for use with --train");
  if (o.train_constants && !o.train) throw Error("--train-constants is for use with --train");
  if (o.train && o.emit.empty()) throw Error("--train: say what to make of it, for instance --emit=cpp");
  if (o.train && o.emit == "weights") throw Error("--train does not go with --emit=weights");
  if (!o.inputs.empty() && !o.emit.empty()) throw Error("--run does not go with --emit");
  if (!o.inputs.empty() && o.output.empty()) throw Error("--run: expected -o FILE.npz, for the results");
  one_of("--half", o.half, {"wide", "exact"});
  if (o.half != "wide" && o.inputs.empty()) throw Error("--half is for use with --run");
  if (o.repeat < 0) throw Error("--repeat: expected a number of runs, got " + std::to_string(o.repeat));
  if (o.repeat > 0 && o.inputs.empty()) throw Error("--repeat is for use with --run");
  if ((o.emit == "object" || o.emit == "shared" || o.emit == "weights") && o.output.empty())
    throw Error("--emit=" + o.emit + ": expected -o FILE");
  if (o.with_main && o.emit != "c" && o.emit != "cpp")
    throw Error("--with-main is for use with --emit=c or --emit=cpp");
  if (o.opt < 0 || o.opt > 3) throw Error("-O: expected a level from 0 to 3, got " + std::to_string(o.opt));
  if (!o.cpu.empty() && !codegen::is_processor(o.cpu))
    throw Error("--cpu: expected LLVM's name of a processor, such as x86-64-v3, got '" + o.cpu + "'");
  if (!o.cpu.empty() && !o.inputs.empty()) throw Error("--cpu does not go with --run, which generates code for this processor");
  if (o.threads < 1) throw Error("--threads: expected a number from 1 on, got " + std::to_string(o.threads));
}

int run(int argc, char** argv) {
  CLI::App app("Describes, checks and runs ONNX models, and makes sources of them.", "lantern-onnx");
  OnnxOptions options;
  describe(app, options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) return app.exit(e);  // --help
    throw Error(std::string(e.what()) + "; see lantern-onnx --help");
  }
  check(options);
  codegen::release_clang();
  onnx::Model model = onnx::load(options.model);
  int status = 0;
  core::run_on_large_stack([&] {
    if (!options.inputs.empty()) return run_model(std::move(model), options);
    if (!options.emit.empty()) return emit(model, options);
    bool supported = true;
    std::cout << described(model, supported);
    status = supported ? 0 : 1;
  });
  return status;
}

}  // namespace
}  // namespace lantern::tool

int main(int argc, char** argv) {
  try {
    return lantern::tool::run(argc, argv);
  } catch (const lantern::InternalError& e) {
    std::cerr << "lantern-onnx: internal error: " << e.what() << "\nplease report it\n";
  } catch (const std::exception& e) {
    // Some errors begin with their place.
    const std::string what = e.what();
    std::cerr << (what.find(": error: ") == std::string::npos ? "lantern-onnx: error: " : "") << what << "\n";
  }
  return 1;
}
