// A model as a staged function, by itself or with a loss.
#include <algorithm>
#include <cctype>

#include "lantern/ir/text.hpp"
#include "lantern/nn.hpp"
#include "lantern/onnx.hpp"
#include "tool.hpp"

namespace lantern::tool {

namespace {

using namespace core;

/// float, unless all weights that are numbers with fractions are of double precision.
ir::Kind weight_kind(const onnx::Model& m) {
  bool any = false;
  for (const onnx::Initialiser& i : m.graph.initialisers) {
    if (!onnx::is_float(i.value.element())) continue;
    if (i.value.element() != onnx::Element::float64) return ir::Kind::f32;
    any = true;
  }
  return any ? ir::Kind::f64 : ir::Kind::f32;
}

ir::Type type_of(const onnx::ValueInfo& v, const char* what, const std::string& file) {
  if (v.structure != onnx::ValueInfo::Structure::tensor)
    throw Error(file + ": " + what + " '" + v.name +
                "': expected a tensor, and nothing else, to make a function of the model");
  if (!v.shape)
    throw Error(file + ": " + what + " '" + v.name +
                "': expected a declared rank, got a tensor of any shape; infer the model's shapes first");
  const ir::Kind kind = onnx::kind_of(v.element);
  if (v.shape->empty()) return ir::Type(kind);
  std::vector<std::int64_t> sizes;
  for (const onnx::Dimension& d : *v.shape) sizes.push_back(d.size.value_or(ir::dynamic));
  return ir::Type::tensor(kind, sizes);
}

/// The parts of a training step of weights of element type E.
template <class E>
struct Step {
  using Weights = Rep<Array<E>>;

  const onnx::ImportedModel& model;
  const std::vector<ir::Type>& results;
  const OnnxOptions& options;

  Rep<E> loss(const Weights& w, const Datums& arguments, const Datum& target) const {
    const Datum y = model.run({w.datum()}, arguments, results, {})[0];
    const Rep<Tensor<E>> out(y);
    if (options.loss == "mse") return nn::mse(out, Rep<Tensor<E>>(target));
    return nn::cross_entropy(out, Rep<Tensor<std::int64_t>>(target));
  }

  /// Of weights, arguments, targets and what the optimiser keeps.
  Datums operator()(const Datums& data) const {
    const std::size_t n = model.model().graph.arguments().size();
    const Weights w(data[0]);
    const Datums arguments(data.begin() + 1, data.begin() + 1 + static_cast<std::ptrdiff_t>(n));
    const Datum target = data[n + 1];
    const auto [value, slope] = value_and_grad([&](Weights v) { return loss(v, arguments, target); })(w);
    if (options.optimizer.empty()) return {value.datum(), slope.datum()};
    using P = std::tuple<Weights>;
    if (options.optimizer == "sgd") {
      const P next = nn::sgd(P(w), P(slope), nn::Rate(options.learning_rate));
      return {value.datum(), std::get<0>(next).datum()};
    }
    const nn::AdamState<P> state{P(Weights(data[n + 2])), P(Weights(data[n + 3])),
                                 Rep<std::int64_t>(data[n + 4])};
    const auto [next, kept] = nn::adam(P(w), P(slope), state, {.learning_rate = options.learning_rate});
    return {value.datum(), std::get<0>(next).datum(), std::get<0>(kept.mean).datum(),
            std::get<0>(kept.square).datum(), kept.steps.datum()};
  }
};

template <class E>
std::unique_ptr<ir::Module> staged(const onnx::Model& m, const OnnxOptions& options) {
  const ir::Kind kind = onnx::kind_of_host<E>();
  const onnx::ImportedModel imported(m, kind, {.train_constants = options.train_constants});
  const std::string file = m.file;
  std::vector<ir::Type> parameters = {ir::Type::tensor(kind, {imported.size()})}, results;
  std::vector<std::string> names = {"weights"};
  for (const onnx::ValueInfo& v : m.graph.arguments()) {
    parameters.push_back(type_of(v, "argument", file));
    names.push_back(v.name);
  }
  for (const onnx::ValueInfo& v : m.graph.outputs) results.push_back(type_of(v, "result", file));
  std::function<Datums(const Datums&)> program = [&](const Datums& data) {
    return imported.run({data[0]}, Datums(data.begin() + 1, data.end()), results, {});
  };
  if (options.train) {
    if (results.empty() || !results[0].is_tensor() || results[0].element() != kind)
      throw Error(file + ": --train: expected a model whose first result is a tensor of " +
                  std::string(ir::kind_name(kind)) + ", as the weights are");
    const std::vector<std::int64_t>& sizes = results[0].dims();
    if (options.loss == "cross_entropy" && sizes.size() != 2)
      throw Error(file +
                  ": --loss=cross_entropy: expected logits of [batch, classes] as the first result, got " +
                  results[0].str());
    parameters.push_back(options.loss == "mse" ? results[0] : ir::Type::tensor(ir::Kind::i64, {sizes[0]}));
    names.emplace_back(options.loss == "mse" ? "target" : "labels");
    if (options.optimizer == "adam") {
      parameters.insert(parameters.end(), {parameters[0], parameters[0], ir::I64});
      names.insert(names.end(), {"mean", "square", "steps"});
    }
    program = Step<E>{imported, results, options};
  }
  std::unique_ptr<ir::Module> module = driver::stage(function_name(m, options), parameters, program);
  for (std::size_t i = 0; i < names.size(); ++i) {
    std::string name = names[i];
    for (char& c : name)
      if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
    module->entry->body->params[i]->name = module->intern(name);
  }
  return module;
}

}  // namespace

std::string function_name(const onnx::Model& m, const OnnxOptions& options) {
  std::string name = options.name.empty() ? m.graph.name : options.name;
  for (char& c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  if (name.empty() || ir::is_digit(name[0])) name = "model_" + name;
  return options.train && options.name.empty() ? name + (options.optimizer.empty() ? "_gradient" : "_step")
                                               : name;
}

std::unique_ptr<ir::Module> program_of(const onnx::Model& m, const OnnxOptions& options) {
  return weight_kind(m) == ir::Kind::f64 ? staged<double>(m, options) : staged<float>(m, options);
}

onnx::ImportedModel imported_of(const onnx::Model& m, const OnnxOptions& options) {
  return {m, weight_kind(m), {.train_constants = options.train_constants}};
}

std::string layout_of(const onnx::Model& m, const OnnxOptions& options) {
  const onnx::ImportedModel imported = imported_of(m, options);
  std::string text;
  for (const onnx::Parameter& p : imported.layout())
    text += "//   " + std::to_string(p.offset) + "  " + p.name + " " + onnx::shape_text(p.shape) +
            (p.frozen ? ", without a derivative" : "") + "\n";
  return text;
}

}  // namespace lantern::tool
