// Running ONNX models: compiled in process, or eagerly.
//
//   onnx::Session session = onnx::compile(onnx::load("squeezenet.onnx"));
//   onnx::Value probabilities = session.run({picture})[0];
#pragma once

#include <concepts>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lantern/compiler/driver/compile.hpp"
#include "lantern/compiler/onnx/model.hpp"

namespace lantern::onnx {

/// A model, ready to run. Copies share the code and the parameters. Calls are safe from several threads at
/// once, while no parameter is changed.
///
/// Sizes that the model declares are part of the code; those that it leaves open may differ from call to
/// call. Where an operator has to know the elements of an argument, or a size, to be compiled at all (a
/// shape, a number of elements to choose), code is made for each of their values, when it is first met, and
/// kept.
class Session {
 public:
  /// The results in the order of the graph's outputs, of arguments in the order of arguments(). Errors:
  /// arguments that do not fit; an operator that is not supported, with its node; whatever a computation
  /// finds wrong.
  std::vector<Value> run(const std::vector<Value>& arguments) const;
  /// The same by name, of a std::map<std::string, Value>.
  template <std::same_as<std::map<std::string, Value>> Named>
  std::map<std::string, Value> run(const Named& arguments) const {
    return run_named(arguments);
  }

  /// Makes the code that run() needs for these arguments, and does not run it.
  void prepare(const std::vector<Value>& arguments) const;

  const std::vector<ValueInfo>& arguments() const;
  const std::vector<ValueInfo>& results() const;

  /// Weights and constants of the graph, by name.
  std::vector<std::string> parameter_names() const;
  const Value& parameter(const std::string& name) const;
  /// Another value for it, of the same shape and element type: it counts from the next call on.
  void set_parameter(const std::string& name, Value value);

  /// Generated code of the last call: "ir", "c", "cpp". Error: there was none, or the session is eager.
  std::string source(const std::string& what = "cpp") const;
  /// How often code was made.
  std::size_t compilations() const;
  /// Waits for optimised code (Target::automatic) of all code that was made.
  void wait() const;

 private:
  friend Session compile(Model model, core::CompileOptions options, Half half);
  friend Session eager(Model model, Half half);
  friend std::optional<std::string> obstacle(const Model& model);
  std::map<std::string, Value> run_named(const std::map<std::string, Value>& arguments) const;

  struct State;
  explicit Session(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::shared_ptr<State> state_;
};

/// A session that compiles what it runs. Error: an operator that is not known at all.
Session compile(Model model, core::CompileOptions options = {}, Half half = Half::wide);
/// What is in the way of running the model, found as a session finds it, for arguments as the model declares
/// them; nothing where there is nothing, or where that depends on the arguments.
std::optional<std::string> obstacle(const Model& model);
/// A session that runs operator by operator.
Session eager(Model model, Half half = Half::wide);

}  // namespace lantern::onnx
