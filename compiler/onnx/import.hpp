// ONNX models as functions of programs: staged, compiled and differentiated with what is around them.
//
//   const auto net = onnx::import_onnx<Tensor<float>(Tensor<float>)>("mnist.onnx");
//   using Images = Rep<Tensor<float, dyn, 1, 28, 28>>;
//   auto step = compile([=](Rep<Array<float>> w, Images x, Rep<Tensor<int64_t, dyn>> y) {
//     auto [loss, g] = value_and_grad([&](Rep<Array<float>> v) { return nn::cross_entropy(net(v, x), y);
//     })(w); return std::tuple(loss, w - 0.01f * g);
//   });
//   std::vector<float> w = net.parameters();
//
// A file says only when it is read how many weights it has, and the number of parts of a value is part of its
// type. So the weights are one vector, in the order of net.layout(), which says where each lies;
// net.tensors(w) splits it on the host.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "lantern/compiler/onnx/model.hpp"
#include "lantern/compiler/staging/control_flow.hpp"

namespace lantern::onnx {

struct ImportOptions {
  /// Weights through which no derivative passes, by name, beside the means and variances of batch
  /// normalisation, which never have one. Their gradients are 0.
  std::vector<std::string> frozen = {};
  /// Whether constants in nodes are trained as weights are; else no derivative passes through them.
  bool train_constants = false;
};

/// A weight: where it lies in the vector of all.
struct Parameter {
  std::string name;
  std::vector<std::int64_t> shape;
  std::int64_t offset = 0;
  std::int64_t size = 0;
  bool frozen = false;
};

/// A model as a program over data; what Imported is made of.
class ImportedModel {
 public:
  /// `kind`: the elements of the weights that are parameters; those of other floating-point types are
  /// constants.
  ImportedModel(Model model, ir::Kind kind, const ImportOptions& options);

  const Model& model() const { return model_; }
  const std::vector<Parameter>& layout() const { return layout_; }
  std::int64_t size() const { return size_; }
  ir::Kind kind() const { return kind_; }
  /// The weights in the file, one after the other.
  template <HostElement E>
  std::vector<E> parameters() const {
    std::vector<E> all;
    for (const Value* v : values_) all.insert(all.end(), v->elements<E>().begin(), v->elements<E>().end());
    return all;
  }
  /// The outputs, which are of these types, of weights in one vector, or one by one, and arguments. Errors:
  /// arguments or results that do not fit the model's; whatever an operator finds wrong.
  core::Datums run(const core::Datums& weights, const core::Datums& arguments,
                   const std::vector<ir::Type>& results, const core::Location& loc) const;

 private:
  Model model_;
  ir::Kind kind_;
  std::vector<Parameter> layout_;
  std::vector<const Value*> values_;
  std::int64_t size_ = 0;
};

template <class Sig, class E>
class Imported;

/// A model as a function: net(w, x...) of the weights and the graph's arguments, in order. Copies share the
/// model.
template <class R, class... A, class E>
class Imported<R(A...), E> {
 public:
  using Result = R;

  explicit Imported(std::shared_ptr<const ImportedModel> model) : model_(std::move(model)) {}

  Result operator()(const core::Rep<core::Array<E>>& w, const A&... x) const {
    return called({w.datum()}, x...);
  }
  /// The same of weights one by one, in the order of layout().
  Result with(const std::vector<core::Rep<core::Tensor<E>>>& weights, const A&... x) const {
    core::Datums all;
    for (const auto& w : weights) all.push_back(w.datum());
    if (all.size() == 1) all.push_back(core::Datum());  // not a vector of all
    return called(std::move(all), x...);
  }

  /// The weights that the file has.
  std::vector<E> parameters() const { return model_->template parameters<E>(); }
  const std::vector<Parameter>& layout() const { return model_->layout(); }
  /// A vector of weights, or of their gradients, as tensors by name: for safetensors files and the like.
  std::map<std::string, TensorValue<E>> tensors(std::span<const E> w) const {
    if (static_cast<std::int64_t>(w.size()) != model_->size())
      throw Error("expected the " + std::to_string(model_->size()) + " weights of the model, got " +
                  std::to_string(w.size()));
    std::map<std::string, TensorValue<E>> all;
    for (const Parameter& p : layout()) {
      const auto from = w.subspan(static_cast<std::size_t>(p.offset), static_cast<std::size_t>(p.size));
      all[p.name] = TensorValue<E>(std::vector<E>(from.begin(), from.end()), p.shape);
    }
    return all;
  }
  const Model& model() const { return model_->model(); }
  std::string name() const { return "model"; }

 private:
  Result called(core::Datums weights, const A&... x) const {
    core::Datums arguments;
    (core::detail::flatten(x, arguments), ...);
    std::vector<ir::Type> types;
    Result prototype{};
    core::detail::types_of<Result>(types);
    return core::detail::rebuild(prototype, model_->run(weights, arguments, types, {}));
  }

  std::shared_ptr<const ImportedModel> model_;
};

namespace detail {
/// A signature of values, and that of Reps. A std::tuple of Tensors is no complete type, but may be named.
template <class T>
struct Lifted {
  using type = core::detail::rep_t<T>;
};
template <class... T>
struct Lifted<std::tuple<T...>> {
  using type = std::tuple<typename Lifted<T>::type...>;
};
template <class Sig>
struct RepSignature;
template <class R, class... A>
struct RepSignature<R(A...)> {
  using type = typename Lifted<R>::type(typename Lifted<A>::type...);
};
}  // namespace detail
template <class Sig, class E>
using ImportedAs = Imported<typename detail::RepSignature<Sig>::type, E>;

/// A model as a function of a signature: import_onnx<Tensor<float>(Tensor<float>)>(path), std::tuple<...>
/// where it has several outputs. Weights of element type E are its parameters.
template <class Sig, HostElement E = float>
ImportedAs<Sig, E> import_onnx(Model model, const ImportOptions& options = {}) {
  return ImportedAs<Sig, E>(
      std::make_shared<const ImportedModel>(std::move(model), kind_of_host<E>(), options));
}
template <class Sig, HostElement E = float>
ImportedAs<Sig, E> import_onnx(const std::filesystem::path& path, const ImportOptions& options = {}) {
  return import_onnx<Sig, E>(load(path), options);
}

}  // namespace lantern::onnx
