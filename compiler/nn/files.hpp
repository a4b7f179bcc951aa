// Models, and the states of their optimisers, in safetensors files.
//
//   nn::save("run.safetensors", model, state);
//   nn::load("run.safetensors", model, state);  // a training goes on
//   nn::load("run.safetensors", model);         // the model alone
//
// A tensor has the name that for_each_parameter gives it, "hidden.weight", so that PyTorch's and JAX's
// readers find it by that name. Numbers, such as a count of steps, are tensors without dimensions. Names of
// the state begin with "state:". Programs link with Lantern::data.
#pragma once

#include <filesystem>
#include <set>
#include <string>
#include <utility>

#include "lantern/compiler/nn/parameters.hpp"
#include "lantern/runtime/data/file.hpp"
#include "lantern/runtime/data/report.hpp"
#include "lantern/runtime/data/safetensors.hpp"

namespace lantern::nn {

namespace detail {

inline constexpr std::string_view of_state = "state:";

template <class L>
AnyTensor tensor_of(const L& leaf) {
  if constexpr (requires { leaf.data.size(); }) {
    return AnyTensor(leaf);
  } else {
    static_assert(core::data::Element<L>,
                  "nn::save: expected members that are Parameters, or numbers of type bool, int32_t, "
                  "int64_t, float or double");
    return AnyTensor(TensorValue<L>(std::vector<std::int64_t>{}, leaf));
  }
}

/// Takes the tensors of a file in turn, and notes which were taken.
class FileOfModel {
 public:
  explicit FileOfModel(const std::filesystem::path& path)
      : where_(path.string()), tensors_(load_safetensors(path).tensors) {}

  /// Gives each leaf of a product its tensor.
  template <class P>
  void fill(std::string_view prefix, P& product) {
    for_each_parameter(product,
                       [&](const std::string& name, auto& leaf) { take(std::string(prefix) + name, leaf); });
  }
  /// Error: there are tensors that no leaf has taken. Those of a state may stay where none is read.
  void require_all(bool with_state) const {
    for (const auto& [name, tensor] : tensors_)
      if (!taken_.contains(name) && (with_state || !name.starts_with(of_state)))
        core::data::fail(where_, "expected no tensor that the model has no member for, got " +
                                     core::data::in_quotes(name) + " of shape " +
                                     core::data::shape_text(tensor.shape()));
  }

 private:
  template <class L>
  void take(const std::string& name, L& leaf) {
    const auto found = tensors_.find(name);
    if (found == tensors_.end())
      core::data::fail(where_, "expected a tensor " + core::data::in_quotes(name) + ", got " + present(name));
    const AnyTensor& tensor = found->second;
    taken_.insert(name);
    if constexpr (requires { leaf.data.size(); }) {
      using T = typename std::remove_cvref_t<decltype(leaf.data)>::value_type;
      if (!(leaf.data.empty() && leaf.shape.empty())) require_shape(name, leaf.shape, tensor);
      leaf = value<T>(name, tensor);
    } else {
      require_shape(name, {}, tensor);
      leaf = value<L>(name, tensor).data[0];
    }
  }
  /// What is there instead of a tensor.
  std::string present(const std::string& name) const {
    bool any_state = false;
    for (const auto& entry : tensors_) any_state = any_state || entry.first.starts_with(of_state);
    if (name.starts_with(of_state) && !any_state)
      return "a file without the state of an optimiser, which nn::save(path, model, state) writes";
    std::string all;
    std::size_t names = 0;
    for (const auto& [other, tensor] : tensors_) {
      if (other.starts_with(of_state) != name.starts_with(of_state)) continue;
      if (++names <= 5) all += (names > 1 ? ", " : "") + core::data::in_quotes(other);
    }
    return names == 0 ? "none" : names <= 5 ? all : all + " and " + std::to_string(names - 5) + " more";
  }
  void require_shape(const std::string& name, const std::vector<std::int64_t>& shape,
                     const AnyTensor& tensor) const {
    if (tensor.shape() != shape)
      core::data::fail(where_, "expected " + core::data::in_quotes(name) + " of shape " +
                                   core::data::shape_text(shape) + ", which the model has, got " +
                                   core::data::shape_text(tensor.shape()));
  }
  /// The tensor in a model's type; a float becomes a double, nothing else changes.
  template <class T>
  TensorValue<T> value(const std::string& name, const AnyTensor& tensor) const {
    if (std::is_same_v<T, double> && tensor.is<float>()) return tensor.convert<T>();
    if (!tensor.is<T>())
      core::data::fail(where_, "expected " + core::data::in_quotes(name) + " of " +
                                   std::string(core::data::name_of<T>()) + ", as the model has it, got " +
                                   std::string(tensor.type_name()));
    return tensor.get<T>();
  }

  std::string where_;
  NamedTensors tensors_;
  std::set<std::string, std::less<>> taken_;
};

template <class P>
void require_host() {
  static_assert(!staged<P>,
                "nn::save, nn::load: expected a model of numbers, such as Mlp<float>, not one of Reps, such "
                "as Mlp<Rep<float>>");
}

}  // namespace detail

/// Writes a model and, where one is given, the state of its optimiser (or any product of tensors and numbers)
/// into a safetensors file. Whenever the program or the machine stops, `path` is the former file or the new
/// one, whole. Error: the file cannot be written, and the former one stays.
template <class M, class... State>
requires(sizeof...(State) <= 1) void save(const std::filesystem::path& path, const M& model,
                                          const State&... state) {
  (detail::require_host<M>(), ..., detail::require_host<State>());
  NamedTensors tensors;
  const auto add = [&](std::string_view prefix, const auto& product) {
    for_each_parameter(product, [&](const std::string& name, const auto& leaf) {
      tensors.emplace(std::string(prefix) + name, detail::tensor_of(leaf));
    });
  };
  add("", model);
  (add(detail::of_state, state), ...);
  core::data::Replacement file(path);
  core::data::write_safetensors(path.string(), file, tensors, {});
  file.take_place(core::data::Replacement::Durable::yes);
}

/// Reads what save has written into a model of the same structure and, where one is given, its state. A
/// tensor of the model that has no elements yet takes the shape of the file; others have the file's shape.
/// The file's float16, bfloat16 and float enter a model of float or double. The file of a model with a state
/// serves for the model alone.
///
/// Errors: those of load_safetensors; a member that the file does not have; a tensor without a member; another
/// shape or type. Each message names the file and the member. After an error, model and state are unchanged.
template <class M, class... State>
requires(sizeof...(State) <= 1) void load(const std::filesystem::path& path, M& model, State&... state) {
  (detail::require_host<M>(), ..., detail::require_host<State>());
  detail::FileOfModel file(path);
  std::tuple<M, State...> read(model, state...);
  std::apply(
      [&](M& m, State&... s) {
        file.fill("", m);
        (file.fill(detail::of_state, s), ...);
      },
      read);
  file.require_all(sizeof...(State) > 0);
  std::tie(model, state...) = std::move(read);
}

}  // namespace lantern::nn
