// Programs that are exported, each with arguments and what Lantern computes for them: for tests of the
// exporter.
#pragma once

#include <lantern/nn.hpp>
#include <lantern/onnx.hpp>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "lantern/compiler/onnx/export.hpp"

namespace onnx_programs {

using namespace lantern;

struct Case {
  std::string name;
  onnx::Model model;
  std::vector<onnx::Value> arguments, expected;
  double tolerance = 1e-5;
};

template <class T>
void add_values(const TensorValue<T>& t, std::vector<onnx::Value>& all) {
  all.emplace_back(t);
}
template <onnx::HostElement T>
void add_values(T v, std::vector<onnx::Value>& all) {
  all.emplace_back(v);
}
template <class T>
void add_values(const std::vector<T>& v, std::vector<onnx::Value>& all) {
  TensorValue<T> t({static_cast<std::int64_t>(v.size())});
  t.data = v;
  all.emplace_back(t);
}
template <class... T>
void add_values(const std::tuple<T...>& t, std::vector<onnx::Value>& all) {
  std::apply([&](const auto&... part) { (add_values(part, all), ...); }, t);
}
/// A model.
template <class M>
  requires std::is_class_v<M> && requires(const M& m) { nn::parameter_names(m); }
void add_values(const M& m, std::vector<onnx::Value>& all) {
  nn::for_each_parameter(m, [&](const std::string&, const auto& t) { add_values(t, all); });
}

template <class... B>
struct Weights {
  std::tuple<B...> values;
};
template <class... B>
Weights<B...> weights(const B&... b) {
  return {std::tuple<B...>(b...)};
}

/// A model is passed as a view.
template <class A>
decltype(auto) argument(const A& a) {
  if constexpr (requires { nn::parameter_names(a); } && std::is_class_v<A> && !requires { a.data; })
    return nn::view(a);
  else
    return (a);
}

/// Programs are exported for this version of the operators; 0: for the one that their options say.
inline std::int64_t exported_opset = 0;

/// `f` with its first arguments bound, called with the others.
template <class F, class... B, class... A>
Case make(const std::string& name, F f, const Weights<B...>& bound, onnx::ExportOptions options, const A&... a) {
  if (exported_opset != 0) options.opset = exported_opset;
  return std::apply(
      [&](const B&... b) {
        Case c{name, onnx::export_model(f, options, b...), {}, {}};
        (add_values(a, c.arguments), ...);
        add_values(eager(f)(argument(b)..., argument(a)...), c.expected);
        return c;
      },
      bound.values);
}

/// Numbers from -1 to 1, the same every time.
template <class T>
TensorValue<T> tensor(std::vector<std::int64_t> shape, unsigned seed = 1) {
  TensorValue<T> t(std::move(shape));
  std::uint32_t state = seed * 2654435761U + 12345U;
  for (auto&& v : t.data) {
    state = state * 1664525U + 1013904223U;
    const double x = static_cast<double>(state >> 8) / (1 << 23) - 1;
    if constexpr (std::is_floating_point_v<T>)
      v = static_cast<T>(x);
    else if constexpr (std::is_same_v<T, bool>)
      v = x > 0;
    else
      v = static_cast<T>(static_cast<int>(x * 10));
  }
  return t;
}

inline TensorValue<std::int64_t> labels(const std::vector<std::int64_t>& values) {
  TensorValue<std::int64_t> t({static_cast<std::int64_t>(values.size())});
  t.data = values;
  return t;
}

std::vector<Case> elementwise_programs();
std::vector<Case> tensor_programs();
std::vector<Case> network_programs();
std::vector<Case> control_programs();
std::vector<Case> derivative_programs();

}  // namespace onnx_programs
