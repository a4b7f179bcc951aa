// Programs as ONNX files: a function over Reps is staged, and its graph written with the operators of ONNX.
//
//   Rep<Tensor<float>> net(Mlp<Rep<float>> model, Rep<Tensor<float, dyn, 784>> x) { return model(x); }
//   onnx::export_onnx(net, "mlp.onnx", {.results = {"scores"}}, model);   // model, a Mlp<float>: the weights
//   onnx::export_onnx(grad(loss), "slope.onnx");                          // a derivative is a program like
//   any other
//
// Operations on tensors become the operators that say the same: products in index notation MatMul, Conv,
// Einsum and so on, element by element one operator each. Loops whose iterations do not depend on each other
// (maxima along an axis, windows, elements chosen by an index) become operators on whole tensors, others
// Loop; IF becomes If. A reverse derivative's tape is what a Loop collects. Sizes that are not part of a type
// stay open, with names.
//
// The file computes what the program computes up to rounding, with these differences: where the program would
// fail at run time (an index outside, shapes that do not fit) other systems may do otherwise; min and max of
// a number and a NaN are a NaN, and the sign of a NaN is one. What ONNX cannot say is an Error with the
// operation, its place and a remedy: trees, recursion, external functions, print, lgamma and polygamma; bits
// of integers before version 18.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "lantern/compiler/driver/compile.hpp"
#include "lantern/compiler/nn/parameters.hpp"
#include "lantern/compiler/onnx/model.hpp"

namespace lantern::onnx {

struct ExportOptions {
  std::string name = {};  ///< of the graph; default the function's
  /// Names of the inputs (numbers and tensors, those in structs one by one, without what is bound), of the
  /// results, and of the weights. Defaults: the program's names, and those of a model's members.
  std::vector<std::string> arguments = {};
  std::vector<std::string> results = {};
  std::vector<std::string> weights = {};
  /// Names for open sizes of an input: {{"x", {"batch"}}}. Default: the input's name and the dimension.
  std::map<std::string, std::vector<std::string>> sizes = {};
  /// Version of the operators, from 16 to 28. Operations on bits need 18.
  std::int64_t opset = 17;
  std::string documentation = {};
};

namespace detail {

/// A number or tensor that an argument is bound to.
struct Bound {
  std::string name;
  core::Datum value;
};

/// The program, of parameters of these types, the first of which are bound.
Model exported(const std::string& name, const std::vector<ir::Type>& types,
               const std::function<core::Datums(const core::Datums&)>& program,
               const std::vector<Bound>& bound, const ExportOptions& options);
void write_file(const std::filesystem::path& path, const std::string& bytes);

/// The leaves of a host value for a product P of Reps.
template <class P, class H>
void bind_leaves(const H& value, const std::string& prefix, std::vector<Bound>& bound) {
  std::vector<std::string> names;
  nn::detail::walk(prefix, value, [&](const std::string& name, const auto&) { names.push_back(name); });
  using In = core::detail::host_in<P>;
  const In in = [&] {
    if constexpr (std::is_convertible_v<const H&, In>)
      return In(value);
    else
      return In(nn::view(value));
  }();
  std::size_t i = 0;
  core::detail::for_each_leaf<P>(in, [&](auto type, const auto& leaf) {
    bound.push_back({i < names.size() ? names[i] : "", core::detail::to_datum(type, leaf)});
    ++i;
  });
}

/// The type of a leaf with the sizes that the value has.
ir::Type type_of(const core::Datum& d);

template <class... P>
std::vector<ir::Type> leaf_types() {
  std::vector<ir::Type> types;
  if (!(core::detail::types_of<P>(types) && ...))
    throw Error(
        "export_onnx: an argument is a tensor without a declared rank: write Tensor<float, dyn, dyn>");
  return types;
}

template <class F, class... P, class... B>
Model export_model(const F& f, const ExportOptions& options, std::type_identity<std::tuple<P...>>,
                   const B&... values) {
  static_assert(sizeof...(B) <= sizeof...(P),
                "export_onnx: more values are bound than the function has arguments");
  std::vector<Bound> bound;
  std::vector<ir::Type> types;
  const auto all = std::tie(values...);
  const auto one = [&]<std::size_t i>(std::integral_constant<std::size_t, i>) {
    using Parameter = std::tuple_element_t<i, std::tuple<P...>>;
    if constexpr (i < sizeof...(B)) {
      const std::size_t before = bound.size();
      bind_leaves<Parameter>(std::get<i>(all), sizeof...(B) > 1 ? "w" + std::to_string(i) : "", bound);
      for (std::size_t k = before; k < bound.size(); ++k) types.push_back(type_of(bound[k].value));
    } else {
      for (ir::Type& t : leaf_types<Parameter>()) types.push_back(std::move(t));
    }
  };
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    (one(std::integral_constant<std::size_t, I>{}), ...);
  }(std::index_sequence_for<P...>{});
  const core::ad::Program program = core::detail::program_of(f);
  return exported(program.name, types, program.run, bound, options);
}

}  // namespace detail

/// The program as a model. `values` are for its first arguments: numbers, tensors, and models of them, which
/// become weights of the file. Errors: what ONNX cannot say; a tensor argument without a rank; names that are
/// too many.
template <core::detail::OverReps F, class... B>
Model export_model(F f, const ExportOptions& options = {}, const B&... values) {
  return detail::export_model(
      f, options, std::type_identity<typename core::detail::FunctionTraits<F>::Params>{}, values...);
}
/// The same, written to a file.
template <class F, class... B>
void export_onnx(F f, const std::filesystem::path& path, const ExportOptions& options = {},
                 const B&... values) {
  detail::write_file(path, write(export_model(f, options, values...)));
}

}  // namespace lantern::onnx
